//! Every invariant between the tables, asserted after each step in tests and simulation.

use alloc::vec::Vec;
use shoal_protocol::limit::MAX_POKES;
use shoal_protocol::{JobId, Span};

use crate::assign::crew::Crew;
use crate::job::{Job, JobState};
use crate::state::Scheduler;

impl Scheduler {
    /// Panics where an invariant does not hold.
    pub fn check(&self) {
        self.register.check();
        self.peers.check();
        self.jobs.check();
        self.conducts.check();
        self.crews.check();
        self.check_services();
        for (id, job) in self.jobs.iter() {
            self.check_job(*id, job);
        }
        self.check_loans();
        self.check_peers();
        self.check_crews();
        self.check_swarms();
    }

    fn check_job(&self, id: JobId, job: &Job) {
        let running = job.state == JobState::Running;
        if !running {
            return;
        }
        let mut parts: Vec<Span> = job.waiting.spans().collect();
        let open = job.units.values().filter(|unit| !unit.is_merged());
        parts.extend(open.map(|unit| unit.span));
        parts.extend(job.merged.iter().map(|(start, merged)| Span::new(*start, merged.len)));
        parts.sort();
        let end = parts.iter().fold(0, |at, part| {
            assert_eq!(part.start, at, "job {id}: items lost or held twice at {at}");
            part.end()
        });
        assert_eq!(end, job.spec.items, "job {id}: items lost at the end");
        self.check_units(id, job);
        self.check_roll(job);
        job.check_stood();
        let done: u64 = job.merged.values().map(|merged| merged.len).sum();
        assert_eq!(done, job.items_done, "job {id}: items done");
        let places = job.merged.values().filter_map(|merged| merged.place);
        let failed: u64 = places.map(|place| u64::from(place.failed.items)).sum();
        assert_eq!(failed, job.items_failed, "job {id}: items that failed");
        let paces = job.told.iter().filter_map(|node| self.peers.get(node)?.paces.get(&id));
        let total = paces.fold(0u64, |sum, pace| sum.saturating_add(pace.all_slots()));
        assert!(total == job.total_milli_rate || total == u64::MAX, "job {id}: total rate");
    }

    /// No node has a part in a unit twice, and every count is what the units make it.
    fn check_units(&self, id: JobId, job: &Job) {
        let rules = job.rules();
        for (start, unit) in &job.units {
            assert_eq!(*start, unit.span.start, "job {id}: a unit under a wrong name");
            let (aside, votes) = (job.aside.contains(start), job.votes.contains(start));
            let wanting = aside || votes || job.wanting.contains(start);
            assert_eq!(wanting, unit.wants(&rules), "job {id}, unit {start}: wanting");
            let decided = unit.ballot.as_ref().and_then(|ballot| ballot.decided(&rules));
            let known = unit.is_merged() && !unit.copies.is_empty();
            let known = known || unit.ballot.as_ref().is_some_and(|ballot| ballot.seeks != 0);
            assert!(decided.is_none() || known, "job {id}, unit {start}: decided and not settled");
            assert_eq!(votes, wanting && unit.ballot.is_some(), "votes");
            assert_eq!(aside, wanting && unit.is_aside(), "aside");
            let merged = job.merged.get(start).is_some_and(|merged| merged.len == unit.span.len);
            assert_eq!(merged, unit.is_merged(), "job {id}, unit {start}: merged");
            let again = |(at, node)| unit.nodes().skip(at + 1).any(|other| other == node);
            let twice = unit.nodes().enumerate().any(again);
            assert!(!twice, "job {id}, unit {start}: a node has two parts");
        }
        let idle = job.units.values().filter(|unit| unit.is_idle()).map(|unit| unit.span.len);
        assert_eq!(idle.sum::<u64>(), job.items_idle, "job {id}: idle items");
        let copies = job.units.values().map(|unit| unit.copies.len() as u64);
        assert_eq!(copies.sum::<u64>(), job.units_leased, "job {id}: copies");
        let extras = job.units.values().flat_map(|unit| &unit.copies).filter(|copy| copy.extra);
        assert_eq!(extras.count() as u64, job.extras, "job {id}: extra copies");
        let late = job.late.as_ref().map(|late| late.len() as u64);
        assert!(late.is_none_or(|late| late == job.units_leased), "job {id}: late copies");
        let mut wishes = job.wanting.iter().chain(&job.aside).chain(&job.votes);
        let wanted = wishes.all(|start| job.units.contains_key(start));
        assert!(wanted, "job {id} wants copies of units that are not in flight");
    }

    /// Every simulation that runs has a crew or forms one; every row is one member's.
    fn check_crews(&self) {
        // Between replay and `Start` nobody is here, and nobody forms.
        let begun = !self.crews.is_empty() || !self.peers.is_empty();
        for id in self.jobs.running().iter().filter(|_| begun) {
            let Some(job) = self.jobs.get(id) else { continue };
            assert_eq!(job.spec.work.takes_crew(), !job.crews.is_empty(), "job {id}: crew");
            let known = job.crews.iter().all(|crew| self.job_of(*crew) == Some(*id));
            assert!(known, "job {id}: a crew that is none of its own");
        }
        let listed: usize = self.jobs.running_jobs().map(|job| job.crews.len()).sum();
        assert_eq!(listed, self.crews.len(), "crews of jobs that run");
        for crew in self.crews.values() {
            let id = crew.job;
            self.check_pokes(id, crew);
            // Whoever handed in its rows may go while others look at them.
            if crew.seats.is_empty() || crew.is_complete() {
                continue;
            }
            let problem = &crew.plan.problem;
            let end = crew.seats.iter().fold(0, |at, seat| {
                assert_eq!(seat.rows.start, at, "job {id}: rows lost or held twice");
                assert!(seat.rows.len >= problem.least(), "job {id}: a share too small");
                assert_eq!(self.conn_of(seat.node), Some(seat.conn), "job {id}: a seat of nobody");
                seat.rows.end()
            });
            assert_eq!(end, problem.shares(), "job {id}: rows lost at the end");
        }
    }

    fn check_pokes(&self, id: JobId, crew: &Crew) {
        let Some(kept) = self.jobs.get(&id).map(|job| &job.checkpoint) else { return };
        let pokes = kept.pokes.len() + crew.untimed.len();
        assert!(pokes <= MAX_POKES, "job {id}: {pokes} pokes");
        let first = kept.pokes.first_key_value().map_or(kept.step, |(step, _)| *step);
        assert!(first >= kept.step, "job {id}: a poke of before the checkpoint");
    }

    fn check_peers(&self) {
        for (node, peer) in self.peers.iter() {
            let used = self.in_use(peer);
            assert!(peer.caps.holds(&used), "node {node} lends less than {used:?}");
        }
    }
}
