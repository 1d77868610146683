//! Others take the places of lost members; whoever stays keeps its shares and its rank, because its state is worth
//! more than a better cut.

use alloc::vec::Vec;
use core::cmp::Reverse;
use shoal_kinds::CrewProblem;
use shoal_protocol::{Micros, NodeId, Span};

use super::{Candidate, Placement};

/// The same places, where those who are no candidates any more are replaced by the fastest that have the memory: the
/// most work first. `None` if one place fits nobody; `step` is what one took before.
pub(crate) fn refill(
    problem: &CrewProblem,
    seats: &[(NodeId, Span)],
    candidates: &[Candidate],
    step: Micros,
) -> Option<Placement> {
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
    use shoal_kinds::{Chain, ChainPart};

    fn chain() -> CrewProblem {
        let part = |work| ChainPart { work, bytes: 100, out_bytes: 8 };
        let parts = [10, 10, 50, 20].map(part).into();
        CrewProblem::Chain(Chain { parts, pace: Pace::Flowing, flow: Flow::Once })
    }

    fn candidate((node, rate, memory): (u64, u64, u64)) -> Candidate {
        Candidate { node: NodeId(node), rate, memory, round_trip: Micros(0) }
    }

    fn places() -> [(NodeId, Span); 3] {
        [(NodeId(1), Span::new(0, 2)), (NodeId(2), Span::new(2, 1)), (NodeId(3), Span::new(3, 1))]
    }

    fn nodes(candidates: &[(u64, u64, u64)]) -> Option<Vec<u64>> {
        let candidates: Vec<_> = candidates.iter().copied().map(candidate).collect();
        let placed = refill(&chain(), &places(), &candidates, Micros(5))?;
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
}
