//! What a run of a program over many inputs is.

use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Deserializer, Serialize};
use shoal_protocol::BlobRef;

/// What a run may keep in its files, at most: as much as four answers of the usual limit.
const MAX_FILES_BYTES: u64 = 64 << 20;

/// Bytes that a run may keep in `/tmp` and `/out`, names and folders included, beside its memory: a quarter of what the job allows
/// that.
pub fn files_room(memory: u64) -> u64 {
    (memory / 4).min(MAX_FILES_BYTES)
}

/// A WASI preview1 program, run once for each item: the item's bytes on stdin, the answer from stdout.
/// A unit's result has the form [`crate::Form::Answers`].
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
    /// Appended: whoever wrote it before this field was there wanted the first failed run to end the job.
    #[serde(deserialize_with = "read_failing")]
    pub failing: Failing,
    /// Whether a run may leave more than its answer: files in `/out`, and the end of its stderr. Appended: whoever wrote it
    /// before this field was there knew of neither.
    #[serde(deserialize_with = "read_leaves")]
    pub leaves: bool,
}

/// What counts as a failed run, and what becomes of it. It is about runs that fail by themselves, on every node alike:
/// that end with another exit code, trap, or go over a limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failing {
    /// The first failed run ends the job. Otherwise the others go on, and how it ended stands in the result.
    pub stop: bool,
    /// Exit codes of runs that did what they should.
    pub ok: Vec<i32>,
    /// How often a failed run is tried again, each time with other random bytes.
    pub retry: u32,
}

impl Default for Failing {
    fn default() -> Failing {
        Failing { stop: true, ok: [0].into(), retry: 0 }
    }
}

/// Work that older coordinators wrote ends before it.
fn read_failing<'de, D: Deserializer<'de>>(from: D) -> Result<Failing, D::Error> {
    Ok(Failing::deserialize(from).unwrap_or_default())
}

fn read_leaves<'de, D: Deserializer<'de>>(from: D) -> Result<bool, D::Error> {
    Ok(bool::deserialize(from).unwrap_or_default())
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

#[cfg(test)]
mod tests {
    use super::*;
    use shoal_protocol::Hash;

    #[test]
    fn work_of_before_there_was_a_choice_stops_at_the_first_failed_run_and_leaves_nothing() {
        let module = BlobRef { hash: Hash([7; 32]), size: 9 };
        let items = ExecItems::Files { manifest: module };
        let failing = Failing { stop: false, ok: [0, 10].into(), retry: 2 };
        let work = ExecWork {
            module,
            args: ["a".into()].into(),
            env: Vec::new(),
            items,
            folder: None,
            clock: false,
            failing,
            leaves: true,
        };
        let bytes = postcard::to_allocvec(&work).expect("plain data");
        assert_eq!(postcard::from_bytes(&bytes), Ok(work.clone()));
        let older = ExecWork { leaves: false, ..work.clone() };
        assert_eq!(postcard::from_bytes(&bytes[..bytes.len() - 1]), Ok(older.clone()));
        let appended = postcard::to_allocvec(&work.failing).expect("plain data").len();
        let oldest = postcard::from_bytes(&bytes[..bytes.len() - 1 - appended]);
        assert_eq!(oldest, Ok(ExecWork { failing: Failing::default(), ..older }));
    }
}
