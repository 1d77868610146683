//! Hands that stir the field. Facts say which strokes counted, and when: the final field shows all of those, each
//! once, and nothing else.

use std::collections::BTreeMap;

use shoal_protocol::{CrewTask, Enlist, JobId, Poke};
use shoal_scheduler::{Fact, Input};

use super::world::World;

impl World {
    pub(super) fn stir(&mut self) {
        let x = self.random.range(1, 1_000_000) as f32;
        let poke = Poke { at: [x, 0.0], by: [0.0, 0.0], radius: 1.0, strength: 1.0 };
        self.give(Input::Poke { job: JobId(1), poke });
    }

    /// By step, as the facts have them.
    pub(super) fn strokes(&self) -> BTreeMap<u64, Poke> {
        let mut strokes = BTreeMap::new();
        for fact in &self.facts {
            if let Fact::Stroke { step, poke, .. } = fact {
                assert!(strokes.insert(*step, *poke).is_none(), "two strokes for step {step}");
            }
        }
        strokes
    }

    pub(super) fn count_strokes(&mut self, enlist: &Enlist) {
        if let (0, CrewTask::Sim(task)) = (enlist.rank, &enlist.task) {
            self.report.strokes_again += task.strokes.len() as u64;
        }
    }
}
