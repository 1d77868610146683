//! How nodes keep what they take, whatever they answer. Whoever leaves with units in hand, falls silent, holds them
//! far too long or fails them, again and again, gets less and gets it later; each answer makes up for one of those.
//! A node with a bad network is slowed down by that, never shut out.

use alloc::collections::{BTreeMap, BTreeSet};
use shoal_protocol::{Attempt, JobId, Lane, Micros, NodeId, Time, Verify};

use crate::job::Job;
use crate::peers::Peer;
use crate::state::Scheduler;
use crate::unit::Unit;

/// Broken lendings, not made up for, after which a node is lent one unit at a time and after a rest: twice may be bad luck.
const POOR: u32 = 3;
/// More are not counted, so that a node that mends its ways is soon at its old place.
const MOST_BROKEN: u32 = 10;
/// One broken lending is forgiven after this time.
const FORGIVEN_AFTER: Micros = Micros::from_secs(20);
/// How long a node rests at first, and at most: long beside a unit's quarter second, short beside a donor's patience.
const REST_FIRST: Micros = Micros::from_millis(250);
const REST_LONGEST: Micros = Micros::from_secs(8);
/// Nodes whose conduct is remembered: as many as come and go in a minute.
const REMEMBERED: usize = 1 << 12;
/// Units that a node computes at a time before its first answer: the cores of a usual machine. Whoever has more
/// shows it with one answer; whoever only says so must not take a job's every unit.
const SLOTS_AT_FIRST: usize = 16;
/// So many newcomers who took units and left without a single answer, more than those who gave one, and the pool
/// counts on newcomers no more: they begin with one unit and nobody waits for their votes.
const NO_SHOWS: u32 = 4;
/// More are not counted, so that a few honest newcomers restore the pool's good faith.
const MOST_NO_SHOWS: u32 = 8;
/// A node whose connection broke is mostly back in this time.
const BACK_SOON: Micros = Micros::from_secs(3);

#[derive(Clone, Copy, Debug)]
struct Conduct {
    broken: u32,
    /// When the last of those was.
    at: Time,
}

/// A node that left and may come back.
#[derive(Clone, Debug)]
struct Absent {
    until: Time,
    /// Jobs it worked on.
    told: BTreeSet<JobId>,
}

#[derive(Default)]
pub(crate) struct Conducts {
    /// How nodes kept what they took; only those that did not are here.
    conducts: BTreeMap<NodeId, Conduct>,
    /// Newcomers who came to nothing, beyond those who did not.
    no_shows: u32,
    /// Nodes that left a moment ago.
    absent: BTreeMap<NodeId, Absent>,
    /// Until then nodes that were here before a restart may come back.
    settled_at: Time,
}

impl Conducts {
    /// After a restart everybody may come back until then.
    pub(crate) fn settle_at(&mut self, time: Time) {
        self.settled_at = time;
    }

    pub(crate) fn is_settled(&self, now: Time) -> bool {
        now >= self.settled_at
    }

    /// The job failed by its own fault: those who said so were right.
    pub(super) fn forget(&mut self, nodes: &BTreeSet<NodeId>) {
        self.conducts.retain(|node, _| !nodes.contains(node));
    }

    /// Lendings that were broken and are neither made up for nor forgiven.
    fn broken(&self, now: Time, node: NodeId) -> u32 {
        let Some(conduct) = self.conducts.get(&node) else { return 0 };
        let forgiven = (now - conduct.at).0 / FORGIVEN_AFTER.0;
        conduct.broken.saturating_sub(u32::try_from(forgiven).unwrap_or(u32::MAX))
    }

    fn breaks(&mut self, now: Time, node: NodeId) {
        let broken = (self.broken(now, node) + 1).min(MOST_BROKEN);
        self.conducts.insert(node, Conduct { broken, at: now });
        if self.conducts.len() > REMEMBERED {
            self.conducts.pop_first();
        }
    }

    fn makes_up(&mut self, now: Time, node: NodeId) {
        match self.broken(now, node) {
            0 | 1 => {
                self.conducts.remove(&node);
            }
            broken => {
                self.conducts.insert(node, Conduct { broken: broken - 1, at: now });
            }
        }
    }

    /// A newcomer gave its first answer.
    pub(crate) fn note_show(&mut self) {
        self.no_shows = self.no_shows.saturating_sub(1);
    }

    /// Newcomers came to nothing, one after the other.
    pub(super) fn is_besieged(&self) -> bool {
        self.no_shows >= NO_SHOWS
    }

    /// Part of [`Scheduler::check`].
    pub(crate) fn check(&self) {
        assert!(self.conducts.len() <= REMEMBERED, "conducts");
        let counted = |conduct: &Conduct| (1..=MOST_BROKEN).contains(&conduct.broken);
        assert!(self.conducts.values().all(counted), "a conduct of nothing");
        assert!(self.no_shows <= MOST_NO_SHOWS, "newcomers who came to nothing");
    }
}

/// How much of what a node offers is made use of, the same in every lane.
#[derive(Clone, Copy)]
pub(crate) struct Width {
    most: usize,
    /// Whether it gets more than it is thought to compute at a time.
    pub(super) ahead: bool,
}

impl Width {
    /// How many units of a lane a node is thought to compute at a time.
    pub(super) fn slots(self, peer: &Peer, lane: Lane) -> usize {
        usize::from(peer.caps.slots(lane)).min(self.most)
    }
}

