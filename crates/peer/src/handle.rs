//! What one application gives the other, so that it may use a buffer.

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Right {
    /// Its contents may be fetched.
    Read,
    /// They may be replaced.
    Write,
    /// Shaders of the peer may run over it, where the owner has a device for that.
    Execute,
}

impl Right {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Right::Read => "read",
            Right::Write => "write",
            Right::Execute => "execute",
        }
    }
}

/// A set of them, each once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rights(Vec<Right>);

impl Rights {
    pub fn of(rights: &[Right]) -> Rights {
        let mut rights = rights.to_vec();
        rights.sort_unstable();
        rights.dedup();
        Rights(rights)
    }

    pub fn has(&self, right: Right) -> bool {
        self.0.contains(&right)
    }

    /// For people.
    pub(crate) fn names(&self) -> String {
        if self.0.is_empty() {
            return String::from("nothing");
        }
        self.0.iter().map(|right| right.name()).collect::<Vec<_>>().join(", ")
    }
}

/// A plain value, the same in JSON as a page's. Good on the connection it was made for, and nowhere else.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Handle {
    #[serde(rename = "type")]
    pub(crate) kind: Kind,
    /// The owner's number in the pool.
    pub peer: u64,
    /// Which of the buffers the owner exported on this connection.
    pub buffer: u32,
    pub label: String,
    /// In bytes.
    pub size: u64,
    /// WebGPU's flags of the owner's buffer; only pages care.
    pub usage: u32,
    /// The newest version when the handle was made.
    pub version: u64,
    /// What the owner allows. It checks every operation against what it granted, not against this.
    pub rights: Rights,
    /// Not to be guessed.
    pub(crate) token: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Kind {
    #[serde(rename = "gpu-buffer")]
    Buffer,
}
