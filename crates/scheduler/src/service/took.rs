//! How long answers really take: of one node that keeps all of a service, and of crews. A request counts where it was the
//! only one at work there, because others would make it look slow.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use shoal_protocol::{Micros, NodeId, Time};

use super::Service;
use super::call::{Asked, By, Call};

/// An answer of fewer steps says little about each.
const ENOUGH_STEPS: u64 = 8;
/// The last answers count for most: what came before them has three parts of four.
const OLD: u64 = 3;
/// Nodes come and go; of so many placements is remembered what they took.
const MOST_KEPT: usize = 64;

/// What was measured of one placement of a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Took {
    /// For a request, or for each step of an answer where requests go round.
    pub each: Micros,
    pub answers: u64,
}

/// By the nodes that answered, in order of rank.
#[derive(Default)]
pub(super) struct Measured(BTreeMap<Vec<NodeId>, Took>);

impl Measured {
    pub(super) fn of(&self, nodes: &[NodeId]) -> Option<Took> {
        self.0.get(nodes).copied()
    }

    /// They have other parts of it now.
    pub(super) fn forget(&mut self, nodes: &[NodeId]) {
        self.0.remove(nodes);
    }

    fn note(&mut self, nodes: Vec<NodeId>, each: Micros) {
        if self.0.len() >= MOST_KEPT && !self.0.contains_key(&nodes) {
            self.0.pop_first();
        }
        let took = self.0.entry(nodes).or_insert(Took { each, answers: 0 });
        let rest = OLD.min(took.answers);
        took.each = Micros((took.each.0.saturating_mul(rest) + each.0) / (rest + 1));
        took.answers += 1;
    }
}

impl Call {
    /// A part of its answer came.
    pub(super) fn hears(&mut self, now: Time, steps: Option<u64>) {
        if let (Some(at), Some(steps)) = (&mut self.at, steps) {
            at.heard.get_or_insert((now, steps));
        }
    }
}

impl Service {
    /// An answer is complete.
    pub(super) fn note_answer(&mut self, now: Time, call: &Call, asked: Asked) {
        let steps = self.spec.work.steps(&call.answer);
        let each = match (steps, asked.heard) {
            (None, _) => now - asked.since,
            (Some(steps), Some((since, before))) if steps >= before + ENOUGH_STEPS => {
                Micros((now - since).0 / (steps - before))
            }
            (Some(_), _) => return,
        };
        let nodes = match (asked.by, &self.crew) {
            (By::Node(node), _) => {
                let alone = self.replicas.get(&node).is_some_and(|replica| replica.calls == 1);
                alone.then(|| Vec::from([node]))
            }
            (By::Crew, Some(crew)) => (crew.calls == 1).then(|| crew.nodes()),
            (By::Crew, None) => None,
        };
        if let Some(nodes) = nodes {
            self.took.note(nodes, each);
        }
    }

    /// Work that a node does of it in a second, by what was measured: as a member of a crew, or alone.
    pub(super) fn rate(&self, node: NodeId) -> Option<u64> {
        let alone = || {
            let problem = &self.plan.as_ref()?.problem;
            let work = problem.work(shoal_protocol::Span::new(0, problem.shares()));
            let took = self.took.of(&[node])?;
            let rate = u128::from(work) * 1_000_000 / u128::from(took.each.0.max(1));
            Some(u64::try_from(rate).unwrap_or(u64::MAX).max(1))
        };
        self.rates.get(&node).copied().or_else(alone)
    }
}
