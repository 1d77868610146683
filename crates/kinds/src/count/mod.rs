//! How often a value is among numbers. This is the example of CONTRIBUTING.md, and only tests build it.
//!
//! An item is a block of numbers, its answer how many of them are the value. Whoever asked adds the answers up.

#[cfg(feature = "plan")]
mod plan;

#[cfg(feature = "plan")]
pub use plan::{CountError, CountRequest};

use alloc::vec::Vec;
use serde::{Deserialize, Serialize};
use shoal_protocol::Lane;

use crate::feed::Feed;
use crate::form::Form;
use crate::kind::{About, Told, body};
use crate::plain::Plain;

/// Numbers in an item: so many that a unit's answers are small beside its numbers.
pub const BLOCK: u32 = 1024;
/// Invocations of a workgroup, each with one item.
pub const WORKGROUP: u32 = 64;

/// What a node is told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CountWork {
    pub input: Feed,
    pub value: u32,
}

impl About for CountWork {
    fn name(&self) -> &'static str {
        "count"
    }

    fn told() -> Told {
        Told::of("how often a value is among numbers, on the GPU")
    }

    fn brings_code() -> bool {
        false
    }

    fn lane(&self) -> Lane {
        Lane::Gpu
    }

    /// A `u32` for each block.
    fn form(&self) -> Form<'_> {
        Form::Items { bytes: 4 }
    }

    fn is_rounded(&self) -> bool {
        false
    }

    fn feeds(&self) -> &[Feed] {
        core::slice::from_ref(&self.input)
    }

    fn plain(&self) -> Plain {
        Plain::kernel(self)
    }

    fn body(&self) -> Vec<u8> {
        body(self)
    }

    #[cfg(feature = "plan")]
    fn settings(&self) -> crate::plan::Settings {
        [("value".into(), self.value.into())].into_iter().collect()
    }

    #[cfg(feature = "plan")]
    fn inputs(&self, _store: &dyn crate::plan::Store) -> Vec<crate::plan::NamedInput> {
        [crate::plan::NamedInput::plain("input", &self.input.blob)].into()
    }

    #[cfg(feature = "plan")]
    fn sides(&self, items: u64, _per_item: u64) -> Option<Vec<u64>> {
        Some([items].into())
    }
}
