//! Other parts for the same members, or for some of them, or all of it for one node. A first cut follows claims and
//! guesses; once members are measured, what is clearly better replaces it: where nobody said how many there are to be, a
//! member that only slows the others is left out, and a node that is faster alone takes over. Nothing that was asked is
//! interrupted: the crew takes no more, ends what it has, and goes on in a new epoch. Only texts, which go on behind what
//! was said, are not waited for.

use core::cmp::Reverse;
use shoal_kinds::Split;
use shoal_protocol::{JobId, Micros, NodeId, Span, Time};

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
/// After one node took over there is no other crew for so long, and each further time twice as long.
const ALONE_FOR: Micros = Micros::from_secs(60);
/// What a request takes must become less by one part in so many: less than that may be chance.
const CLEARLY: u64 = 4;

impl Scheduler {
    /// Deals parts anew where that is clearly better, as soon as nothing is at work.
    pub(super) fn recut_crew(&mut self, now: Time, service: JobId) {
        let alone = self.faster_alone(now, service);
        let better = if alone.is_some() { None } else { self.better_cut(now, service) };
        let Some(of) = self.services.services.get_mut(&service) else { return };
        let resumes = of.rounds().is_some();
        let Some(crew) = &mut of.crew else { return };
        // What goes round and round may do so for long, and goes on behind what was said: nobody waits for its end.
        crew.drains = (better.is_some() || alone.is_some()) && !resumes;
        let may = crew.calls == 0 || resumes;
        if let Some(node) = alone.filter(|_| may) {
            of.alone_until = now + Micros(ALONE_FOR.0 << of.gone_back.min(MOST_DOUBLINGS));
            of.gone_back = of.gone_back.saturating_add(1);
            let has = of.replicas.contains_key(&node);
            self.unsplit(service, "one device is faster than several together");
            // Whoever stood in for the crew has it already.
            if !has {
                self.take_on(now, service, node);
            }
        } else if let Some(placed) = better.filter(|_| may) {
            of.recuts = of.recuts.saturating_add(1);
            self.call_crew(now, service, &placed);
        }
    }

    /// The node that is clearly faster alone than its crew was, as both were measured.
    fn faster_alone(&self, now: Time, service: JobId) -> Option<NodeId> {
        let of = self.services.services.get(&service).filter(|of| of.spec.split == Split::Auto)?;
        let crew = of.crew.as_ref().filter(|crew| crew.is_ready())?;
        let done = crew.seats.iter().map(|seat| seat.report.done).min()?;
        if now < crew.since + KEEPS_FOR || done < ENOUGH {
            return None;
        }
        let problem = in_turn(&of.plan.as_ref()?.problem);
        let work = u128::from(problem.work(Span::new(0, problem.shares())));
        let rates = self.could_keep_alone(now, service).into_iter();
        let rates = rates.filter_map(|node| Some((Reverse(of.rate(node)?), node)));
        let (Reverse(rate), node) = rates.min()?;
        let alone = u64::try_from(work * 1_000_000 / u128::from(rate.max(1))).unwrap_or(u64::MAX);
        let members = self.crew_candidates(now, service, of);
        let foreseen = predict(&problem, &crew.shares(), &members, &|a, b| of.link(a, b));
        let measured = of.took.of(&crew.nodes()).map(|took| took.each);
        let takes = measured.or(foreseen)?.0;
        is_worth_it(takes, alone, done, of.loading).then_some(node)
    }

    /// Another cut for the same members, or for fewer where that is not said, if all are measured, it is clearly better, and would have saved more by now
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
        let all = crew.seats.len();
        let fewest = if of.spec.split == Split::Auto { 2.min(all) } else { all };
        let cuts = (fewest..=all).rev().filter_map(|size| place(&problem, &members, size, &link));
        let best = cuts.min_by_key(|placed| (placed.step, placed.shares.len()))?;
        is_worth_it(takes.0, best.step.0, done, of.loading).then_some(best)
    }
}

/// Whether it is clear that requests become faster, and so many would have saved more than loading takes.
fn is_worth_it(takes: u64, becomes: u64, done: u64, loading: Micros) -> bool {
    let saved = takes.saturating_sub(becomes);
    saved > 0 && saved >= takes / CLEARLY && saved.saturating_mul(done) >= loading.0
}
