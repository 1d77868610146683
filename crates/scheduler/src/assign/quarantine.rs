//! Units that fail, or end the nodes that compute them. Anybody may say so, and anybody may lie: such a unit goes to
//! those whose word is worth more, and its job fails only when they say the same.

use alloc::string::String;
use shoal_protocol::limit::FAIL_ON_NODES;
use shoal_protocol::{Caps, JobId, Micros, NodeId, NodeKind, Time, Verify};

use crate::job::Job;
use crate::loans::Loan;
use crate::peers::Peer;
use crate::state::Scheduler;
use crate::unit::{History, Unit};
use crate::verify::Standing;

/// Vanishing this soon after a node began points at the unit; later it points at life.
const EARLY: Micros = Micros::from_secs(10);
/// A node that was here for so long is no longer new: whoever makes up keys has to keep each of them connected.
const SETTLED_AFTER: Micros = Micros::from_secs(10);
/// New nodes that came this long after a unit was first lost are not waited for.
const NEW_UNTIL: Micros = Micros::from_secs(10);

/// How much a node's word is worth where a unit is lost, from least to most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rank {
    /// Just came and did nothing yet, or does not keep what it takes.
    New,
    /// Did something once, or has been here for a while.
    Settled,
    /// Did other units of the same job.
    Contributor,
    /// Was right often enough.
    Elder,
    /// The operator's own.
    Own,
}

/// Somebody's having failed with a unit, or vanished.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Loss {
    pub(crate) node: NodeId,
    pub(super) network: u64,
    pub(super) rank: Rank,
    pub(crate) how: How,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// Whether it says that the same would happen elsewhere.
    Failed { blames_job: bool },
    Vanished {
        /// Soon after it began.
        early: bool,
        kind: &'static str,
        gpu: Option<String>,
    },
}

/// Who is asked for of those who could try a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whom {
    /// Neither lost nor dropped it.
    Fresh,
    NotLost,
    /// May have vanished with it.
    NotFailed,
    Anybody,
}

impl Scheduler {
    /// Notes that a node vanished with a unit at work.
    pub(crate) fn vanished(&mut self, now: Time, loan: &Loan) {
        let (Some(began), Some(peer)) = (loan.running, self.peers.get(&loan.node)) else { return };
        let how = How::vanished(now - began < EARLY, &peer.caps);
        self.note_loss(now, loan, how);
    }

    pub(super) fn note_loss(&mut self, now: Time, loan: &Loan, how: How) {
        let Some(peer) = self.peers.get(&loan.node) else { return };
        let Some(job) = self.jobs.get(&loan.job) else { return };
        let (node, network, rank) = (loan.node, peer.network, self.rank(peer, job));
        let Some(job) = self.jobs.get_mut(&loan.job) else { return };
        let Some(unit) = job.units.get_mut(&loan.unit) else { return };
        unit.history.lose(now, Loss { node, network, rank, how });
        self.review.look_soon(now);
    }

    /// What a node's word is worth where nobody else decides.
    pub(crate) fn rank(&self, peer: &Peer, job: &Job) -> Rank {
        let (node, lane) = (peer.node, job.spec.needs.lane);
        if peer.trusted {
            return Rank::Own;
        }
        if self.is_poor(node) {
            return Rank::New;
        }
        if peer.standing(lane) == Standing::Veteran {
            return Rank::Elder;
        }
        if job.shares.get(&node).is_some_and(|share| share.units > 0) {
            return Rank::Contributor;
        }
        let known = !self.register.is_stranger(node);
        let settled = known || self.now - peer.joined >= SETTLED_AFTER;
        if settled { Rank::Settled } else { Rank::New }
    }

    /// The most that the word of somebody is worth who could try a lost unit and has not.
    pub(super) fn left(&self, job: &Job, unit: &Unit, whom: Whom) -> Option<Rank> {
        let rank = |node: &NodeId| {
            let peer = self.peers.get(node)?;
            self.could_try(peer, job, unit, whom).then(|| self.rank(peer, job))
        };
        if self.peers.own().iter().any(|node| rank(node).is_some()) {
            return Some(Rank::Own);
        }
        let elders = self.peers.elders(job.spec.needs.lane);
        if elders.iter().any(|node| rank(node) == Some(Rank::Elder)) {
            return Some(Rank::Elder);
        }
        if job.shares.keys().any(|node| rank(node) == Some(Rank::Contributor)) {
            return Some(Rank::Contributor);
        }
        let mut best = None;
        for peer in self.peers.values() {
            match rank(&peer.node) {
                None => {}
                Some(Rank::New) => {
                    let waited_for = peer.joined <= unit.history.since + NEW_UNTIL;
                    best = best.max(waited_for.then_some(Rank::New));
                }
                // Those above were found before.
                Some(Rank::Settled | Rank::Contributor | Rank::Elder | Rank::Own) => {
                    return Some(Rank::Settled);
                }
            }
        }
        best
    }

