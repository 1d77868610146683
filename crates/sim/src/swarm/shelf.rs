//! What one device has and needs of the blob that is exchanged, and what is wrong with it.

use std::collections::BTreeMap;
use std::ops::Range;

use shoal_node::Swarms;
use shoal_protocol::limit::PIECE_BYTES;
use shoal_protocol::swarm::pieces_in;
use shoal_protocol::{BlobRef, CrewId, NodeId, PieceSet, Time};

use super::SwarmPlan;
use crate::random::Random;

pub(crate) struct Shelf {
    pub(crate) swarms: Swarms,
    /// Pieces survive the process.
    pub(super) disk: BTreeMap<u32, Vec<u8>>,
    /// The crew in which each other node is reached.
    pub(crate) links: BTreeMap<NodeId, CrewId>,
    pub(super) flaw: Option<Flaw>,
    /// Bytes it sends in a second, and until when its line is busy.
    rate: u64,
    busy: Time,
    /// What it needs of the blob, from when on, and later: ranges of bytes.
    pub(super) needs: Vec<Range<u64>>,
    pub(super) later: Vec<Range<u64>>,
    pub(super) from: Time,
    /// It said so since it was started.
    pub(super) asked: bool,
    /// What it needed was here once.
    pub(super) served: bool,
}

/// What no honest device does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flaw {
    Lies,
    Mute,
    Accuses,
}

impl Shelf {
    pub(super) fn new(plan: &SwarmPlan, blob: &BlobRef, random: &mut Random) -> Shelf {
        let flaws =
            [(plan.liars, Flaw::Lies), (plan.mute, Flaw::Mute), (plan.accusers, Flaw::Accuses)];
        let flaw = flaws.into_iter().find(|(often, _)| random.chance(*often)).map(|(_, flaw)| flaw);
        let mut shelf = Shelf {
            swarms: Swarms::new(),
            disk: BTreeMap::new(),
            links: BTreeMap::new(),
            flaw,
            rate: random.range(plan.rates.0, plan.rates.1),
            busy: Time(0),
            needs: Vec::new(),
            later: Vec::new(),
            from: Time(random.range(0, plan.spread)),
            asked: false,
            served: false,
        };
        shelf.choose_needs(blob, plan.ranges, random);
        shelf
    }

    /// The process is gone; its disk is not.
    pub(crate) fn reborn(&mut self) {
        self.swarms = Swarms::new();
        self.links.clear();
        self.asked = false;
    }

    /// Most devices need all of the blob; some a few ranges, and of those some need others later.
    fn choose_needs(&mut self, blob: &BlobRef, ranges: u64, random: &mut Random) {
        if !random.chance(ranges) {
            self.needs.push(0..blob.size);
            return;
        }
        let mut draw = || {
            let start = random.range(0, blob.size);
            let most = [9, PIECE_BYTES, blob.size / 3][random.range(0, 3) as usize];
            start..blob.size.min(start + 1 + random.range(0, most))
        };
        self.needs = vec![draw(), draw()];
        self.later = vec![draw()];
        if random.chance(500_000) {
            self.later.clear();
        }
    }

    /// All that it needs in the end.
    pub(super) fn all_needs(&self, blob: &BlobRef) -> PieceSet {
        pieces_in(blob, self.needs.iter().chain(&self.later).cloned())
    }

    /// When bytes that are sent now have left.
    pub(crate) fn sends(&mut self, now: Time, bytes: u64) -> Time {
        let start = self.busy.max(now);
        self.busy = Time(start.0 + bytes * 1_000_000 / self.rate.max(1));
        self.busy
    }
}