impl Scheduler {
    /// A node did not keep what it took.
    pub(crate) fn broke(&mut self, now: Time, node: NodeId) {
        if self.peers.own().contains(&node) {
            return;
        }
        self.conducts.breaks(now, node);
        self.rest_if_poor(now, node);
    }

    /// A node answered, or is back with what it took.
    pub(crate) fn made_up(&mut self, node: NodeId) {
        self.conducts.makes_up(self.now, node);
    }

    fn broken(&self, node: NodeId) -> u32 {
        self.conducts.broken(self.now, node)
    }

    pub(crate) fn is_poor(&self, node: NodeId) -> bool {
        self.broken(node) >= POOR
    }

    pub(super) fn has_broken(&self, node: NodeId) -> bool {
        self.broken(node) > 0
    }

    pub(super) fn rest_if_poor(&mut self, now: Time, node: NodeId) {
        let Some(times) = self.broken(node).checked_sub(POOR) else { return };
        let rest = REST_FIRST.0.saturating_mul(1 << times).min(REST_LONGEST.0);
        self.peers.rest(node, now + Micros(rest));
    }

    pub(crate) fn wake_rested(&mut self, now: Time) {
        while let Some(node) = self.peers.wake(now) {
            self.feed(now, node);
        }
    }

    /// Took units and never answered one, in this connection or another.
    pub(crate) fn is_newcomer(&self, peer: &Peer) -> bool {
        self.register.is_newcomer(peer)
    }

    /// A newcomer came to nothing.
    pub(crate) fn note_no_show(&mut self, node: NodeId) {
        let newcomer = self.peers.get(&node).is_some_and(|peer| self.is_newcomer(peer));
        if newcomer {
            self.conducts.no_shows = (self.conducts.no_shows + 1).min(MOST_NO_SHOWS);
        }
    }

    /// Whether a node may be asked what it thinks of others' answers.
    pub(crate) fn may_vote(&self, peer: &Peer, job: &Job) -> bool {
        let insists = matches!(job.spec.policy.verify, Verify::Quorum { .. });
        insists || !self.conducts.is_besieged() || !self.is_newcomer(peer)
    }

    /// How much of what a node offers is made use of.
    pub(crate) fn width(&self, peer: &Peer) -> Width {
        if self.is_poor(peer.node) && !peer.trusted {
            return Width { most: 1, ahead: false };
        }
        match (self.is_newcomer(peer), self.conducts.is_besieged()) {
            (true, true) => Width { most: 1, ahead: false },
            (true, false) => Width { most: SLOTS_AT_FIRST, ahead: true },
            (false, _) => Width { most: usize::MAX, ahead: true },
        }
    }

    /// Whether a verdict waits for this node: one that keeps what it takes, or that was here before the first
    /// answer, and that is not late itself, be it the operator's own.
    pub(crate) fn is_awaited(&self, peer: &Peer, since: Time) -> bool {
        if peer.trusted {
            return peer.late() == 0;
        }
        let newcomer = self.is_newcomer(peer);
        let counted = !newcomer || (peer.joined <= since && !self.conducts.is_besieged());
        counted && peer.late() == 0 && !peer.rests() && !self.is_poor(peer.node)
    }

    /// A node came, perhaps again.
    pub(crate) fn recall_conduct(&mut self, now: Time, node: NodeId) {
        self.conducts.absent.remove(&node);
        self.rest_if_poor(now, node);
    }

    /// A node gave units back: as it should if it pauses or its page hides, and not otherwise.
    pub(super) fn note_returned(&mut self, now: Time, node: NodeId, units: &[Attempt]) {
        let hides = |peer: &Peer| peer.paused || !peer.condition.visible;
        if !units.is_empty() && !self.peers.get(&node).is_some_and(hides) {
            self.broke(now, node);
        }
    }

    /// A node leaves. Some are back soon, and a verdict may wait for those.
    pub(crate) fn miss(&mut self, now: Time, node: NodeId) {
        if self.peers.get(&node).is_some_and(|peer| !peer.loans().is_empty()) {
            self.broke(now, node);
            self.note_no_show(node);
        }
        let Some(peer) = self.peers.get(&node) else { return };
        // Leaving with units in hand has just been counted. Of whoever never answered nobody knows whether it ever will.
        if peer.told.is_empty() || self.broken(node) > 1 || self.is_newcomer(peer) {
            return;
        }
        let told = peer.told.clone();
        self.conducts.absent.retain(|_, absent| absent.until > now);
        self.conducts.absent.insert(node, Absent { until: now + BACK_SOON, told });
    }

    /// Whether somebody who could have a say about a unit is away for a moment, and worth waiting for.
    pub(crate) fn others_may_come(&self, now: Time, job: &Job, unit: &Unit, until: Time) -> bool {
        let away = |(node, absent): (&NodeId, &Absent)| {
            let here = absent.told.contains(&job.id) && now < absent.until;
            here && !unit.knows(*node)
                && !job.is_odd(*node)
                && !self.trust.of(*node, job.spec.needs.lane).is_barred()
                && unit.history.loss_of(*node).is_none()
                && !unit.history.dropped.contains(node)
        };
        let silent = |(node, peer): (&NodeId, &Peer)| {
            let tried = unit.knows(*node) || unit.history.loss_of(*node).is_some();
            peer.silent && !tried && !self.is_newcomer(peer) && peer.suits(job)
        };
        let missed = || self.conducts.absent.iter().any(away) || self.peers.iter().any(silent);
        !self.conducts.is_settled(now) || (now < until && missed())
    }
}
