//! How the simulation gets on: time at work and time waited, what a wait usually is, who is waited for.

use alloc::vec::Vec;
use shoal_protocol::limit::HEARTBEAT;
use shoal_protocol::{CrewSay, Micros, Time};

use super::{Phase, Sim, SimOutput};

/// A neighbour whose halo is waited for this long is named.
const SLOW_AFTER: Micros = Micros::from_secs(2);
/// And again, so that the coordinator knows that it is still so.
const SLOW_AGAIN: Micros = Micros::from_secs(1);
/// A new wait changes what is usual by one part in this many.
const MEMORY: u64 = 8;

pub(super) struct Pace {
    computed: Micros,
    waited: Micros,
    /// The edges of this step were told then; halos are waited for since.
    since: Time,
    /// The engine's last edges came then.
    made_at: Time,
    /// The engine has nothing to do since then.
    idle: Option<Time>,
    /// How long it had nothing to do since its last edges.
    gap: Micros,
    usual: Option<Micros>,
    beat_at: Time,
    name_at: Time,
}

impl Pace {
    pub(super) fn new(now: Time) -> Pace {
        Pace {
            computed: Micros(0),
            waited: Micros(0),
            since: now,
            made_at: now,
            idle: None,
            gap: Micros(0),
            usual: None,
            beat_at: now,
            name_at: now,
        }
    }

    /// The engine has made edges.
    pub(super) fn made(&mut self, now: Time, took: Micros) {
        // While the engine was asked for nothing it may have been at work on the inside of the last step.
        let free = (now - self.made_at).0.saturating_sub(took.0);
        self.waited.0 += self.gap.0.min(free);
        self.computed.0 += took.0;
        self.gap = Micros(0);
        self.made_at = now;
        self.idle = Some(now);
    }

    /// Edges that were taken back before they came.
    pub(super) fn made_in_vain(&mut self, now: Time, took: Micros, idle: bool) {
        self.computed.0 += took.0;
        self.idle = idle.then_some(now);
    }

    pub(super) fn told(&mut self, now: Time) {
        self.since = now;
        self.name_at = now + SLOW_AFTER;
    }

    pub(super) fn works(&mut self, now: Time) {
        if let Some(idle) = self.idle.take() {
            self.gap.0 += (now - idle).0;
        }
    }

    /// Both halos are there.
    pub(super) fn arrived(&mut self, now: Time) {
        let wait = now - self.since;
        let usual = self.usual.unwrap_or(wait).0;
        self.usual = Some(Micros((usual * (MEMORY - 1) + wait.0) / MEMORY));
    }

    pub(super) fn usual(&self) -> Option<Micros> {
        self.usual
    }

    pub(super) fn since(&self) -> Time {
        self.since
    }

    pub(super) fn beat_at(&self) -> Time {
        self.beat_at
    }

    pub(super) fn name_at(&self) -> Time {
        self.name_at
    }
}

impl Sim {
    /// Whether a neighbour's halo is waited for.
    pub(super) fn waits(&self) -> bool {
        let wants = match self.phase {
            Phase::Waiting => true,
            Phase::Stepping | Phase::Guessed(_) => !self.guess.is_settled(),
            Phase::Opening | Phase::Finishing | Phase::Done | Phase::Over => false,
        };
        wants && self.halos.missing(self.step).next().is_some()
    }

    /// What time alone brings about.
    pub(super) fn on_time(&mut self, now: Time) {
        if matches!(self.phase, Phase::Over) {
            return;
        }
        if self.waits() && self.pace.name_at <= now {
            self.pace.name_at = now + SLOW_AGAIN;
            let mut slow: Vec<_> = self.halos.missing(self.step).collect();
            slow.dedup_by_key(|side| self.neighbour(*side));
            let slow = slow.into_iter().map(|side| SimOutput::Slow(self.neighbour(side)));
            self.outputs.extend(slow.collect::<Vec<_>>());
        }
        // After the names: whoever reports and names nobody waits for nobody.
        if self.pace.beat_at <= now {
            self.report(now);
        }
    }

    pub(super) fn report(&mut self, now: Time) {
        self.pace.beat_at = now + HEARTBEAT;
        let since = self.pace.idle.filter(|_| self.waits());
        let waiting = self.pace.gap.0 + since.map_or(0, |since| (now - since).0);
        self.outputs.push_back(SimOutput::Says(CrewSay::Progress {
            step: self.step,
            computed: self.pace.computed,
            waited: Micros(self.pace.waited.0 + since.map_or(0, |_| waiting)),
            guessed: self.guess.right,
            corrected: self.guess.wrong,
            links: Vec::new(),
        }));
    }
}
