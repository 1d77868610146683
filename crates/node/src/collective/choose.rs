//! Which way is fastest, from what was measured of the links. All ranks must be given the same measurements,
//! as the coordinator tells them, or they would choose differently.

use alloc::vec;
use alloc::vec::Vec;
use shoal_protocol::Micros;

use super::number::Numbers;
use super::plan::{Op, SEGMENT_BYTES};
use super::topology::{How, Rank, View};

/// What was measured of one link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Speed {
    pub round_trip: Micros,
    pub bytes_per_second: u64,
}

/// A link nobody has measured: a usual one between homes.
const UNKNOWN: Speed = Speed { round_trip: Micros::from_millis(40), bytes_per_second: 2_000_000 };

/// The links between all ranks.
#[derive(Clone, Debug)]
pub struct Links {
    ranks: u8,
    speeds: Vec<Speed>,
}

impl Links {
    pub fn new(ranks: u8) -> Links {
        Links { ranks, speeds: vec![UNKNOWN; usize::from(ranks) * usize::from(ranks)] }
    }

    /// All links alike.
    pub fn even(ranks: u8, speed: Speed) -> Links {
        let mut links = Links::new(ranks);
        links.speeds.fill(speed);
        links
    }

    /// Both directions of a link.
    pub fn set(&mut self, one: Rank, two: Rank, speed: Speed) {
        for (from, to) in [(one, two), (two, one)] {
            let at = self.place(from, to);
            if let Some(known) = self.speeds.get_mut(at) {
                *known = speed;
            }
        }
    }

    fn place(&self, from: Rank, to: Rank) -> usize {
        usize::from(from.0) * usize::from(self.ranks) + usize::from(to.0)
    }

    /// Time for this many bytes from one rank to another.
    fn time(&self, from: Rank, to: Rank, bytes: u64) -> u64 {
        let speed = self.speeds.get(self.place(from, to)).copied().unwrap_or(UNKNOWN);
        speed.round_trip.0 / 2 + bytes.saturating_mul(1_000_000) / speed.bytes_per_second.max(1)
    }

    /// The best of a rank's links: what its own connection can do at least.
    fn best(&self, from: Rank) -> u64 {
        let others = (0..self.ranks).map(Rank).filter(|to| *to != from);
        let speeds = others.filter_map(|to| self.speeds.get(self.place(from, to)));
        speeds.map(|speed| speed.bytes_per_second).max().unwrap_or(1).max(1)
    }

    /// As many bytes from one rank to each other: as fast as the worst link and as its own connection.
    fn to_all(&self, from: Rank, bytes: u64) -> u64 {
        let others = || self.ranks().filter(move |to| *to != from);
        let slowest = others().map(|to| self.time(from, to, bytes)).max().unwrap_or(0);
        let nearest = others().map(|to| self.time(from, to, 0)).min().unwrap_or(0);
        let all = bytes.saturating_mul(others().count() as u64);
        slowest.max(nearest + all.saturating_mul(1_000_000) / self.best(from))
    }

    /// As many bytes over the slowest link between neighbours.
    fn slowest_step(&self, bytes: u64) -> u64 {
        let next = |rank: Rank| Rank(((u16::from(rank.0) + 1) % u16::from(self.ranks)) as u8);
        let times = self.ranks().map(|rank| self.time(rank, next(rank), bytes));
        times.max().filter(|_| self.ranks > 1).unwrap_or(0)
    }

    fn ranks_or_one(&self) -> u64 {
        u64::from(self.ranks.max(1))
    }

    fn ranks(&self) -> impl Iterator<Item = Rank> + use<> {
        (0..self.ranks).map(Rank)
    }
}

/// The fastest way for an operation, whatever way it names; of equals the first. Those that have only one
/// way keep it.
pub fn choose(links: &Links, op: &Op) -> How {
    let fastest = |time: &dyn Fn(How) -> u64| {
        let ways = [How::Tree, How::Ring, How::Mesh].map(|how| (time(how), how));
        ways.into_iter().min().map_or(How::Tree, |(_, how)| how)
    };
    match op {
        Op::Broadcast { root, bytes, .. } => {
            fastest(&|how| spread(links, how, *root, *bytes as u64))
        }
        Op::AllGather { parts, .. } => {
            let bytes = parts.iter().map(|part| *part as u64).sum();
            fastest(&|how| gather(links, how, bytes))
        }
        Op::Reduce { root, numbers, .. } => fastest(&|how| {
            let bytes = numbers.element.bytes(numbers.count) as u64;
            let brought = match how {
                How::Tree => 0,
                How::Ring | How::Mesh => links.to_all(*root, bytes / links.ranks_or_one()),
            };
            fold(links, how, numbers) + brought
        }),
        Op::AllReduce { numbers, .. } => fastest(&|how| {
            let bytes = numbers.element.bytes(numbers.count) as u64;
            fold(links, how, numbers) + gather(links, how, bytes)
        }),
        Op::Scatter { .. } | Op::Gather { .. } => How::Mesh,
        Op::Barrier => How::Tree,
    }
}

