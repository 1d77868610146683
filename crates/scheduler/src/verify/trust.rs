//! Whom to believe. Trust belongs to a node's identity and to a kind of work; it is earned by answers that
//! others confirmed, and follows from facts alone, so that it survives a restart.

use alloc::vec::Vec;
use shoal_protocol::{JobId, Lane, NodeId, Span, Time, Verify};

use super::quorum::{Answer, Ballot};
use crate::fact::Fact;
use crate::job::{Job, JobState, Proof};
use crate::state::Scheduler;
use crate::unit::{History, Unit};

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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// The operator's own node.
    Operator,
    /// Right often enough.
    Veteran,
    Newcomer,
}

impl Scheduler {
    pub(crate) fn trust(&self, node: NodeId, lane: Lane) -> Trust {
        self.trust.get(&(node, lane)).copied().unwrap_or_default()
    }

    pub(crate) fn standing(&self, node: NodeId, lane: Lane) -> Standing {
        match self.peers.get(&node) {
            Some(peer) => peer.standing[lane as usize],
            None if self.trust(node, lane).is_veteran() => Standing::Veteran,
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
                self.chance.hits(1, u64::from(self.trust(node, lane).streak))
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
            self.trust.entry((node, lane)).or_default().credit();
            self.note_standing(node);
        }
    }

    pub(crate) fn apply_rejected(&mut self, id: JobId, node: NodeId, rounds: bool) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        if rounds {
            *job.odd.entry(node).or_default() += 1;
        }
        let trust = self.trust.entry((node, job.spec.needs.lane)).or_default();
        let wrong = trust.wrong.saturating_add(u32::from(!rounds));
        *trust = Trust { streak: 0, wrong };
        self.note_standing(node);
    }

    /// Says again how a connected node stands in each lane.
    pub(crate) fn note_standing(&mut self, node: NodeId) {
        if self.peers.get(&node).is_some_and(|peer| peer.trusted) {
            self.own.insert(node);
        } else {
            self.own.remove(&node);
        }
        for lane in crate::assign::LANES {
            let trust = self.trust(node, lane);
            let elders = &mut self.elders[lane as usize];
            let Some(peer) = self.peers.get_mut(&node) else {
                elders.remove(&node);
                continue;
            };
            let standing = match trust.streak {
                _ if peer.trusted => Standing::Operator,
                VETERAN.. => Standing::Veteran,
                _ => Standing::Newcomer,
            };
            peer.standing[lane as usize] = standing;
            peer.barred[lane as usize] = !peer.trusted && trust.is_barred();
            if standing == Standing::Newcomer || peer.barred[lane as usize] {
                elders.remove(&node);
            } else {
                elders.insert(node);
            }
        }
    }

    /// A node gave a wrong answer: what it said elsewhere weighs little now, and what rests on its word
    /// in running jobs is computed again.
    pub(crate) fn distrust(&mut self, now: Time, node: NodeId) {
        let jobs = self.jobs.iter().filter(|(_, job)| job.is_checked());
        let jobs: Vec<_> = jobs.map(|(id, _)| *id).collect();
        for id in jobs {
            let Some(job) = self.jobs.get(&id) else { continue };
            for span in job.rests_on(node) {
                self.doubt(now, id, span);
            }
            let Some(job) = self.jobs.get_mut(&id) else { continue };
            for start in job.weaken(node) {
                self.refresh(id, start);
                self.rejudge.push_back((id, start));
            }
        }
    }

    /// Where a liar's word weighs less now, the others may have won.
    pub(crate) fn judge_again(&mut self, now: Time) {
        while let Some((id, start)) = self.rejudge.pop_front() {
            self.judge(now, id, start);
        }
    }

    /// Everybody who stood for a merged unit, as answers without a say, and where they are.
    pub(super) fn suspects(&self, id: JobId, start: u64) -> Option<Vec<Answer>> {
        let mut answers = self.jobs.get(&id)?.suspects(start)?;
        for answer in &mut answers {
            answer.network = self.peers.get(&answer.node).map_or(0, |peer| peer.network);
            answer.class = self.classes.get(&answer.node).copied().unwrap_or(0);
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
                let ballot = Some(alloc::boxed::Box::new(ballot));
                let unit = Unit { ballot, ..Unit::new(span, History::default()) };
                job.units.insert(span.start, unit);
                self.ballots += 1;
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
        self.state == JobState::Running && self.spec.policy.verify != Verify::None
    }

    /// Merged units that the node computed or confirmed, without those the operator's own nodes vouch for.
    fn rests_on(&self, node: NodeId) -> Vec<Span> {
        let units = self.merged.iter().filter(|(start, merged)| {
            let proof = self.proofs.get(start);
            let confirmed = proof.is_some_and(|proof| proof.by.contains(&node));
            let vouched = proof.is_some_and(|proof| proof.vouched);
            (merged.node == node || confirmed) && !vouched
        });
        units.map(|(start, merged)| Span::new(*start, merged.len)).collect()
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
