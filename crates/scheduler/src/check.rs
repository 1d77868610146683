//! Every invariant between the tables, asserted after each step in tests and simulation.

use alloc::vec::Vec;
use shoal_protocol::limit::MAX_LEASES_PER_NODE;
use shoal_protocol::{JobId, Micros, Span};

use crate::job::{Job, JobState};
use crate::state::Scheduler;
use crate::unit::Unit;

impl Scheduler {
    /// Panics where an invariant does not hold.
    pub fn check(&self) {
        for (id, job) in &self.jobs {
            self.check_job(*id, job);
        }
        self.check_loans();
        self.check_peers();
    }

    fn check_job(&self, id: JobId, job: &Job) {
        let running = job.state == JobState::Running;
        let ready = self.ready.contains(&(job.served, id));
        assert!(!ready || running, "job {id} is offered but ended");
        if !running {
            assert!(job.units.is_empty(), "job {id} ended with units in flight");
            return;
        }
        assert_eq!(ready, job.has_work(), "job {id} is offered if and only if something is left");
        let mut parts: Vec<Span> = job.waiting.spans().collect();
        parts.extend(job.units.values().map(|unit| unit.span));
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
            let wanting = job.wanting.contains(start);
            assert_eq!(wanting, unit.wants(), "job {id}, unit {start}: wanting");
            let mut nodes: Vec<_> = unit.copies.iter().map(|copy| copy.node).collect();
            nodes.sort();
            let parts = nodes.len();
            nodes.dedup();
            assert_eq!(parts, nodes.len(), "job {id}, unit {start}: a node has two parts");
            for copy in &unit.copies {
                let loan = self.loans.get(&copy.attempt);
                let ours = loan.is_some_and(|loan| {
                    (loan.job, loan.unit, loan.node) == (id, *start, copy.node)
                });
                assert!(ours, "job {id}, unit {start}: a copy that is not lent");
            }
        }
        let idle = job.units.values().filter(|unit| unit.is_idle()).map(|unit| unit.span.len);
        assert_eq!(idle.sum::<u64>(), job.items_idle, "job {id}: idle items");
        let copies = job.units.values().map(|unit| unit.copies.len() as u64);
        assert_eq!(copies.sum::<u64>(), job.units_leased, "job {id}: copies");
        let wanted = job.wanting.iter().all(|start| job.units.contains_key(start));
        assert!(wanted, "job {id} wants copies of units that are not in flight");
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
        let mut hungry = self.hungry.iter().flatten();
        assert!(hungry.all(|node| self.peers.contains_key(node)), "hungry strangers");
        let open = self.jobs.values().filter(|job| job.state == JobState::Running);
        assert_eq!(open.count(), self.open, "open jobs");
    }
}
