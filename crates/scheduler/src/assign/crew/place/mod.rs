//! Which nodes make a crew, and which shares each gets: by measured speed, measured links and memory. One node
//! alone if that is faster, and nobody who would only be waited for. The kind says what there is to do
//! ([`CrewProblem`]); for each way in which parts depend on each other there is a solver, in whole numbers.
//!
//! - [`ring`]: equal shares whose neighbours exchange edges
//! - [`chain`]: unequal parts in a fixed order
//! - [`group`]: shares of every step, whose members all tell each other what they made
//! - [`refill`]: others take the places of those who are lost, and nobody else moves

mod chain;
mod group;
mod refill;
mod ring;

pub(crate) use refill::refill;

use alloc::vec::Vec;
use core::cmp::Reverse;
use shoal_kinds::CrewProblem;
use shoal_protocol::{Micros, NodeId, Span};

/// What a link is thought to carry before it was measured, in bytes per second: a data channel of today.
const USUAL_BANDWIDTH: u64 = 20_000_000;

/// A node that showed how fast it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate {
    pub(crate) node: NodeId,
    /// Work per second.
    pub(crate) rate: u64,
    /// Bytes its memory holds.
    pub(crate) memory: u64,
    /// Between it and the coordinator.
    pub(crate) round_trip: Micros,
}

impl Candidate {
    /// Microseconds for so much work.
    fn time(&self, work: u128) -> u64 {
        u64::try_from(work * 1_000_000 / u128::from(self.rate.max(1))).unwrap_or(u64::MAX)
    }
}

/// A measured link between two nodes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measured {
    pub(crate) round_trip: Micros,
    pub(crate) bytes_per_second: Option<u64>,
}

/// What is known of the way from one node to another.
pub(crate) type Links<'a> = dyn Fn(NodeId, NodeId) -> Option<Measured> + 'a;

#[derive(Clone, Debug)]
pub(crate) struct Placement {
    /// By rank.
    pub(crate) shares: Vec<(NodeId, Span)>,
    /// What a step should take.
    pub(crate) step: Micros,
    /// What it would take on the fastest node alone; `None` if it does not fit there.
    pub(crate) alone: Option<Micros>,
    /// Of a ring: members compute their edges apart and first, because the way to their neighbours is long.
    pub(crate) apart: bool,
}

/// The fastest crew there is, or the fastest of `wanted` members. `None` if it fits nobody.
pub(crate) fn place(
    problem: &CrewProblem,
    candidates: &[Candidate],
    wanted: usize,
    link: &Links<'_>,
) -> Option<Placement> {
    let able = candidates.iter().filter(|one| one.rate > 0).copied();
    let mut fastest: Vec<_> = able.collect();
    fastest.sort_by_key(|one| (Reverse(one.rate), one.node));
    let most = problem.shares() / problem.least();
    let most = usize::try_from(most).unwrap_or(usize::MAX).max(1).min(fastest.len());
    let crews = Crews { fastest: &fastest, most, wanted, link };
    match problem {
        CrewProblem::Ring(ring) => ring::place(ring, &crews),
        CrewProblem::Chain(chain) => chain::place(chain, &crews),
        CrewProblem::Group(group) => group::place(group, &crews),
    }
}

/// What a step should take members that have these shares; `None` if one of them is no candidate, and for a ring.
pub(crate) fn predict(
    problem: &CrewProblem,
    shares: &[(NodeId, Span)],
    candidates: &[Candidate],
    link: &Links<'_>,
) -> Option<Micros> {
    let one = |node: NodeId| candidates.iter().find(|one| one.node == node).copied();
    let members: Option<Vec<_>> = shares.iter().map(|(node, _)| one(*node)).collect();
    let members = members?;
    let crews = Crews { fastest: &members, most: members.len(), wanted: members.len(), link };
    let counts: Vec<_> = shares.iter().map(|(_, span)| span.len).collect();
    match problem {
        CrewProblem::Ring(_) => None,
        CrewProblem::Chain(chain) => chain::predict(chain, &counts, &crews).map(Micros),
        CrewProblem::Group(group) => Some(Micros(group::predict(group, &members, &counts, &crews))),
    }
}

/// Whom a solver may choose from.
struct Crews<'a> {
    /// In this order.
    fastest: &'a [Candidate],
    /// More members than this there is no work for.
    most: usize,
    /// 0 for as many as make it fastest.
    wanted: usize,
    link: &'a Links<'a>,
}

impl Crews<'_> {
    fn sizes(&self) -> impl Iterator<Item = usize> + use<> {
        let sizes = if self.wanted > 0 { self.wanted..=self.wanted } else { 1..=self.most };
        let most = self.most;
        sizes.filter(move |size| *size <= most)
    }

    /// Microseconds until so many bytes of one node are at another.
    fn hop(&self, one: &Candidate, other: &Candidate, bytes: u64) -> u64 {
        self.way(one, other).saturating_add(self.sending(one, other, bytes))
    }

    /// The same as far as it was measured: of links that were not, only how long the way is.
    fn known_hop(&self, one: &Candidate, other: &Candidate, bytes: u64) -> u64 {
        match (self.link)(one.node, other.node) {
            Some(Measured { bytes_per_second: Some(_), .. }) => self.hop(one, other, bytes),
            Some(_) | None => self.way(one, other),
        }
    }

    /// Microseconds that the first of them is on its way.
    fn way(&self, one: &Candidate, other: &Candidate) -> u64 {
        match (self.link)(one.node, other.node) {
            Some(known) => known.round_trip.0 / 2,
            None => (one.round_trip.0 + other.round_trip.0) / 2,
        }
    }

    /// Microseconds in which one node is busy sending them.
    fn sending(&self, one: &Candidate, other: &Candidate, bytes: u64) -> u64 {
        let known = (self.link)(one.node, other.node);
        let rate = known.and_then(|known| known.bytes_per_second).unwrap_or(USUAL_BANDWIDTH);
        bytes.saturating_mul(1_000_000) / rate.max(1)
    }
}

/// Members with as many shares each, one after another.
fn in_order(members: &[Candidate], counts: &[u64]) -> Vec<(NodeId, Span)> {
    let mut start = 0;
    let shares = members.iter().zip(counts).map(|(member, count)| {
        let span = Span::new(start, *count);
        start += count;
        (member.node, span)
    });
    shares.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers without a pattern, the same in every run.
    pub(super) struct Draws(pub(super) u64);

    impl Draws {
        pub(super) fn below(&mut self, most: u64) -> u64 {
            self.0 = self
                .0
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) % most.max(1)
        }

        pub(super) fn candidates(&mut self, count: usize, memory: u64) -> Vec<Candidate> {
            let one = |n: usize| Candidate {
                node: NodeId(n as u64 + 1),
                rate: 1_000 * (1 + self.below(40)),
                memory: 1 + self.below(memory),
                round_trip: Micros(self.below(3_000)),
            };
            (0..count).map(one).collect()
        }
    }

    /// Every share is somebody's, nobody has none.
    pub(super) fn is_whole(placed: &Placement, shares: u64) {
        let end = placed.shares.iter().fold(0, |at, (_, span)| {
            assert!(span.start == at && span.len > 0, "{placed:?}");
            span.end()
        });
        assert_eq!(end, shares, "{placed:?}");
    }
}
