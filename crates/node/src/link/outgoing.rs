//! What this end says: messages are kept until the peer has checked them, and cut into chunks turn by turn,
//! so that a large tensor does not stand before a barrier.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Bound;
use shoal_protocol::limit::{
    LINK_WINDOW, MAX_CHANNELS, MAX_CHUNKS_AHEAD, MAX_MESSAGE_BYTES, MAX_OPEN_BYTES,
};
use shoal_protocol::{Hasher, Time};

use super::chunk::Chunk;
use super::flight::{Flight, Flying};

/// Bytes of messages waiting or on the way. A crew that says more ahead of its peers does not need more
/// room, it needs to wait.
pub(super) const MAX_QUEUED_BYTES: u64 = 4 * MAX_MESSAGE_BYTES;
/// Messages waiting or on the way, so that empty ones are bounded too.
pub(super) const MAX_QUEUED: usize = 4096;

#[derive(Debug)]
pub(super) struct Outgoing {
    channels: BTreeMap<u16, Channel>,
    /// The channel that was served last.
    turn: u16,
    pub(super) flight: Flight,
    /// Bytes the peer allows in this epoch, and those used of them.
    granted: u64,
    spent: u64,
    queued: usize,
    queued_bytes: u64,
    /// Bytes of messages of several chunks that are begun and not all cut.
    open: u64,
}

#[derive(Debug, Default)]
struct Channel {
    next: u64,
    kept: VecDeque<Unconfirmed>,
}

#[derive(Debug)]
struct Unconfirmed {
    number: u64,
    bytes: Arc<Vec<u8>>,
    cut: Cut,
    /// The peer refused it once.
    again: bool,
}

#[derive(Debug)]
enum Cut {
    Waiting,
    Begun {
        at: usize,
        hasher: Box<Hasher>,
    },
    /// All of it is on the way; this is its last chunk.
    Done {
        last: u64,
    },
}

impl Outgoing {
    pub(super) fn new(now: Time) -> Outgoing {
        Outgoing {
            channels: BTreeMap::new(),
            turn: 0,
            flight: Flight::new(now),
            granted: LINK_WINDOW,
            spent: 0,
            queued: 0,
            queued_bytes: 0,
            open: 0,
        }
    }

    /// Takes a message, or gives it back if it is too large or too much is waiting already.
    pub(super) fn queue(
        &mut self,
        now: Time,
        channel: u16,
        bytes: Arc<Vec<u8>>,
    ) -> Result<(), Arc<Vec<u8>>> {
        let size = bytes.len() as u64;
        let new_channel = !self.channels.contains_key(&channel);
        if size > MAX_MESSAGE_BYTES
            || self.queued_bytes + size > MAX_QUEUED_BYTES
            || self.queued >= MAX_QUEUED
            || new_channel && self.channels.len() >= MAX_CHANNELS
        {
            return Err(bytes);
        }
        if !self.is_busy() {
            self.flight.progress(now);
            self.flight.calm();
        }
        (self.queued, self.queued_bytes) = (self.queued + 1, self.queued_bytes + size);
        let channel = self.channels.entry(channel).or_default();
        channel.kept.push_back(Unconfirmed {
            number: channel.next,
            bytes,
            cut: Cut::Waiting,
            again: false,
        });
        channel.next += 1;
        Ok(())
    }

    /// Whether the peer has yet to take something.
    pub(super) fn is_busy(&self) -> bool {
        self.queued > 0
    }

    pub(super) fn queued_bytes(&self) -> u64 {
        self.queued_bytes
    }

    /// Whether there is something that is not on the way yet.
    pub(super) fn is_waiting(&self) -> bool {
        self.channels.values().any(|channel| channel.uncut().is_some())
    }

    pub(super) fn grant(&mut self, granted: u64) {
        self.granted = self.granted.max(granted);
    }

    /// Cuts the next chunk of the next channel whose turn it is, if `allowance` bytes on the way, the peer's
    /// credit and the bounds let it. Its place in the flight.
    pub(super) fn cut(&mut self, allowance: u64, chunk: usize) -> Option<usize> {
        if self.flight.span() >= MAX_CHUNKS_AHEAD || self.flight.bytes() >= allowance {
            return None;
        }
        let credit = self.granted.saturating_sub(self.spent);
        let after = self.channels.range((Bound::Excluded(self.turn), Bound::Unbounded));
        let mut turns = after.chain(self.channels.range(..=self.turn));
        let channel = turns.find_map(|(channel, state)| {
            let kept = state.uncut().and_then(|at| state.kept.get(at))?;
            let fits = kept.next_size(chunk) as u64 <= credit && self.may_open(kept, chunk);
            fits.then_some(*channel)
        })?;
        self.turn = channel;
        self.cut_of(channel, chunk)
    }

    fn may_open(&self, kept: &Unconfirmed, chunk: usize) -> bool {
        let size = kept.bytes.len();
        let begins = matches!(kept.cut, Cut::Waiting) && size > chunk;
        !begins || self.open + size as u64 <= MAX_OPEN_BYTES
    }

