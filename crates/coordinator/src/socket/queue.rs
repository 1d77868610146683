//! What waits for one node, within bounds: frames for its socket, and frames for its way by QUIC while there is one.
//! Both count together, so a node that has two ways holds no more than one that has one.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use shoal_protocol::limit::LINK_WINDOW;
use shoal_scheduler::Conn;
use tokio::sync::{Notify, oneshot};

use super::parcel::{Batch, Parcel};

/// What may wait from one node to another: a link's whole window, and what it says beside it.
pub(crate) const MAX_PAIR_BYTES: usize = LINK_WINDOW as usize + (256 << 10);
/// What may wait for one node in all: eight full windows.
pub(crate) const MAX_HELD_BYTES: usize = 32 << 20;
/// Frames handed over at once. Less would cost calls; more would keep the coordinator's own words waiting.
pub(super) const BATCH_BYTES: usize = 256 << 10;

#[derive(Default)]
pub(super) struct Queue {
    /// Somebody writes to the socket now. Others leave what they have in the queue.
    pub(super) busy: bool,
    /// The node's own task waits for its turn.
    pub(super) wanted: bool,
    /// Takes no more frames.
    refuses: bool,
    pub(super) closed: bool,
    /// For the socket, in order, with whom they are from. The first may be partly sent.
    frames: VecDeque<(Conn, Parcel)>,
    /// Where new frames go while it is there.
    quic: Option<QuicEnd>,
    held: usize,
    by_source: BTreeMap<Conn, usize>,
    /// The answer to the last ping.
    pub(super) pong: Option<Parcel>,
}

/// A way by QUIC, as this end sees it.
struct QuicEnd {
    number: u64,
    frames: VecDeque<(Conn, Parcel)>,
    wake: Arc<Notify>,
    /// Gone with this, which its task hears.
    _alive: oneshot::Sender<()>,
}

/// The same, as its own task sees it.
pub(crate) struct QuicWay {
    pub(super) number: u64,
    pub(super) wake: Arc<Notify>,
}

/// Ready when a way is not the node's any more.
pub(crate) type Over = oneshot::Receiver<()>;

impl Queue {
    /// A closed one is found out by whoever tries.
    pub(super) fn has_work(&self) -> bool {
        self.closed || self.pong.is_some() || !self.frames.is_empty()
    }

    pub(super) fn takes(&self) -> bool {
        !self.closed && !self.refuses
    }

    /// Whether it was taken, and if so whether it goes by QUIC.
    pub(super) fn push(&mut self, source: Conn, parcel: Parcel) -> Option<bool> {
        let weight = parcel.weight();
        let from_it = self.by_source.entry(source).or_default();
        if *from_it + weight > MAX_PAIR_BYTES || self.held + weight > MAX_HELD_BYTES {
            return None;
        }
        *from_it += weight;
        self.held += weight;
        match &mut self.quic {
            Some(way) => way.frames.push_back((source, parcel)),
            None => self.frames.push_back((source, parcel)),
        }
        Some(self.quic.is_some())
    }

    fn pop(&mut self) -> Option<(Conn, Parcel)> {
        let (source, parcel) = self.frames.pop_front()?;
        self.left(source, parcel.weight());
        Some((source, parcel))
    }

    fn left(&mut self, source: Conn, weight: usize) {
        self.held -= weight;
        if let Some(from_it) = self.by_source.get_mut(&source) {
            *from_it -= weight;
            if *from_it == 0 {
                self.by_source.remove(&source);
            }
        }
    }

    /// A frame that is partly sent.
    pub(super) fn pop_begun(&mut self) -> Option<(Conn, Parcel)> {
        let is_begun = self.frames.front().is_some_and(|(_, first)| first.is_begun());
        if is_begun { self.pop() } else { None }
    }

    pub(super) fn take(&mut self, batch: &mut Batch) {
        let mut size = 0;
        while size < BATCH_BYTES
            && let Some((source, parcel)) = self.pop()
        {
            size += parcel.left();
            batch.push_back((source, parcel));
        }
    }

    /// What could not be sent is in front again.
    pub(super) fn put_back(&mut self, batch: Batch) {
        for (source, parcel) in batch.into_iter().rev() {
            let weight = parcel.weight();
            *self.by_source.entry(source).or_default() += weight;
            self.held += weight;
            self.frames.push_front((source, parcel));
        }
    }

    pub(super) fn held(&self) -> usize {
        self.held
    }

    /// Throws away the newer half of what waits. How many frames that were.
    pub(super) fn halve(&mut self) -> u64 {
        let (most, mut count) = (self.held / 2, 0);
        while self.held > most {
            let by_quic = self.quic.as_mut().and_then(|way| way.frames.pop_back());
            let has_whole = self.frames.back().is_some_and(|(_, last)| !last.is_begun());
            let next = by_quic.or_else(|| if has_whole { self.frames.pop_back() } else { None });
            let Some((source, parcel)) = next else { break };
            self.left(source, parcel.weight());
            count += 1;
        }
        count
    }

    /// A new way by QUIC; what waits for an older one goes there. `None` if the node takes nothing any more.
    pub(super) fn open_quic(&mut self, number: u64) -> Option<(QuicWay, Over)> {
        if !self.takes() {
            return None;
        }
        let (alive, over) = oneshot::channel();
        let wake = Arc::new(Notify::new());
        let before = self.quic.take().map(|way| way.frames).unwrap_or_default();
        self.quic = Some(QuicEnd { number, frames: before, wake: wake.clone(), _alive: alive });
        Some((QuicWay { number, wake }, over))
    }

    /// The way is gone. What waits for it goes by the socket.
    pub(super) fn close_quic(&mut self, number: u64) {
        if let Some(way) = self.quic.take_if(|way| way.number == number) {
            self.frames.extend(way.frames);
        }
    }

    /// Who is to be told that there are frames for QUIC.
    pub(super) fn quic_waits(&self) -> Option<&Notify> {
        self.quic.as_ref().filter(|way| !way.frames.is_empty()).map(|way| &*way.wake)
    }

    /// Whether it is still this way's turn; its next frames are added to the batch.
    pub(super) fn take_quic(&mut self, number: u64, batch: &mut Vec<Parcel>) -> bool {
        let mut size = 0;
        while size < BATCH_BYTES {
            let Some(way) = self.quic.as_mut().filter(|way| way.number == number) else {
                return false;
            };
            let Some((source, parcel)) = way.frames.pop_front() else { break };
            self.left(source, parcel.weight());
            size += parcel.payload().len();
            batch.push(parcel);
        }
        true
    }

    /// Throws away what waits, and what still comes; something that is partly sent can be ended.
    pub(super) fn forget_frames(&mut self) {
        let begun = self.pop_begun();
        self.frames.clear();
        self.quic = None;
        self.by_source.clear();
        self.held = 0;
        self.put_back(begun.into_iter().collect());
        self.refuses = true;
    }

    pub(super) fn close(&mut self) {
        *self = Queue { closed: true, busy: true, ..Queue::default() };
    }
}
