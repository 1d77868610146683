//! Other parts for the same members. A first cut follows claims and guesses; once all members are measured, a cut that
//! is clearly better replaces it. Nothing that was asked is interrupted: the crew takes no more, ends what it has, and
//! goes on in a new epoch. Only texts, which go on behind what was said, are not waited for.

use shoal_kinds::Split;
use shoal_protocol::{JobId, Micros, Time};

use super::form::in_turn;
use crate::assign::crew::place::{Placement, place, predict};
use crate::state::Scheduler;

/// Requests that each member has done in an epoch before its speed is known well enough: the first few are slow, and
/// others may have needed the device meanwhile.
const ENOUGH: u64 = 32;
/// A crew keeps its parts for so long, and each further time twice as long: two cuts, each of which looks better while
/// the other one is tried, must not take turns for ever.
const KEEPS_FOR: Micros = Micros::from_secs(20);
/// Twenty minutes, after which it stays like that.
const MOST_DOUBLINGS: u32 = 6;
/// What a request takes must become less by one part in so many: less than that may be chance.
const CLEARLY: u64 = 4;

impl Scheduler {
    /// Deals parts anew where that is clearly better, as soon as nothing is at work.
    pub(super) fn recut_crew(&mut self, now: Time, service: JobId) {
        let better = self.better_cut(now, service);
        let Some(of) = self.services.services.get_mut(&service) else { return };
        let resumes = of.rounds().is_some();
        let Some(crew) = &mut of.crew else { return };
        // What goes round and round may do so for long, and goes on behind what was said: nobody waits for its end.
        crew.drains = better.is_some() && !resumes;
        if let Some(placed) = better.filter(|_| crew.calls == 0 || resumes) {
            of.recuts = of.recuts.saturating_add(1);
            self.call_crew(now, service, &placed);
        }
    }

    /// Another cut for the same members, if all are measured, it is clearly better, and would have saved more by now
    /// than loading takes: so those who are hardly asked are left in peace.
    fn better_cut(&self, now: Time, service: JobId) -> Option<Placement> {
        let of = self.services.services.get(&service)?;
        let crew = of.crew.as_ref().filter(|crew| crew.is_ready())?;
        let keeps = KEEPS_FOR.0 << of.recuts.min(MOST_DOUBLINGS);
        let done = crew.seats.iter().map(|seat| seat.report.done).min()?;
        let measured = crew.seats.iter().all(|seat| of.rates.contains_key(&seat.node));
        if now < crew.since + Micros(keeps) || done < ENOUGH || !measured {
            return None;
        }
        let plan = of.plan.as_ref()?;
        let problem = match of.spec.split {
            Split::Auto => in_turn(&plan.problem),
            Split::Never | Split::Exactly(_) => plan.problem.clone(),
        };
        let mut members = self.crew_candidates(now, service, of);
        members.retain(|one| crew.has(one.node));
        let link = |a, b| of.link(a, b);
        let takes = predict(&problem, &crew.shares(), &members, &link)?;
        let best = place(&problem, &members, crew.seats.len(), &link)?;
        let saved = takes.0.saturating_sub(best.step.0);
        let clearly = saved > 0 && saved >= takes.0 / CLEARLY;
        let pays = saved.saturating_mul(done) >= of.loading.0;
        (clearly && pays).then_some(best)
    }
}
