//! One way between two nodes, and what is measured of it: round trip, rate, loss, whether it is silent.

use shoal_protocol::limit::{CHUNK_BYTES, LINK_WINDOW};
use shoal_protocol::{FrameKind, Micros, Time};

/// How two nodes reach each other. Each delivers in order or dies; what is on the way then is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Path {
    /// Through the coordinator. There as long as both nodes are connected.
    Relay,
    /// A data channel between the two. Comes and goes.
    Direct,
}

impl Path {
    pub const ALL: [Path; 2] = [Path::Relay, Path::Direct];

    /// What its frames are. Nothing goes unsealed through the relay.
    pub fn kind(self) -> FrameKind {
        match self {
            Path::Relay => FrameKind::Sealed,
            Path::Direct => FrameKind::Plain,
        }
    }
}

/// Before anything is measured: longer than any usual round trip, short enough to wait for.
const FIRST_PATIENCE: Micros = Micros::from_secs(1);
/// Never sent again sooner than this: a browser may collect garbage this long.
const LEAST_PATIENCE: Micros = Micros::from_millis(100);
const MOST_PATIENCE: Micros = Micros::from_secs(5);
/// Two unanswered words in a row: one may be lost, two are silence.
const SILENT_AFTER: u32 = 2;
/// Extremes are taken over one to two of these: long against a round trip, short against a change of network.
const RECENT: Micros = Micros::from_secs(5);
/// A rate is known this long after the path was last full. Then it may be better or worse.
const RATE_MEMORY: Micros = Micros::from_secs(30);
/// What timers and event loops add to a round trip; on the same machine it is most of it.
const SLACK: Micros = Micros::from_millis(4);
/// What may be on the way before the rate is known, and on the slowest path: enough to see its rate, little
/// enough that a short message behind it waits a quarter second at 1 MB/s.
const LEAST_ON_THE_WAY: u64 = 4 * CHUNK_BYTES as u64;
/// Chunks counted for the loss before the old ones fade.
const LOSS_MEMORY: u64 = 2_000;

#[derive(Clone, Debug, Default)]
pub(super) struct Way {
    /// Since when it is there.
    pub(super) up: Option<Time>,
    round_trip: Option<RoundTrip>,
    rate: Recent,
    /// When the path was last seen full.
    rated: Time,
    /// The frame whose echo is awaited, and when it left.
    pub(super) probe: Option<(u64, Time)>,
    /// When the last probe left.
    pub(super) probed: Option<Time>,
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

#[derive(Clone, Copy, Debug)]
struct RoundTrip {
    smooth: u64,
    vary: u64,
    /// The least ever: the path without queues.
    least: u64,
    recent: Recent,
}

/// An extreme of the last seconds: of this stretch of time and of the one before.
#[derive(Clone, Copy, Debug, Default)]
struct Recent {
    since: Time,
    now: Option<u64>,
    before: Option<u64>,
}

impl Recent {
    fn add(&mut self, now: Time, value: u64, better: fn(u64, u64) -> u64) {
        if now - self.since >= RECENT {
            (self.before, self.now, self.since) = (self.now, None, now);
        }
        self.now = Some(self.now.map_or(value, |known| better(known, value)));
    }

    fn best(&self, better: fn(u64, u64) -> u64) -> Option<u64> {
        self.now.into_iter().chain(self.before).reduce(better)
    }
}

impl Way {
    /// It is there, and nothing is known of it but how often it fell.
    pub(super) fn rise(&mut self, now: Time) {
        let (falls, steady) = (self.falls, self.steady.max(now));
        *self = Way { up: Some(now), falls, steady, ..Way::default() };
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
        Micros(known.smooth + 4 * known.vary).clamp(LEAST_PATIENCE, MOST_PATIENCE)
    }

    /// An echo came: whether it is the awaited one.
    pub(super) fn echoed(&mut self, now: Time, sequence: u64) -> bool {
        let Some((_, left)) = self.probe.filter(|(probe, _)| *probe == sequence) else {
            return false;
        };
        self.probe = None;
        self.answered();
        let took = (now - left).0;
        match &mut self.round_trip {
            Some(known) => {
                known.vary = (3 * known.vary + known.smooth.abs_diff(took)) / 4;
                known.smooth = (7 * known.smooth + took) / 8;
                known.least = known.least.min(took);
                known.recent.add(now, took, u64::min);
            }
            None => {
                let mut recent = Recent { since: now, ..Recent::default() };
                recent.add(now, took, u64::min);
                let (smooth, vary, least) = (took, took / 2, took);
                self.round_trip = Some(RoundTrip { smooth, vary, least, recent });
            }
        }
        true
    }

    /// When the awaited echo is overdue. Twice the usual patience: it may stand behind a window of chunks.
    pub(super) fn echo_due(&self) -> Option<Time> {
        self.probe.map(|(_, left)| left + Micros(2 * self.patience().0))
    }

    /// Bytes that arrived in some time. Only a full path tells its rate; another may still be seen to be faster.
    pub(super) fn rated(&mut self, now: Time, bytes: u64, took: Micros, full: bool) {
        let Some(rate) = bytes.saturating_mul(1_000_000).checked_div(took.0) else { return };
        if full || self.rate(now).is_some_and(|known| rate > known) {
            self.rate.add(now, rate, u64::max);
            self.rated = now;
        }
    }

    /// Bytes per second, if it was full lately.
    pub(super) fn rate(&self, now: Time) -> Option<u64> {
        self.rate.best(u64::max).filter(|_| now - self.rated <= RATE_MEMORY)
    }

    pub(super) fn round_trip(&self) -> Option<Micros> {
        self.round_trip.map(|known| Micros(known.smooth))
    }

    /// The shortest round trip of the last seconds: without our own queues, but with a network that got worse.
    pub(super) fn distance(&self) -> Option<Micros> {
        self.round_trip.and_then(|known| known.recent.best(u64::min)).map(Micros)
    }

    /// How many bytes may be on the way: twice what the path holds, so that it never runs dry and a short
    /// message never waits long behind a large one.
    pub(super) fn allowance(&self) -> u64 {
        let (Some(rate), Some(known)) = (self.rate.best(u64::max), self.round_trip) else {
            return LEAST_ON_THE_WAY;
        };
        let held = rate.saturating_mul(known.least + SLACK.0) / 1_000_000;
        (2 * held).clamp(LEAST_ON_THE_WAY, LINK_WINDOW)
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
