//! One path between two nodes, and what is measured of it: round trip, rate, loss, whether it is silent.

use shoal_protocol::limit::{CHUNK_BYTES, LINK_WINDOW};
use shoal_protocol::{Micros, Time};

use super::recent::Recent;
use super::trip::RoundTrip;

/// Before anything is measured: longer than any usual round trip, short enough to wait for.
const FIRST_PATIENCE: Micros = Micros::from_secs(1);
/// Never sent again sooner than this: a browser may collect garbage this long.
const LEAST_PATIENCE: Micros = Micros::from_millis(100);
const MOST_PATIENCE: Micros = Micros::from_secs(5);
/// Two unanswered words in a row: one may be lost, two are silence.
const SILENT_AFTER: u32 = 2;
/// A rate is known this long after the path was last full. Then it may be better or worse.
const RATE_MEMORY: Micros = Micros::from_secs(30);
/// What timers and event loops add to a round trip; on the same machine it is most of it.
const SLACK: Micros = Micros::from_millis(4);
/// What a path is taken for until it shows more or less: a usual connection of a home, upwards.
const ASSUMED_RATE: u64 = 800_000;
/// How long a chunk may take to pass, so that a short message behind it waits no longer on a slow path.
const CHUNKS_PER_SECOND: u64 = 50;
/// Below this a chunk would be mostly header and costs.
const LEAST_CHUNK: u64 = 4 << 10;
/// Chunks that may always be on the way: one arrives, one is acknowledged, and two hide what timers add.
const LEAST_CHUNKS: u64 = 4;
/// How much more than the path seems to hold is laid on it while that still raises its rate.
const GROWING: u64 = 4;
/// Round trips without more that prove the path full: what is laid on it shows one round trip later.
const STILL_AFTER: u32 = 2;
/// An idle path is measured this often, and its death found out in four of these.
const PING_EVERY: Micros = Micros::from_secs(1);
/// A new path is asked a few times in a row: its first round trip is seldom its true one.
const FIRST_PING: Micros = Micros::from_millis(50);
const FIRST_ASKS: u32 = 5;
/// Less than the memory of round trips, so that both paths can be compared at any time.
const STANDBY_PING: Micros = Micros::from_secs(4);
/// An echo may stand behind what others have on the way, which nobody here knows.
const ECHO_DELAY: Micros = Micros::from_secs(1);
/// Chunks counted for the loss before the old ones fade.
const LOSS_MEMORY: u64 = 2_000;

#[derive(Clone, Debug, Default)]
pub(super) struct PathState {
    /// Since when it is there.
    pub(super) up: Option<Time>,
    round_trip: Option<RoundTrip>,
    /// The most that passed while it was full, and at all.
    rate: Recent,
    seen: Recent,
    /// When the path was last seen full.
    rated: Time,
    /// The rate at the last full round trip, and how many in a row brought no more.
    before: u64,
    still: u32,
    /// The frame whose echo is awaited, and the one before if its echo is overdue.
    pub(super) probe: Option<Probe>,
    late: Option<Probe>,
    /// When the last probe left.
    probed: Option<Time>,
    /// How often it was asked since it is there.
    asks: u32,
    /// Whether the peer spoke on it since it is there.
    heard: bool,
    /// Words in a row that nobody answered.
    misses: u32,
    /// The peer's frame to be echoed on this path.
    pub(super) echo: Option<u64>,
    /// Chunks sent, and one more than the latest of them known to have arrived.
    pub(super) sent: u64,
    pub(super) arrived: u64,
    /// For the loss; fades.
    tried: u64,
    lost: u64,
    /// When the measurements were last told.
    pub(super) told: Option<Time>,
    /// How often it disappointed, lately.
    pub(super) falls: u32,
    /// Since when it has not disappointed.
    pub(super) steady: Time,
}

/// A frame that wants an echo. Its sequence number is used once, so its echo is never taken for another's,
/// even where chunks were sent twice.
#[derive(Clone, Copy, Debug)]
pub(super) struct Probe {
    pub(super) sequence: u64,
    pub(super) left: Time,
    /// Bytes that had arrived when it left, and whether there was more to say.
    pub(super) delivered: u64,
    pub(super) waiting: bool,
}

impl PathState {
    /// It is there, and nothing is known of it but how often it fell.
    pub(super) fn rise(&mut self, now: Time) {
        let (falls, steady) = (self.falls, self.steady.max(now));
        *self = PathState { up: Some(now), falls, steady, ..PathState::default() };
    }

    pub(super) fn is_silent(&self) -> bool {
        self.misses >= SILENT_AFTER
    }

    pub(super) fn is_usable(&self) -> bool {
        self.up.is_some() && !self.is_silent()
    }

    /// Something was answered.
    pub(super) fn answered(&mut self) {
        self.misses = 0;
    }

    /// Something was not answered in time. Whether this made it silent.
    pub(super) fn missed(&mut self) -> bool {
        self.misses = self.misses.saturating_add(1);
        self.misses == SILENT_AFTER
    }

    /// How long an answer may take.
    pub(super) fn patience(&self) -> Micros {
        let Some(known) = self.round_trip else { return FIRST_PATIENCE };
        known.most().clamp(LEAST_PATIENCE, MOST_PATIENCE)
    }

    /// A frame that wants an echo leaves.
    pub(super) fn ask(&mut self, probe: Probe) {
        (self.probe, self.probed) = (Some(probe), Some(probe.left));
        self.asks = self.asks.saturating_add(1);
    }

