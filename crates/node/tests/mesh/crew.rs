//! What the coordinator does for a crew: it enlists, signs and mints. And what can be asked about the crew.

use ed25519_dalek::{Signer as _, SigningKey};
use shoal_node::mesh::*;
use shoal_node::session::RadioDo;
use shoal_protocol::sign::link_statement;
use shoal_protocol::*;
use shoal_seal::{Claims, Keys, Rights, mint};

use crate::world::World;

pub(crate) const CREW: CrewId = CrewId(7);
/// When the meshes' clocks begin, in Unix time.
pub(crate) const UNIX: u64 = 1_700_000_000_000_000;

impl World {
    /// The next epoch, for all members.
    pub(crate) fn enlist(&mut self) {
        self.epoch += 1;
        for node in self.members.clone() {
            self.enlist_one(node);
        }
    }

    pub(crate) fn enlist_one(&mut self, node: NodeId) {
        let enlist = self.enlistment(node);
        self.give(node, MeshInput::Enlist(&enlist));
    }

    pub(crate) fn enlistment(&self, node: NodeId) -> Enlist {
        let rank = self.members.iter().position(|member| *member == node).unwrap_or(0) as u8;
        Enlist {
            crew: CREW,
            epoch: Epoch(self.epoch),
            rank,
            members: self.members.iter().map(|member| self.info(*member)).collect(),
            token: self.token(node, |claims| claims),
            ice: Vec::new(),
            task: CrewTask::Talk,
        }
    }

    pub(crate) fn info(&self, node: NodeId) -> MemberInfo {
        let signer = SigningKey::from_bytes(&[node.0 as u8 + 100; 32]);
        let seed = self.nodes.get(&node).map_or(node.0 as u8, |node| node.key_seed);
        let key = Keys::new([seed; 32]).public();
        let proof = signer.sign(&link_statement(&coordinator(), &key));
        let identity = Identity(signer.verifying_key().to_bytes());
        MemberInfo { node, identity, key, proof: Signature::new(&proof.to_bytes()) }
    }

    /// What the coordinator mints for a node, changed for a test.
    pub(crate) fn token(&self, node: NodeId, change: impl Fn(Claims) -> Claims) -> Vec<u8> {
        let known = self.nodes.get(&node);
        let rights = known.map_or(Rights::WRITE, |node| node.rights);
        let buffers = known.map_or((1, 15), |node| node.buffers);
        let token_lives = known.map_or(Micros::from_secs(86_400), |node| node.token_lives);
        let claims = change(Claims {
            crew: CREW,
            epoch: Epoch(self.epoch),
            holder: node,
            buffers,
            rights,
            until: UNIX + token_lives.0,
        });
        let sign = |statement: &[u8]| Signature::new(&root().sign(statement).to_bytes());
        mint(sign, &claims, [node.0 as u8; 32])
    }

    pub(crate) fn mesh(&self, node: u64) -> &Mesh {
        &self.nodes[&NodeId(node)].mesh
    }

    /// Whether all members of the crew can talk to all others.
    pub(crate) fn all_open(&self) -> bool {
        let open = |one: &NodeId, two: &NodeId| one == two || self.nodes[one].mesh.is_open(*two);
        self.members.iter().all(|one| self.members.iter().all(|two| open(one, two)))
    }

    /// What a node heard of another on a channel.
    pub(crate) fn got(&self, node: u64, from: u64, channel: u16) -> Vec<Vec<u8>> {
        let got = self.nodes[&NodeId(node)].got.iter();
        let got = got.filter(|(by, on, _)| (*by, *on) == (NodeId(from), channel));
        got.map(|(_, _, bytes)| bytes.clone()).collect()
    }

    /// Why a node said that another is bad.
    pub(crate) fn bad(&self, node: u64, other: u64) -> Vec<String> {
        let said = self.nodes[&NodeId(node)].said.iter().filter_map(|said| match said {
            MeshOutput::Bad { node, why } if *node == NodeId(other) => Some(why.clone()),
            _ => None,
        });
        said.collect()
    }

    pub(crate) fn nobody_is_bad(&self) {
        for (node, state) in &self.nodes {
            let bad = state.said.iter().find(|said| matches!(said, MeshOutput::Bad { .. }));
            assert_eq!(bad, None, "said by node {node}");
        }
    }

    pub(crate) fn using(&self, node: u64, peer: u64) -> Option<Path> {
        self.nodes[&NodeId(node)].said.iter().rev().find_map(|said| match said {
            MeshOutput::Using(with, path) if *with == NodeId(peer) => Some(*path),
            _ => None,
        })
    }

    pub(crate) fn dials(&self, node: u64) -> usize {
        let dial = |said: &&MeshOutput| matches!(said, MeshOutput::Radio(_, RadioDo::Dial));
        self.nodes[&NodeId(node)].said.iter().filter(dial).count()
    }
}

pub(crate) fn root() -> SigningKey {
    SigningKey::from_bytes(&[200; 32])
}

pub(crate) fn coordinator() -> PublicKey {
    PublicKey(root().verifying_key().to_bytes())
}
