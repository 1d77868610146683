//! Equal shares in a row that wraps around, such as the rows of a simulation's grid: neighbours exchange their
//! edges every step. Bands are computed in one piece, and the exchange is waited for; or their edges apart and first, which
//! costs rows, and the exchange goes on while the rest is computed. Whichever is faster.

use alloc::vec::Vec;
use shoal_kinds::Ring;
use shoal_protocol::Micros;

use super::{Candidate, Crews, Placement, in_order};

/// Rows computed beside a band's own, in halos: one above and one below.
const WHOLE: u64 = 2;
/// With edges apart: each of them is made of three, and the band follows without halos.
const APART: u64 = 6;
/// Bands of fewer halos have no two edges to compute apart.
const LEAST_APART: u64 = 2;

pub(super) fn place(ring: &Ring, crews: &Crews<'_>) -> Option<Placement> {
    let alone = crews.fastest.first().and_then(|one| cut(ring, &[*one], false)).map(|rows| {
        let members = &crews.fastest[..1];
        predict(ring, members, &rows, false, &Exchange::Thought(crews))
    });
    let ways = crews.sizes().filter_map(|size| way(ring, crews, size));
    let Way { members, rows, apart, step } =
        ways.min_by_key(|way| (way.step, way.members.len()))?;
    Some(Placement { shares: in_order(&members, &rows), step, alone, apart })
}

/// How a crew would go about it, and what a step takes it then.
struct Way {
    members: Vec<Candidate>,
    rows: Vec<u64>,
    apart: bool,
    step: Micros,
}

/// The way of a crew of this size. It is chosen before sizes are compared: what is said of a crew is what it does.
fn way(ring: &Ring, crews: &Crews<'_>, size: usize) -> Option<Way> {
    let members = members(crews, size);
    let whole = cut(ring, &members, false)?;
    let takes = |apart, rows: &[u64], exchange: &Exchange<'_>| {
        predict(ring, &members, rows, apart, exchange)
    };
    // The rows that edges apart cost are certain. What they gain is not, before links were measured.
    let exchanges = [Exchange::Thought(crews), Exchange::Known(crews)];
    let apart = cut(ring, &members, true).filter(|apart| {
        exchanges
            .iter()
            .all(|exchange| takes(true, apart, exchange) < takes(false, &whole, exchange))
    });
    let (apart, rows) = match apart {
        Some(rows) => (true, rows),
        None => (false, whole),
    };
    let step = takes(apart, &rows, &exchanges[0]);
    Some(Way { members, rows, apart, step })
}

/// Those of a crew of this size. Nodes keep their neighbours from epoch to epoch.
fn members(crews: &Crews<'_>, size: usize) -> Vec<Candidate> {
    let mut members = crews.fastest[..size].to_vec();
    members.sort_by_key(|one| one.node);
    members
}

/// Rows that a node's memory holds beside both halos.
fn most_rows(ring: &Ring, one: &Candidate) -> u64 {
    (one.memory / ring.share_bytes.max(1)).saturating_sub(2 * ring.halo)
}

/// Rows for each member, in proportion to speed, none below the halo, none above its memory. `None` if there are not
/// as many, or not enough for edges apart.
fn cut(ring: &Ring, members: &[Candidate], apart: bool) -> Option<Vec<u64>> {
    if apart && (members.len() == 1 || ring.halo == 0) {
        return None;
    }
    let least = if apart { LEAST_APART * ring.halo } else { ring.halo.max(1) };
    let total: u128 = members.iter().map(|one| u128::from(one.rate)).sum();
    let mut rows: Vec<u64> = Vec::with_capacity(members.len());
    // These cost everybody the same, however few it has.
    let extra = extra(ring, apart);
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

/// Rows that a member computes beside its own.
fn extra(ring: &Ring, apart: bool) -> u64 {
    if apart { APART * ring.halo } else { WHOLE * ring.halo }
}

/// How long edges are on their way.
enum Exchange<'a> {
    /// As is thought of links that were not measured.
    Thought(&'a Crews<'a>),
    /// As far as it is known.
    Known(&'a Crews<'a>),
}

impl Exchange<'_> {
    fn takes(&self, one: &Candidate, other: &Candidate, bytes: u64) -> u64 {
        match self {
            Exchange::Thought(crews) => crews.hop(one, other, bytes),
            Exchange::Known(crews) => crews.known_hop(one, other, bytes),
        }
    }
}

