//! A message on its way, in one piece of memory: where a client's longer head was, ours fits. So a frame is passed
//! on from where it was read to, whole, with one write. Only a request's bytes may lie elsewhere, where they came to.

use std::collections::VecDeque;
use std::io::IoSlice;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use shoal_protocol::codec::Wire;
use shoal_protocol::{Bytes, ToNode};
use shoal_scheduler::Conn;

use super::stock;
use super::ws::{Kind, MOST_HEAD, write_head};

/// What a word takes beside the bytes of a request that it carries; longer ones find more room.
const WORD: usize = 64;
/// What is shorter is copied sooner than shared.
const WORTH_SHARING: usize = 16 << 10;
/// What a parcel costs beside its bytes: its places in queues and the allocator's own notes.
const OVERHEAD: usize = 64;

/// One WebSocket message, ready to be sent.
pub(crate) struct Parcel {
    bytes: Vec<u8>,
    /// Behind those. The head is of both.
    tail: Bytes,
    /// Where its head begins; what is before is nothing.
    head: usize,
    /// What was sent already, head included.
    sent: usize,
    load: Option<OnLoad>,
}

/// What all parcels of a relay hold together, from when they are taken to when the system or the other end has them.
#[derive(Default)]
pub(crate) struct Load(AtomicUsize);

