//! Every invariant between the tables, asserted after each step in tests and simulation.

use alloc::vec::Vec;
use shoal_protocol::limit::{MAX_LEASES_PER_NODE, MAX_STROKES};
use shoal_protocol::{JobId, Micros, Span};

use crate::assign::crew::Crew;
use crate::job::{Job, JobState};
use crate::state::Scheduler;
use crate::unit::Unit;
use crate::verify::Standing;

impl Scheduler {
    /// Panics where an invariant does not hold.
    pub fn check(&self) {
        for (id, job) in &self.jobs {
            self.check_job(*id, job);
        }
        self.check_loans();
        self.check_peers();
        self.check_crews();
        self.check_swarms();
    }

    fn check_job(&self, id: JobId, job: &Job) {
        let running = job.state == JobState::Running;
        let ready = self.ready.contains(&job.turn(id));
        assert!(!ready || running, "job {id} is offered but ended");
        if !running {
            assert!(job.units.is_empty(), "job {id} ended with units in flight");
            return;
        }
        assert_eq!(ready, job.has_work(), "job {id} is offered if and only if something is left");
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
        let done: u64 = job.merged.values().map(|merged| merged.len).sum();
        assert_eq!(done, job.items_done, "job {id}: items done");
        let paces = job.told.iter().filter_map(|node| self.peers.get(node)?.paces.get(&id));
        let total = paces.fold(0u64, |sum, pace| sum.saturating_add(pace.all_slots()));
        assert!(total == job.total_milli_rate || total == u64::MAX, "job {id}: total rate");
    }

    /// Copies and loans name each other; no node has a part in a unit twice.
    fn check_units(&self, id: JobId, job: &Job) {
        for (start, unit) in &job.units {
            assert_eq!(*start, unit.span.start, "job {id}: a unit under a wrong name");
            let wishes = [&job.wanting, &job.aside, &job.votes];
            let wanting = wishes.iter().any(|starts| starts.contains(start));
            assert_eq!(wanting, unit.wants(&job.rules()), "job {id}, unit {start}: wanting");
            let decided = unit.ballot.as_ref().and_then(|ballot| ballot.decided(&job.rules()));
            let known = unit.is_merged() && !unit.copies.is_empty();
            let known = known || unit.ballot.as_ref().is_some_and(|ballot| ballot.seeks != 0);
            assert!(decided.is_none() || known, "job {id}, unit {start}: decided and not settled");
            assert_eq!(job.votes.contains(start), wanting && unit.ballot.is_some(), "votes");
            assert_eq!(job.aside.contains(start), wanting && unit.is_aside(), "aside");
            let merged = job.merged.get(start).is_some_and(|merged| merged.len == unit.span.len);
            assert_eq!(merged, unit.is_merged(), "job {id}, unit {start}: merged");
            let mut nodes: Vec<_> = unit.nodes().collect();
            nodes.sort();
            let parts = nodes.len();
            nodes.dedup();
            assert_eq!(parts, nodes.len(), "job {id}, unit {start}: a node has two parts");
            for copy in &unit.copies {
                let loan = self.loans.get(&copy.attempt);
                let ours = loan.is_some_and(|loan| {
                    (loan.job, loan.unit, loan.node, loan.late)
                        == (id, *start, copy.node, copy.late)
                });
                assert!(ours, "job {id}, unit {start}: a copy that is not lent");
            }
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
        for id in self.running.iter().filter(|_| begun) {
            assert_eq!(self.sim(*id).is_some(), self.crews.contains_key(id), "job {id}: crew");
        }
        for (id, crew) in &self.crews {
            assert!(self.running.contains(id), "job {id} ended and has a crew");
            self.check_strokes(*id, crew);
            let Some(sim) = self.sim(*id).filter(|_| !crew.seats.is_empty()) else { continue };
            let end = crew.seats.iter().fold(0, |at, seat| {
                assert_eq!(seat.rows.start, at, "job {id}: rows lost or held twice");
                assert!(seat.rows.len >= u64::from(sim.halo), "job {id}: a band below the halo");
                assert_eq!(self.conn_of(seat.node), Some(seat.conn), "job {id}: a seat of nobody");
                seat.rows.end()
            });
            assert_eq!(end, u64::from(sim.height), "job {id}: rows lost at the end");
        }
    }

    fn check_strokes(&self, id: JobId, crew: &Crew) {
        let Some(kept) = self.jobs.get(&id).map(|job| &job.kept) else { return };
        let strokes = kept.strokes.len() + crew.pokes.len();
        assert!(strokes <= MAX_STROKES, "job {id}: {strokes} strokes");
        let first = kept.strokes.first_key_value().map_or(kept.step, |(step, _)| *step);
        assert!(first >= kept.step, "job {id}: a stroke of before the checkpoint");
    }

    fn check_loans(&self) {
        for (attempt, loan) in &self.loans {
            let peer = self.peers.get(&loan.node);
            assert!(peer.is_some_and(|peer| peer.loans.contains(attempt)), "{attempt}: no holder");
            let unit = self.jobs.get(&loan.job).and_then(|job| job.units.get(&loan.unit));
            let known = |unit: &Unit| unit.copies.iter().any(|copy| copy.attempt == *attempt);
            assert!(unit.is_some_and(known), "{attempt}: no unit");
        }
        let held: usize = self.peers.values().map(|peer| peer.loans.len()).sum();
        assert_eq!(held, self.loans.len(), "loans held");
    }

    fn check_peers(&self) {
        assert_eq!(self.conns.len(), self.peers.len(), "one connection for each peer");
        assert_eq!(self.timers.len(), self.peers.len(), "one timer for each peer");
        for (node, peer) in &self.peers {
            assert_eq!(self.conns.get(&peer.conn), Some(node), "node {node}: connection");
            assert!(self.timers.contains(&(peer.timer, *node)), "node {node}: timer");
            assert!(peer.loans.len() <= MAX_LEASES_PER_NODE, "node {node}: leases");
            let units: usize = peer.lanes.iter().map(|lane| lane.units).sum();
            assert_eq!(units, peer.loans.len(), "node {node}: lanes");
            let idle = peer.loans.is_empty();
            assert!(
                !idle || peer.lanes.iter().all(|l| l.expected == Micros(0)),
                "node {node}: load"
            );
        }
        for lane in crate::assign::LANES {
            let elders = self.peers.iter().filter(|(_, peer)| {
                let newcomer = peer.standing[lane as usize] == Standing::Newcomer;
                !newcomer && !peer.barred[lane as usize]
            });
            let elders: Vec<_> = elders.map(|(node, _)| *node).collect();
            assert!(self.elders[lane as usize].iter().eq(&elders), "elders of {lane:?}");
        }
        let units = self.jobs.values().flat_map(|job| job.units.values());
        let ballots = units.filter(|unit| unit.ballot.is_some());
        assert_eq!(ballots.count(), self.ballots, "ballots");
        assert!(self.rejudge.is_empty(), "ballots not judged");
        let mut hungry = self.hungry.iter().flatten();
        assert!(hungry.all(|node| self.peers.contains_key(node)), "hungry strangers");
        let open = self.jobs.values().filter(|job| job.state == JobState::Running);
        assert_eq!(open.count(), self.running.len(), "open jobs");
    }
}