/// What a step takes: the slowest member's computing, and what of the exchange that does not hide behind it.
fn predict(
    ring: &Ring,
    members: &[Candidate],
    rows: &[u64],
    apart: bool,
    exchange: &Exchange<'_>,
) -> Micros {
    let count = members.len();
    let step = (0..count).map(|at| {
        let (one, rows) = (&members[at], rows[at]);
        let time = |rows: u64| one.time(u128::from(rows) * u128::from(ring.work));
        let computed = time(rows.saturating_add(extra(ring, apart)));
        if count == 1 {
            return computed;
        }
        let neighbours = [&members[(at + 1) % count], &members[(at + count - 1) % count]];
        let exchange = neighbours.map(|other| exchange.takes(one, other, ring.edge_bytes));
        let exchange = exchange[0].max(exchange[1]);
        let hidden = if apart { time(rows) } else { 0 };
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
    fn edges_are_computed_apart_where_the_way_costs_more_than_their_rows() {
        // Four halos of rows take 0.8 ms here.
        let nodes = |round_trip| {
            [1, 2].map(|n| Candidate { round_trip: Micros(round_trip), ..node(n, 10_000_000) })
        };
        assert!(crew(&nodes(2_000), 2).apart, "1 ms to the coordinator and as much from it");
        assert!(!crew(&nodes(500), 2).apart, "what links carry is not known yet");
        let linked = |bytes_per_second| {
            let link = move |_, _| {
                Some(Measured { round_trip: Micros(200), bytes_per_second: Some(bytes_per_second) })
            };
            place(&GRID, &nodes(2_000), 2, &link).expect("a placement")
        };
        let (fast, slow) = (linked(200_000_000), linked(20_000_000));
        assert!(!fast.apart && slow.apart);
        assert!(fast.step < slow.step && slow.step < slow.alone.expect("it fits one"));
    }

    /// What a step takes those who are placed, by the way that they were told.
    fn said(ring: &Ring, crews: &Crews<'_>, placed: &Placement) -> Micros {
        let members = members(crews, placed.shares.len());
        let rows: Vec<u64> = placed.shares.iter().map(|(_, rows)| rows.len).collect();
        predict(ring, &members, &rows, placed.apart, &Exchange::Thought(crews))
    }

    #[test]
    fn what_is_predicted_is_predicted_of_the_way_that_is_taken() {
        // 250 µs of way and, as is thought, 1.6 ms of sending: edges apart would hide them all.
        let two = [1, 2].map(|n| Candidate { round_trip: Micros(250), ..node(n, 10_000_000) });
        let placed = crew(&two, 2);
        let computed = (256 + 8) * 512 / 10;
        let sending = 4 * ROW * 1_000_000 / super::super::USUAL_BANDWIDTH;
        assert_eq!((placed.apart, placed.step.0), (false, computed + 250 + sending));
        // With edges apart two would be faster than one, as is thought. But they would take bands whole, and are not.
        let ring = Ring { shares: 64, ..GRID };
        let placed = place(&ring, &two, 0, &|_, _| None).expect("a placement");
        assert_eq!((placed.shares.len(), Some(placed.step)), (1, placed.alone));
    }

    #[test]
    fn bands_without_rows_for_two_edges_are_one_piece() {
        let far = [1, 2, 3].map(|n| {
            let round_trip = Micros::from_millis(100);
            Candidate { round_trip, ..node(n, 10_000_000) }
        });
        let low = |shares| Ring { shares, ..GRID };
        let two_edges = |shares| cut(&low(shares), &far, true).is_some();
        assert_eq!([two_edges(24), two_edges(23)], [true, false]);
        // Those of 16 rows cost as much as they hide, however long the way is.
        let apart = |shares| place(&low(shares), &far, 3, &|_, _| None).map(|placed| placed.apart);
        assert_eq!([51, 48, 23, 11].map(apart), [Some(true), Some(false), Some(false), None]);
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
            let sizes = (1..=3).flat_map(|size| [(size, false), (size, true)]);
            let sizes = sizes.filter(|(size, apart)| !apart || (*size > 1 && halo > 0));
            let all = sizes.flat_map(|(size, apart)| {
                let members = members(&crews, size);
                let least = if apart { LEAST_APART * halo } else { halo.max(1) };
                let all = every(ring.shares, size, least).into_iter();
                all.map(move |rows| (members.clone(), rows, apart))
            });
            let fits = |members: &[Candidate], rows: &[u64]| {
                members.iter().zip(rows).all(|(one, rows)| *rows <= most_rows(&ring, one))
            };
            let fitting = all.filter(|(members, rows, _)| fits(members, rows));
            let thought = Exchange::Thought(&crews);
            let best = fitting
                .map(|(members, rows, apart)| predict(&ring, &members, &rows, apart, &thought))
                .min();
            assert_eq!(placed.is_some(), best.is_some(), "{ring:?} {nodes:?}");
            let (Some(placed), Some(best)) = (placed, best) else { continue };
            is_whole(&placed, ring.shares);
            assert_eq!(placed.step, said(&ring, &crews, &placed), "{placed:?}: {ring:?} {nodes:?}");
            assert!(placed.alone.is_none_or(|alone| placed.step <= alone));
            // Where an exchange begins to hide behind the computing the best cut may jump; by rows alone it does not.
            assert!(
                placed.step.0 <= 2 * best.0 + 1,
                "{placed:?} against {best:?}: {ring:?} {nodes:?}"
            );
        }
    }
}
