//! Unequal parts in a fixed order, cut into stages so that a step takes least: by dynamic programming, exact for
//! an order of nodes. Of few nodes every order is tried; of many, the fastest and the roomiest first.

use alloc::vec::Vec;
use core::cmp::Reverse;
use shoal_kinds::Chain;
use shoal_kinds::crew::{Flow, Pace};
use shoal_protocol::Micros;

use super::{Candidate, Crews, Placement, in_order};

/// So many nodes have 64 ordered subsets, two more would have 1,956, and each has a table of its own to fill.
const ALL_ORDERS: usize = 4;

/// What the last member tells the first after each round: a token, sealed and framed.
const ROUND_BYTES: u64 = 100;

pub(super) fn place(chain: &Chain, crews: &Crews<'_>) -> Option<Placement> {
    let sums = sums(chain);
    let fastest = crews.fastest.first()?;
    let alone = best_cut(chain, &sums, core::slice::from_ref(fastest), crews);
    let cuts = orders(crews).into_iter().filter_map(|order| {
        let (cost, counts) = best_cut(chain, &sums, &order, crews)?;
        Some((cost, order, counts))
    });
    // Of those that are as fast, the fewest members; of those, the shortest way.
    let way = |order: &[Candidate]| -> u64 {
        order.windows(2).map(|pair| crews.way(&pair[0], &pair[1])).sum()
    };
    let best = cuts.min_by_key(|(cost, order, _)| (cost.step, order.len(), way(order)));
    let (cost, order, counts) = best?;
    let (shares, step) = (in_order(&order, &counts), Micros(cost.step));
    Some(Placement { shares, step, alone: alone.map(|(cost, _)| Micros(cost.step)), apart: false })
}

/// What a step takes if the members, in this order, have so many parts each.
pub(super) fn predict(chain: &Chain, counts: &[u64], crews: &Crews<'_>) -> Option<u64> {
    let (sums, order) = (sums(chain), crews.fastest);
    let (mut cost, mut begin) = (Cost::default(), 0);
    for (at, count) in counts.iter().enumerate() {
        let end = begin + usize::try_from(*count).ok()?;
        let work = sums.get(end)?.0 - sums[begin].0;
        cost = cost.and(chain.pace, stage(chain, order, at, (work, end), crews));
        begin = end;
    }
    Some(cost.step)
}

/// What stages up to one of them cost. The step counts; between equals, the more even ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Cost {
    step: u64,
    /// The sum of the squares of what stages compute.
    uneven: u128,
}

impl Cost {
    /// With one more stage.
    fn and(self, pace: Pace, Stage { computes, out }: Stage) -> Cost {
        let stage = computes.saturating_add(out);
        let step = match pace {
            Pace::Flowing => self.step.max(stage),
            Pace::InTurn => self.step.saturating_add(stage),
        };
        let square = u128::from(computes) * u128::from(computes);
        Cost { step, uneven: self.uneven.saturating_add(square) }
    }
}

/// What a stage takes to compute, and to hand on what its last part makes.
#[derive(Clone, Copy)]
struct Stage {
    computes: u64,
    out: u64,
}

/// A stage with so much work. Where all are at work at once, what is on its way keeps nobody busy: only sending it
/// does.
fn stage(
    chain: &Chain,
    order: &[Candidate],
    at: usize,
    (work, end): (u128, usize),
    crews: &Crews<'_>,
) -> Stage {
    let out = match (order.get(at + 1), end.checked_sub(1)) {
        (Some(next), Some(last)) => {
            let bytes = chain.parts[last].out_bytes;
            match chain.pace {
                Pace::Flowing => crews.sending(&order[at], next, bytes),
                Pace::InTurn => crews.hop(&order[at], next, bytes),
            }
        }
        // Each round ends where the next one begins.
        (None, _) if at > 0 => match (chain.flow, chain.pace) {
            (Flow::Rounds { .. }, Pace::InTurn) => crews.hop(&order[at], &order[0], ROUND_BYTES),
            (Flow::Rounds { .. }, Pace::Flowing) | (Flow::Once, _) => 0,
        },
        _ => 0,
    };
    Stage { computes: order[at].time(work), out }
}

fn orders(crews: &Crews<'_>) -> Vec<Vec<Candidate>> {
    if crews.fastest.len() <= ALL_ORDERS {
        let mut all = Vec::new();
        grow(crews, &mut Vec::new(), &mut all);
        return all;
    }
    let mut roomiest = crews.fastest.to_vec();
    roomiest.sort_by_key(|one| (Reverse(one.memory), one.node));
    let first = |size: usize| [&crews.fastest[..size], &roomiest[..size]].map(<[_]>::to_vec);
    crews.sizes().flat_map(first).collect()
}