/// Every slice to its owner. What is folded on the way travels in full width, what is not as it is.
fn fold(links: &Links, how: How, numbers: &Numbers) -> u64 {
    let folded = numbers.count as u64 * 4;
    match how {
        How::Tree => tree(links, folded),
        How::Ring => ring(links, folded),
        How::Mesh => mesh(links, numbers.element.bytes(numbers.count) as u64),
    }
}

/// Every slice from its owner to all.
fn gather(links: &Links, how: How, bytes: u64) -> u64 {
    match how {
        How::Tree => tree(links, bytes),
        How::Ring => ring(links, bytes),
        How::Mesh => mesh(links, bytes),
    }
}

/// All from one rank to all others.
fn spread(links: &Links, how: How, root: Rank, bytes: u64) -> u64 {
    match how {
        How::Tree => tree(links, bytes),
        // Segment follows segment: all bytes once, and one segment for each further step.
        How::Ring => {
            let steps = u64::from(links.ranks.saturating_sub(1));
            let segment = bytes.min(SEGMENT_BYTES as u64);
            let first = links.slowest_step(bytes) + links.slowest_step(segment) * steps;
            first.saturating_sub(links.slowest_step(segment))
        }
        How::Mesh => links.to_all(root, bytes),
    }
}

/// The slowest way from a leaf to the root; a rank hears its children one after another.
fn tree(links: &Links, bytes: u64) -> u64 {
    let mut slowest = vec![0; usize::from(links.ranks)];
    // Children come after their parents.
    for me in links.ranks().collect::<Vec<_>>().into_iter().rev() {
        let view = View { me, ranks: links.ranks };
        let below = slowest.get(usize::from(me.0)).copied().unwrap_or(0);
        let Some(parent) = view.sink(How::Tree, Rank(0)) else { return below };
        let reached = below + links.time(me, parent, bytes);
        if let Some(known) = slowest.get_mut(usize::from(parent.0)) {
            *known = reached.max(*known);
        }
    }
    0
}

/// As many steps as there are others, each a slice over the slowest link.
fn ring(links: &Links, bytes: u64) -> u64 {
    let steps = u64::from(links.ranks.saturating_sub(1));
    links.slowest_step(bytes / links.ranks_or_one()) * steps
}

/// One step: from each a slice to each.
fn mesh(links: &Links, bytes: u64) -> u64 {
    let slice = bytes / links.ranks_or_one();
    links.ranks().map(|from| links.to_all(from, slice)).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collective::{Element, Fold};

    fn even(ranks: u8) -> Links {
        let round_trip = Micros::from_millis(10);
        Links::even(ranks, Speed { round_trip, bytes_per_second: 10_000_000 })
    }

    fn fold(links: &Links, element: Element, count: usize) -> How {
        let numbers = Numbers { element, count, fold: Fold::Sum };
        choose(links, &Op::AllReduce { numbers, how: How::Tree })
    }

    const BAD: Speed = Speed { round_trip: Micros::from_millis(200), bytes_per_second: 100_000 };

    #[test]
    fn good_links_everywhere_make_a_mesh() {
        assert_eq!(fold(&even(8), Element::F32, 1 << 20), How::Mesh);
        assert_eq!(fold(&even(8), Element::F16, 1 << 20), How::Mesh);
    }

    #[test]
    fn one_bad_link_between_strangers_makes_a_ring_of_much_and_a_tree_of_little() {
        let mut links = even(8);
        links.set(Rank(3), Rank(5), BAD);
        assert_eq!(fold(&links, Element::F32, 4 << 20), How::Ring);
        assert_eq!(fold(&links, Element::F32, 16), How::Tree);
    }

    #[test]
    fn a_bad_link_in_the_ring_is_gone_around() {
        let mut links = even(8);
        links.set(Rank(3), Rank(4), BAD);
        assert_eq!(fold(&links, Element::F32, 1 << 20), How::Tree);
    }

    #[test]
    fn little_is_told_to_each_and_much_passed_on() {
        let (root, how) = (Rank(0), How::Tree);
        let told = |bytes| choose(&even(8), &Op::Broadcast { root, bytes, how });
        assert_eq!((told(100), told(32 << 20)), (How::Mesh, How::Ring));
    }

    #[test]
    fn alone_and_in_pairs_there_is_an_answer() {
        for ranks in 1..3 {
            let links = Links::new(ranks);
            fold(&links, Element::Q8, 1000);
            let numbers = Numbers { element: Element::F32, count: 5, fold: Fold::Most };
            let (root, how, parts) = (Rank(0), How::Ring, vec![1; ranks.into()]);
            choose(&links, &Op::Broadcast { root, bytes: 5, how });
            choose(&links, &Op::Reduce { root, numbers, how });
            choose(&links, &Op::AllGather { parts, how });
            assert_eq!(choose(&links, &Op::Barrier), How::Tree);
        }
    }
}