    pub(super) fn could_try(&self, peer: &Peer, job: &Job, unit: &Unit, whom: Whom) -> bool {
        let able = !peer.paused && !peer.silent && peer.suits(job);
        if !able || (!peer.trusted && (peer.late() > 0 || self.is_poor(peer.node))) {
            return false;
        }
        let past = &unit.history;
        let elder = peer.trusted || peer.standing(job.spec.needs.lane) != Standing::Newcomer;
        match (whom, past.loss_of(peer.node)) {
            (Whom::Fresh, None) => elder || !past.dropped.contains(&peer.node),
            (Whom::NotLost | Whom::NotFailed, None) | (Whom::Anybody, _) => true,
            (Whom::NotFailed, Some(loss)) => !loss.failed(),
            (Whom::Fresh | Whom::NotLost, Some(_)) => false,
        }
    }

    /// Whether a node may try a unit with a history. Not again if it lost it, while anybody else could; not if
    /// several lost it whose word is worth as much, while somebody is here whose word is worth more.
    pub(super) fn may_try(&self, node: NodeId, job: &Job, unit: &Unit) -> bool {
        let past = &unit.history;
        if past.is_clean() {
            return true;
        }
        let Some(peer) = self.peers.get(&node) else { return false };
        if let Some(loss) = past.loss_of(node) {
            let again = !matches!(loss.how, How::Failed { blames_job: true });
            return again && self.left(job, unit, Whom::Fresh).is_none();
        }
        if past.dropped.contains(&node) && !peer.trusted && !self.may_have_again(node, job, unit) {
            return false;
        }
        if unit.ballot.is_some() || past.losses.len() < FAIL_ON_NODES {
            return true;
        }
        let settled = past.losses.iter().filter(|loss| loss.rank >= Rank::Settled);
        let rank = self.rank(peer, job);
        if settled.count() < FAIL_ON_NODES {
            // Only newcomers lost it: anybody else may try.
            return rank >= Rank::Settled || self.left(job, unit, Whom::Fresh) <= Some(Rank::New);
        }
        self.left(job, unit, Whom::Fresh) <= Some(rank)
    }

    /// Whether a node that took a unit and came to nothing may take it again: if nobody else has room for it. A
    /// vote is asked for again only where the policy insists on it.
    fn may_have_again(&self, node: NodeId, job: &Job, unit: &Unit) -> bool {
        let insists = matches!(job.spec.policy.verify, Verify::Quorum { .. });
        if unit.ballot.is_some() && !insists {
            return false;
        }
        let hungry = self.peers.hungry(job.spec.needs.lane);
        !hungry.iter().filter(|other| **other != node && !unit.knows(**other)).any(|other| {
            self.peers.get(other).is_some_and(|peer| self.could_try(peer, job, unit, Whom::Fresh))
        })
    }

    /// A node thought to be ended by a unit is still at it.
    pub(crate) fn forgive(&mut self, node: NodeId, id: JobId, start: u64) {
        self.made_up(node);
        let unit = self.jobs.get_mut(&id).and_then(|job| job.units.get_mut(&start));
        let Some(unit) = unit.filter(|unit| !unit.history.is_clean()) else { return };
        let history = &mut unit.history;
        let before = history.losses.len();
        let vanished = |loss: &Loss| matches!(loss.how, How::Vanished { .. });
        history.losses.retain(|loss| loss.node != node || !vanished(loss));
        history.dropped.retain(|dropped| *dropped != node);
        history.tries -= u32::from(history.losses.len() < before).min(history.tries);
        self.refresh(id, start);
    }

    /// The unit is computed after all: those who blamed it were wrong.
    pub(crate) fn blame_false_alarms(&mut self, now: Time, history: &History) {
        for loss in &history.losses {
            if loss.how == (How::Failed { blames_job: true }) {
                self.broke(now, loss.node);
            }
        }
    }
}

impl Loss {
    pub(super) fn failed(&self) -> bool {
        matches!(self.how, How::Failed { .. })
    }
}

impl How {
    fn vanished(early: bool, caps: &Caps) -> How {
        let kind = match caps.kind {
            NodeKind::Native => "native nodes",
            NodeKind::Browser => "browsers",
            NodeKind::Simulated => "simulated nodes",
        };
        How::Vanished { early, kind, gpu: caps.gpu.as_ref().map(|gpu| gpu.name.clone()) }
    }
}