impl Load {
    pub(crate) fn bytes(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

/// One parcel's part of the load.
struct OnLoad {
    load: Arc<Load>,
    weight: usize,
}

impl Drop for OnLoad {
    fn drop(&mut self) {
        self.load.0.fetch_sub(self.weight, Ordering::Relaxed);
    }
}

impl Parcel {
    pub(super) fn new(kind: Kind, payload: &[u8]) -> Parcel {
        let mut bytes = Parcel::room(payload.len());
        bytes.extend_from_slice(payload);
        Parcel::seal(kind, bytes)
    }

    /// The coordinator's own words, written where they are sent from.
    pub(super) fn word(words: &ToNode) -> Parcel {
        let carried = match words {
            ToNode::AskMore { call, body } => {
                let bytes = ToNode::ask_more_behind(*call, body.len(), Parcel::room(WORD));
                return Parcel::joined(Kind::Binary, bytes, body.clone());
            }
            ToNode::Ask { body, .. } => body.len(),
            ToNode::Welcome { .. }
            | ToNode::Refused(_)
            | ToNode::Job { .. }
            | ToNode::Lend(_)
            | ToNode::Revoke(_)
            | ToNode::Forget(_)
            | ToNode::Challenge { .. }
            | ToNode::Audition { .. }
            | ToNode::Enlist(_)
            | ToNode::Dismiss { .. }
            | ToNode::ToCrew { .. }
            | ToNode::Quic(_)
            | ToNode::Swarm(_)
            | ToNode::Warm { .. }
            | ToNode::Link => 0,
        };
        let room = Parcel::room(carried + WORD);
        Parcel::seal(Kind::Binary, words.encode_behind(room))
    }

    /// Memory for a payload of this size, with the place for its head.
    pub(crate) fn room(payload: usize) -> Vec<u8> {
        let mut bytes = stock::take(MOST_HEAD + payload);
        bytes.resize(MOST_HEAD, 0);
        bytes
    }

    /// What [`Parcel::room`] gave, filled.
    pub(super) fn seal(kind: Kind, bytes: Vec<u8>) -> Parcel {
        Parcel::joined(kind, bytes, Bytes::new())
    }

    fn joined(kind: Kind, mut bytes: Vec<u8>, tail: Bytes) -> Parcel {
        let head = write_head(kind, &mut bytes, tail.len());
        Parcel { bytes, tail, head, sent: 0, load: None }
    }

    /// A frame that came by another way than a socket, from what [`Parcel::room`] gave.
    pub(crate) fn frame(bytes: Vec<u8>) -> Parcel {
        Parcel::seal(Kind::Binary, bytes)
    }

    /// Counts it as long as it is there.
    pub(crate) fn count_in(&mut self, load: &Arc<Load>) {
        let weight = self.weight();
        load.0.fetch_add(weight, Ordering::Relaxed);
        self.load = Some(OnLoad { load: Arc::clone(load), weight });
    }

    /// Of one whose bytes are in one piece, as all are that came from somebody.
    pub(crate) fn payload(&self) -> &[u8] {
        &self.bytes[MOST_HEAD..]
    }

    /// Whether who keeps a part of it keeps little else.
    pub(super) fn is_mostly_payload(&self) -> bool {
        let length = self.payload().len();
        length >= WORTH_SHARING && 2 * length >= self.bytes.capacity()
    }

    /// What is still to be sent.
    fn rest(&self) -> [&[u8]; 2] {
        let own = &self.bytes[self.head..];
        let of_own = self.sent.min(own.len());
        [&own[of_own..], &self.tail[self.sent - of_own..]]
    }

    /// Bytes of it.
    pub(super) fn left(&self) -> usize {
        self.rest().iter().map(|piece| piece.len()).sum()
    }

    fn advance(&mut self, sent: usize) {
        self.sent += sent;
    }

    pub(super) fn is_begun(&self) -> bool {
        self.sent > 0
    }

    /// Memory it holds.
    pub(crate) fn weight(&self) -> usize {
        self.bytes.capacity() + self.tail.len() + OVERHEAD
    }
}

/// What it carries without the head that only a socket needs: what goes by QUIC or stays here, from where it is.
impl AsRef<[u8]> for Parcel {
    fn as_ref(&self) -> &[u8] {
        self.payload()
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
    let rests = parcels.flat_map(Parcel::rest).filter(|piece| !piece.is_empty());
    for (piece, rest) in found.pieces.iter_mut().zip(rests) {
        *piece = IoSlice::new(rest);
        found.count += 1;
    }
    found
}

/// So many bytes of a batch were sent.
pub(super) fn advance(batch: &mut Batch, mut sent: usize) {
    while let Some((_, first)) = batch.front_mut() {
        let rest = first.left();
        if sent < rest {
            first.advance(sent);
            return;
        }
        sent -= rest;
        batch.pop_front();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shoal_protocol::Attempt;

    /// Sends some parcels, so many bytes at a time.
    fn sent(words: &[ToNode], at_once: usize) -> Vec<u8> {
        let mut batch: Batch = words.iter().map(|word| (Conn(1), Parcel::word(word))).collect();
        let mut sent = Vec::new();
        while !batch.is_empty() {
            let found = pieces(batch.iter().map(|(_, parcel)| parcel));
            let taken: Vec<u8> = found.all().iter().flat_map(|piece| piece.to_vec()).collect();
            let taken = &taken[..at_once.min(taken.len())];
            sent.extend_from_slice(taken);
            advance(&mut batch, taken.len());
        }
        sent
    }

    #[test]
    fn a_requests_bytes_are_sent_from_where_they_lie_and_are_the_same_message() {
        let (call, body) = (Attempt(7), Bytes::from(vec![9; 70_000]));
        let more = ToNode::AskMore { call, body: body.clone() };
        let parcel = Parcel::word(&more);
        assert!(parcel.rest()[1].as_ptr() == body.as_ptr() && parcel.left() > body.len());
        let words = [more, ToNode::Link, ToNode::AskMore { call, body: Bytes::new() }];
        let whole = |word: &ToNode| {
            let mut bytes = Parcel::room(0);
            bytes.extend(word.encode());
            let parcel = Parcel::seal(Kind::Binary, bytes);
            parcel.rest().concat()
        };
        let expected: Vec<u8> = words.iter().flat_map(whole).collect();
        for at_once in [1_000, 69_999, 70_014, usize::MAX] {
            assert_eq!(sent(&words, at_once), expected, "{at_once} at a time");
        }
    }
}
