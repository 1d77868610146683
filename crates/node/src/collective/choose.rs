//! Which way is fastest, from what was measured of the links. All ranks must be given the same measurements,
//! as the coordinator tells them, or they would choose differently.

use alloc::vec;
use alloc::vec::Vec;
use shoal_protocol::Micros;

use super::number::Element;
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

    fn ranks(&self) -> impl Iterator<Item = Rank> + use<> {
        (0..self.ranks).map(Rank)
    }
}

/// The fastest way to fold this many numbers for all, the first of equals.
pub fn choose(links: &Links, element: Element, count: usize) -> How {
    let bytes = element.bytes(count) as u64;
    // What is folded travels in full width; what is not, as it is.
    let folded = count as u64 * 4;
    let ways = [How::Tree, How::Ring, How::Mesh];
    let times = ways.map(|how| match how {
        How::Tree => (tree(links, folded) + tree(links, bytes), how),
        How::Ring => (ring(links, folded) + ring(links, bytes), how),
        How::Mesh => (2 * mesh(links, bytes), how),
    });
    times.into_iter().min().map_or(How::Tree, |(_, how)| how)
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
    let slice = bytes / u64::from(links.ranks.max(1));
    let next = |rank: Rank| Rank(((u16::from(rank.0) + 1) % u16::from(links.ranks)) as u8);
    let slowest = links.ranks().map(|rank| links.time(rank, next(rank), slice)).max();
    slowest.unwrap_or(0) * u64::from(links.ranks.saturating_sub(1))
}

/// One step: a slice to each, as fast as the worst link and as a rank's own connection.
fn mesh(links: &Links, bytes: u64) -> u64 {
    let slice = bytes / u64::from(links.ranks.max(1));
    let one = |from: Rank| {
        let others = || links.ranks().filter(move |to| *to != from);
        let slowest = others().map(|to| links.time(from, to, slice)).max().unwrap_or(0);
        let nearest = others().map(|to| links.time(from, to, 0)).min().unwrap_or(0);
        let all = slice * others().count() as u64;
        slowest.max(nearest + all.saturating_mul(1_000_000) / links.best(from))
    };
    links.ranks().map(one).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn even(ranks: u8) -> Links {
        let round_trip = Micros::from_millis(10);
        Links::even(ranks, Speed { round_trip, bytes_per_second: 10_000_000 })
    }

    #[test]
    fn good_links_everywhere_make_a_mesh() {
        assert_eq!(choose(&even(8), Element::F32, 1 << 20), How::Mesh);
        assert_eq!(choose(&even(8), Element::F16, 1 << 20), How::Mesh);
    }

    #[test]
    fn one_bad_link_between_strangers_makes_a_ring_of_much_and_a_tree_of_little() {
        let mut links = even(8);
        let bad = Speed { round_trip: Micros::from_millis(200), bytes_per_second: 100_000 };
        links.set(Rank(3), Rank(5), bad);
        assert_eq!(choose(&links, Element::F32, 4 << 20), How::Ring);
        assert_eq!(choose(&links, Element::F32, 16), How::Tree);
    }

    #[test]
    fn a_bad_link_in_the_ring_is_gone_around() {
        let mut links = even(8);
        let bad = Speed { round_trip: Micros::from_millis(200), bytes_per_second: 100_000 };
        links.set(Rank(3), Rank(4), bad);
        assert_eq!(choose(&links, Element::F32, 1 << 20), How::Tree);
    }

    #[test]
    fn alone_and_in_pairs_there_is_an_answer() {
        for ranks in 1..3 {
            choose(&Links::new(ranks), Element::Q8, 1000);
        }
    }
}
