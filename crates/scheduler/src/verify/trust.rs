//! Whom to believe. Trust belongs to a node's identity and to a kind of work; it is earned by answers that
//! others confirmed, and follows from facts alone, so that it survives a restart.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use shoal_protocol::{JobId, Lane, NodeId, Span, Time, Verify};

use super::quorum::{Answer, Ballot};
use crate::assign::Rank;
use crate::fact::Fact;
use crate::job::{Job, JobState, Proof};
use crate::state::Scheduler;

/// Confirmed answers in a row after which a node's word weighs more and not all it says is checked.
pub(crate) const VETERAN: u32 = 10;
/// Wrong answers after which a node is lent nothing of the kind any more. One may be a cosmic ray, two bad
/// luck; ten confirmed answers make up for one.
pub(crate) const BARRED: u32 = 3;

/// What a node's answers were worth so far, for one kind of work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Trust {
    /// Confirmed answers since the last wrong one.
    pub streak: u32,
    /// Wrong answers not yet made up for.
    pub wrong: u32,
}

impl Trust {
    pub fn is_barred(&self) -> bool {
        self.wrong >= BARRED
    }

    pub fn is_veteran(&self) -> bool {
        self.streak >= VETERAN
    }

    fn credit(&mut self) {
        self.streak = self.streak.saturating_add(1);
        if self.streak.is_multiple_of(VETERAN) {
            self.wrong = self.wrong.saturating_sub(1);
        }
    }
}

/// What all nodes' answers were worth so far.
#[derive(Default)]
pub(crate) struct Trusts(BTreeMap<(NodeId, Lane), Trust>);

impl Trusts {
    pub(crate) fn of(&self, node: NodeId, lane: Lane) -> Trust {
        self.0.get(&(node, lane)).copied().unwrap_or_default()
    }

    fn credit(&mut self, node: NodeId, lane: Lane) {
        self.0.entry((node, lane)).or_default().credit();
    }

    fn reject(&mut self, node: NodeId, lane: Lane, rounds: bool) {
        let trust = self.0.entry((node, lane)).or_default();
        let wrong = trust.wrong.saturating_add(u32::from(!rounds));
        *trust = Trust { streak: 0, wrong };
    }

    /// Replayed.
    pub(crate) fn recall(&mut self, node: NodeId, lane: Lane, trust: Trust) {
        self.0.insert((node, lane), trust);
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (NodeId, Lane, Trust)> {
        self.0.iter().map(|((node, lane), trust)| (*node, *lane, *trust))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// The operator's own node.
    Operator,
    /// Right often enough.
    Veteran,
    Newcomer,
}

impl Scheduler {
    pub(crate) fn standing(&self, node: NodeId, lane: Lane) -> Standing {
        match self.peers.get(&node) {
            Some(peer) => peer.standing(lane),
            None if self.trust.of(node, lane).is_veteran() => Standing::Veteran,
            None => Standing::Newcomer,
        }
    }

    /// Whether a first answer is checked before it is merged.
    pub(crate) fn is_checked(&mut self, node: NodeId, lane: Lane, verify: Verify) -> bool {
        let standing = self.standing(node, lane);
        match (verify, standing) {
            (Verify::None, _) => false,
            (Verify::Quorum { .. }, _) => true,
            (Verify::Spot { .. } | Verify::Adaptive, Standing::Operator) => false,
            (Verify::Spot { per_million }, _) => {
                self.chance.hits(u64::from(per_million), 1_000_000)
            }
            (Verify::Adaptive, Standing::Newcomer) => true,
            (Verify::Adaptive, Standing::Veteran) => {
                self.chance.hits(1, u64::from(self.trust.of(node, lane).streak))
            }
        }
    }

    /// What a confirmation does to the durable state, live and in replay.
    pub(crate) fn apply_checked(&mut self, id: JobId, span: Span, node: NodeId, proof: &Proof) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        let lane = job.spec.needs.lane;
        let credited = job.prove(span, node, proof);
        // Two strangers who are alone may be one: what they say of each other earns nothing.
        for node in if proof.sure { credited } else { Vec::new() } {
            self.trust.credit(node, lane);
            self.note_standing(node);
        }
    }

    pub(crate) fn apply_rejected(&mut self, id: JobId, node: NodeId, rounds: bool) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        if rounds {
            *job.odd.entry(node).or_default() += 1;
        }
        self.trust.reject(node, job.spec.needs.lane, rounds);
        self.note_standing(node);
        if rounds {
            self.call_roll(node);
        }
    }

    /// Says again how a connected node stands in each lane.
    pub(crate) fn note_standing(&mut self, node: NodeId) {
        let trust = &self.trust;
        let turned = self.peers.note_standing(node, |lane| trust.of(node, lane));
        if turned {
            self.call_roll(node);
        }
    }

    /// One of the operator's own found a node's answer to a request wrong. That is of no job, so that what its answers are
    /// worth now is recorded as it is.
    pub(crate) fn belie(&mut self, now: Time, node: NodeId, lane: Lane) {
        self.introduce(node);
        self.trust.reject(node, lane, false);
        let Trust { streak, wrong } = self.trust.of(node, lane);
        self.record(Fact::Trust { node, lane, streak, wrong });
        self.note_standing(node);
        self.distrust(now, node);
    }

