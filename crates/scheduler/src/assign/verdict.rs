//! Whether a unit that was lost is at fault, so that its job fails: when enough of those say so whose word is worth
//! most here, or nobody is left to ask.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use shoal_protocol::limit::{FAIL_ON_NODES, MAX_TRIES};
use shoal_protocol::{Failure, JobId, Micros, NodeId, Time};

use super::fail::voices;
use super::quarantine::{How, Loss, Rank, Whom};
use crate::job::Job;
use crate::peers::Peer;
use crate::state::Scheduler;
use crate::unit::{Past, Unit};

/// Distinct nodes that vanished early before a unit is thought deadly: with two it may still be chance.
const DEADLY: usize = 3;
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

impl Scheduler {
    /// Why a lost unit's job fails, if it does.
    fn verdict(&self, now: Time, job: &Job, unit: &Unit) -> Option<Failure> {
        let past = &unit.history;
        let tried = unit.ballot.is_some() || unit.copies.iter().any(|copy| !copy.late);
        if tried || past.losses.is_empty() {
            // Somebody could compute it, or somebody tries.
            return None;
        }
        if past.losses.iter().any(Loss::failed) && self.fails(now, job, unit) {
            let words = past.words.clone();
            // What stands in the place of an item is a result, and needs as many votes as any other.
            let stands = words.as_ref().is_some_and(|it| job.spec.work.failed(it).is_some());
            let votes = job.quorum().filter(|_| stands).unwrap_or(0);
            return words.filter(|_| past.voices(Loss::failed) >= votes as usize);
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
        let others = heard < Some(Rank::Own) && self.register.len() > past.losses.len();
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
        if self.skip(id, start, &failure) {
            return true;
        }
        let Some(job) = self.jobs.get(&id) else { return false };
        let Some(unit) = job.units.get(&start) else { return false };
        let nodes = unit.history.losses.iter().map(|loss| loss.node).collect();
        let (span, told) = (unit.span, job.told.clone());
        self.conducts.forget(&told);
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

    /// Whether what these say of a simulation is enough: one of the operator's own nodes or an old hand is among
    /// them or not here, and they are two, or where only strangers are, five.
    pub(super) fn is_judged(&self, job: &Job, tried: &[NodeId]) -> bool {
        let elders = self.peers.elders(job.spec.needs.lane);
        let could = |node: &NodeId| {
            let here = |peer: &Peer| !peer.paused && !peer.silent && peer.suits(job);
            let able = self.peers.get(node).is_some_and(here);
            able && !tried.contains(node)
                && (self.peers.own().contains(node) || !self.is_poor(*node))
        };
        let heard = tried.iter().any(|node| elders.contains(node));
        let enough = if heard { FAIL_ON_NODES } else { STRANGERS };
        tried.len() >= enough && !elders.iter().any(could)
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
