//! Versions in parts: cut no faster than they are taken, and put together whole or not at all.

use std::sync::Arc;

use shoal_protocol::Hasher;

use crate::error::{Code, PeerError};
use crate::words::Part;

/// What one message carries of a buffer: enough to make its own cost small, little enough that it travels while the
/// next is read.
pub const PART_BYTES: usize = 1 << 20;
/// Bytes on the way that the other end has not taken: a link's own window twice, so that the link is never idle.
pub const WINDOW_BYTES: u64 = 8 << 20;

/// A version on its way.
#[derive(Debug)]
pub(crate) struct Sending {
    bytes: Arc<Vec<u8>>,
    version: u64,
    to_owner: bool,
    at: usize,
    waiting: u64,
    hash: String,
}

impl Sending {
    pub(crate) fn new(bytes: Arc<Vec<u8>>, hash: String, version: u64, to_owner: bool) -> Sending {
        Sending { bytes, version, to_owner, at: 0, waiting: 0, hash }
    }

    /// The next part, if it may leave.
    pub(crate) fn next(&mut self, id: u64) -> Option<(Part, &[u8])> {
        let end = self.bytes.len().min(self.at + PART_BYTES);
        let size = (end - self.at) as u64;
        if size == 0 || self.waiting + size > WINDOW_BYTES {
            return None;
        }
        let (offset, last) = (self.at as u64, end == self.bytes.len());
        let hash = if last { self.hash.clone() } else { String::new() };
        let part = Part { id, to_owner: self.to_owner, offset, last, version: self.version, hash };
        let bytes = &self.bytes[self.at..end];
        self.at = end;
        self.waiting += size;
        Some((part, bytes))
    }

    pub(crate) fn took(&mut self, bytes: u64) {
        self.waiting = self.waiting.saturating_sub(bytes);
    }

    /// Nothing is left to say.
    pub(crate) fn is_said(&self) -> bool {
        self.at == self.bytes.len()
    }
}

/// Where parts arrive.
#[derive(Debug)]
pub(crate) struct Landing {
    size: u64,
    bytes: Vec<u8>,
}

impl Landing {
    pub(crate) fn new(size: u64) -> Landing {
        Landing { size, bytes: Vec::new() }
    }

    /// The whole and its hash, once the last part is there and it is what was sent.
    pub(crate) fn take(
        &mut self,
        part: &Part,
        bytes: &[u8],
    ) -> Result<Option<(Vec<u8>, String)>, PeerError> {
        let (at, end) = (self.bytes.len() as u64, part.offset.saturating_add(bytes.len() as u64));
        if part.offset != at || end > self.size || part.last != (end == self.size) {
            let (offset, size) = (part.offset, self.size);
            let message = format!(
                "the peer sent bytes {offset} to {end} of {size}; expected to go on at {at}"
            );
            return Err(PeerError::new(Code::Protocol, message));
        }
        self.bytes.extend_from_slice(bytes);
        if !part.last {
            return Ok(None);
        }
        let bytes = std::mem::take(&mut self.bytes);
        let hash = hash_of(&bytes);
        // A page that could not load its hash function sends none; the link has its own.
        if !part.hash.is_empty() && part.hash != hash {
            let message = format!("what arrived has the hash {hash}; the peer sent {}", part.hash);
            return Err(PeerError::new(Code::Hash, message));
        }
        Ok(Some((bytes, hash)))
    }
}

pub(crate) fn hash_of(bytes: &[u8]) -> String {
    let mut hasher = Hasher::new();
    hasher.update(bytes);
    hasher.finish().to_string()
}