/// Every order of every subset of a size there may be.
fn grow(crews: &Crews<'_>, order: &mut Vec<Candidate>, all: &mut Vec<Vec<Candidate>>) {
    if crews.sizes().any(|size| size == order.len()) {
        all.push(order.clone());
    }
    if order.len() >= crews.most {
        return;
    }
    for one in crews.fastest {
        if order.iter().all(|other| other.node != one.node) {
            order.push(*one);
            grow(crews, order, all);
            order.pop();
        }
    }
}

/// Work and bytes of all parts before each.
fn sums(chain: &Chain) -> Vec<(u128, u128)> {
    let mut sums = Vec::from([(0, 0)]);
    for part in &chain.parts {
        let (work, bytes) = sums[sums.len() - 1];
        sums.push((work + u128::from(part.work), bytes + u128::from(part.bytes)));
    }
    sums
}

/// What a step takes with these nodes in this order, each with at least one part, and the parts of each.
fn best_cut(
    chain: &Chain,
    sums: &[(u128, u128)],
    order: &[Candidate],
    crews: &Crews<'_>,
) -> Option<(Cost, Vec<u64>)> {
    let parts = chain.parts.len();
    // For each stage and end: the best cost of all stages up to there, and where this one begins.
    let mut table: Vec<Vec<Option<(Cost, usize)>>> = Vec::with_capacity(order.len());
    for (at, one) in order.iter().enumerate() {
        let row = (0..=parts).map(|end| {
            let begins = if at == 0 { 0..=0 } else { at..=end };
            let stages = begins.filter(|begin| *begin < end).filter_map(|begin| {
                let before = match at {
                    0 => Cost::default(),
                    _ => table[at - 1][begin]?.0,
                };
                let (work, bytes) = (sums[end].0 - sums[begin].0, sums[end].1 - sums[begin].1);
                let all = before.and(chain.pace, stage(chain, order, at, (work, end), crews));
                (bytes <= u128::from(one.memory)).then_some((all, begin))
            });
            stages.min()
        });
        let row = row.collect();
        table.push(row);
    }
    let (cost, _) = table.last()?[parts]?;
    let mut counts = Vec::from_iter(order.iter().map(|_| 0));
    let mut end = parts;
    for at in (0..order.len()).rev() {
        let (_, begin) = table[at][end]?;
        counts[at] = (end - begin) as u64;
        end = begin;
    }
    Some((cost, counts))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Draws, is_whole};
    use super::super::{Measured, place, predict};
    use super::*;
    use shoal_kinds::{ChainPart, CrewProblem};
    use shoal_protocol::NodeId;

    fn drawn(draws: &mut Draws, parts: u64) -> Chain {
        let part = |draws: &mut Draws| ChainPart {
            work: draws.below(50),
            bytes: draws.below(20),
            out_bytes: draws.below(100_000),
        };
        let pace = if draws.below(2) == 0 { Pace::Flowing } else { Pace::InTurn };
        let flow = if draws.below(2) == 0 { Flow::Once } else { Flow::Rounds { calls: 2 } };
        Chain { parts: (0..parts).map(|_| part(draws)).collect(), pace, flow }
    }

    /// What a step takes if the parts are cut like this.
    fn takes(chain: &Chain, order: &[Candidate], counts: &[u64], crews: &Crews<'_>) -> Option<u64> {
        let (mut start, mut times) = (0, Vec::new());
        for (at, (one, count)) in order.iter().zip(counts).enumerate() {
            let mine = &chain.parts[start..start + *count as usize];
            start += *count as usize;
            if mine.iter().map(|part| part.bytes).sum::<u64>() > one.memory {
                return None;
            }
            let out = mine.last().expect("a part").out_bytes;
            let out = order.get(at + 1).map_or(0, |next| match chain.pace {
                Pace::Flowing => crews.sending(one, next, out),
                Pace::InTurn => crews.hop(one, next, out),
            });
            let is_last = at + 1 == order.len() && at > 0;
            let round = match (is_last, chain.flow, chain.pace) {
                (true, Flow::Rounds { .. }, Pace::InTurn) => crews.hop(one, &order[0], ROUND_BYTES),
                (_, _, _) => 0,
            };
            let out = out + round;
            times.push(one.time(mine.iter().map(|part| u128::from(part.work)).sum()) + out);
        }
        match chain.pace {
            Pace::Flowing => times.into_iter().max(),
            Pace::InTurn => Some(times.into_iter().sum()),
        }
    }

    /// Every way to cut so many parts into so many stages.
    fn cuts(parts: u64, stages: u64) -> Vec<Vec<u64>> {
        if stages == 1 {
            return Vec::from([Vec::from([parts])]);
        }
        let first = (1..=parts.saturating_sub(stages - 1)).flat_map(|first| {
            cuts(parts - first, stages - 1)
                .into_iter()
                .map(move |rest| [[first].as_slice(), &rest].concat())
        });
        first.collect()
    }

    #[test]
    fn it_is_as_good_as_trying_everything() {
        let mut draws = Draws(7);
        let link = |a: NodeId, b: NodeId| {
            let round_trip = Micros(100 * (a.0 * 7 + b.0 * 3) % 900);
            a.0.is_multiple_of(2)
                .then_some(Measured { round_trip, bytes_per_second: Some(1 << 20) })
        };
        for _ in 0..200 {
            let (count, parts) = (1 + draws.below(4), 1 + draws.below(6));
            let chain = drawn(&mut draws, parts);
            let nodes = draws.candidates(count as usize, 80);
            let wanted = if draws.below(4) == 0 { 1 + draws.below(count) as usize } else { 0 };
            let most = nodes.len().min(parts as usize);
            let crews = Crews { fastest: &nodes, most, wanted, link: &link };
            let every = orders(&crews).into_iter().flat_map(|order| {
                let all = cuts(parts, order.len() as u64);
                all.into_iter().map(move |counts| (order.clone(), counts))
            });
            let best = every.filter_map(|(order, cut)| takes(&chain, &order, &cut, &crews)).min();
            let placed = place(&CrewProblem::Chain(chain.clone()), &nodes, wanted, &link);
            assert_eq!(placed.as_ref().map(|placed| placed.step.0), best, "{chain:?} {nodes:?}");
            let Some(placed) = placed else { continue };
            is_whole(&placed, parts);
            let problem = CrewProblem::Chain(chain.clone());
            let same = predict(&problem, &placed.shares, &nodes, &link);
            assert_eq!(same, Some(placed.step), "{chain:?} {nodes:?}");
            let alone = placed.alone.filter(|_| wanted == 0);
            assert!(alone.is_none_or(|alone| placed.step <= alone));
        }
    }

    #[test]
    fn many_nodes_are_cut_by_speed_and_by_room() {
        let part = ChainPart { work: 1_000, bytes: 10, out_bytes: 10 };
        let chain = Chain { parts: [part; 32].into(), pace: Pace::Flowing, flow: Flow::Once };
        let node = |n: u64, rate, memory| Candidate {
            node: NodeId(n),
            rate,
            memory,
            round_trip: Micros(10),
        };
        // The fastest have no room for anything.
        let small = (1..=8).map(|n| node(n, 2_000_000, 5));
        let nodes: Vec<_> = small.chain((9..=10).map(|n| node(n, 1_000_000, 320))).collect();
        let placed = place(&CrewProblem::Chain(chain), &nodes, 0, &|_, _| None).expect("room");
        is_whole(&placed, 32);
        let counts: Vec<_> = placed.shares.iter().map(|(node, span)| (node.0, span.len)).collect();
        assert_eq!(counts, [(9, 16), (10, 16)]);
    }

    fn equal(parts: usize, pace: Pace) -> CrewProblem {
        let part = ChainPart { work: 1_000, bytes: 10, out_bytes: 10 };
        CrewProblem::Chain(Chain { parts: alloc::vec![part; parts], pace, flow: Flow::Once })
    }

    fn counts(problem: &CrewProblem, nodes: &[Candidate]) -> Vec<u64> {
        let placed = place(problem, nodes, nodes.len(), &|_, _| None).expect("room");
        placed.shares.iter().map(|(_, span)| span.len).collect()
    }

    #[test]
    fn equal_nodes_get_equal_work_however_far_they_are_from_each_other() {
        let far = |n: u64| Candidate {
            node: NodeId(n),
            rate: 1_000_000,
            memory: 1_000,
            round_trip: Micros(50_000 * n),
        };
        let nodes: Vec<_> = (1..=3).map(far).collect();
        assert_eq!(counts(&equal(24, Pace::Flowing), &nodes), [8, 8, 8]);
        assert_eq!(counts(&equal(24, Pace::InTurn), &nodes), [8, 8, 8]);
    }

    #[test]
    fn what_the_slowest_leaves_is_cut_evenly_too() {
        let node = |n: u64, rate| Candidate {
            node: NodeId(n),
            rate,
            memory: 1_000,
            round_trip: Micros(0),
        };
        let nodes = [node(1, 1_000_000), node(2, 1_000_000), node(3, 50_000)];
        let mut cut = counts(&equal(9, Pace::Flowing), &nodes);
        cut.sort_unstable();
        assert_eq!(cut, [1, 4, 4], "the slow one is waited for anyway");
    }
}
