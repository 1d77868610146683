//! Every invariant of a node, asserted after each step in tests and simulation.

use shoal_protocol::Lane;
use shoal_protocol::limit::MAX_LEASES_PER_NODE;

use crate::state::{Node, Phase};

impl Node {
    /// Panics where an invariant does not hold.
    pub fn check(&self) {
        for lane in Lane::ALL {
            for lease in &self.queues[lane] {
                let job = self.jobs.get(&lease.job);
                assert!(job.is_some_and(|job| job.lane() == lane), "a unit in the wrong lane");
                assert!(!self.running.contains_key(&lease.attempt), "a unit queued and running");
            }
        }
        for running in self.running.values() {
            assert!(self.agreed(running.job), "computing for a job that nobody agreed to");
        }
        let used = self.in_use();
        let within = self.overdrawn || self.config.caps.holds(&used);
        assert!(within, "units take {used:?}, more than the donor lends");
        let queued: usize = self.queues.values().map(|queue| queue.len()).sum();
        assert!(queued + self.running.len() <= MAX_LEASES_PER_NODE, "more units than allowed");
        self.check_calls();
        assert_eq!(self.session.is_some(), self.is_joined(), "a session belongs to a connection");
        let stopped = self.phase == Phase::Stopped;
        assert!(!stopped || !self.holds_units(), "stopped with units in hand");
    }
}
