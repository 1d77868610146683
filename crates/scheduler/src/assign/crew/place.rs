//! Which nodes make a crew, and how the grid is cut: by measured speed, measured links and memory. One node
//! alone if that is faster, and nobody who would only be waited for.

use alloc::vec::Vec;
use shoal_protocol::{Micros, NodeId, Span};

/// What a link is thought to carry before it was measured, in bytes per second: a data channel of today.
const USUAL_BANDWIDTH: u64 = 20_000_000;

/// Rows computed beside a band's own, in halos: each edge is made of three, of which one is new.
const EDGES: u64 = 6;

/// Bands of at least so many halos have their edges computed first; smaller ones are one piece.
const OVERLAPS: u64 = 12;

/// The part of a simulation that placement looks at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grid {
    pub(crate) rows: u64,
    pub(crate) width: u64,
    pub(crate) halo: u64,
    pub(crate) halo_bytes: u64,
}

/// A node that showed how fast it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate {
    pub(crate) node: NodeId,
    /// Cells per second.
    pub(crate) rate: u64,
    /// What its memory holds.
    pub(crate) most_rows: u64,
    /// Between it and the coordinator.
    pub(crate) round_trip: Micros,
}

/// A measured link between two nodes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measured {
    pub(crate) round_trip: Micros,
    pub(crate) bytes_per_second: Option<u64>,
}

#[derive(Clone, Debug)]
pub(crate) struct Placement {
    /// By rank.
    pub(crate) bands: Vec<(NodeId, Span)>,
    /// What a step should take.
    pub(crate) step: Micros,
    /// What it would take on the fastest node alone; `None` if the grid does not fit there.
    pub(crate) alone: Option<Micros>,
}

/// The fastest crew there is, or the fastest of `wanted` members. `None` if the grid fits nobody.
pub(crate) fn place(
    grid: &Grid,
    candidates: &[Candidate],
    wanted: usize,
    link: &dyn Fn(NodeId, NodeId) -> Option<Measured>,
) -> Option<Placement> {
    let mut fastest: Vec<_> = candidates.iter().filter(|one| one.rate > 0).copied().collect();
    fastest.sort_by_key(|one| (core::cmp::Reverse(one.rate), one.node));
    let most = (grid.rows / grid.halo.max(1)).max(1);
    let most = usize::try_from(most).unwrap_or(usize::MAX).min(fastest.len());
    let sizes = if wanted > 0 { wanted..=wanted } else { 1..=most };
    let alone = fastest.first().and_then(|one| cut(grid, &[*one])).map(|rows| {
        let members = &fastest[..1];
        predict(grid, members, &rows, link)
    });
    let crews = sizes.filter(|size| *size <= most).filter_map(|size| {
        let mut members = fastest[..size].to_vec();
        // Nodes keep their neighbours from epoch to epoch.
        members.sort_by_key(|one| one.node);
        let rows = cut(grid, &members)?;
        let step = predict(grid, &members, &rows, link);
        Some((step, members, rows))
    });
    let (step, members, rows) = crews.min_by_key(|(step, members, _)| (*step, members.len()))?;
    let mut start = 0;
    let bands = members.iter().zip(rows).map(|(member, rows)| {
        let span = Span::new(start, rows);
        start += rows;
        (member.node, span)
    });
    Some(Placement { bands: bands.collect(), step, alone })
}

