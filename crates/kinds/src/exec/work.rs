//! What a run of a program over many inputs is.

use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};
use shoal_protocol::BlobRef;

/// A WASI preview1 program, run once for each item: the item's bytes on stdin, the answer from stdout.
/// The result of a unit is `[u32 length] * items`, then the bytes of all answers, little-endian.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExecWork {
    /// The module as it was signed; nodes keep it to the job's memory limit.
    pub module: BlobRef,
    pub args: Vec<String>,
    pub env: Vec<(String, String)>,
    pub items: ExecItems,
    /// A JSON list of `{"name", "hash", "size"}`: files the program finds, read-only, in `/data`.
    pub folder: Option<BlobRef>,
    /// Whether the program sees the real time. Without it clocks start at zero and count calls, and
    /// random bytes come from the item's number, so that every node gives the same answer.
    pub clock: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ExecItems {
    /// Item `i` is `data[ends[i - 1]..ends[i]]`; `ends` holds little-endian `u64`s.
    Lines { data: BlobRef, ends: BlobRef },
    /// A JSON list of `{"name", "hash", "size"}`; the name is in `SHOAL_INPUT`.
    Files { manifest: BlobRef },
    /// Of a service: inputs come with requests.
    Requests,
}
