//! Looking again at what is merged: units whose answer is known test a node without its knowing, and before
//! a job ends every node with unconfirmed work in it is tried.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use shoal_protocol::{JobId, NodeId, Sizing, Span, Time, Verify};

use super::quorum::Ballot;
use super::trust::Standing;
use crate::assign::Rank;
use crate::job::Job;
use crate::state::Scheduler;

/// One known unit is lent for so many checks of a node's own ones: a known answer cannot be covered up by a
/// friend, but is work for nothing else.
const CHECKS_PER_KNOWN: u64 = 4;
/// At the end of a job each node is tried on one in so many of its unconfirmed units, and those with fewer
/// in proportion, so that small jobs do not pay double. Where a part can be asked for, that is cheap.
const AUDIT_ONE_IN: u64 = 4;
const AUDIT_ONE_WHOLE_IN: u64 = 32;
/// More than this many say nothing new about a node.
const MOST_AUDITS: u64 = 16;
/// A voter who computes only a part computes one item in this many.
const PART: u64 = 8;
/// Of eight checks of an old hand so many are of the whole unit; of a new node all are.
const WHOLE_OF_OLD: u64 = 1;
/// What a new node was believed for because it was alone is tried on so many: if one is wrong, all go.
const AUDIT_NEW: u64 = 32;
/// Where new answers keep disagreeing with old ones, trying again so often tells no more.
pub(crate) const MOST_ROUNDS: u32 = 16;
/// Answers kept for one merged unit; more would only cost memory.
const MOST_CONFIRMERS: usize = 8;

impl Scheduler {
    /// Now and then an old hand is lent a unit whose answer is known.
    pub(crate) fn known_unit(&mut self, node: NodeId, id: JobId) -> Option<u64> {
        let job = self.jobs.get(&id)?;
        let lane = job.spec.needs.lane;
        if job.spec.policy.verify != Verify::Adaptive
            || self.standing(node, lane) != Standing::Veteran
        {
            return None;
        }
        let streak = u64::from(self.trust.of(node, lane).streak);
        if !self.chance.hits(1, streak.saturating_mul(CHECKS_PER_KNOWN)) {
            return None;
        }
        let job = self.jobs.get(&id)?;
        let from = self.chance.below(job.spec.items);
        let (start, proof) = job.proofs.range(from..).next()?;
        let fits = proof.sure
            && proof.by.len() < MOST_CONFIRMERS
            && !proof.by.contains(&node)
            && job.merged.get(start).is_some_and(|merged| merged.node != node)
            && !job.units.contains_key(start);
        fits.then_some(*start)
    }

    /// Opens a merged unit's ballot again: those who stood for it have their say, and others are asked.
    pub(crate) fn look_again(&mut self, now: Time, id: JobId, start: u64) {
        let Some(job) = self.jobs.get(&id) else { return };
        let (lane, rules) = (job.spec.needs.lane, job.rules());
        let Some(mut answers) = self.suspects(id, start) else { return };
        let vouched = job.proofs.get(&start).is_some_and(|proof| proof.vouched);
        for (at, answer) in answers.iter_mut().enumerate() {
            let vouched = vouched && at == 0;
            let standing =
                if vouched { Standing::Operator } else { self.standing(answer.node, lane) };
            answer.suspect = false;
            answer.operator = vouched;
            // It was believed before.
            answer.rank = Rank::Contributor;
            answer.weight = rules.weight(standing);
        }
        let Some(span) = answers.first().map(|answer| answer.span) else { return };
        let ballot = Ballot { answers, groups: alloc::vec![0], merged: true, ..Ballot::new(now) };
        self.jobs.put_ballot(id, span, ballot);
        self.refresh(id, start);
    }

    /// What a voter computes: the whole unit, or a part drawn now that the answer lies on the table. Where
    /// somebody disagrees or the node is new it is the whole: a small lie hides from most parts.
    pub(crate) fn sample(&mut self, id: JobId, start: u64) -> Option<Span> {
        let job = self.jobs.get(&id)?;
        let unit = job.units.get(&start)?;
        let ballot = unit.ballot.as_ref()?;
        let grain = job.spec.sizing.grain.max(1);
        let grains = unit.span.len.div_ceil(grain);
        let newcomer = ballot.answers.first().is_none_or(|answer| answer.weight <= 1);
        let span = unit.span;
        let whole = !job.rules().parts || grains < 2 || newcomer || ballot.is_disputed();
        if whole || self.chance.hits(WHOLE_OF_OLD, 8) {
            return Some(span);
        }
        let some = (grains / PART).max(1);
        let first = start + self.chance.below(grains - some + 1) * grain;
        Some(Span::new(first, (some * grain).min(span.end() - first)))
    }

    /// All is merged: picks what is looked at before the job may end.
    pub(crate) fn audit(&mut self, now: Time, id: JobId) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        // A crew's rows are looked at before they are merged.
        if !job.farmed {
            return;
        }
        job.audits += 1;
        if job.audits > MOST_ROUNDS {
            return;
        }
        let mut asked: BTreeMap<NodeId, u64> = BTreeMap::new();
        let lane = job.spec.needs.lane;
        let Sizing { grain, most, step: _ } = job.spec.sizing;
        let one_in = if most / grain.max(1) < PART { AUDIT_ONE_WHOLE_IN } else { AUDIT_ONE_IN };
        for (node, units) in core::mem::take(&mut job.unaudited) {
            let sure = (units / one_in).min(MOST_AUDITS);
            let lucky = self.chance.hits(units % one_in, one_in);
            let new = self.standing(node, lane) == Standing::Newcomer;
            asked.insert(node, if new { AUDIT_NEW } else { sure + u64::from(lucky) });
        }
        let Some(job) = self.jobs.get(&id) else { return };
        let mut picks: BTreeMap<NodeId, Vec<u64>> = BTreeMap::new();
        let mut seen: BTreeMap<NodeId, u64> = BTreeMap::new();
        for (start, merged) in job.unconfirmed() {
            let Some(&most) = asked.get(&merged.node).filter(|most| **most > 0) else { continue };
            let seen = seen.entry(merged.node).or_default();
            *seen += 1;
            let picked = picks.entry(merged.node).or_default();
            // Each unit ends up picked with the same chance, whatever its place.
            if (picked.len() as u64) < most {
                picked.push(start);
            } else if let Ok(at) = usize::try_from(self.chance.below(*seen))
                && let Some(slot) = picked.get_mut(at)
            {
                *slot = start;
            }
        }
        let picks: Vec<_> = picks.into_values().flatten().collect();
        for start in &picks {
            self.look_again(now, id, *start);
        }
        for start in picks {
            self.judge(now, id, start);
        }
    }
}

impl Job {
    /// After replay: whose unconfirmed work must be tried before the end.
    pub(crate) fn count_unaudited(&mut self) {
        let mut unaudited = BTreeMap::new();
        if self.spec.policy.verify == Verify::Adaptive {
            for (_, merged) in self.unconfirmed() {
                *unaudited.entry(merged.node).or_default() += 1;
            }
        }
        self.unaudited = unaudited;
    }

    /// Merged units that nobody confirmed and the operator's own nodes did not compute.
    pub(crate) fn unconfirmed(&self) -> impl Iterator<Item = (u64, &crate::job::Merged)> {
        let merged = self.merged.iter().filter(|(start, _)| !self.proofs.contains_key(start));
        merged.map(|(start, merged)| (*start, merged))
    }
}
