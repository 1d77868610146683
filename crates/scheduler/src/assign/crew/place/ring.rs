//! Equal shares in a row that wraps around, such as the rows of a simulation's grid: neighbours exchange their
//! edges every step, while the inside is computed where there is enough of it.

use alloc::vec::Vec;
use shoal_kinds::Ring;
use shoal_protocol::Micros;

use super::{Candidate, Crews, Placement, in_order};

/// Rows computed beside a band's own, in halos: each edge is made of three, of which one is new.
const EDGES: u64 = 6;

/// Bands of at least so many halos have their edges computed first; smaller ones are one piece.
const OVERLAPS: u64 = 12;

pub(super) fn place(ring: &Ring, crews: &Crews<'_>) -> Option<Placement> {
    let alone = crews.fastest.first().and_then(|one| cut(ring, &[*one])).map(|rows| {
        let members = &crews.fastest[..1];
        predict(ring, members, &rows, crews)
    });
    let cuts = crews.sizes().filter_map(|size| {
        let mut members = crews.fastest[..size].to_vec();
        // Nodes keep their neighbours from epoch to epoch.
        members.sort_by_key(|one| one.node);
        let rows = cut(ring, &members)?;
        let step = predict(ring, &members, &rows, crews);
        Some((step, members, rows))
    });
    let (step, members, rows) = cuts.min_by_key(|(step, members, _)| (*step, members.len()))?;
    Some(Placement { shares: in_order(&members, &rows), step, alone })
}

/// Rows that a node's memory holds beside both halos.
fn most_rows(ring: &Ring, one: &Candidate) -> u64 {
    (one.memory / ring.share_bytes.max(1)).saturating_sub(2 * ring.halo)
}

/// Rows for each member, in proportion to speed, none below the halo, none above its memory.
fn cut(ring: &Ring, members: &[Candidate]) -> Option<Vec<u64>> {
    let least = ring.halo.max(1);
    let total: u128 = members.iter().map(|one| u128::from(one.rate)).sum();
    let mut rows: Vec<u64> = Vec::with_capacity(members.len());
    // The rows that edges depend on cost everybody the same, however few it has.
    let large = ring.shares >= OVERLAPS * ring.halo * members.len() as u64;
    let extra = match members.len() {
        1 => 0,
        _ if large => EDGES * ring.halo,
        _ => 2 * ring.halo,
    };
    let all = u128::from(ring.shares) + u128::from(extra) * members.len() as u128;
    for one in members {
        let share = all * u128::from(one.rate) / total.max(1);
        let share = u64::try_from(share).unwrap_or(ring.shares).saturating_sub(extra);
        if most_rows(ring, one) < least {
            return None;
        }
        rows.push(share.clamp(least, most_rows(ring, one)));
    }
    let mut sum: u64 = rows.iter().sum();
    while sum != ring.shares {
        let more = sum < ring.shares;
        // Whoever is soonest done with one more, or latest with what it has.
        let time = |at: usize, rows: u64| {
            u128::from(rows + extra) * (1 << 40) / u128::from(members[at].rate)
        };
        let at = if more {
            let room = (0..rows.len()).filter(|at| rows[*at] < most_rows(ring, &members[*at]));
            room.min_by_key(|at| time(*at, rows[*at] + 1))?
        } else {
            let room = (0..rows.len()).filter(|at| rows[*at] > least);
            room.max_by_key(|at| time(*at, rows[*at]))?
        };
        if more {
            (rows[at], sum) = (rows[at] + 1, sum + 1);
        } else {
            (rows[at], sum) = (rows[at] - 1, sum - 1);
        }
    }
    Some(rows)
}

