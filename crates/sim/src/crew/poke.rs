//! Hands that stir a field. Facts say which pokes counted, and when: the final field shows all of those, each
//! once, and nothing else.

use shoal_protocol::Poke;
use shoal_scheduler::Input;

use crate::world::{Probe, World};

impl<P: Probe> World<P> {
    pub(crate) fn poke(&mut self, plan: usize) {
        let x = self.random.range(1, 1_000_000) as f32;
        let poke = Poke { at: [x, 0.0], by: [0.0, 0.0], radius: 1.0, strength: 1.0 };
        if let Some(job) = self.crews.job_of(plan) {
            self.give(Input::Poke { job, poke });
        }
    }
}
