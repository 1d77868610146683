//! Pokes over the field. Rank 0 chooses the step each counts for and says so before anything that follows
//! from it: so whoever has a checkpoint has all pokes in it, and those after it count again, for the same
//! steps, when the crew goes on from there.

use shoal_protocol::limit::MAX_POKES;
use shoal_protocol::{CrewId, CrewTold, JobId, Poke, ToNode};

use crate::fact::Fact;
use crate::state::Scheduler;

/// Pokes whose step is not known. More come only from a hand that is faster than the simulation; its pokes
/// overlap, so that those beyond are not missed.
const MAX_UNTIMED: usize = 16;

impl Scheduler {
    /// Somebody stirs the field.
    pub(crate) fn poke(&mut self, job: JobId, poke: Poke) {
        let Some(id) = self.crew_of(job) else { return };
        let pokes = self.crew_job(id).map_or(0, |job| job.checkpoint.pokes.len());
        let Some(crew) = self.crews.get_mut(&id) else { return };
        let waiting = crew.untimed.len();
        if waiting >= MAX_UNTIMED || pokes + waiting >= MAX_POKES {
            return;
        }
        crew.untimed.push_back(poke);
        self.tell_poke(id, poke);
    }

    /// To a new crew: what the last one had not answered.
    pub(super) fn tell_pokes(&mut self, id: CrewId) {
        let waiting = self.crews.get(&id).map(|crew| crew.untimed.clone());
        for poke in waiting.into_iter().flatten() {
            self.tell_poke(id, poke);
        }
    }

    fn tell_poke(&mut self, id: CrewId, poke: Poke) {
        let first = self.crews.get(&id).and_then(|crew| crew.seats.first());
        let Some(conn) = first.and_then(|seat| self.conn_of(seat.node)) else { return };
        let say = CrewTold::Poke(poke);
        self.send(conn, ToNode::ToCrew { crew: id, say });
    }

    /// Rank 0 says for which step a poke counts.
    pub(super) fn poked(&mut self, id: CrewId, at: usize, poke: Poke, step: Option<u64>) {
        let Some(crew) = self.crews.get_mut(&id) else { return };
        let asked = crew.untimed.iter().position(|asked| *asked == poke);
        // Nobody else chooses, and nobody makes up pokes.
        let Some(asked) = asked.filter(|_| at == 0) else { return };
        crew.untimed.remove(asked);
        let (job, steps) = (crew.job, crew.plan.steps);
        let Some(kept) = self.crew_job_mut(id).map(|job| &mut job.checkpoint) else { return };
        let free = |step: &u64| (kept.step..steps).contains(step) && !kept.pokes.contains_key(step);
        if let Some(step) = step.filter(free) {
            kept.pokes.insert(step, poke);
            if let Some(crew) = self.crews.get_mut(&id) {
                crew.poke_since_base(step, poke);
            }
            self.record(Fact::Poked { job, step, poke });
        }
    }
}