    /// The peer spoke on it, so it has the path too. What was asked before may have come too early for it:
    /// a path that is still unknown is asked again at once.
    pub(super) fn hears(&mut self) {
        let is_first = !core::mem::replace(&mut self.heard, true);
        if is_first && self.up.is_some() && self.round_trip.is_none() {
            (self.late, self.probed) = (self.probe.take(), None);
        }
    }

    /// Nothing asked so far will be answered.
    pub(super) fn forget_asked(&mut self) {
        (self.probe, self.late, self.probed, self.echo) = (None, None, None, None);
    }

    /// When an idle path is to be asked: one that stands by behind a better one now and then, because the
    /// relay that it may be has better to do.
    pub(super) fn ping_due(&self, stands_by: bool) -> Option<Time> {
        if self.probe.is_some() {
            return None;
        }
        let every = match stands_by {
            _ if self.asks < FIRST_ASKS => FIRST_PING,
            true => STANDBY_PING,
            false => PING_EVERY,
        };
        Some(self.probed.map_or(Time(0), |last| last + every))
    }

    /// An echo came: of which probe, if it is known.
    pub(super) fn echoed(&mut self, now: Time, sequence: u64) -> Option<Probe> {
        let asked = |probe: &Option<Probe>| probe.is_some_and(|probe| probe.sequence == sequence);
        let place = [&mut self.probe, &mut self.late].into_iter().find(|place| asked(place));
        let probe = place.and_then(Option::take)?;
        self.answered();
        let took = (now - probe.left).0;
        match &mut self.round_trip {
            Some(known) => known.add(now, took),
            None => self.round_trip = Some(RoundTrip::first(now, took)),
        }
        Some(probe)
    }

    /// When the awaited echo is overdue.
    pub(super) fn echo_due(&self) -> Option<Time> {
        self.probe.map(|probe| probe.left + self.patience() + ECHO_DELAY)
    }

    /// The awaited echo is overdue. If it comes after all, it still tells how long the path is.
    pub(super) fn give_up(&mut self) {
        self.late = self.probe.take();
    }

    /// Bytes that arrived in some time. Only a full path tells its rate; another may still be seen to be faster.
    pub(super) fn rate_is(&mut self, now: Time, bytes: u64, took: Micros, full: bool) {
        let Some(rate) = bytes.saturating_mul(1_000_000).checked_div(took.0) else { return };
        if rate == 0 {
            return;
        }
        if full || self.rate(now).is_some_and(|known| rate > known) {
            self.rate.add(now, rate, u64::max);
            self.rated = now;
        }
        self.seen.add(now, rate, u64::max);
    }

    /// A full round trip is over: did it bring more than the one before?
    pub(super) fn round(&mut self) {
        let best = self.rate.best(u64::max).unwrap_or(0);
        self.still = if best > self.before + self.before / 4 { 0 } else { self.still + 1 };
        self.before = best;
    }

    /// Bytes per second, if it was full lately.
    pub(super) fn rate(&self, now: Time) -> Option<u64> {
        self.rate.best(u64::max).filter(|_| now - self.rated <= RATE_MEMORY)
    }

    /// The rate, once laying more on the path does not raise it: what a path is judged by.
    pub(super) fn proven_rate(&self, now: Time) -> Option<u64> {
        self.rate(now).filter(|_| self.still >= STILL_AFTER)
    }

    pub(super) fn round_trip(&self) -> Option<Micros> {
        self.round_trip.map(|known| known.usual())
    }

    /// The shortest round trip of the last seconds: without our own queues, but with a network that got worse.
    pub(super) fn distance(&self) -> Option<Micros> {
        self.round_trip.and_then(|known| known.recent())
    }

    /// The rate to go by: as it was when the path was full, or else at least as assumed.
    fn likely_rate(&self) -> u64 {
        let seen = || self.seen.best(u64::max).map_or(ASSUMED_RATE, |seen| seen.max(ASSUMED_RATE));
        self.rate.best(u64::max).unwrap_or_else(seen)
    }

    /// How many bytes of a message go into one chunk; no number is cut in two.
    pub(super) fn chunk(&self) -> usize {
        let passes = self.likely_rate() / CHUNKS_PER_SECOND;
        passes.clamp(LEAST_CHUNK, CHUNK_BYTES as u64) as usize / 256 * 256
    }

    /// How many bytes may be on the way: twice what the path holds, so that it never runs dry and a short
    /// message never waits long behind a large one.
    pub(super) fn allowance(&self) -> u64 {
        let least = LEAST_CHUNKS * self.chunk() as u64;
        // What is only assumed of a path is not laid on it.
        let rate = self.rate.best(u64::max).or_else(|| self.seen.best(u64::max));
        let (Some(known), Some(rate)) = (self.round_trip, rate) else { return least };
        let held = rate.saturating_mul(known.least().0 + SLACK.0) / 1_000_000;
        let times = if self.still < STILL_AFTER { GROWING } else { 2 };
        (times * held).clamp(least, LINK_WINDOW)
    }

    /// How long this many bytes may take to pass, with as much again for the rate being wrong.
    pub(super) fn carry(&self, bytes: u64) -> Micros {
        Micros(2 * bytes * 1_000_000 / self.likely_rate().max(1))
    }

    pub(super) fn tried(&mut self) {
        self.tried += 1;
        if self.tried >= LOSS_MEMORY {
            (self.tried, self.lost) = (self.tried / 2, self.lost / 2);
        }
    }

    pub(super) fn lost(&mut self) {
        self.lost = (self.lost + 1).min(self.tried);
    }

    /// Lost chunks of a million.
    pub(super) fn loss(&self) -> u32 {
        (self.lost * 1_000_000).checked_div(self.tried).unwrap_or(0) as u32
    }
}
