//! Units without content: they measure what the pool itself costs.

#[cfg(feature = "plan")]
mod plan;

#[cfg(feature = "plan")]
pub use plan::NoopRequest;

use alloc::vec::Vec;
use serde::{Deserialize, Serialize};
use shoal_protocol::Lane;

use crate::form::Form;
use crate::kind::{About, Told, body};
use crate::plain::Plain;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoopWork;

impl About for NoopWork {
    fn name(&self) -> &'static str {
        "noop"
    }

    fn told() -> Told {
        Told::of("empty units, to measure the pool")
    }

    fn brings_code() -> bool {
        false
    }

    fn lane(&self) -> Lane {
        Lane::Inline
    }

    fn form(&self) -> Form<'_> {
        Form::Nothing
    }

    fn plain(&self) -> Plain {
        Plain::Object([("kind", Plain::Text("noop".into()))].into())
    }

    fn body(&self) -> Vec<u8> {
        body(self)
    }
}
