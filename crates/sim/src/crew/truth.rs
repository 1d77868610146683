//! What must come of simulations.

use shoal_protocol::{Failure, JobId};
use shoal_scheduler::{JobState, Scheduler, Total};

use crate::world::{Probe, World};

/// So many devices that vanish at the beginning look as if the kernel ended them, whatever it was.
const VICTIMS: u64 = 6;

impl<P: Probe> World<P> {
    /// Each field is what it would have been if nothing had happened.
    pub(crate) fn fields_are_true(&mut self, live: &Scheduler) {
        let jobs: Vec<_> = self.crews.jobs.iter().map(|(job, plan)| (*job, *plan)).collect();
        for (job, plan) in jobs {
            self.field_is_true(live, job, plan);
        }
    }

    fn field_is_true(&mut self, live: &Scheduler, job: JobId, plan: usize) {
        let view = live.job(self.clock(), job).expect("the job is known");
        let vanished = matches!(&view.failure, Some(failure) if blames_kernel(&failure.failure));
        if view.state == JobState::Failed && vanished && self.report.lost >= VICTIMS {
            self.report.crew.given_up += 1;
            return;
        }
        let plan = self.scenario.crews[plan];
        assert_eq!(view.state, JobState::Done, "{:?} {plan:?}", view.failure);
        let mut field = Vec::new();
        for (_, place) in live.merged(job) {
            field.extend_from_slice(&self.crews.blobs[&place.expect("rows have bytes").hash]);
        }
        let pokes = self.crews.pokes.get(&job).cloned().unwrap_or_default();
        self.report.crew.fields += 1;
        self.report.crew.pokes += pokes.len() as u64;
        self.report.crew.unchecked += view.unchecked_steps;
        let spoiled = !self.scenario.spoilers.is_empty();
        let said = spoiled && (view.unchecked_steps > 0 || self.crews.liar_checks);
        let undisturbed = plan.grid.undisturbed(&pokes);
        let differs = field != undisturbed;
        assert!(!differs || said, "the field differs: {plan:?}");
        self.report.crew.wrong += u64::from(differs);
        self.report.crew.vouched += u64::from(differs && view.unchecked_steps == 0);
        if let (false, Some(numbers)) = (differs, plan.grid.total(&undisturbed)) {
            let total = Some(Total { step: plan.grid.steps, numbers });
            assert_eq!(view.total, total, "the total differs: {plan:?}");
            self.report.crew.totals += 1;
        }
        let hash = shoal_protocol::hash(&field).0;
        self.report.trace ^= u64::from_le_bytes(core::array::from_fn(|at| hash[at]));
    }
}

fn blames_kernel(failure: &Failure) -> bool {
    matches!(failure, Failure::Kernel { .. })
}
