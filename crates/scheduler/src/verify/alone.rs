//! Where nobody else can check an answer: it is taken for what it is, or the unit is computed again.

use alloc::vec::Vec;
use shoal_protocol::limit::MAX_TRIES;
use shoal_protocol::{JobId, Micros, Time, Verify};

use crate::fact::Fact;
use crate::job::Proof;
use crate::state::Scheduler;

/// In a pool this small it is known at once that nobody else could check a unit; in a larger one somebody
/// nearly always can, and whoever reviews old ballots finds out.
const SMALL_POOL: usize = 16;
/// A ballot waits at most so long for nodes that left: whoever comes and goes must not put it off for ever.
const BACK_AT_LAST: Micros = Micros::from_secs(6);

impl Scheduler {
    /// Where nobody else could check, an undisputed answer is taken for what it is, unless the policy
    /// insists on votes.
    pub(crate) fn accept_if_alone(&mut self, now: Time, id: JobId, start: u64) {
        if self.peers.len() <= SMALL_POOL {
            self.accept(now, id, start);
        }
    }

    pub(crate) fn accept(&mut self, now: Time, id: JobId, start: u64) {
        let Some(job) = self.jobs.get(&id) else { return };
        let Some(unit) = job.units.get(&start) else { return };
        let Some(ballot) = unit.ballot.as_ref() else { return };
        let insists = matches!(job.spec.policy.verify, Verify::Quorum { .. });
        // Whoever is late is not waited for.
        let open = unit.copies.iter().any(|copy| !copy.late) || ballot.comparing.is_some();
        // But where others cannot decide, one of the operator's own nodes can, however long it takes.
        let own_is_at_it = unit.copies.iter().any(|copy| self.peers.own().contains(&copy.node));
        let poll = ballot.poll();
        if open
            || !job.votes.contains(&start)
            || (ballot.for_own && own_is_at_it)
            || self.others_may_come(now, job, unit, ballot.since + BACK_AT_LAST)
            || self.has_voter(job, unit, |peer| self.is_awaited(peer, ballot.since))
        {
            return;
        }
        if ballot.seeks != 0 {
            self.seek_no_more(now, id, start);
            return;
        }
        let tie = poll.votes == 0 || poll.weight <= poll.against;
        if insists
            && !tie
            && poll.votes >= job.rules().votes
            && let Some(winner) = poll.best
        {
            // As many as the policy asks agree, and nobody is waited for who could give them a clearer lead. The
            // others are called wrong only if nobody at all could still say the same as they.
            let all_asked = unit.copies.is_empty() && !self.has_voter(job, unit, |_| true);
            if poll.against == 0 || all_asked {
                self.settle(now, id, start, winner);
            } else {
                self.believe_choice(now, id, start, winner);
            }
            return;
        }
        if tie || (insists && poll.against > 0) {
            if let Some(winner) = ballot.choice(&job.rules(), insists) {
                self.believe_choice(now, id, start, winner);
                return;
            }
            if ballot.is_hopeless(&job.rules()) {
                // Those who could have agreed are gone.
                self.give_up(now, id, start);
                return;
            }
            // Where nodes contradict each other, anybody's word may help.
            if !own_is_at_it && !self.has_voter(job, unit, |_| true) {
                self.start_over(now, id, start);
            }
            return;
        }
        let Some(winner) = poll.best.filter(|_| !insists) else { return };
        let Some((span, ballot)) = self.close_ballot(id, start) else { return };
        let first = ballot.first_of(winner);
        let agreed = ballot.answers.iter().filter(|a| a.backs() == Some(winner) && !a.suspect);
        let by = agreed.map(|a| a.node).filter(|node| *node != first.node);
        let by: Vec<_> = if poll.against == 0 { by.collect() } else { Vec::new() };
        let proof = Proof { vouched: false, sure: false, by };
        let proof = Some(&proof).filter(|proof| !proof.by.is_empty());
        self.believe(now, id, span, &ballot, winner, proof);
        self.finish_if_whole(now, id);
    }

    /// Nobody is left to decide between answers: perhaps others agree, if the unit is computed again.
    fn start_over(&mut self, now: Time, id: JobId, start: u64) {
        let Some(unit) = self.jobs.get_mut(&id).and_then(|job| job.units.get_mut(&start)) else {
            return;
        };
        unit.history.tries += 1;
        if unit.history.tries >= MAX_TRIES {
            self.give_up(now, id, start);
            return;
        }
        let late: Vec<_> = unit.copies.iter().map(|copy| copy.attempt).collect();
        self.revoke(&late);
        let Some((span, ballot)) = self.jobs.take_ballot(id, start) else { return };
        if ballot.merged {
            self.record(Fact::Unmerged { job: id, span });
            if let Some(job) = self.jobs.get_mut(&id) {
                job.unmerge(span);
                job.waiting.take(span);
            }
        }
        self.refresh(id, start);
        self.review.wake();
    }
}
