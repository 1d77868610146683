//! Which bytes a unit is given.

use serde::{Deserialize, Serialize};
use shoal_protocol::{BlobRef, Span};

/// A blob that units read, and how much of it each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Feed {
    pub blob: BlobRef,
    pub split: InputSplit,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum InputSplit {
    /// A unit gets this many bytes for each of its items, and `reach` more before and behind them.
    PerItem { bytes: u32, reach: u32 },
    /// Every unit gets all of it: tables, weights, the other matrix.
    Whole,
}

impl Feed {
    /// The bytes a unit gets; the array's ends cut them off.
    pub fn range(&self, span: Span) -> (u64, u64) {
        match self.split {
            InputSplit::Whole => (0, self.blob.size),
            InputSplit::PerItem { bytes, reach } => {
                let (bytes, reach) = (u64::from(bytes), u64::from(reach));
                let start = span.start.saturating_mul(bytes).saturating_sub(reach);
                let end = span.end().saturating_mul(bytes).saturating_add(reach);
                (start.min(self.blob.size), end.min(self.blob.size))
            }
        }
    }
}
