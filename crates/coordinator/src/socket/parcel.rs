//! A message on its way, in one piece of memory: where a client's longer head was, ours fits. So a frame is passed
//! on from where it was read to, whole, with one write.

use super::ws::{Kind, MOST_HEAD, write_head};

/// What a parcel costs beside its bytes: its places in queues and the allocator's own notes.
const OVERHEAD: usize = 64;

/// One WebSocket message, ready to be sent.
pub(crate) struct Parcel {
    bytes: Vec<u8>,
    /// Where its head begins; what is before is nothing.
    head: usize,
    /// What was sent already, head included.
    sent: usize,
}

impl Parcel {
    pub(super) fn new(kind: Kind, payload: &[u8]) -> Parcel {
        let mut bytes = Parcel::room(payload.len());
        bytes.extend_from_slice(payload);
        Parcel::seal(kind, bytes)
    }

    /// Memory for a payload of this size, with the place for its head.
    pub(super) fn room(payload: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(MOST_HEAD + payload);
        bytes.resize(MOST_HEAD, 0);
        bytes
    }

    /// What [`Parcel::room`] gave, filled.
    pub(super) fn seal(kind: Kind, mut bytes: Vec<u8>) -> Parcel {
        let head = write_head(kind, &mut bytes);
        Parcel { bytes, head, sent: 0 }
    }

    pub(crate) fn payload(&self) -> &[u8] {
        &self.bytes[MOST_HEAD..]
    }

    /// What is still to be sent.
    pub(super) fn rest(&self) -> &[u8] {
        &self.bytes[self.head + self.sent..]
    }

    pub(super) fn advance(&mut self, sent: usize) {
        self.sent += sent;
    }

    /// Memory it holds.
    pub(crate) fn weight(&self) -> usize {
        self.bytes.capacity() + OVERHEAD
    }
}
