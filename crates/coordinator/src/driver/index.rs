//! A job's merged units, for whoever looks at pictures and single answers.

use std::collections::BTreeMap;
use std::sync::Arc;

use shoal_kinds::JobSpec;
use shoal_protocol::Span;

use super::event::Segment;

/// Merged units by place and by time.
pub(super) struct Index {
    /// Kept here because it can be large and is asked for with every tile.
    spec: Arc<JobSpec>,
    by_start: BTreeMap<u64, Segment>,
    log: Vec<Span>,
}

impl Index {
    pub(super) fn new(spec: Arc<JobSpec>, merged: Vec<Segment>) -> Index {
        let mut index = Index { spec, by_start: BTreeMap::new(), log: Vec::new() };
        merged.into_iter().for_each(|segment| index.add(segment));
        index
    }

    pub(super) fn add(&mut self, segment: Segment) {
        self.by_start.insert(segment.0.start, segment);
        self.log.push(segment.0);
    }

    /// The list by time keeps it, so that positions in it stay what they are.
    pub(super) fn take_back(&mut self, span: Span) {
        self.by_start.remove(&span.start);
    }

    pub(super) fn spec(&self) -> Arc<JobSpec> {
        self.spec.clone()
    }

    pub(super) fn find(&self, item: u64) -> Option<Segment> {
        let (_, segment) = self.by_start.range(..=item).next_back()?;
        (item < segment.0.end()).then_some(*segment)
    }

    /// Units from the one that holds an item on, at most so many, up to the first that is missing.
    pub(super) fn row(&self, from: u64, most: usize) -> Vec<Segment> {
        let Some((first, _)) = self.find(from) else { return Vec::new() };
        let mut at = first.start;
        let units = self.by_start.range(at..).take(most).map(|(_, segment)| *segment);
        units
            .take_while(|(span, _)| {
                let follows = span.start == at;
                at = span.end();
                follows
            })
            .collect()
    }

    /// What was merged from a position on and not taken back since, and the position after that.
    pub(super) fn log(&self, from: usize) -> (Vec<Span>, usize) {
        let spans = self.log.get(from..).unwrap_or_default().iter();
        let there = |span: &&Span| self.by_start.get(&span.start).is_some_and(|s| s.0 == **span);
        (spans.filter(there).copied().collect(), self.log.len().max(from))
    }
}

#[cfg(test)]
mod tests {
    use super::super::known::Known;
    use super::*;
    use shoal_kinds::{Kind, NoopWork};
    use shoal_protocol::{
        Hash, JobId, Lane, Limits, Needs, NodeId, Policy, Sizing, Strategy, Time, Verify,
    };
    use shoal_scheduler::{Fact, Failed, Place, Scheduler};

    fn facts() -> Vec<Fact> {
        let spec = JobSpec {
            name: "job".into(),
            owner: "owner".into(),
            work: Kind::Noop(NoopWork),
            items: 20,
            sizing: Sizing::fixed(10),
            strategy: Strategy::Adaptive,
            needs: Needs::lane(Lane::Inline),
            limits: Limits::default(),
            policy: Policy::checked(Verify::Adaptive),
            signed: None,
        };
        let merged = |start, size| Fact::Merged {
            job: JobId(1),
            span: Span::new(start, 10),
            node: NodeId(1),
            place: Some(Place { offset: 0, size, hash: Hash([0; 32]), failed: Failed::default() }),
        };
        let submitted = Fact::Submitted { job: JobId(1), at: Time(1), spec: Box::new(spec) };
        let unmerged = Fact::Unmerged { job: JobId(1), span: Span::new(0, 10) };
        vec![submitted, merged(0, 5), merged(10, 7), unmerged, merged(0, 6)]
    }

    #[test]
    fn what_is_taken_back_is_shown_to_nobody_and_told_again_when_it_is_back() {
        let (mut known, job, facts) = (Known::default(), JobId(1), facts());
        // What a follower reads from a position on, and what an asker for item 3 finds.
        let look = |known: &mut Known, count: usize, from: usize| {
            let scheduler = Scheduler::replay(facts[..count].iter().cloned());
            known.count_again(&scheduler);
            let index = known.index(&scheduler, job).unwrap();
            (index.log(from), index.find(3).is_some())
        };
        let (first, second) = (Span::new(0, 10), Span::new(10, 10));
        facts[..3].iter().for_each(|fact| known.learn(fact));
        assert_eq!(look(&mut known, 3, 0), ((vec![first, second], 2), true));
        assert_eq!(known.bytes(job), 12);
        let row = |known: &mut Known, count: usize, from| {
            let scheduler = Scheduler::replay(facts[..count].iter().cloned());
            let row = known.index(&scheduler, job).unwrap().row(from, 5);
            row.into_iter().map(|(span, _)| span).collect::<Vec<_>>()
        };
        assert_eq!(row(&mut known, 3, 4), [first, second]);
        assert_eq!((row(&mut known, 3, 10), row(&mut known, 3, 20)), (vec![second], vec![]));
        known.learn(&facts[3]);
        assert_eq!((row(&mut known, 4, 0), known.taken_back(job)), (vec![], 1));
        assert_eq!(look(&mut known, 4, 0), ((vec![second], 2), false));
        assert_eq!((known.bytes(job), known.runs(job)), (7, true));
        known.learn(&facts[4]);
        assert_eq!(look(&mut known, 5, 2), ((vec![first], 3), true));
        assert_eq!(known.bytes(job), 13);
    }
}