    /// A node gave a wrong answer: what it said elsewhere weighs little now, and what rests on its word
    /// in running jobs is computed again.
    pub(crate) fn distrust(&mut self, now: Time, node: NodeId) {
        let jobs = self.jobs.iter().filter(|(_, job)| job.is_checked());
        let jobs: Vec<_> = jobs.map(|(id, _)| *id).collect();
        for id in jobs {
            let Some(job) = self.jobs.get_mut(&id) else { continue };
            for span in job.rests_on(node) {
                self.doubt(now, id, span);
            }
            let Some(job) = self.jobs.get_mut(&id) else { continue };
            for start in job.weaken(node) {
                self.refresh(id, start);
                self.jobs.judge_later(id, start);
            }
        }
    }

    /// Where a liar's word weighs less now, the others may have won.
    pub(crate) fn judge_again(&mut self, now: Time) {
        while let Some((id, start)) = self.jobs.next_to_judge() {
            self.judge(now, id, start);
        }
    }

    /// Everybody who stood for a merged unit, as answers without a say, and where they are.
    pub(super) fn suspects(&self, id: JobId, start: u64) -> Option<Vec<Answer>> {
        let job = self.jobs.get(&id)?;
        let (mut answers, classed) = (job.suspects(start)?, job.spec.work.has_class());
        for answer in &mut answers {
            answer.network = self.peers.get(&answer.node).map_or(0, |peer| peer.network);
            answer.class = if classed { self.register.class(answer.node) } else { 0 };
        }
        Some(answers)
    }

    /// Takes a merged unit back. Those who stood for it are judged with whoever computes it again.
    fn doubt(&mut self, now: Time, id: JobId, span: Span) {
        self.record(Fact::Unmerged { job: id, span });
        let Some(suspects) = self.suspects(id, span.start) else { return };
        let Some(job) = self.jobs.get_mut(&id) else { return };
        job.unmerge(span);
        job.waiting.take(span);
        match job.units.get_mut(&span.start).and_then(|unit| unit.ballot.as_mut()) {
            Some(ballot) => ballot.suspect_earlier(&suspects),
            None => {
                let ballot =
                    Ballot { answers: suspects, groups: alloc::vec![0], ..Ballot::new(now) };
                self.jobs.put_ballot(id, span, ballot);
            }
        }
        self.refresh(id, span.start);
    }
}

impl Ballot {
    /// The merged answer and those who confirmed it lose their say.
    fn suspect_earlier(&mut self, suspects: &[Answer]) {
        self.merged = false;
        for answer in &mut self.answers {
            if suspects.iter().any(|suspect| suspect.node == answer.node) {
                answer.suspect = true;
                answer.weight = 0;
            }
        }
    }
}

impl Job {
    pub(crate) fn is_checked(&self) -> bool {
        self.state == JobState::Running && self.farmed && self.spec.policy.verify != Verify::None
    }

    /// Merged units that the node computed or confirmed, without those the operator's own nodes vouch for.
    fn rests_on(&mut self, node: NodeId) -> Vec<Span> {
        if self.stood.is_none() {
            // Made when first needed: in most jobs nobody lies.
            self.stood = Some(self.who_stands().collect());
        }
        let stood = self.stood.iter().flat_map(|stood| stood.range((node, 0)..=(node, u64::MAX)));
        let units = stood.filter_map(|(_, start)| {
            let (merged, proof) = (self.merged.get(start)?, self.proofs.get(start));
            let confirmed = proof.is_some_and(|proof| proof.by.contains(&node));
            let vouched = proof.is_some_and(|proof| proof.vouched);
            let rests = (merged.node == node || confirmed) && !vouched;
            rests.then(|| Span::new(*start, merged.len))
        });
        units.collect()
    }

    /// Everybody who computed or checked a merged unit, with the unit's first item.
    fn who_stands(&self) -> impl Iterator<Item = (NodeId, u64)> {
        self.merged.iter().flat_map(|(start, merged)| {
            let by = self.proofs.get(start).map(|proof| proof.by.as_slice()).unwrap_or_default();
            core::iter::once(&merged.node).chain(by).map(|node| (*node, *start))
        })
    }

    /// Part of [`Scheduler::check`]: nobody who stands for a merged unit is missing.
    pub(crate) fn check_stood(&self) {
        let Some(stood) = &self.stood else { return };
        let all = self.who_stands().all(|stands| stood.contains(&stands));
        assert!(all, "job {}: somebody who stands for a unit is not known", self.id);
    }

    fn suspects(&self, start: u64) -> Option<Vec<Answer>> {
        let merged = self.merged.get(&start)?;
        let by = self.proofs.get(&start).map(|proof| proof.by.as_slice()).unwrap_or_default();
        let suspect = |node: &NodeId| Answer {
            node: *node,
            span: Span::new(start, merged.len),
            place: merged.place,
            class: 0,
            weight: 0,
            operator: false,
            rank: Rank::New,
            network: 0,
            suspect: true,
            whole: true,
            fits: 1,
            near: 0,
            tested: 0,
        };
        Some(core::iter::once(&merged.node).chain(by).map(suspect).collect())
    }

    /// In open ballots the node's word weighs as little as a newcomer's. Says where.
    fn weaken(&mut self, node: NodeId) -> Vec<u64> {
        let mut touched = Vec::new();
        for (start, unit) in &mut self.units {
            let answers = unit.ballot.iter_mut().flat_map(|ballot| &mut ballot.answers);
            let said = answers.filter(|answer| answer.node == node).map(|a| &mut a.weight);
            let copies = unit.copies.iter_mut().filter(|copy| copy.node == node);
            for weight in said.chain(copies.map(|copy| &mut copy.weight)) {
                *weight = (*weight).min(1);
                touched.push(*start);
            }
        }
        touched
    }
}
