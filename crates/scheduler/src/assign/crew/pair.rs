//! Crews of two for applications: one node asks to talk to another. The coordinator knows no more of it than
//! who talks to whom.

use alloc::boxed::Box;
use alloc::vec::Vec;
use shoal_protocol::limit::MAX_CREWS_PER_NODE;
use shoal_protocol::{
    CrewId, CrewSay, CrewTask, CrewTold, Enlist, Epoch, MemberInfo, Micros, NodeId, Time, ToNode,
};

use crate::Output;
use crate::state::Scheduler;

/// Numbers of pairs begin here, far above any job's, and still fit a JavaScript number.
const FIRST_PAIR: u64 = 1 << 40;
/// Bits left for counting within one life of the coordinator.
const COUNT_BITS: u32 = 20;
/// Pairs at a time: each costs a route in the relay.
const MAX_PAIRS: usize = 10_000;

/// A pair that talks already is not called anew more often: each call costs two signatures.
const MEET_EVERY: Micros = Micros::from_secs(1);

/// Two nodes that talk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pair {
    /// The lower number first: by rank.
    pub(crate) nodes: [NodeId; 2],
    /// Raised when they meet again, with new tokens.
    epoch: Epoch,
    met: Time,
}

impl Scheduler {
    pub(super) fn meet(&mut self, now: Time, node: NodeId, with: NodeId) {
        let nodes = [node.min(with), node.max(with)];
        let known = self.pairs.iter().find(|(_, pair)| pair.nodes == nodes);
        let known = known.map(|(crew, pair)| (*crew, *pair));
        if known.is_some_and(|(_, pair)| now < pair.met + MEET_EVERY) {
            return;
        }
        let members = nodes.map(|node| self.member_info(node));
        let talking = |who: NodeId| self.pairs.values().filter(|p| p.nodes.contains(&who)).count();
        let room = nodes.iter().all(|node| talking(*node) < MAX_CREWS_PER_NODE);
        let room = known.is_some() || room && self.pairs.len() < MAX_PAIRS;
        let ([Some(first), Some(second)], true, true) = (members, node != with, room) else {
            return self.not_met(node, with);
        };
        let (crew, epoch) = match known {
            Some((crew, pair)) => (crew, Epoch(pair.epoch.0 + 1)),
            None => {
                self.last_pair += 1;
                let number = FIRST_PAIR + (u64::from(self.life) << COUNT_BITS) + self.last_pair;
                (CrewId(number), Epoch(1))
            }
        };
        self.pairs.insert(crew, Pair { nodes, epoch, met: now });
        let routed = nodes.into_iter().filter_map(|n| Some((n, self.conn_of(n)?)));
        self.outputs.push_back(Output::Route { crew, epoch, members: routed.collect() });
        for (rank, member) in nodes.into_iter().enumerate() {
            let Some(conn) = self.conn_of(member) else { continue };
            let enlist = Enlist {
                crew,
                epoch,
                rank: rank as u8,
                members: [first, second].into(),
                token: Vec::new(),
                ice: Vec::new(),
                task: CrewTask::Talk,
            };
            self.send(conn, ToNode::Enlist(Box::new(enlist)));
        }
    }

    fn not_met(&mut self, node: NodeId, with: NodeId) {
        if let Some(conn) = self.conn_of(node) {
            let say = CrewTold::NotMet { with };
            self.send(conn, ToNode::ToCrew { crew: CrewId(0), say });
        }
    }

    /// One of two who talk cannot, does not want to any more, or cannot bear the other.
    pub(super) fn pair_said(&mut self, node: NodeId, crew: CrewId, say: &CrewSay) {
        let Some(pair) = self.pairs.get(&crew).filter(|pair| pair.nodes.contains(&node)) else {
            return;
        };
        let other = pair.nodes.into_iter().find(|other| *other != node);
        match say {
            CrewSay::Failed { .. } => {
                self.end_pair(crew);
                if let Some(other) = other {
                    self.not_met(other, node);
                }
            }
            CrewSay::Bad { .. } | CrewSay::Leave => self.end_pair(crew),
            CrewSay::Auditioned { .. }
            | CrewSay::Progress { .. }
            | CrewSay::Kept { .. }
            | CrewSay::Slow { .. }
            | CrewSay::Meet { .. }
            | CrewSay::Poked { .. } => {}
        }
    }

    fn end_pair(&mut self, crew: CrewId) {
        let Some(pair) = self.pairs.remove(&crew) else { return };
        let (epoch, members) = (pair.epoch, Vec::new());
        self.outputs.push_back(Output::Route { crew, epoch, members });
        for conn in pair.nodes.map(|node| self.conn_of(node)).into_iter().flatten() {
            self.send(conn, ToNode::Dismiss { crew });
        }
    }

    pub(super) fn member_info(&self, node: NodeId) -> Option<MemberInfo> {
        let peer = self.peers.get(&node)?;
        let (key, proof) = peer.links?;
        Some(MemberInfo { node, identity: peer.identity, key, proof })
    }

    /// A node is gone: whoever talked to it hears so.
    pub(crate) fn part(&mut self, node: NodeId) {
        let over = self.pairs.iter().filter(|(_, pair)| pair.nodes.contains(&node));
        let over: Vec<_> = over.map(|(crew, _)| *crew).collect();
        for crew in over {
            self.end_pair(crew);
        }
    }
}
