//! A WGSL kernel over the elements of arrays.
//!
//! - [`work`]: what a map is, [`fold`]: bringing its outputs together
//! - [`found`]: what a check of its code finds out
//! - `request`, `plan`: asking for one; `look` and `reduce` cut its arrays, `types` holds its numbers against the
//!   kernel's

pub mod fold;
mod found;
mod work;

#[cfg(feature = "plan")]
mod error;
#[cfg(feature = "plan")]
mod look;
#[cfg(feature = "plan")]
mod plan;
#[cfg(feature = "plan")]
mod reduce;
#[cfg(feature = "plan")]
mod request;
#[cfg(feature = "plan")]
mod shown;
#[cfg(feature = "plan")]
mod types;

pub use fold::{Fold, How};
pub use found::{
    FoldPlan, InputAsk, MOST_WHOLE_BYTES, MapAsk, MapPlan, MapReading, Reading, TooFar,
};
pub use work::{MapWork, map_code};

#[cfg(feature = "plan")]
pub use error::MapError;
#[cfg(feature = "plan")]
pub use request::{EdgeJson, KernelRequest, MapInputRequest, MapRequest, OpJson, ReduceJson};
#[cfg(feature = "plan")]
pub use shown::{ArrayJson, KernelJson, KernelNeedsJson, ReducedJson};
#[cfg(feature = "plan")]
pub use types::describe;

use alloc::vec::Vec;
use shoal_protocol::Lane;

use crate::feed::Feed;
use crate::form::Form;
use crate::kind::{About, Code, Told, body};
use crate::plain::Plain;

impl About for MapWork {
    fn name(&self) -> &'static str {
        "map"
    }

    fn told() -> Told {
        Told::of("a GPU kernel over numbers")
    }

    fn lane(&self) -> Lane {
        Lane::Gpu
    }

    fn code(&self) -> Option<Code> {
        Some(Code::kernel(&self.code_text()))
    }

    fn form(&self) -> Form<'_> {
        Form::Items { bytes: self.output_bytes.into() }
    }

    fn feeds(&self) -> &[Feed] {
        &self.inputs
    }

    fn plain(&self) -> Plain {
        Plain::kernel(self)
    }

    fn body(&self) -> Vec<u8> {
        body(self)
    }

    #[cfg(feature = "plan")]
    fn settings(&self) -> crate::plan::Settings {
        let mut settings = crate::plan::kernel_settings(&self.kernel);
        settings.insert("itemBytes".into(), self.output_bytes.into());
        settings
    }

    #[cfg(feature = "plan")]
    fn inputs(&self, _store: &dyn crate::plan::Store) -> Vec<crate::plan::NamedInput> {
        let inputs = self.inputs.iter();
        inputs.map(|input| crate::plan::NamedInput::plain("input", &input.blob)).collect()
    }

    #[cfg(feature = "plan")]
    fn sides(&self, items: u64, per_item: u64) -> Option<Vec<u64>> {
        let sides = [items, per_item];
        Some(if per_item == 1 { sides[..1].into() } else { sides.into() })
    }
}
