//! Chunks on the way: what arrived, what is lost, what to send again.

use alloc::collections::VecDeque;
use core::ops::Range;
use shoal_protocol::limit::MAX_CHUNKS_AHEAD;
use shoal_protocol::{Hash, Micros, Path, Time};

use super::Broken;
use super::choose::Paths;

/// A chunk is lost when this many sent later on the same path arrived. A path keeps its order; three
/// forgive one that does not quite.
const LOST_BEHIND: u64 = 3;
/// Doublings of the patience while nothing arrives: 32 times.
const MOST_DOUBLINGS: u32 = 5;
/// Longest wait before something is sent again, or a peer that comes back would wait for us.
const LONGEST_WAIT: Micros = Micros::from_secs(5);

/// Least wait on the only path there is: it delivers or dies by itself, so that saying things twice on it
/// mostly makes it slower.
const ALONE: Micros = Micros::from_secs(1);

#[derive(Debug)]
pub(super) struct Flight {
    /// In the order of their numbers, without gaps; the first has not arrived.
    flying: VecDeque<Flying>,
    next: u64,
    /// Bytes that have not arrived, and all that ever did.
    bytes: u64,
    delivered: u64,
    /// When something last arrived, or when there was nothing to wait for.
    progress: Time,
    /// Waits in a row that were in vain.
    vain: u32,
}

#[derive(Debug)]
pub(super) struct Flying {
    pub(super) number: u64,
    pub(super) channel: u16,
    pub(super) message: u64,
    pub(super) range: Range<usize>,
    pub(super) hash: Option<Hash>,
    pub(super) arrived: bool,
    sent: Option<Sent>,
    sends: u32,
}

/// The last sending of a chunk that is not known to be lost.
#[derive(Clone, Copy, Debug)]
struct Sent {
    at: Time,
    path: Path,
    /// Which of the path's chunks it was.
    order: u64,
    /// Bytes that had arrived then, and whether there was more to say.
    delivered: u64,
    waiting: bool,
}

impl Flying {
    pub(super) fn new(
        number: u64,
        channel: u16,
        message: u64,
        range: Range<usize>,
        hash: Option<Hash>,
    ) -> Flying {
        Flying { number, channel, message, range, hash, arrived: false, sent: None, sends: 0 }
    }
}

impl Flight {
    pub(super) fn new(now: Time) -> Flight {
        Flight { flying: VecDeque::new(), next: 0, bytes: 0, delivered: 0, progress: now, vain: 0 }
    }

    pub(super) fn add(&mut self, flying: Flying) -> usize {
        self.bytes += flying.range.len() as u64;
        self.next = flying.number + 1;
        self.flying.push_back(flying);
        self.flying.len() - 1
    }

    pub(super) fn get(&self, place: usize) -> Option<&Flying> {
        self.flying.get(place)
    }

    pub(super) fn next_number(&self) -> u64 {
        self.next
    }