/// Rows for each member, in proportion to speed, none below the halo, none above its memory.
fn cut(grid: &Grid, members: &[Candidate]) -> Option<Vec<u64>> {
    let least = grid.halo.max(1);
    let total: u128 = members.iter().map(|one| u128::from(one.rate)).sum();
    let mut rows: Vec<u64> = Vec::with_capacity(members.len());
    // The rows that edges depend on cost everybody the same, however few it has.
    let large = grid.rows >= OVERLAPS * grid.halo * members.len() as u64;
    let extra = match members.len() {
        1 => 0,
        _ if large => EDGES * grid.halo,
        _ => 2 * grid.halo,
    };
    let all = u128::from(grid.rows) + u128::from(extra) * members.len() as u128;
    for one in members {
        let share = all * u128::from(one.rate) / total.max(1);
        let share = u64::try_from(share).unwrap_or(grid.rows).saturating_sub(extra);
        if one.most_rows < least {
            return None;
        }
        rows.push(share.clamp(least, one.most_rows));
    }
    let mut sum: u64 = rows.iter().sum();
    while sum != grid.rows {
        let more = sum < grid.rows;
        // Whoever is soonest done with one more, or latest with what it has.
        let time = |at: usize, rows: u64| {
            u128::from(rows + extra) * (1 << 40) / u128::from(members[at].rate)
        };
        let at = if more {
            let room = (0..rows.len()).filter(|at| rows[*at] < members[*at].most_rows);
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
fn predict(
    grid: &Grid,
    members: &[Candidate],
    rows: &[u64],
    link: &dyn Fn(NodeId, NodeId) -> Option<Measured>,
) -> Micros {
    let count = members.len();
    let step = (0..count).map(|at| {
        let (one, rows) = (&members[at], rows[at]);
        let time = |rows: u64| {
            let cells = u128::from(rows) * u128::from(grid.width);
            u64::try_from(cells * 1_000_000 / u128::from(one.rate)).unwrap_or(u64::MAX)
        };
        // Edges first, each with the rows it depends on; a small band is computed in one piece.
        let overlaps = count > 1 && rows >= OVERLAPS * grid.halo;
        let extra = if overlaps { EDGES * grid.halo } else { 2 * grid.halo };
        let computed = time(rows.saturating_add(extra));
        if count == 1 {
            return computed;
        }
        let neighbours = [members[(at + 1) % count], members[(at + count - 1) % count]];
        let exchanges = neighbours.iter().map(|other| {
            let known = link(one.node, other.node);
            let there = match known {
                Some(known) => known.round_trip.0 / 2,
                None => (one.round_trip.0 + other.round_trip.0) / 2,
            };
            let rate = known.and_then(|known| known.bytes_per_second).unwrap_or(USUAL_BANDWIDTH);
            there + grid.halo_bytes.saturating_mul(1_000_000) / rate.max(1)
        });
        let exchange = exchanges.max().unwrap_or(0);
        let hidden = if overlaps { time(rows) } else { 0 };
        computed.saturating_add(exchange.saturating_sub(hidden))
    });
    Micros(step.max().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRID: Grid = Grid { rows: 512, width: 512, halo: 4, halo_bytes: 4 * 512 * 16 };

    fn node(n: u64, rate: u64) -> Candidate {
        let round_trip = Micros::from_millis(1);
        Candidate { node: NodeId(n), rate, most_rows: 1 << 20, round_trip }
    }

    fn crew(candidates: &[Candidate], wanted: usize) -> Placement {
        place(&GRID, candidates, wanted, &|_, _| None).expect("a placement")
    }

    #[test]
    fn equal_nodes_share_alike() {
        let placed = crew(&[node(1, 10_000_000), node(2, 10_000_000)], 0);
        assert_eq!(
            placed.bands,
            [(NodeId(1), Span::new(0, 256)), (NodeId(2), Span::new(256, 256))]
        );
        assert!(placed.step < placed.alone.expect("it fits one"));
    }

    #[test]
    fn a_weak_node_is_left_out() {
        let placed = crew(&[node(1, 10_000_000), node(2, 10_000)], 0);
        assert_eq!(placed.bands, [(NodeId(1), Span::new(0, 512))]);
    }

    #[test]
    fn far_nodes_are_slower_than_one_alone() {
        let far = |n| Candidate { round_trip: Micros::from_secs(1), ..node(n, 100_000_000) };
        assert_eq!(crew(&[far(1), far(2)], 0).bands.len(), 1);
        let near = |_, _| {
            let round_trip = Micros::from_millis(1);
            Some(Measured { round_trip, bytes_per_second: Some(1 << 30) })
        };
        let placed = place(&GRID, &[far(1), far(2)], 0, &near).expect("a placement");
        assert_eq!(placed.bands.len(), 2);
    }

    #[test]
    fn what_fits_nobody_alone_is_split() {
        let small = |n| Candidate { most_rows: 300, ..node(n, 1_000_000) };
        let placed = crew(&[small(1), small(2)], 0);
        assert_eq!(placed.bands.len(), 2);
        assert_eq!(placed.alone, None);
        assert!(place(&GRID, &[small(1)], 0, &|_, _| None).is_none());
    }

    #[test]
    fn a_wanted_size_is_kept_and_every_row_is_somebodys() {
        let nodes = [node(1, 3_000_000), node(2, 1_000_000), node(3, 7_000), node(4, 1_000_000)];
        let placed = crew(&nodes, 4);
        assert_eq!(placed.bands.len(), 4);
        assert!(placed.bands.iter().all(|(_, rows)| rows.len >= 4));
        let end = placed.bands.iter().fold(0, |at, (_, rows)| {
            assert_eq!(rows.start, at);
            rows.end()
        });
        assert_eq!(end, 512);
        assert!(place(&GRID, &nodes, 5, &|_, _| None).is_none());
    }
}
