//! What can go wrong between two applications that share buffers.

use std::fmt;

use serde::{Deserialize, Serialize};

/// By the names that pages use too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Code {
    NoMesh,
    NotMet,
    NoAnswer,
    /// The peer closed the connection or left.
    PeerGone,
    DeviceLost,
    /// One of the two cannot do what is asked for.
    Capability,
    /// Not of this connection, forged, or taken back.
    UnknownHandle,
    /// The handle does not carry the right.
    Denied,
    /// Of another size than the other end's.
    Size,
    Usage,
    /// The owner has another version than the one this is based on.
    Stale,
    /// What arrived is not what was sent.
    Hash,
    Shader,
    /// Too much at a time.
    Busy,
    /// The peer says what nobody should.
    Protocol,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerError {
    pub code: Code,
    /// What, where, and what was expected.
    pub message: String,
}

impl PeerError {
    pub(crate) fn new(code: Code, message: impl Into<String>) -> PeerError {
        PeerError { code, message: message.into() }
    }
}

impl fmt::Display for PeerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for PeerError {}
