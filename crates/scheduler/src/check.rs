//! What must hold between the owners, asserted after each step in tests and simulation. What holds within one asserts
//! its own `check`.

use shoal_protocol::JobId;
use shoal_protocol::limit::MAX_POKES;

use crate::job::Job;
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
        for job in self.jobs.running_jobs() {
            self.check_job(job.id, job);
        }
        self.check_loans();
        self.check_peers();
        self.check_crews();
        self.check_swarms();
    }

    /// What nodes do on a job, and who could compute it.
    fn check_job(&self, id: JobId, job: &Job) {
        self.check_roll(job);
        let paces = job.told.iter().filter_map(|node| self.peers.get(node)?.paces.get(&id));
        let total = paces.fold(0u64, |sum, pace| sum.saturating_add(pace.all_slots()));
        assert!(total == job.total_milli_rate || total == u64::MAX, "job {id}: total rate");
    }

    /// Every simulation that runs has a crew or forms one, of nodes that are here.
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
            let pokes = self.jobs.get(&id).map_or(0, |job| job.checkpoint.pokes.len());
            let pokes = pokes + crew.untimed.len();
            assert!(pokes <= MAX_POKES, "job {id}: {pokes} pokes");
            // Whoever handed in its rows may go while others look at them.
            let sits = crew.seats.iter().filter(|_| !crew.is_complete());
            for seat in sits {
                assert_eq!(self.conn_of(seat.node), Some(seat.conn), "job {id}: a seat of nobody");
            }
        }
    }

    fn check_peers(&self) {
        for (node, peer) in self.peers.iter() {
            let used = self.in_use(peer);
            assert!(peer.caps.holds(&used), "node {node} lends less than {used:?}");
        }
    }
}
