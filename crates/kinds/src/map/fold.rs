//! Bringing a map's outputs together: blocks of items are folded into one, in order, where they are computed.
//! Whoever asked folds the blocks again until one is left. Blocks begin at the same items whatever the units
//! are, so the result's bits do not depend on who computed what.

use alloc::string::String;
use serde::{Deserialize, Serialize};

use shoal_protocol::Span;

/// Items of the map in one block: the result is small beside the array, and a block is soon computed even if
/// its items are heavy.
pub const FOLD_ITEMS: u64 = 256;

/// How the outputs of a map are brought together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fold {
    pub how: How,
    /// What is folded, as WGSL writes it: `f32`, `vec2<f32>`.
    pub element: String,
    /// Elements of each item; each column is folded by itself.
    pub columns: u32,
    /// Bytes that an item of the map writes.
    pub item_bytes: u32,
    /// Items of the map. An item of the job is a block of [`FOLD_ITEMS`].
    pub items: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum How {
    /// Of whole numbers in 64 bits.
    Sum,
    Min,
    Max,
    /// By the function `combine` of this WGSL.
    Combine(String),
}

impl Fold {
    /// The items of the map in some blocks.
    pub fn items_of(&self, blocks: Span) -> Span {
        let start = blocks.start.saturating_mul(FOLD_ITEMS).min(self.items);
        let end = blocks.end().saturating_mul(FOLD_ITEMS).min(self.items);
        Span::new(start, end - start)
    }
}
