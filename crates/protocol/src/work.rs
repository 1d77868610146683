//! What is to be computed, as it travels: the name of its kind, and bytes that only the kind reads. So a peer
//! passes on work of a kind it does not know, and says so when it is asked to do it.

use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// The computation of a job. The crate `kinds` makes and reads it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Work {
    /// Such as `map`.
    pub kind: String,
    #[serde(with = "crate::raw")]
    pub body: Vec<u8>,
}
