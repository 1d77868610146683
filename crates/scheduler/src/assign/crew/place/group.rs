//! Shares of every step, whose members give each other what they made: by speed and memory.

use alloc::vec::Vec;
use core::cmp::Reverse;
use shoal_kinds::Group;
use shoal_protocol::Micros;

use super::{Candidate, Crews, Placement, in_order};

pub(super) fn place(group: &Group, crews: &Crews<'_>) -> Option<Placement> {
    let fastest = crews.fastest.first()?;
    let alone = [*fastest];
    let alone = cut(group, &alone).map(|counts| Micros(predict(group, &alone, &counts, crews)));
    let sizes = choices(group, crews).into_iter().filter_map(|mut members| {
        // Nodes keep their neighbours from epoch to epoch.
        members.sort_by_key(|one| one.node);
        let counts = cut(group, &members)?;
        let step = predict(group, &members, &counts, crews);
        Some((step, members, counts))
    });
    let (step, members, counts) = sizes.min_by_key(|(step, members, _)| (*step, members.len()))?;
    Some(Placement { shares: in_order(&members, &counts), step: Micros(step), alone, apart: false })
}

/// Up to so many nodes every choice of members is tried. Among more, the fastest and those with most memory.
const ALL_CHOICES: usize = 4;

/// Members there may be, of those that have room for a share.
fn choices(group: &Group, crews: &Crews<'_>) -> Vec<Vec<Candidate>> {
    let least = group.common_bytes.saturating_add(group.share_bytes);
    let able = crews.fastest.iter().filter(|one| one.memory >= least).copied();
    let fastest: Vec<Candidate> = able.collect();
    let sizes = || crews.sizes().filter(|size| *size <= fastest.len());
    if fastest.len() > ALL_CHOICES {
        let mut roomiest = fastest.clone();
        roomiest.sort_by_key(|one| (Reverse(one.memory), one.node));
        let first = |size: usize| [&fastest[..size], &roomiest[..size]].map(<[_]>::to_vec);
        return sizes().flat_map(first).collect();
    }
    let chosen = |which: usize| {
        let mine = fastest.iter().enumerate().filter(move |(at, _)| which >> at & 1 == 1);
        mine.map(|(_, one)| *one).collect::<Vec<_>>()
    };
    let all = (1..1_usize << fastest.len()).map(chosen);
    all.filter(|members| sizes().any(|size| size == members.len())).collect()
}

/// Shares of each, so that the last is done as soon as can be; each has one at least.
fn cut(group: &Group, members: &[Candidate]) -> Option<Vec<u64>> {
    let room = members.iter().map(|one| {
        let free = one.memory.checked_sub(group.common_bytes)?;
        Some(free.checked_div(group.share_bytes).unwrap_or(u64::MAX)).filter(|room| *room > 0)
    });
    let room: Vec<_> = room.collect::<Option<_>>()?;
    let total: u128 = members.iter().map(|one| u128::from(one.rate)).sum();
    // In proportion to speed, rounded down: nobody has more of these than in the best cut.
    let mut counts: Vec<_> = members
        .iter()
        .zip(&room)
        .map(|(one, room)| {
            let part = u128::from(group.shares) * u128::from(one.rate) / total.max(1);
            u64::try_from(part).unwrap_or(u64::MAX).min(*room)
        })
        .collect();
    let mut left = group.shares - counts.iter().sum::<u64>();
    while left > 0 {
        let free = (0..counts.len()).filter(|at| counts[*at] < room[*at]);
        // Whoever is soonest done with one more.
        let soonest = free.min_by_key(|at| {
            u128::from(counts[*at] + 1) * (1 << 40) / u128::from(members[*at].rate)
        })?;
        (counts[soonest], left) = (counts[soonest] + 1, left - 1);
    }
    counts.iter().all(|count| *count > 0).then_some(counts)
}

