//! A WGSL kernel over the tiles of a picture.

mod work;

#[cfg(feature = "plan")]
mod plan;
#[cfg(feature = "plan")]
mod request;
#[cfg(feature = "plan")]
mod shown;

pub use work::{Pixel, RenderPlan, RenderWork};

#[cfg(feature = "plan")]
pub use plan::RenderError;
#[cfg(feature = "plan")]
pub use request::RenderRequest;
#[cfg(feature = "plan")]
pub use shown::RenderJson;

use alloc::vec::Vec;
use shoal_protocol::Lane;

use crate::form::Form;
use crate::kind::{About, Code, Told, body};
use crate::plain::Plain;

impl About for RenderWork {
    fn name(&self) -> &'static str {
        "render"
    }

    fn told() -> Told {
        Told { item: "tile", items: "tiles", ..Told::of("parts of a picture, on the GPU") }
    }

    fn lane(&self) -> Lane {
        Lane::Gpu
    }

    fn code(&self) -> Option<Code> {
        Some(Code::kernel(&self.kernel.source))
    }

    fn form(&self) -> Form<'_> {
        Form::Tiles(self)
    }

    fn plain(&self) -> Plain {
        Plain::kernel(self)
    }

    fn body(&self) -> Vec<u8> {
        body(self)
    }

    #[cfg(feature = "plan")]
    fn shown(&self) -> crate::plan::Shown {
        let RenderWork { width, height, tile, samples, pixel, .. } = *self;
        let render = Some(RenderJson { width, height, tile, pixel, samples });
        crate::plan::Shown { render, ..crate::plan::Shown::default() }
    }

    #[cfg(feature = "plan")]
    fn settings(&self) -> crate::plan::Settings {
        let mut settings = crate::plan::kernel_settings(&self.kernel);
        settings.insert("height".into(), self.height.into());
        settings.insert("pixel".into(), self.pixel.word().into());
        settings.insert("samples".into(), self.samples.into());
        settings.insert("tile".into(), self.tile.into());
        settings.insert("width".into(), self.width.into());
        settings
    }
}
