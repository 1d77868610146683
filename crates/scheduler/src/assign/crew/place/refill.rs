//! Others take the places of lost members; whoever stays keeps its shares and its rank, because what it loaded is worth
//! more than a better cut. Where the kind says so, that is: those who go back to a checkpoint may as well be placed anew.

use alloc::vec::Vec;
use core::cmp::Reverse;
use shoal_kinds::{CrewPlan, Recovery};
use shoal_protocol::{Micros, NodeId, Span};

use super::{Candidate, Placement};

/// The same places, where those who are no candidates any more are replaced by the fastest that have the memory: the
/// most work first. `None` if one place fits nobody, or if nobody's place is worth keeping; `step` is what one took
/// before.
pub(crate) fn refill(
    plan: &CrewPlan,
    seats: &[(NodeId, Span)],
    candidates: &[Candidate],
    step: Micros,
) -> Option<Placement> {
    let problem = match plan.recovery {
        Recovery::Checkpoint => return None,
        Recovery::Replay => &plan.problem,
    };
    let stays = |node: NodeId| candidates.iter().any(|one| one.node == node);
    let sits = |node: NodeId| seats.iter().any(|(other, _)| *other == node);
    let mut spares: Vec<_> = candidates.iter().filter(|one| !sits(one.node)).collect();
    spares.sort_by_key(|one| (Reverse(one.rate), one.node));
    let mut shares = seats.to_vec();
    let mut empty: Vec<_> = shares.iter_mut().filter(|(node, _)| !stays(*node)).collect();
    empty.sort_by_key(|(_, span)| Reverse(problem.work(*span)));
    let mut slowest = step.0;
    for (node, span) in empty {
        let bytes = problem.held_bytes(*span);
        let at = spares.iter().position(|one| one.memory >= bytes)?;
        let spare = spares.remove(at);
        slowest = slowest.max(spare.time(problem.work(*span).into()));
        *node = spare.node;
    }
    (!seats.is_empty()).then_some(Placement {
        shares,
        step: Micros(slowest),
        alone: None,
        apart: false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use shoal_kinds::crew::{Flow, Pace};
    use shoal_kinds::{Chain, ChainPart, CrewProblem};

    fn plan(recovery: Recovery) -> CrewPlan {
        let part = |work| ChainPart { work, bytes: 100, out_bytes: 8 };
        let parts = [10, 10, 50, 20].map(part).into();
        CrewPlan {
            problem: CrewProblem::Chain(Chain { parts, pace: Pace::Flowing, flow: Flow::Once }),
            members: 0,
            steps: 0,
            keep_every: Some(0),
            guesses: false,
            trial: 1,
            recovery,
            totals: None,
        }
    }

    fn candidate((node, rate, memory): (u64, u64, u64)) -> Candidate {
        Candidate { node: NodeId(node), rate, memory, round_trip: Micros(0) }
    }

    fn places() -> [(NodeId, Span); 3] {
        [(NodeId(1), Span::new(0, 2)), (NodeId(2), Span::new(2, 1)), (NodeId(3), Span::new(3, 1))]
    }

    fn nodes(candidates: &[(u64, u64, u64)]) -> Option<Vec<u64>> {
        let candidates: Vec<_> = candidates.iter().copied().map(candidate).collect();
        let placed = refill(&plan(Recovery::Replay), &places(), &candidates, Micros(5))?;
        let same = placed.shares.iter().zip(places()).all(|(one, two)| one.1 == two.1);
        assert!(same, "the shares stay as they are");
        Some(placed.shares.into_iter().map(|(node, _)| node.0).collect())
    }

    #[test]
    fn those_who_stay_keep_their_places_and_the_fastest_gets_the_most() {
        let (one, three) = ((1, 10, 300), (3, 10, 300));
        assert_eq!(nodes(&[one, three, (7, 5, 100), (8, 9, 100)]), Some([1, 8, 3].into()));
        assert_eq!(nodes(&[one, (7, 5, 100), (8, 9, 100)]), Some([1, 8, 7].into()));
        assert_eq!(nodes(&[one, (2, 1, 100), three]), Some([1, 2, 3].into()));
    }

    #[test]
    fn a_place_that_fits_nobody_stays_empty_and_the_crew_is_placed_anew() {
        assert_eq!(nodes(&[(2, 9, 100), (3, 9, 100), (8, 9, 100)]), None);
        assert_eq!(nodes(&[(2, 9, 100), (3, 9, 100)]), None);
    }

    #[test]
    fn those_who_go_back_to_a_checkpoint_have_no_place_that_is_worth_keeping() {
        let all = [(1, 10, 300), (2, 10, 300), (3, 10, 300)].map(candidate);
        let refilled = |recovery| refill(&plan(recovery), &places(), &all, Micros(5)).is_some();
        assert!(refilled(Recovery::Replay) && !refilled(Recovery::Checkpoint));
    }
}
