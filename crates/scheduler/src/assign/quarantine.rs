//! Units that fail, or end the nodes that compute them. Anybody may say so, and anybody may lie: such a unit goes to
//! those whose word is worth more, and its job fails only when they say the same.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use shoal_protocol::limit::{FAIL_ON_NODES, MAX_TRIES};
use shoal_protocol::{Caps, Failure, JobId, Micros, NodeId, NodeKind, Time, Verify};

use super::fail::voices;
use crate::job::Job;
use crate::state::{Peer, Scheduler};
use crate::unit::{History, Loan, Past, Unit};
use crate::verify::Standing;

/// Distinct nodes that vanished early before a unit is thought deadly: with two it may still be chance.
const DEADLY: usize = 3;
/// Vanishing this soon after a node began points at the unit; later it points at life.
const EARLY: Micros = Micros::from_secs(10);
/// A node that was here for so long is no longer new: whoever makes up keys has to keep each of them connected.
const SETTLED_AFTER: Micros = Micros::from_secs(10);
/// New nodes that came this long after a unit was first lost are not waited for.
const NEW_UNTIL: Micros = Micros::from_secs(10);
/// Strangers who are alone with a unit have the last word after this time: others may come back.
const ALONE_FOR: Micros = Micros::from_secs(10);
/// A verdict waits at most so long for nodes that left. Where only new nodes are, and they vanish with a unit again
/// and again, that is how long others have to come.
const LONELY: Micros = Micros::from_secs(60);
/// Failures that are the node's own (device lost, no memory) before a unit is thought to cause them.
const NODE_FAULTS: u32 = 3;
/// So many must have lost a unit where nobody is here whose word is worth more.
const STRANGERS: usize = 5;
/// Where more of a rank could still try, so many of it must have lost the unit: three old hands, or five of whom
/// less is known, so that nobody ends a job with a handful of made-up keys.
const ENOUGH: [(Rank, usize); 3] =
    [(Rank::Elder, 3), (Rank::Contributor, STRANGERS), (Rank::Settled, STRANGERS)];

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
    network: u64,
    rank: Rank,
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
enum Whom {
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
        self.look_soon(now);
    }

    fn rank(&self, peer: &Peer, job: &Job) -> Rank {
        let (node, lane) = (peer.node, job.spec.needs.lane as usize);
        if peer.trusted {
            return Rank::Own;
        }
        if self.is_poor(node) {
            return Rank::New;
        }
        if peer.standing[lane] == Standing::Veteran {
            return Rank::Elder;
        }
        if job.shares.get(&node).is_some_and(|share| share.units > 0) {
            return Rank::Contributor;
        }
        let known = !self.strangers.contains_key(&node);
        let settled = known || self.now - peer.joined >= SETTLED_AFTER;
        if settled { Rank::Settled } else { Rank::New }
    }

    /// The most that the word of somebody is worth who could try a lost unit and has not.
    fn left(&self, job: &Job, unit: &Unit, whom: Whom) -> Option<Rank> {
        let rank = |node: &NodeId| {
            let peer = self.peers.get(node)?;
            self.could_try(peer, job, unit, whom).then(|| self.rank(peer, job))
        };
        if self.own.iter().any(|node| rank(node).is_some()) {
            return Some(Rank::Own);
        }
        let elders = &self.elders[job.spec.needs.lane as usize];
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

    /// Whether what these say of a simulation is enough: one of the operator's own nodes or an old hand is among
    /// them or not here, and they are two, or where only strangers are, five.
    pub(super) fn is_judged(&self, job: &Job, tried: &[NodeId]) -> bool {
        let elders = &self.elders[job.spec.needs.lane as usize];
        let could = |node: &NodeId| {
            let here = |peer: &Peer| !peer.paused && !peer.silent && peer.suits(job);
            let able = self.peers.get(node).is_some_and(here);
            able && !tried.contains(node) && (self.own.contains(node) || !self.is_poor(*node))
        };
        let heard = tried.iter().any(|node| elders.contains(node));
        let enough = if heard { FAIL_ON_NODES } else { STRANGERS };
        tried.len() >= enough && !elders.iter().any(could)
    }

    fn could_try(&self, peer: &Peer, job: &Job, unit: &Unit, whom: Whom) -> bool {
        let able = !peer.paused && !peer.silent && peer.suits(job);
        if !able || (!peer.trusted && (peer.late > 0 || self.is_poor(peer.node))) {
            return false;
        }
        let past = &unit.history;
        let elder =
            peer.trusted || peer.standing[job.spec.needs.lane as usize] != Standing::Newcomer;
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
        let hungry = &self.hungry[job.spec.needs.lane as usize];
        !hungry.iter().filter(|other| **other != node && !unit.knows(**other)).any(|other| {
            self.peers.get(other).is_some_and(|peer| self.could_try(peer, job, unit, Whom::Fresh))
        })
    }

    /// Why a lost unit's job fails, if it does.
    fn verdict(&self, now: Time, job: &Job, unit: &Unit) -> Option<Failure> {
        let past = &unit.history;
        let tried = unit.ballot.is_some() || unit.copies.iter().any(|copy| !copy.late);
        if tried || past.losses.is_empty() {
            // Somebody could compute it, or somebody tries.
            return None;
        }
        if past.losses.iter().any(Loss::failed) {
            return self.fails(now, job, unit).then(|| past.words.clone()).flatten();
        }
        self.is_deadly(now, job, unit).then(|| Failure::Internal { message: describe(past) })
    }

    /// Whether enough of those say that a unit fails whose word is worth most here.
    fn fails(&self, now: Time, job: &Job, unit: &Unit) -> bool {
        let past = &unit.history;
        let sure = past.words.as_ref().is_some_and(Failure::blames_job);
        if !sure && past.tries < NODE_FAULTS {
            return false;
        }
        // A node that vanished said nothing yet about whether it fails.
        let left = self.left(job, unit, Whom::NotFailed);
        let heard = past.heard(Loss::failed);
        let judged = heard >= Some(Rank::Elder) && left < Some(Rank::Elder);
        if heard < Some(Rank::Own) && self.others_may_come(now, job, unit, past.since + LONELY) {
            return false;
        }
        let many = past.are_many(left, Loss::failed);
        // If others were here before, those have a moment to come back.
        let others = heard < Some(Rank::Own) && self.known.len() > past.losses.len();
        let wait = if others { ALONE_FOR } else { Micros(0) };
        let everybody = left.is_none() && past.alone_since.is_some_and(|at| now >= at + wait);
        let enough = (judged || many) && past.voices(Loss::failed) >= FAIL_ON_NODES;
        everybody || (enough && (heard == Some(Rank::Own) || self.has_asked_best(job, unit)))
    }

    /// Whether the node that did most of a job, of those that are here, lost a unit of it as well: trust can be
    /// earned in order to be betrayed, but not by everybody at once.
    fn has_asked_best(&self, job: &Job, unit: &Unit) -> bool {
        let here = job.shares.iter().filter(|(node, share)| {
            let peer = self.peers.get(node).filter(|_| share.units > 0);
            peer.is_some_and(|peer| self.could_try(peer, job, unit, Whom::Anybody))
        });
        let best = here.max_by_key(|(_, share)| share.units);
        best.is_none_or(|(node, _)| unit.history.loss_of(*node).is_some())
    }

    /// Whether enough of those vanished with a unit whose vanishing means most here.
    fn is_deadly(&self, now: Time, job: &Job, unit: &Unit) -> bool {
        let past = &unit.history;
        let any = |_: &Loss| true;
        let left = self.left(job, unit, Whom::NotLost);
        let heard = past.heard(any);
        let judged = heard >= Some(Rank::Elder) && left < Some(Rank::Elder);
        if heard < Some(Rank::Own) && self.others_may_come(now, job, unit, past.since + LONELY) {
            return false;
        }
        let early = |loss: &Loss| matches!(loss.how, How::Vanished { early: true, .. });
        let often = past.voices(early) >= DEADLY || past.voices(any) >= MAX_TRIES as usize;
        let lonely = left.is_none() && past.tries >= MAX_TRIES && now >= past.since + LONELY;
        let enough = often && (judged || past.are_many(left, any));
        lonely || (enough && (heard == Some(Rank::Own) || self.has_asked_best(job, unit)))
    }

    /// Fails the job of a unit that nobody can be expected to compute; says whether it did.
    pub(super) fn end_if_hopeless(&mut self, now: Time, id: JobId, start: u64) -> bool {
        self.note_alone(now, id, start);
        let Some(job) = self.jobs.get(&id) else { return false };
        let Some(unit) = job.units.get(&start) else { return false };
        let Some(failure) = self.verdict(now, job, unit) else { return false };
        let nodes = unit.history.losses.iter().map(|loss| loss.node).collect();
        let (span, told) = (unit.span, job.told.clone());
        self.forget_conduct(&told);
        self.fail_unit(now, id, span, nodes, failure);
        true
    }

    fn note_alone(&mut self, now: Time, id: JobId, start: u64) {
        let Some(job) = self.jobs.get(&id) else { return };
        let Some(unit) = job.units.get(&start).filter(|unit| unit.is_aside()) else { return };
        let alone = self.left(job, unit, Whom::NotFailed).is_none();
        let since = unit.history.alone_since.filter(|_| alone).or(alone.then_some(now));
        let unit = self.jobs.get_mut(&id).and_then(|job| job.units.get_mut(&start));
        if let Some(unit) = unit {
            unit.history.alone_since = since;
        }
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

impl Past {
    /// How many different owners these losses have, as far as networks tell.
    fn voices(&self, of: impl Fn(&Loss) -> bool) -> usize {
        let of = self.losses.iter().filter(|loss| of(loss));
        let networks: Vec<_> = of.map(|loss| loss.network).collect();
        voices(&networks)
    }

    /// The most that the word of somebody is worth who said so.
    fn heard(&self, of: impl Fn(&Loss) -> bool) -> Option<Rank> {
        self.losses.iter().filter(|loss| of(loss)).map(|loss| loss.rank).max()
    }

    /// Whether so many said so that those left need not be asked.
    fn are_many(&self, left: Option<Rank>, of: impl Fn(&Loss) -> bool) -> bool {
        ENOUGH.iter().any(|(rank, enough)| {
            let voices = self.voices(|loss| of(loss) && loss.rank >= *rank);
            left <= Some(*rank) && voices >= *enough
        })
    }
}

impl Loss {
    fn failed(&self) -> bool {
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

/// What the victims had in common helps whoever must find the cause.
fn describe(past: &Past) -> String {
    let victims: Vec<_> = past
        .losses
        .iter()
        .filter_map(|loss| match &loss.how {
            How::Vanished { early: true, kind, gpu } => Some((*kind, gpu)),
            How::Vanished { early: false, .. } | How::Failed { .. } => None,
        })
        .collect();
    let Some((kind, gpu)) = victims.first().filter(|_| victims.len() >= DEADLY) else {
        let nodes = past.losses.len();
        return format!("{nodes} nodes vanished while they computed it, {} times", past.tries);
    };
    let mut common = Vec::new();
    if victims.iter().all(|victim| victim.0 == *kind) {
        common.push(format!("all were {kind}"));
    }
    if let Some(name) = gpu
        && victims.iter().all(|victim| victim.1 == *gpu)
    {
        common.push(format!("all have the GPU {name}"));
    }
    let common =
        if common.is_empty() { "nothing in common".to_string() } else { common.join(", ") };
    format!("{} nodes vanished soon after they began to compute it: {common}", victims.len())
}