    fn cut_of(&mut self, channel: u16, chunk: usize) -> Option<usize> {
        let state = self.channels.get_mut(&channel)?;
        let at = state.uncut()?;
        let kept = state.kept.get_mut(at)?;
        let (total, take) = (kept.bytes.len(), kept.next_size(chunk));
        let (from, mut hasher) = match core::mem::replace(&mut kept.cut, Cut::Waiting) {
            Cut::Begun { at, hasher } => {
                self.open -= total as u64;
                (at, hasher)
            }
            Cut::Waiting | Cut::Done { .. } => (0, Box::new(Hasher::new())),
        };
        hasher.update(kept.bytes.get(from..from + take)?);
        let number = self.flight.next_number();
        let ends = from + take == total;
        let hash = ends.then(|| hasher.finish());
        kept.cut = if ends {
            Cut::Done { last: number }
        } else {
            self.open += total as u64;
            Cut::Begun { at: from + take, hasher }
        };
        self.spent += take as u64;
        let message = kept.number;
        Some(self.flight.add(Flying::new(number, channel, message, from..from + take, hash)))
    }

    /// The words of a chunk in the flight, with its channel.
    pub(super) fn chunk(&self, place: usize) -> Option<(u16, Chunk<'_>)> {
        let flying = self.flight.get(place)?;
        let channel = self.channels.get(&flying.channel)?;
        let first = channel.kept.front()?.number;
        let kept = channel.kept.get(flying.message.checked_sub(first)? as usize)?;
        let total = (flying.range.start == 0).then_some(kept.bytes.len() as u64);
        let bytes = kept.bytes.get(flying.range.clone())?;
        let (number, message, hash) = (flying.number, flying.message, flying.hash);
        Some((flying.channel, Chunk { number, message, total, hash, bytes }))
    }

    /// Forgets messages whose chunks all arrived. The peer checks a message before it acknowledges the last
    /// chunk, so nobody will ask for them again.
    pub(super) fn retire(&mut self) {
        let arrived = self.flight.all_arrived_below();
        for channel in self.channels.values_mut() {
            while let Some(Cut::Done { last }) = channel.kept.front().map(|kept| &kept.cut)
                && *last < arrived
            {
                let size = channel.kept.pop_front().map_or(0, |kept| kept.bytes.len() as u64);
                (self.queued, self.queued_bytes) = (self.queued - 1, self.queued_bytes - size);
            }
        }
    }

    /// The peer refused a message: it goes again, and what came after it on its channel, because the peer
    /// skips those to keep their order. The peer repeats its refusal until it hears us, so only the first counts.
    pub(super) fn rewind(&mut self, channel: u16, message: u64) {
        let Some(channel) = self.channels.get_mut(&channel) else { return };
        let Some(at) = channel.kept.iter().position(|kept| kept.number == message) else { return };
        if channel.kept.get(at).is_none_or(|kept| kept.again) {
            return;
        }
        for (place, kept) in channel.kept.iter_mut().enumerate().skip(at) {
            kept.again |= place == at;
            if let Cut::Begun { .. } = kept.cut {
                self.open -= kept.bytes.len() as u64;
            }
            kept.cut = Cut::Waiting;
        }
    }

    /// Panics where an invariant does not hold.
    pub(super) fn check(&self) {
        self.flight.check();
        assert!(self.spent <= self.granted, "more is sent than granted");
        assert!(self.open <= MAX_OPEN_BYTES, "too much is begun at once");
        assert!(self.channels.len() <= MAX_CHANNELS, "too many channels");
        let kept = || self.channels.values().flat_map(|channel| &channel.kept);
        assert_eq!(self.queued, kept().count(), "messages are counted wrong");
        let bytes: usize = kept().map(|kept| kept.bytes.len()).sum();
        assert_eq!(self.queued_bytes, bytes as u64, "bytes are counted wrong");
        assert!(self.queued <= MAX_QUEUED && self.queued_bytes <= MAX_QUEUED_BYTES);
        for place in 0..self.flight.span() as usize {
            let flying = self.flight.get(place).is_some_and(|flying| !flying.arrived);
            assert!(!flying || self.chunk(place).is_some(), "a chunk on the way without its bytes");
        }
    }
}

impl Channel {
    /// The message to cut from: the first that is not all on the way.
    fn uncut(&self) -> Option<usize> {
        // All before it are done, and a channel keeps few.
        let at = self.kept.partition_point(|kept| matches!(kept.cut, Cut::Done { .. }));
        (at < self.kept.len()).then_some(at)
    }
}

impl Unconfirmed {
    fn next_size(&self, chunk: usize) -> usize {
        let from = match self.cut {
            Cut::Begun { at, .. } => at,
            Cut::Waiting | Cut::Done { .. } => 0,
        };
        (self.bytes.len() - from).min(chunk)
    }
}
