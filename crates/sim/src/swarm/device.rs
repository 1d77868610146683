//! One device of a swarm: its part in the exchange, its disk, and what is wrong with it.

use std::collections::{BTreeMap, BTreeSet};

use shoal_node::Share;
use shoal_protocol::{CrewId, Identity, NodeId, Time};
use shoal_scheduler::Conn;

use crate::random::Random;

pub(super) struct Device {
    pub(super) identity: Identity,
    pub(super) share: Share,
    /// Counts its starts: what was on its way to an earlier one is lost.
    pub(super) birth: u32,
    pub(super) conn: Option<Conn>,
    pub(super) id: Option<NodeId>,
    /// Pieces survive the process.
    pub(super) disk: BTreeMap<u32, Vec<u8>>,
    pub(super) links: BTreeMap<NodeId, CrewId>,
    /// Those of them that are direct.
    pub(super) near: BTreeSet<NodeId>,
    pub(super) flaw: Option<Flaw>,
    /// Bytes it sends in a second, and until when its line is busy.
    pub(super) rate: u64,
    pub(super) busy: Time,
    pub(super) timer: Option<Time>,
    /// All of the blob was here once.
    pub(super) whole: bool,
}

/// What no honest device does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flaw {
    Lies,
    Mute,
    Accuses,
}

impl Device {
    pub(super) fn new(at: usize, plan: &super::SwarmPlan, random: &mut Random) -> Device {
        let flaws =
            [(plan.liars, Flaw::Lies), (plan.mute, Flaw::Mute), (plan.accusers, Flaw::Accuses)];
        let flaw = flaws.into_iter().find(|(often, _)| random.chance(*often)).map(|(_, flaw)| flaw);
        let mut identity = [7; 32];
        identity[..8].copy_from_slice(&(at as u64).to_le_bytes());
        Device {
            identity: Identity(identity),
            share: Share::new(),
            birth: 0,
            conn: None,
            id: None,
            disk: BTreeMap::new(),
            links: BTreeMap::new(),
            near: BTreeSet::new(),
            flaw,
            rate: random.range(plan.rates.0, plan.rates.1),
            busy: Time(0),
            timer: None,
            whole: false,
        }
    }

    /// When bytes that are sent now have left.
    pub(super) fn sends(&mut self, now: Time, bytes: u64) -> Time {
        let start = self.busy.max(now);
        self.busy = Time(start.0 + bytes * 1_000_000 / self.rate.max(1));
        self.busy
    }
}
