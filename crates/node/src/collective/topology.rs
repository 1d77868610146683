//! Who sends to whom. Everything follows from the number of ranks and one's own, so that nobody has to agree on it.

use alloc::vec;
use alloc::vec::Vec;

/// A member's place in its crew, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank(pub u8);

/// The way numbers go around. All ranks must choose the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum How {
    /// Few steps, whole data at each: for little data.
    Tree,
    /// Each speaks to its neighbour only, and every byte crosses each link once: for much data.
    Ring,
    /// Each speaks to all, a part to each: two steps, where all links are good. Sums are in the order of ranks.
    Mesh,
}

/// The members as one of them sees them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct View {
    pub(super) me: Rank,
    pub(super) ranks: u8,
}

impl View {
    /// Whose numbers this rank folds for the slice of `owner`, in this order.
    pub(super) fn sources(self, how: How, owner: Rank) -> Vec<Rank> {
        self.sources_of(how, owner, self.me)
    }

    /// Whether a rank passes on its own numbers and nobody else's.
    pub(super) fn is_leaf(self, how: How, owner: Rank, rank: Rank) -> bool {
        self.sources_of(how, owner, rank).len() == 1
    }

    fn sources_of(self, how: How, owner: Rank, rank: Rank) -> Vec<Rank> {
        match how {
            How::Tree => {
                let children = self.children(self.away(owner, rank));
                let children = children.into_iter().map(|away| self.at(owner, away));
                [rank].into_iter().chain(children).collect()
            }
            // The sum begins behind its owner and ends at it.
            How::Ring if self.away(owner, rank) == 1 || self.ranks == 1 => vec![rank],
            How::Ring => vec![self.before(rank), rank],
            How::Mesh if rank == owner => (0..self.ranks).map(Rank).collect(),
            How::Mesh => vec![rank],
        }
    }

    /// Who gets what this rank folded; nobody if it owns the slice.
    pub(super) fn sink(self, how: How, owner: Rank) -> Option<Rank> {
        let next = match how {
            How::Tree => self.at(owner, parent(self.away(owner, self.me))),
            How::Ring => self.after(self.me),
            How::Mesh => owner,
        };
        (self.me != owner).then_some(next)
    }

    /// Who gets the finished slice from this rank.
    pub(super) fn targets(self, how: How, owner: Rank) -> Vec<Rank> {
        let away = self.away(owner, self.me);
        match how {
            How::Tree => {
                // The farthest branch first: it has the most steps before it.
                let children = self.children(away).into_iter().rev();
                children.map(|away| self.at(owner, away)).collect()
            }
            How::Ring if away + 1 < self.ranks => vec![self.after(self.me)],
            How::Ring => Vec::new(),
            // Each begins with another, or the first would hear all at once.
            How::Mesh if away == 0 => (1..self.ranks).map(|step| self.at(owner, step)).collect(),
            How::Mesh => Vec::new(),
        }
    }

    /// Who sends the finished slice to this rank; nobody if it owns it.
    pub(super) fn origin(self, how: How, owner: Rank) -> Option<Rank> {
        let from = match how {
            How::Tree => self.at(owner, parent(self.away(owner, self.me))),
            How::Ring => self.before(self.me),
            How::Mesh => owner,
        };
        (self.me != owner).then_some(from)
    }

    /// How many steps around the ring from `owner` to `rank`.
    fn away(self, owner: Rank, rank: Rank) -> u8 {
        let (owner, rank, ranks) = (u16::from(owner.0), u16::from(rank.0), u16::from(self.ranks));
        ((rank + ranks - owner) % ranks) as u8
    }

    fn at(self, owner: Rank, away: u8) -> Rank {
        Rank(((u16::from(owner.0) + u16::from(away)) % u16::from(self.ranks)) as u8)
    }

    fn after(self, rank: Rank) -> Rank {
        self.at(rank, 1 % self.ranks)
    }

    fn before(self, rank: Rank) -> Rank {
        self.at(rank, self.ranks - 1)
    }

    /// Of a binomial tree whose root is 0: a power of two farther, below one's own lowest.
    fn children(self, away: u8) -> Vec<u8> {
        let powers = (0..8).map(|power| 1u8 << power);
        let mine = powers.take_while(|step| away == 0 || *step < away & away.wrapping_neg());
        mine.filter_map(|step| away.checked_add(step).filter(|child| *child < self.ranks)).collect()
    }
}

fn parent(away: u8) -> u8 {
    away & away.wrapping_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [How; 3] = [How::Tree, How::Ring, How::Mesh];

    fn views(ranks: u8) -> impl Iterator<Item = View> {
        (0..ranks).map(move |me| View { me: Rank(me), ranks })
    }

    fn every_case() -> impl Iterator<Item = (u8, How, Rank)> {
        let cases = (1..=17).chain([33, 255]).flat_map(|ranks| ALL.map(|how| (ranks, how)));
        cases.flat_map(|(ranks, how)| {
            let owners = (0..ranks).filter(move |owner| ranks < 20 || owner % 100 == 0);
            owners.map(move |owner| (ranks, how, Rank(owner)))
        })
    }

    #[test]
    fn every_rank_is_folded_once_and_by_whom_it_sends_to() {
        for (ranks, how, owner) in every_case() {
            for view in views(ranks) {
                let sources = view.sources(how, owner);
                assert!(sources.contains(&view.me));
                let Some(sink) = view.sink(how, owner) else {
                    assert_eq!(view.me, owner);
                    continue;
                };
                let takers = views(ranks).filter(|taker| {
                    taker.me != view.me && taker.sources(how, owner).contains(&view.me)
                });
                assert_eq!(takers.map(|taker| taker.me).collect::<Vec<_>>(), [sink]);
            }
        }
    }

    #[test]
    fn every_rank_gets_the_result_once_and_from_whom_it_expects() {
        for (ranks, how, owner) in every_case() {
            for view in views(ranks) {
                let givers =
                    views(ranks).filter(|giver| giver.targets(how, owner).contains(&view.me));
                let givers: Vec<_> = givers.map(|giver| giver.me).collect();
                assert_eq!(givers, Vec::from_iter(view.origin(how, owner)), "{how:?} of {ranks}");
            }
        }
    }

    #[test]
    fn a_tree_is_as_deep_as_the_logarithm() {
        for ranks in 1..=255u8 {
            let deepest = (0..ranks).map(u8::count_ones).max();
            assert!(deepest <= Some(8 - (ranks - 1).leading_zeros()));
        }
    }
}