    /// From the first that has not arrived to the newest.
    pub(super) fn span(&self) -> u64 {
        self.flying.len() as u64
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn all_arrived_below(&self) -> u64 {
        self.flying.front().map_or(self.next, |flying| flying.number)
    }

    /// When something last moved.
    pub(super) fn moved(&self) -> Time {
        self.progress
    }

    pub(super) fn progress(&mut self, now: Time) {
        self.progress = now;
    }

    /// Waiting was not in vain.
    pub(super) fn calm(&mut self) {
        self.vain = 0;
    }

    /// Bytes that ever arrived.
    pub(super) fn delivered(&self) -> u64 {
        self.delivered
    }

    /// A chunk leaves.
    pub(super) fn sent(&mut self, place: usize, now: Time, path: Path, order: u64, waiting: bool) {
        let delivered = self.delivered;
        let Some(flying) = self.flying.get_mut(place) else { return };
        flying.sends += 1;
        flying.sent = Some(Sent { at: now, path, order, delivered, waiting });
    }

    /// The first that must be sent, again or at all.
    pub(super) fn unsent(&self) -> Option<usize> {
        self.flying.iter().position(|flying| !flying.arrived && flying.sent.is_none())
    }

    /// The peer says what arrived, while there is more to say or not. Whether this is news.
    pub(super) fn acknowledge(
        &mut self,
        now: Time,
        next: u64,
        have: u128,
        waiting: bool,
        paths: &mut Paths,
    ) -> Result<bool, Broken> {
        let beyond = u64::from(u128::BITS - have.leading_zeros()) + u64::from(have != 0);
        if self.next.checked_sub(next).is_none_or(|sent| sent < beyond) {
            // It says that it has what nobody sent.
            return Err(Broken::Garbled);
        }
        let mut news = false;
        for flying in &mut self.flying {
            let ahead = flying.number.checked_sub(next);
            let has = match ahead {
                None => true,
                Some(0) => false,
                Some(ahead) => ahead <= 128 && have >> (ahead - 1) & 1 == 1,
            };
            if !has || flying.arrived {
                continue;
            }
            (flying.arrived, news) = (true, true);
            self.bytes -= flying.range.len() as u64;
            self.delivered += flying.range.len() as u64;
            // Of a chunk sent twice nobody knows which copy arrived, or whether the second was needed.
            if let (Some(sent), 1) = (flying.sent, flying.sends) {
                let way = paths.of_mut(sent.path);
                way.answered();
                way.arrived = way.arrived.max(sent.order + 1);
                let (arrived, took) = (self.delivered - sent.delivered, now - sent.at);
                way.rate_is(now, arrived, took, sent.waiting && waiting);
                self.vain = 0;
            }
        }
        while self.flying.front().is_some_and(|flying| flying.arrived) {
            self.flying.pop_front();
        }
        if news {
            self.progress(now);
            self.find_lost(paths);
        }
        Ok(news)
    }

    fn find_lost(&mut self, paths: &mut Paths) {
        for flying in self.flying.iter_mut().filter(|flying| !flying.arrived) {
            let Some(sent) = flying.sent else { continue };
            let way = paths.of_mut(sent.path);
            if way.arrived > sent.order + LOST_BEHIND {
                flying.sent = None;
                way.lost();
            }
        }
    }

    /// What was on this path and has not arrived goes again.
    pub(super) fn lose(&mut self, path: Path) {
        for flying in &mut self.flying {
            flying.sent = flying.sent.filter(|sent| sent.path != path);
        }
    }

    /// When to send again if nothing arrives until then.
    pub(super) fn due(&self, paths: &Paths) -> Option<Time> {
        let sent = self.flying.front()?.sent?;
        Some(self.progress.max(sent.at) + self.wait(sent.path, paths))
    }

    fn wait(&self, path: Path, paths: &Paths) -> Micros {
        let way = paths.of(path);
        let least = if paths.is_alone(path) { ALONE } else { Micros(0) };
        let patience = way.patience().max(least).0 << self.vain.min(MOST_DOUBLINGS);
        Micros(patience.min(LONGEST_WAIT.0) + way.carry(self.bytes).0)
    }

    /// Nothing arrived in time: all that is as old goes again. The path it was on.
    pub(super) fn expire(&mut self, now: Time, paths: &mut Paths) -> Option<Path> {
        if self.due(paths).is_none_or(|due| due > now) {
            return None;
        }
        let path = self.flying.front()?.sent?.path;
        let wait = self.wait(path, paths);
        // On the only path the first time is likelier a slow path than a lost chunk: one is enough to know.
        let most = if self.vain == 0 && paths.is_alone(path) { 1 } else { self.flying.len() };
        for flying in self.flying.iter_mut().filter(|flying| !flying.arrived).take(most) {
            let Some(sent) = flying.sent.filter(|sent| sent.at + wait <= now) else { continue };
            flying.sent = None;
            paths.of_mut(sent.path).lost();
        }
        self.vain = self.vain.saturating_add(1);
        Some(path)
    }

    /// Panics where an invariant does not hold.
    pub(super) fn check(&self) {
        assert!(self.span() <= MAX_CHUNKS_AHEAD, "too many chunks on the way");
        let bytes = self.flying.iter().filter(|flying| !flying.arrived);
        let bytes: usize = bytes.map(|flying| flying.range.len()).sum();
        assert_eq!(self.bytes, bytes as u64, "bytes on the way are counted wrong");
        let first = self.next - self.span();
        for (number, flying) in (first..).zip(&self.flying) {
            assert_eq!(flying.number, number, "a gap between chunks");
        }
        assert!(self.flying.front().is_none_or(|flying| !flying.arrived), "arrived and kept");
    }
}
