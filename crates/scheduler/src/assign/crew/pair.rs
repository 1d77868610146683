//! Crews of two for applications: one node asks to talk to another. The coordinator knows no more of it than
//! who talks to whom.

use alloc::boxed::Box;
use alloc::vec::Vec;
use shoal_protocol::limit::MAX_CREWS_PER_NODE;
use shoal_protocol::{CrewId, CrewTask, CrewTold, Enlist, Epoch, MemberInfo, NodeId, ToNode};

use crate::Output;
use crate::state::Scheduler;

/// Numbers of pairs begin here, far above any job's, and still fit a JavaScript number.
const FIRST_PAIR: u64 = 1 << 40;
/// Bits left for counting within one life of the coordinator.
const COUNT_BITS: u32 = 20;
/// Pairs at a time: each costs a route in the relay.
const MAX_PAIRS: usize = 10_000;

/// Two nodes that talk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pair {
    pub(crate) nodes: [NodeId; 2],
}

impl Scheduler {
    pub(super) fn meet(&mut self, node: NodeId, with: NodeId) {
        let members = [node, with].map(|node| self.member_info(node));
        let talking = |who: NodeId| self.pairs.values().filter(|p| p.nodes.contains(&who)).count();
        let room = [node, with].iter().all(|node| talking(*node) < MAX_CREWS_PER_NODE);
        let known = self
            .pairs
            .iter()
            .find(|(_, pair)| pair.nodes.contains(&node) && pair.nodes.contains(&with));
        let known = known.map(|(crew, _)| *crew);
        let room = known.is_some() || room && self.pairs.len() < MAX_PAIRS;
        let ([Some(first), Some(second)], true, true) = (members, node != with, room) else {
            if let Some(conn) = self.conn_of(node) {
                let say = CrewTold::NotMet { with };
                self.send(conn, ToNode::ToCrew { crew: CrewId(0), say });
            }
            return;
        };
        let crew = known.unwrap_or_else(|| {
            self.last_pair += 1;
            CrewId(FIRST_PAIR + (u64::from(self.life) << COUNT_BITS) + self.last_pair)
        });
        self.pairs.insert(crew, Pair { nodes: [node, with] });
        let epoch = Epoch(1);
        let routed = [node, with].into_iter().filter_map(|n| Some((n, self.conn_of(n)?)));
        self.outputs.push_back(Output::Route { crew, epoch, members: routed.collect() });
        for (rank, member) in [node, with].into_iter().enumerate() {
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

    pub(super) fn member_info(&self, node: NodeId) -> Option<MemberInfo> {
        let peer = self.peers.get(&node)?;
        let (key, proof) = peer.links?;
        Some(MemberInfo { node, identity: peer.identity, key, proof })
    }

    /// A node is gone: whoever talked to it hears so.
    pub(crate) fn part(&mut self, node: NodeId) {
        let over = self.pairs.iter().filter(|(_, pair)| pair.nodes.contains(&node));
        let over: Vec<_> = over.map(|(crew, pair)| (*crew, *pair)).collect();
        for (crew, pair) in over {
            self.pairs.remove(&crew);
            self.outputs.push_back(Output::Route { crew, epoch: Epoch(1), members: Vec::new() });
            let other = pair.nodes.into_iter().find(|other| *other != node);
            if let Some(conn) = other.and_then(|other| self.conn_of(other)) {
                self.send(conn, ToNode::Dismiss { crew });
            }
        }
    }
}