/// What a step takes: the slowest member's computing, and what of the exchange that does not hide behind it.
fn predict(ring: &Ring, members: &[Candidate], rows: &[u64], crews: &Crews<'_>) -> Micros {
    let count = members.len();
    let step = (0..count).map(|at| {
        let (one, rows) = (&members[at], rows[at]);
        let time = |rows: u64| one.time(u128::from(rows) * u128::from(ring.work));
        // Edges first, each with the rows it depends on; a small band is computed in one piece.
        let overlaps = count > 1 && rows >= OVERLAPS * ring.halo;
        let extra = if overlaps { EDGES * ring.halo } else { 2 * ring.halo };
        let computed = time(rows.saturating_add(extra));
        if count == 1 {
            return computed;
        }
        let neighbours = [&members[(at + 1) % count], &members[(at + count - 1) % count]];
        let exchange = neighbours.map(|other| crews.hop(one, other, ring.edge_bytes));
        let exchange = exchange[0].max(exchange[1]);
        let hidden = if overlaps { time(rows) } else { 0 };
        computed.saturating_add(exchange.saturating_sub(hidden))
    });
    Micros(step.max().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Draws, is_whole};
    use super::super::{Links, Measured};
    use super::*;
    use shoal_kinds::CrewProblem;
    use shoal_protocol::{NodeId, Span};

    const ROW: u64 = 512 * 16;
    const GRID: Ring =
        Ring { shares: 512, work: 512, share_bytes: ROW, copies: 1, halo: 4, edge_bytes: 4 * ROW };

    fn place(
        ring: &Ring,
        nodes: &[Candidate],
        wanted: usize,
        link: &Links<'_>,
    ) -> Option<Placement> {
        super::super::place(&CrewProblem::Ring(*ring), nodes, wanted, link)
    }

    fn node(n: u64, rate: u64) -> Candidate {
        let round_trip = Micros::from_millis(1);
        Candidate { node: NodeId(n), rate, memory: ROW << 20, round_trip }
    }

    fn crew(candidates: &[Candidate], wanted: usize) -> Placement {
        place(&GRID, candidates, wanted, &|_, _| None).expect("a placement")
    }

    #[test]
    fn equal_nodes_share_alike() {
        let placed = crew(&[node(1, 10_000_000), node(2, 10_000_000)], 0);
        assert_eq!(
            placed.shares,
            [(NodeId(1), Span::new(0, 256)), (NodeId(2), Span::new(256, 256))]
        );
        assert!(placed.step < placed.alone.expect("it fits one"));
    }

    #[test]
    fn a_weak_node_is_left_out() {
        let placed = crew(&[node(1, 10_000_000), node(2, 10_000)], 0);
        assert_eq!(placed.shares, [(NodeId(1), Span::new(0, 512))]);
    }

    #[test]
    fn far_nodes_are_slower_than_one_alone() {
        let far = |n| Candidate { round_trip: Micros::from_secs(1), ..node(n, 100_000_000) };
        assert_eq!(crew(&[far(1), far(2)], 0).shares.len(), 1);
        let near = |_, _| {
            let round_trip = Micros::from_millis(1);
            Some(Measured { round_trip, bytes_per_second: Some(1 << 30) })
        };
        let placed = place(&GRID, &[far(1), far(2)], 0, &near).expect("a placement");
        assert_eq!(placed.shares.len(), 2);
    }

    #[test]
    fn what_fits_nobody_alone_is_split() {
        let small = |n| Candidate { memory: 308 * ROW, ..node(n, 1_000_000) };
        let placed = crew(&[small(1), small(2)], 0);
        assert_eq!(placed.shares.len(), 2);
        assert_eq!(placed.alone, None);
        assert!(place(&GRID, &[small(1)], 0, &|_, _| None).is_none());
    }

    #[test]
    fn a_wanted_size_is_kept_and_every_row_is_somebodys() {
        let nodes = [node(1, 3_000_000), node(2, 1_000_000), node(3, 7_000), node(4, 1_000_000)];
        let placed = crew(&nodes, 4);
        assert_eq!(placed.shares.len(), 4);
        assert!(placed.shares.iter().all(|(_, rows)| rows.len >= 4));
        let end = placed.shares.iter().fold(0, |at, (_, rows)| {
            assert_eq!(rows.start, at);
            rows.end()
        });
        assert_eq!(end, 512);
        assert!(place(&GRID, &nodes, 5, &|_, _| None).is_none());
    }

    /// Every way to cut so many rows into so many bands of at least so many.
    fn every(rows: u64, members: usize, least: u64) -> Vec<Vec<u64>> {
        if members == 1 {
            return if rows < least { Vec::new() } else { Vec::from([Vec::from([rows])]) };
        }
        let first = (least..rows).flat_map(|first| {
            let rest = every(rows - first, members - 1, least);
            rest.into_iter().map(move |rest| [[first].as_slice(), &rest].concat())
        });
        first.collect()
    }

    #[test]
    fn a_cut_by_speed_is_nearly_as_good_as_the_best_and_never_worse_than_one_alone() {
        let mut draws = Draws(11);
        for _ in 0..300 {
            let halo = draws.below(3);
            let ring = Ring {
                shares: halo.max(1) * 3 + draws.below(24),
                work: 1_000 * (1 + draws.below(50)),
                share_bytes: 4,
                copies: 1,
                halo,
                edge_bytes: draws.below(50_000),
            };
            let mut nodes = draws.candidates(3, 1);
            nodes.iter_mut().for_each(|one| one.memory = 4 * (2 * halo + 1 + draws.below(60)));
            let placed = place(&ring, &nodes, 0, &|_, _| None);
            let mut fastest = nodes.clone();
            fastest.sort_by_key(|one| (core::cmp::Reverse(one.rate), one.node));
            let crews = Crews { fastest: &fastest, most: 3, wanted: 0, link: &|_, _| None };
            let all = (1..=3).flat_map(|size| {
                let mut members = fastest[..size].to_vec();
                members.sort_by_key(|one| one.node);
                let all = every(ring.shares, size, halo.max(1)).into_iter();
                all.map(move |rows| (members.clone(), rows))
            });
            let fits = |members: &[Candidate], rows: &[u64]| {
                members.iter().zip(rows).all(|(one, rows)| *rows <= most_rows(&ring, one))
            };
            let fitting = all.filter(|(members, rows)| fits(members, rows));
            let best = fitting.map(|(members, rows)| predict(&ring, &members, &rows, &crews)).min();
            assert_eq!(placed.is_some(), best.is_some(), "{ring:?} {nodes:?}");
            let (Some(placed), Some(best)) = (placed, best) else { continue };
            is_whole(&placed, ring.shares);
            assert!(placed.alone.is_none_or(|alone| placed.step <= alone));
            // Where edges begin to hide behind the inside the best cut may jump; by rows alone it does not.
            assert!(
                placed.step.0 <= 2 * best.0 + 1,
                "{placed:?} against {best:?}: {ring:?} {nodes:?}"
            );
        }
    }
}
