//! What a map is.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

use super::fold::{Fold, How};
use crate::feed::Feed;
use crate::kernel::Kernel;

/// A kernel over the elements of arrays. Item `i` of the job is invocation `i - offset` of a unit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MapWork {
    pub kernel: Kernel,
    pub inputs: Vec<Feed>,
    /// Bytes of output for each item.
    pub output_bytes: u32,
    /// How outputs are brought together, if they are: items are blocks then.
    pub fold: Option<Fold>,
}

impl MapWork {
    /// What somebody signs.
    pub fn code_text(&self) -> Cow<'_, str> {
        match &self.fold {
            Some(Fold { how: How::Combine(source), .. }) => {
                Cow::Owned(map_code(&self.kernel.source, source))
            }
            Some(_) | None => Cow::Borrowed(&self.kernel.source),
        }
    }
}

/// What is signed of a map whose outputs are brought together by code: both texts.
pub fn map_code(kernel: &str, combine: &str) -> String {
    alloc::format!("{kernel}\n{combine}")
}
