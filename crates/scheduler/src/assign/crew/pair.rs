//! Crews of two: applications that talk, because one asked for the other, and nodes that give each other blobs.
//! Of talk the coordinator knows no more than who talks to whom.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use shoal_protocol::limit::MAX_CREWS_PER_NODE;
use shoal_protocol::{
    CrewId, CrewSay, CrewTask, CrewTold, Enlist, Epoch, MemberInfo, Micros, NodeId, Time, ToNode,
};

use crate::Output;
use crate::state::Scheduler;

/// Pairs at a time: each costs a route in the relay.
const MAX_PAIRS: usize = 10_000;

/// A pair that talks already is not called anew more often: each call costs two signatures.
const MEET_EVERY: Micros = Micros::from_secs(1);

/// Two nodes that talk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pair {
    /// The lower number first: by rank.
    nodes: [NodeId; 2],
    what: PairTask,
    /// Raised when they meet again, with new tokens.
    epoch: Epoch,
    met: Time,
}

/// All pairs.
#[derive(Default)]
pub(crate) struct Pairs(BTreeMap<CrewId, Pair>);

impl Pairs {
    pub(crate) fn contains_key(&self, crew: &CrewId) -> bool {
        self.0.contains_key(crew)
    }

    /// Those that share blobs.
    pub(crate) fn sharing(&self) -> impl Iterator<Item = &CrewId> {
        let pairs = self.0.iter().filter(|(_, pair)| pair.what == PairTask::Swarm);
        pairs.map(|(crew, _)| crew)
    }
}

/// What two nodes have to do with each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PairTask {
    Talk,
    Swarm,
}

impl PairTask {
    fn task(self) -> CrewTask {
        match self {
            PairTask::Talk => CrewTask::Talk,
            PairTask::Swarm => CrewTask::Swarm,
        }
    }
}

impl Scheduler {
    pub(super) fn meet(&mut self, now: Time, node: NodeId, with: NodeId) {
        let nodes = [node.min(with), node.max(with)];
        let mut talks = self.pairs.0.iter().filter(|(_, pair)| pair.what == PairTask::Talk);
        let known = talks.find(|(_, pair)| pair.nodes == nodes);
        let known = known.map(|(crew, pair)| (*crew, *pair));
        if known.is_some_and(|(_, pair)| now < pair.met + MEET_EVERY) {
            return;
        }
        let talks = || self.pairs.0.values().filter(|pair| pair.what == PairTask::Talk);
        let talking = |who: NodeId| talks().filter(|pair| pair.nodes.contains(&who)).count();
        let room = nodes.iter().all(|node| talking(*node) < MAX_CREWS_PER_NODE);
        let room = known.is_some() || room && self.pairs.0.len() < MAX_PAIRS;
        if node == with || !room || self.pair_up(now, nodes, PairTask::Talk, known).is_none() {
            self.not_met(node, with);
        }
    }

    /// Two nodes that are to give each other blobs; none if one of them has no links.
    pub(crate) fn pair_to_share(&mut self, now: Time, nodes: [NodeId; 2]) -> Option<CrewId> {
        if self.pairs.0.len() >= MAX_PAIRS {
            return None;
        }
        self.pair_up(now, nodes, PairTask::Swarm, None)
    }

    /// Calls two nodes together, anew if they are a pair already.
    fn pair_up(
        &mut self,
        now: Time,
        nodes: [NodeId; 2],
        what: PairTask,
        known: Option<(CrewId, Pair)>,
    ) -> Option<CrewId> {
        let members = [self.member_info(nodes[0])?, self.member_info(nodes[1])?];
        let (crew, epoch) = match known {
            Some((crew, pair)) => (crew, Epoch(pair.epoch.0 + 1)),
            None => (self.next_crew(), Epoch(1)),
        };
        self.pairs.0.insert(crew, Pair { nodes, what, epoch, met: now });
        let routed = nodes.into_iter().filter_map(|n| Some((n, self.conn_of(n)?)));
        self.outputs.push_back(Output::Route { crew, epoch, members: routed.collect() });
        for (rank, member) in nodes.into_iter().enumerate() {
            let Some(conn) = self.conn_of(member) else { continue };
            let enlist = Enlist {
                crew,
                epoch,
                rank: rank as u8,
                members: members.into(),
                token: Vec::new(),
                ice: Vec::new(),
                task: what.task(),
            };
            self.send(conn, ToNode::Enlist(Box::new(enlist)));
        }
        Some(crew)
    }

    fn not_met(&mut self, node: NodeId, with: NodeId) {
        if let Some(conn) = self.conn_of(node) {
            let say = CrewTold::NotMet { with };
            self.send(conn, ToNode::ToCrew { crew: CrewId(0), say });
        }
    }

    /// One of two who talk cannot, does not want to any more, or cannot bear the other.
    pub(super) fn pair_said(&mut self, now: Time, node: NodeId, crew: CrewId, say: &CrewSay) {
        let Some(pair) = self.pairs.0.get(&crew).filter(|pair| pair.nodes.contains(&node)) else {
            return;
        };
        let (what, nodes) = (pair.what, pair.nodes);
        let other = nodes.into_iter().find(|other| *other != node);
        match say {
            CrewSay::Failed { .. } | CrewSay::Bad { .. } | CrewSay::Leave
                if what == PairTask::Swarm =>
            {
                self.part_for_long(now, nodes);
                self.end_pair(crew);
                self.deal_between(now, nodes);
            }
            CrewSay::Failed { .. } => {
                self.end_pair(crew);
                if let Some(other) = other {
                    self.not_met(other, node);
                }
            }
            CrewSay::Bad { .. } | CrewSay::Leave => self.end_pair(crew),
            CrewSay::Auditioned { .. }
            | CrewSay::Progress { .. }
            | CrewSay::Checkpoint { .. }
            | CrewSay::Slow { .. }
            | CrewSay::Meet { .. }
            | CrewSay::Poked { .. }
            | CrewSay::Total { .. }
            | CrewSay::Loaded
            | CrewSay::Staged(_) => {}
        }
    }

    pub(crate) fn end_pair(&mut self, crew: CrewId) {
        let Some(pair) = self.pairs.0.remove(&crew) else { return };
        if pair.what == PairTask::Swarm {
            self.unlinked(crew, pair.nodes);
        }
        let (epoch, members) = (pair.epoch, Vec::new());
        self.outputs.push_back(Output::Route { crew, epoch, members });
        for conn in pair.nodes.map(|node| self.conn_of(node)).into_iter().flatten() {
            self.send(conn, ToNode::Dismiss { crew });
        }
    }

    pub(crate) fn member_info(&self, node: NodeId) -> Option<MemberInfo> {
        let peer = self.peers.get(&node)?;
        let (key, proof) = peer.links?;
        Some(MemberInfo { node, identity: peer.identity, key, proof })
    }

    /// A node is gone: whoever talked to it hears so.
    pub(crate) fn part(&mut self, node: NodeId) {
        let over = self.pairs.0.iter().filter(|(_, pair)| pair.nodes.contains(&node));
        let over: Vec<_> = over.map(|(crew, _)| *crew).collect();
        for crew in over {
            self.end_pair(crew);
        }
    }
}
