//! When frames go by QUIC: opened while this node is in a crew, tried again with growing pauses where it fails, and
//! never missed, because the socket carries frames as well.

use shoal_protocol::{Micros, QuicOffer, Time};

use crate::Output;
use crate::state::Node;

/// First and longest pause after a way that did not open or did not last. Where UDP is closed it stays closed.
const FIRST_REST: Micros = Micros::from_secs(2);
const LONGEST_REST: Micros = Micros::from_secs(300);
/// Doublings of the pause; the longest is reached before.
const MAX_DOUBLINGS: u32 = 8;
/// A way that lasted this long works.
const STEADY_AFTER: Micros = Micros::from_secs(30);
/// How long it stays open without a crew: jobs often follow each other.
const UNUSED: Micros = Micros::from_secs(30);

/// The way by QUIC, as this connection has it.
#[derive(Debug, Default)]
pub(crate) struct Quic {
    offer: Option<QuicOffer>,
    way: Stage,
    /// Ways in a row that did not open or did not last.
    misses: u32,
    /// Since when no crew needs it.
    unused: Option<Time>,
}

#[derive(Debug, Default)]
enum Stage {
    #[default]
    Shut,
    Opening,
    Open {
        since: Time,
    },
    Resting {
        until: Time,
    },
}

impl Quic {
    pub(crate) fn offered(&mut self, offer: QuicOffer) {
        let is_new = self.offer.as_ref() != Some(&offer);
        self.offer = Some(offer);
        // Other certificates, another chance.
        if is_new && matches!(self.way, Stage::Resting { .. }) {
            self.way = Stage::Shut;
            self.misses = 0;
        }
    }

    pub(crate) fn up(&mut self, now: Time) {
        if matches!(self.way, Stage::Opening) {
            self.way = Stage::Open { since: now };
        }
    }

    pub(crate) fn down(&mut self, now: Time) {
        match self.way {
            // Late echoes of a way that was given up.
            Stage::Shut | Stage::Resting { .. } => return,
            Stage::Open { since } if now >= since + STEADY_AFTER => self.misses = 0,
            Stage::Open { .. } | Stage::Opening => {}
        }
        let rest = (FIRST_REST.0 << self.misses.min(MAX_DOUBLINGS)).min(LONGEST_REST.0);
        self.misses = self.misses.saturating_add(1);
        self.way = Stage::Resting { until: now + Micros(rest) };
    }

    pub(crate) fn next_timeout(&self, wanted: bool) -> Option<Time> {
        match self.way {
            Stage::Resting { until } => (wanted && self.offer.is_some()).then_some(until),
            Stage::Opening | Stage::Open { .. } => self.unused.map(|since| since + UNUSED),
            Stage::Shut => None,
        }
    }

    /// What is to be done now.
    fn due(&mut self, now: Time, wanted: bool) -> Option<Output> {
        match (wanted, self.unused) {
            (true, _) => self.unused = None,
            (false, None) => self.unused = Some(now),
            (false, Some(_)) => {}
        }
        if let Stage::Resting { until } = self.way
            && now >= until
        {
            self.way = Stage::Shut;
        }
        match self.way {
            Stage::Shut if wanted => {
                let offer = self.offer.clone()?;
                self.way = Stage::Opening;
                Some(Output::OpenQuic(offer))
            }
            Stage::Opening | Stage::Open { .. }
                if self.unused.is_some_and(|since| now >= since + UNUSED) =>
            {
                self.way = Stage::Shut;
                Some(Output::CloseQuic)
            }
            Stage::Shut | Stage::Opening | Stage::Open { .. } | Stage::Resting { .. } => None,
        }
    }
}

impl Node {
    pub(crate) fn quic_if_due(&mut self, now: Time) {
        let output = self.quic.due(now, !self.crews.is_empty());
        self.outputs.extend(output);
    }

    /// The connection is gone, and its session with it. The next one brings its own offer.
    pub(crate) fn leave_quic(&mut self) {
        let quic = core::mem::take(&mut self.quic);
        if matches!(quic.way, Stage::Opening | Stage::Open { .. }) {
            self.outputs.push_back(Output::CloseQuic);
        }
    }
}