/// The slowest member's computing, and what it takes until the last one has heard all others, each time: a member sends
/// its piece to one after another.
pub(super) fn predict(
    group: &Group,
    members: &[Candidate],
    counts: &[u64],
    crews: &Crews<'_>,
) -> u64 {
    let work = |count: u64| u128::from(count) * u128::from(group.work);
    let computed = members.iter().zip(counts).map(|(one, count)| one.time(work(*count))).max();
    let piece = group.exchange_bytes.div_ceil(members.len() as u64);
    let told = members.iter().map(|one| {
        let others = members.iter().filter(|other| other.node != one.node);
        let sending = others.clone().map(|other| crews.sending(one, other, piece));
        let sending = sending.fold(0, u64::saturating_add);
        others.map(|other| crews.way(one, other)).max().unwrap_or(0).saturating_add(sending)
    });
    let exchanges = told.max().unwrap_or(0).saturating_mul(group.exchanges);
    computed.unwrap_or(0).saturating_add(exchanges)
}

#[cfg(test)]
mod tests {
    use super::super::place;
    use super::super::tests::{Draws, is_whole};
    use super::*;
    use shoal_kinds::CrewProblem;
    use shoal_kinds::crew::Flow;

    /// Every way to give so many shares to so many members, each at least one.
    fn every(shares: u64, members: usize) -> Vec<Vec<u64>> {
        if members == 1 {
            return Vec::from([Vec::from([shares])]);
        }
        let first = (1..shares).flat_map(|first| {
            let rest = every(shares - first, members - 1);
            rest.into_iter().map(move |rest| [[first].as_slice(), &rest].concat())
        });
        first.filter(|counts| counts.iter().sum::<u64>() == shares).collect()
    }

    #[test]
    fn nobody_could_be_done_sooner_with_other_shares() {
        let mut draws = Draws(3);
        for _ in 0..200 {
            let group = Group {
                shares: 1 + draws.below(9),
                work: 1 + draws.below(1_000),
                share_bytes: draws.below(10),
                common_bytes: draws.below(10),
                exchanges: draws.below(100),
                exchange_bytes: draws.below(100_000),
                flow: Flow::Once,
            };
            let nodes = draws.candidates(4, 60);
            let placed = place(&CrewProblem::Group(group), &nodes, 0, &|_, _| None);
            let mut fastest = nodes.clone();
            fastest.sort_by_key(|one| (core::cmp::Reverse(one.rate), one.node));
            let crews = Crews { fastest: &fastest, most: 4, wanted: 0, link: &|_, _| None };
            let all = (1..1 << nodes.len()).flat_map(|which: usize| {
                let mine = nodes.iter().enumerate().filter(|(at, _)| which >> at & 1 == 1);
                let members: Vec<_> = mine.map(|(_, one)| *one).collect();
                let all = every(group.shares, members.len()).into_iter();
                all.map(move |counts| (members.clone(), counts))
            });
            let fits = |members: &[Candidate], counts: &[u64]| {
                let held = |count: &u64| count * group.share_bytes + group.common_bytes;
                members.iter().zip(counts).all(|(one, count)| held(count) <= one.memory)
            };
            let times = all.filter(|(members, counts)| fits(members, counts));
            let best = times.map(|(members, counts)| predict(&group, &members, &counts, &crews));
            assert_eq!(placed.as_ref().map(|placed| placed.step.0), best.min(), "{group:?}");
            let Some(placed) = placed else { continue };
            is_whole(&placed, group.shares);
            assert!(placed.alone.is_none_or(|alone| placed.step <= alone));
        }
    }

    #[test]
    fn a_fast_node_without_room_keeps_nobody_from_having_it() {
        let group = Group {
            shares: 48,
            work: 1_000,
            share_bytes: 10,
            common_bytes: 10,
            exchanges: 1,
            exchange_bytes: 1_000,
            flow: Flow::Once,
        };
        let one = |node: u64, rate: u64, memory: u64| Candidate {
            node: shoal_protocol::NodeId(node),
            rate,
            memory,
            round_trip: Micros(100),
        };
        for (others, wanted) in [(2, 0), (2, 2), (7, 0), (7, 3)] {
            let mut nodes: Vec<_> = (2..2 + others).map(|n| one(n, 1_000, 400)).collect();
            nodes.push(one(1, 9_000, 15));
            let placed = place(&CrewProblem::Group(group), &nodes, wanted, &|_, _| None);
            let placed = placed.expect("the others have room");
            is_whole(&placed, group.shares);
            assert!(placed.shares.iter().all(|(node, _)| node.0 != 1));
        }
    }
}
