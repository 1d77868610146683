//! What the conversations ask of the process that has the model on a GPU, and what it answers. First comes what is to be
//! loaded, then the bytes of its tensors as they are, each as a message of its own.

use serde::{Deserialize, Serialize};
use shoal_engine::llm::Step;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum Ask {
    Run(Vec<Next>),
    Drop(u64),
    Truncate { sequence: u64, length: u32 },
    Copy { from: u64, to: u64, length: u32 },
}

/// Of a file, what is to be loaded and how.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(in crate::languages) struct Open {
    /// The beginning of the file, up to the weights at least.
    pub(in crate::languages) head: Vec<u8>,
    /// Bytes of all of the file.
    pub(in crate::languages) size: u64,
    pub(in crate::languages) context: u32,
    pub(in crate::languages) sequences: u32,
}

/// A [`Step`], as it travels.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Next {
    sequence: u64,
    position: u32,
    tokens: Vec<u32>,
    wants: u32,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum Answer {
    /// These bytes of the file are to be given next.
    Wants { from: u64, to: u64 },
    /// What was asked is done; behind the last bytes of a file: it can be asked.
    Done,
    /// For each step.
    Numbers(Vec<Option<Vec<f32>>>),
    /// The GPU is gone, for this reason, and the process goes as well.
    Lost(String),
}

impl Next {
    pub(super) fn of(step: &Step) -> Next {
        let Step { sequence, position, tokens, wants } = step.clone();
        Next { sequence, position, tokens, wants: wants as u32 }
    }

    pub(super) fn step(self) -> Step {
        let Next { sequence, position, tokens, wants } = self;
        Step { sequence, position, tokens, wants: wants as usize }
    }
}
