//! A message on its way, in one piece of memory: where a client's longer head was, ours fits. So a frame is passed
//! on from where it was read to, whole, with one write.

use std::collections::VecDeque;
use std::io::IoSlice;

use shoal_scheduler::Conn;

use super::stock;
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
        let mut bytes = stock::take(MOST_HEAD + payload);
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

    fn advance(&mut self, sent: usize) {
        self.sent += sent;
    }

    pub(super) fn is_begun(&self) -> bool {
        self.sent > 0
    }

    /// Memory it holds.
    pub(crate) fn weight(&self) -> usize {
        self.bytes.capacity() + OVERHEAD
    }
}

impl Drop for Parcel {
    fn drop(&mut self) {
        stock::give(std::mem::take(&mut self.bytes));
    }
}

/// Parcels that are written together, with whom they are from.
pub(super) type Batch = VecDeque<(Conn, Parcel)>;

/// Pieces in one call to the system: a batch of full frames, and the coordinator's words before it.
const PIECES: usize = 16;

/// What is next of some parcels, without memory of its own.
pub(super) struct Pieces<'a> {
    pieces: [IoSlice<'a>; PIECES],
    count: usize,
}

impl<'a> Pieces<'a> {
    pub(super) fn all(&self) -> &[IoSlice<'a>] {
        &self.pieces[..self.count]
    }
}

pub(super) fn pieces<'a>(parcels: impl Iterator<Item = &'a Parcel>) -> Pieces<'a> {
    let mut found = Pieces { pieces: [IoSlice::new(&[]); PIECES], count: 0 };
    for (piece, parcel) in found.pieces.iter_mut().zip(parcels) {
        *piece = IoSlice::new(parcel.rest());
        found.count += 1;
    }
    found
}

/// So many bytes of a batch were sent.
pub(super) fn advance(batch: &mut Batch, mut sent: usize) {
    while let Some((_, first)) = batch.front_mut() {
        let rest = first.rest().len();
        if sent < rest {
            first.advance(sent);
            return;
        }
        sent -= rest;
        batch.pop_front();
    }
}
