//! Placements in which a service can be kept ready, by one node or by several: what each should take, and what it took.

use alloc::vec::Vec;
use shoal_protocol::{JobId, Micros, NodeId, Span, Time};

use super::form::in_turn;
use crate::assign::crew::place::{place, predict};
use crate::service::Service;
use crate::service::took::Took;
use crate::state::Scheduler;

/// More devices than that are worth no line: each further one waits for one more hop.
const MOST_MEMBERS: usize = 8;

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacementView {
    /// By rank, and the parts of each; one node has all of them.
    pub members: Vec<(NodeId, Span)>,
    /// For a request that is alone, or for a step of its answer; unknown where nothing is known of the parts.
    pub predicted: Option<Micros>,
    pub measured: Option<Took>,
    /// It is the one in use, or about to be.
    pub used: bool,
}

impl Scheduler {
    /// One for each number of devices, and those that are in use.
    pub(crate) fn placements_of(&self, now: Time, service: JobId) -> Vec<PlacementView> {
        let Some(of) = self.services.services.get(&service) else { return Vec::new() };
        let kept = of.replicas.keys().copied();
        let problem = of.plan.as_ref().map(|plan| in_turn(&plan.problem));
        let Some(problem) = problem else {
            return kept
                .map(|node| of.placed([(node, Span::new(0, 1))].into(), None, true))
                .collect();
        };
        let candidates = self.crew_candidates(now, service, of);
        let link = |a, b| of.link(a, b);
        let foreseen = |members: &[(NodeId, Span)]| predict(&problem, members, &candidates, &link);
        let room = self.could_keep_alone(now, service);
        let mut whole = candidates.clone();
        whole.retain(|one| room.contains(&one.node));
        let all = Span::new(0, problem.shares());
        let kept = kept.map(|node| Vec::from([(node, all)]));
        let crew = of.crew.iter().map(|crew| crew.shares());
        let mut placements: Vec<_> = kept.chain(crew).collect();
        let used = placements.len();
        for size in 1..=candidates.len().min(MOST_MEMBERS) {
            if placements.iter().take(used).all(|placed| placed.len() != size) {
                let best = match size {
                    1 => place(&problem, &whole, 1, &link),
                    _ => self.best_crew(now, service, of, &problem, size as u8),
                };
                placements.extend(best.map(|best| best.shares));
            }
        }
        let placements = placements.into_iter().enumerate().map(|(at, members)| {
            let predicted = foreseen(&members);
            of.placed(members, predicted, at < used)
        });
        let mut placements: Vec<_> = placements.collect();
        placements.sort_by_key(|placed| placed.members.len());
        placements
    }

    /// For how long one node keeps all of it, because a crew was slower.
    pub(crate) fn stays_alone(&self, now: Time, service: JobId) -> Option<Micros> {
        let until = self.services.services.get(&service)?.alone_until;
        (until > now).then(|| until - now)
    }

    /// Whether it is known how fast a node is at it.
    pub(crate) fn is_measured(&self, service: JobId, node: NodeId) -> bool {
        self.services.services.get(&service).is_some_and(|of| of.rate(node).is_some())
    }

    /// Nodes that have room for all of it, if nothing else of it is on them.
    pub(crate) fn could_keep_alone(&self, now: Time, service: JobId) -> Vec<NodeId> {
        let Some(of) = self.services.services.get(&service) else { return Vec::new() };
        let able = self.peers.values().filter(|peer| self.has_room_alone(now, service, of, peer));
        able.map(|peer| peer.node).collect()
    }
}

impl Service {
    fn placed(
        &self,
        members: Vec<(NodeId, Span)>,
        predicted: Option<Micros>,
        used: bool,
    ) -> PlacementView {
        let nodes: Vec<_> = members.iter().map(|(node, _)| *node).collect();
        PlacementView { measured: self.took.of(&nodes), members, predicted, used }
    }
}
