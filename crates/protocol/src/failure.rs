//! What went wrong with a unit, as the node saw it.

use alloc::string::String;
use core::fmt;
use serde::{Deserialize, Serialize};

use crate::id::clip;
use crate::limit::{MAX_STDERR_BYTES, MAX_TEXT_BYTES};

/// Append new kinds at the end: the position is the wire format.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Failure {
    /// The device's compiler or validation refused the kernel.
    Kernel {
        message: String,
    },
    /// The program stopped on its own fault. `item` counts in the whole job.
    Trap {
        item: u64,
        message: String,
        stderr: String,
    },
    Exit {
        item: u64,
        code: i32,
        stderr: String,
    },
    /// A limit was passed; `item` is known for programs, not for kernels. `allowed` is in microseconds or bytes.
    Limit {
        item: Option<u64>,
        which: LimitKind,
        allowed: u64,
        stderr: String,
    },
    DeviceLost {
        message: String,
    },
    OutOfMemory {
        message: String,
    },
    /// An input did not arrive, or arrived wrong.
    Fetch {
        message: String,
    },
    /// The node itself is at fault.
    Internal {
        message: String,
    },
    /// The code is not what somebody signed.
    Signature {
        message: String,
    },
    /// This device cannot compute this job rightly; others may.
    Unable {
        message: String,
    },
    /// A kernel looked at elements that its unit was not given.
    Outside {
        message: String,
    },
    /// A model cannot be run on what it was asked.
    Model {
        message: String,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LimitKind {
    Time,
    Memory,
    Output,
}

impl Failure {
    /// Whether the same unit would most likely fail in the same way elsewhere.
    pub fn blames_job(&self) -> bool {
        match self {
            Failure::Kernel { .. }
            | Failure::Trap { .. }
            | Failure::Exit { .. }
            | Failure::Limit { .. }
            | Failure::Signature { .. }
            | Failure::Outside { .. }
            | Failure::Model { .. } => true,
            Failure::DeviceLost { .. }
            | Failure::OutOfMemory { .. }
            | Failure::Fetch { .. }
            | Failure::Internal { .. }
            | Failure::Unable { .. } => false,
        }
    }

    /// With every text cut to what a stranger may send.
    pub fn clipped(mut self) -> Failure {
        let (message, stderr) = match &mut self {
            Failure::Trap { message, stderr, .. } => (Some(message), Some(stderr)),
            Failure::Exit { stderr, .. } | Failure::Limit { stderr, .. } => (None, Some(stderr)),
            Failure::Kernel { message }
            | Failure::DeviceLost { message }
            | Failure::OutOfMemory { message }
            | Failure::Fetch { message }
            | Failure::Internal { message }
            | Failure::Signature { message }
            | Failure::Unable { message }
            | Failure::Outside { message }
            | Failure::Model { message } => (Some(message), None),
        };
        if let Some(message) = message {
            *message = clip(core::mem::take(message), MAX_TEXT_BYTES);
        }
        if let Some(stderr) = stderr {
            *stderr = clip(core::mem::take(stderr), MAX_STDERR_BYTES);
        }
        self
    }

    /// The item at fault, where one can be named.
    pub fn item(&self) -> Option<u64> {
        match self {
            Failure::Trap { item, .. } | Failure::Exit { item, .. } => Some(*item),
            Failure::Limit { item, .. } => *item,
            Failure::Kernel { .. }
            | Failure::DeviceLost { .. }
            | Failure::OutOfMemory { .. }
            | Failure::Fetch { .. }
            | Failure::Internal { .. }
            | Failure::Signature { .. }
            | Failure::Unable { .. }
            | Failure::Outside { .. }
            | Failure::Model { .. } => None,
        }
    }

    /// The end of the program's stderr, where there is any.
    pub fn stderr(&self) -> &str {
        match self {
            Failure::Trap { stderr, .. }
            | Failure::Exit { stderr, .. }
            | Failure::Limit { stderr, .. } => stderr,
            Failure::Kernel { .. }
            | Failure::DeviceLost { .. }
            | Failure::OutOfMemory { .. }
            | Failure::Fetch { .. }
            | Failure::Internal { .. }
            | Failure::Signature { .. }
            | Failure::Unable { .. }
            | Failure::Outside { .. }
            | Failure::Model { .. } => "",
        }
    }
}

/// One line without the item and stderr, which whoever knows the inputs' names adds.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Kernel { message } => write!(f, "the kernel was refused: {message}"),
            Failure::Trap { message, .. } => write!(f, "the program trapped: {message}"),
            Failure::Exit { code, .. } => write!(f, "the program ended with exit code {code}"),
            Failure::Limit { which: LimitKind::Time, allowed, .. } => {
                let (secs, millis) = (allowed / 1_000_000, allowed / 1_000 % 1_000);
                write!(f, "over the time limit of {secs}.{millis:03} s")
            }
            Failure::Limit { which: LimitKind::Memory, allowed, .. } => {
                write!(f, "over the memory limit of {} MiB", allowed >> 20)
            }
            Failure::Limit { which: LimitKind::Output, allowed, .. } => {
                write!(f, "over the output limit of {allowed} bytes")
            }
            Failure::DeviceLost { message } => write!(f, "the GPU was lost: {message}"),
            Failure::OutOfMemory { message } => write!(f, "the node ran out of memory: {message}"),
            Failure::Fetch { message } => write!(f, "an input could not be fetched: {message}"),
            Failure::Internal { message } => write!(f, "the node failed: {message}"),
            Failure::Signature { message } => write!(f, "the code was refused: {message}"),
            Failure::Unable { message } | Failure::Outside { message } => f.write_str(message),
            Failure::Model { message } => write!(f, "the model failed: {message}"),
        }
    }
}
