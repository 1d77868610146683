//! Two GPUs may round differently, and some programs make much of little. Before somebody is called a liar by
//! nodes of other numeric classes alone, one of its own class is asked, if there is any.

use shoal_protocol::{JobId, Time};

use super::quorum::Ballot;
use crate::state::Scheduler;

impl Scheduler {
    /// Whether a decided ballot waits for one more answer, of a class that only the losers have.
    pub(super) fn seek_witness(&mut self, id: JobId, start: u64, winner: usize) -> bool {
        let Some(job) = self.jobs.get(&id) else { return false };
        let Some(unit) = job.units.get(&start) else { return false };
        let Some(ballot) = unit.ballot.as_ref() else { return false };
        if job.spec.policy.tolerance.is_exact() {
            return false;
        }
        let Some(class) = ballot.unheard_class(winner) else { return false };
        let there = self.peers.iter().any(|(node, peer)| {
            let free = !peer.paused && !peer.silent && peer.caps.class == class;
            free && peer.suits(job) && self.may_take(*node, job, unit)
        });
        let unit = self.jobs.get_mut(&id).and_then(|job| job.units.get_mut(&start));
        let Some(ballot) = unit.and_then(|unit| unit.ballot.as_mut()) else { return false };
        ballot.sought.push(class);
        ballot.seeks = if there { class } else { 0 };
        there
    }

    /// Nobody of the class is left: the verdict stands as it is.
    pub(super) fn seek_no_more(&mut self, now: Time, id: JobId, start: u64) {
        let unit = self.jobs.get_mut(&id).and_then(|job| job.units.get_mut(&start));
        if let Some(ballot) = unit.and_then(|unit| unit.ballot.as_mut()) {
            ballot.seeks = 0;
        }
        self.judge(now, id, start);
    }
}

impl Ballot {
    /// A class that only answers beside the winning one have, and of which nobody else was asked yet.
    fn unheard_class(&self, winner: usize) -> Option<u64> {
        let lost =
            self.answers.iter().filter(|answer| answer.contradicts(winner) && !answer.suspect);
        let odd = lost.filter(|answer| answer.class != 0 && self.only_rounds(answer, winner));
        odd.map(|answer| answer.class).find(|class| !self.sought.contains(class))
    }
}
