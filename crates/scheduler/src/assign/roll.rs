//! Who could compute a job that is dealt evenly, and how many units each has had. Kept in step with every change,
//! because thousands of nodes may be here and nobody can look at all of them for each unit.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use core::cell::Cell;
use shoal_kinds::JobSpec;
use shoal_protocol::{NodeId, Strategy};

use crate::job::Job;
use crate::peers::Peer;
use crate::state::Scheduler;
use crate::unit::Unit;

/// How many units a node may be ahead of the slowest in a round-robin job.
const TURNS_AHEAD: u64 = 2;

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Roll {
    /// Connected nodes that could compute the job.
    able: BTreeMap<NodeId, Entry>,
    /// Slots of all those, and their declared speeds together.
    slots: u64,
    weight: u64,
    /// The same nodes by the units they have had, those with the fewest in front.
    turns: BTreeSet<(u64, NodeId)>,
    /// In how many units in flight nodes have a part, whether or not they are here.
    parts: BTreeMap<NodeId, u64>,
    /// Who was last found to have had the fewest. Others must wait as long as that is so, and are told so without
    /// looking for it again.
    behind: Cell<Option<NodeId>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    slots: u64,
    weight: u64,
    taken: u64,
}

impl Roll {
    /// Only strategies that look at everybody need one.
    pub(crate) fn for_job(spec: &JobSpec) -> Option<Box<Roll>> {
        match spec.strategy {
            Strategy::Adaptive => None,
            Strategy::RoundRobin | Strategy::Weight => Some(Box::default()),
        }
    }

    fn enter(&mut self, node: NodeId, entry: Option<Entry>) {
        if let Some(old) = self.able.remove(&node) {
            self.slots -= old.slots;
            self.weight -= old.weight;
            self.turns.remove(&(old.taken, node));
        }
        if let Some(entry) = entry {
            self.slots += entry.slots;
            self.weight += entry.weight;
            self.turns.insert((entry.taken, node));
            self.able.insert(node, entry);
        }
    }

    fn retake(&mut self, node: NodeId, taken: u64) {
        let Some(entry) = self.able.get_mut(&node) else { return };
        self.turns.remove(&(entry.taken, node));
        entry.taken = taken;
        self.turns.insert((taken, node));
    }
}

impl Job {
    /// A node has a part in one more unit in flight.
    pub(crate) fn part_begins(&mut self, node: NodeId) {
        let Some(roll) = &mut self.roll else { return };
        *roll.parts.entry(node).or_default() += 1;
        self.note_taken(node);
    }

    pub(crate) fn part_ends(&mut self, node: NodeId) {
        let Some(roll) = &mut self.roll else { return };
        let Some(parts) = roll.parts.get_mut(&node) else { return };
        *parts -= 1;
        if *parts == 0 {
            roll.parts.remove(&node);
        }
        self.note_taken(node);
    }

    /// Puts in a unit that others have a part in already.
    pub(crate) fn put_unit(&mut self, unit: Unit) {
        for node in unit.nodes() {
            self.part_begins(node);
        }
        if let Some(old) = self.units.insert(unit.span.start, unit) {
            old.nodes().for_each(|node| self.part_ends(node));
        }
    }

    /// A node's units in flight or merged changed.
    pub(crate) fn note_taken(&mut self, node: NodeId) {
        if self.roll.is_none() {
            return;
        }
        let taken = self.taken(node);
        if let Some(roll) = &mut self.roll {
            roll.retake(node, taken);
        }
    }

    /// Units that a node has had.
    fn taken(&self, node: NodeId) -> u64 {
        let done = self.shares.get(&node).map_or(0, |share| share.units);
        let parts = self.roll.as_ref().and_then(|roll| roll.parts.get(&node));
        done + parts.copied().unwrap_or(0)
    }

    fn entry(&self, peer: &Peer) -> Option<Entry> {
        let slots = u64::from(peer.caps.slots(self.spec.needs.lane));
        let weight = slots * u64::from(peer.caps.speed);
        peer.suits(self).then(|| Entry { slots, weight, taken: self.taken(peer.node) })
    }

    /// Slots of all nodes that could compute the job, and their declared speeds together.
    pub(super) fn able_slots(&self) -> (u64, u64) {
        self.roll.as_ref().map_or((0, 0), |roll| (roll.slots, roll.weight))
    }
}

impl Scheduler {
    /// A node came or left, or what it may and can compute changed.
    pub(crate) fn call_roll(&mut self, node: NodeId) {
        let peer = self.peers.get(&node);
        self.jobs.each_running(|job| {
            if job.roll.is_none() {
                return;
            }
            let entry = peer.and_then(|peer| job.entry(peer));
            if let Some(roll) = &mut job.roll {
                roll.enter(node, entry);
            }
        });
    }

    /// A new job learns who is here.
    pub(crate) fn call_roll_for(&self, job: &mut Job) {
        for (node, peer) in self.peers.iter() {
            let entry = job.entry(peer);
            let Some(roll) = &mut job.roll else { return };
            roll.enter(*node, entry);
        }
    }

    /// Whether nobody who keeps what it takes is so far behind that this node must wait.
    pub(super) fn is_in_turn(&self, node: NodeId, job: &Job) -> bool {
        let Some(roll) = &job.roll else { return false };
        let taken = job.taken(node);
        let waits = |least: u64| taken >= least + TURNS_AHEAD;
        let behind = roll.behind.get().filter(|behind| self.is_waited_for(*behind));
        let least = behind.and_then(|behind| roll.able.get(&behind));
        if least.is_some_and(|entry| waits(entry.taken)) {
            return false;
        }
        let found = roll.turns.iter().find(|(_, other)| self.is_waited_for(*other)).copied();
        roll.behind.set(found.map(|(_, behind)| behind));
        !waits(found.map_or(0, |(least, _)| least))
    }

    /// Whoever does not keep what it takes is not waited for.
    fn is_waited_for(&self, node: NodeId) -> bool {
        let Some(peer) = self.peers.get(&node) else { return false };
        !peer.paused && !peer.silent && peer.late() == 0 && !self.has_broken(node)
    }

    /// Part of [`Scheduler::check`]: counted anew, a running job's roll is the same.
    pub(crate) fn check_roll(&self, job: &Job) {
        let Some(roll) = &job.roll else { return };
        let mut anew = Roll { behind: roll.behind.clone(), ..Roll::default() };
        for node in job.units.values().flat_map(Unit::nodes) {
            *anew.parts.entry(node).or_default() += 1;
        }
        assert_eq!(anew.parts, roll.parts, "job {}: parts in units", job.id);
        for (node, peer) in self.peers.iter() {
            anew.enter(*node, job.entry(peer));
        }
        assert_eq!(anew, **roll, "job {}: who could compute it", job.id);
    }
}
