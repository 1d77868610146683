//! Everybody who ever joined: numbers, keys, names and numeric classes, whether or not they are here.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use serde::{Deserialize, Serialize};
use shoal_protocol::limit::MAX_NODES;
use shoal_protocol::{Identity, Micros, NodeId, NodeKind, Time};

use super::Peer;

#[derive(Default)]
pub(crate) struct Register {
    known: BTreeMap<Identity, NodeId>,
    /// Nodes that have done nothing yet: no facts tell of them, and the oldest are forgotten.
    strangers: BTreeMap<NodeId, Identity>,
    last: u64,
    /// Numeric classes of nodes, as last said.
    classes: BTreeMap<NodeId, u64>,
    /// What nodes called themselves when last seen.
    names: BTreeMap<NodeId, String>,
    /// Numbers up to this one are not given again after a restart.
    reserved: u64,
    /// How those that are remembered for good were last seen.
    seen: BTreeMap<NodeId, Seen>,
}

/// A node as it was last seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    pub at: Time,
    pub name: String,
    pub kind: NodeKind,
    pub trusted: bool,
    /// Units of its that counted, ever.
    pub units: u64,
    pub failed: u64,
}

/// Numbers reserved at a time, at least; the more there were, the more. Each reservation is a fact, and whoever joins
/// under new keys again and again must not fill the disk.
const RESERVE: u64 = 8;
/// How often it is written down that a node left which did nothing since.
const NEWS: Micros = Micros::from_secs(60);

/// What must be recorded of a stranger who did something.
pub(crate) struct Introduced {
    pub(crate) identity: Identity,
    pub(crate) class: Option<u64>,
}

impl Register {
    /// The number of whoever has this key; a new one, if nobody knows it.
    pub(crate) fn number(
        &mut self,
        identity: Identity,
        is_here: impl Fn(&NodeId) -> bool,
    ) -> NodeId {
        if let Some(node) = self.known.get(&identity) {
            return *node;
        }
        self.forget_a_stranger(is_here);
        self.last += 1;
        let node = NodeId(self.last);
        self.known.insert(identity, node);
        self.strangers.insert(node, identity);
        node
    }

    /// Strangers are remembered for a while, so that a tab is the same node again, but not without bound.
    fn forget_a_stranger(&mut self, is_here: impl Fn(&NodeId) -> bool) {
        if self.strangers.len() < MAX_NODES {
            return;
        }
        let mut gone = self.strangers.keys().filter(|node| !is_here(node));
        if let Some(node) = gone.next().copied()
            && let Some(identity) = self.strangers.remove(&node)
        {
            self.known.remove(&identity);
            self.names.remove(&node);
            self.classes.remove(&node);
        }
    }

    /// Replayed: this node is remembered for good.
    pub(crate) fn recall(&mut self, node: NodeId, identity: Identity) {
        self.known.insert(identity, node);
        self.recall_numbered(node);
    }

    pub(crate) fn recall_numbered(&mut self, node: NodeId) {
        self.last = self.last.max(node.0);
        self.reserved = self.reserved.max(node.0);
    }

    pub(crate) fn recall_seen(&mut self, node: NodeId, seen: Seen) {
        self.names.insert(node, seen.name.clone());
        self.seen.insert(node, seen);
    }

    /// The number up to which more must be reserved, if those that are do not suffice any more.
    pub(crate) fn reserve(&mut self) -> Option<NodeId> {
        if self.last <= self.reserved {
            return None;
        }
        self.reserved = (self.last + self.last / RESERVE).next_multiple_of(RESERVE);
        Some(NodeId(self.reserved))
    }

    /// A unit of this node counts.
    pub(crate) fn count_unit(&mut self, node: NodeId) {
        if let Some(seen) = self.seen.get_mut(&node) {
            seen.units += 1;
        }
    }

    /// How a node is remembered from now on, with what it failed since it came. Nothing if it is a stranger, or if
    /// this is no news.
    pub(crate) fn see(&mut self, at: Time, peer: &Peer, failed: u64) -> Option<&Seen> {
        let node = peer.node;
        if self.is_stranger(node) {
            return None;
        }
        let before = self.seen.get(&node);
        let units = before.map_or(0, |seen| seen.units);
        let failed = before.map_or(0, |seen| seen.failed) + failed;
        let (name, kind) = (peer.caps.name.clone(), peer.caps.kind);
        let seen = Seen { at, name, kind, trusted: peer.trusted, units, failed };
        let is_news = before.is_none_or(|before| {
            *before != Seen { at: before.at, ..seen.clone() } || at >= before.at + NEWS
        });
        if !is_news {
            return None;
        }
        self.seen.insert(node, seen);
        self.seen.get(&node)
    }

    pub(crate) fn seen(&self, node: NodeId) -> Option<&Seen> {
        self.seen.get(&node)
    }

    pub(crate) fn all_seen(&self) -> impl Iterator<Item = (NodeId, &Seen)> {
        self.seen.iter().map(|(node, seen)| (*node, seen))
    }

    pub(crate) fn recall_class(&mut self, node: NodeId, class: u64) {
        self.classes.insert(node, class);
    }

    /// From its first answer that counts on, a node is remembered for good; nothing, if it is already.
    pub(crate) fn introduce(&mut self, node: NodeId) -> Option<Introduced> {
        let identity = self.strangers.remove(&node)?;
        Some(Introduced { identity, class: self.classes.get(&node).copied() })
    }

    pub(crate) fn is_stranger(&self, node: NodeId) -> bool {
        self.strangers.contains_key(&node)
    }

    /// Took units and never answered one, in this connection or another.
    pub(crate) fn is_newcomer(&self, peer: &Peer) -> bool {
        peer.units_done == 0 && !peer.trusted && self.is_stranger(peer.node)
    }

    /// Says whether that must be recorded.
    pub(crate) fn note_class(&mut self, node: NodeId, class: u64) -> bool {
        if self.class(node) == class {
            return false;
        }
        self.classes.insert(node, class);
        !self.is_stranger(node)
    }

    /// A node's numeric class as last said; 0 if unknown.
    pub(crate) fn class(&self, node: NodeId) -> u64 {
        self.classes.get(&node).copied().unwrap_or(0)
    }

    pub(crate) fn note_name(&mut self, node: NodeId, name: &str) {
        self.names.insert(node, String::from(name));
    }

    pub(crate) fn name(&self, node: NodeId) -> Option<&str> {
        self.names.get(&node).map(String::as_str)
    }

    pub(crate) fn len(&self) -> usize {
        self.known.len()
    }

    /// The keys of these nodes.
    pub(crate) fn keys(&self, nodes: &BTreeSet<NodeId>) -> BTreeMap<NodeId, Identity> {
        let keys = self.known.iter().filter(|(_, node)| nodes.contains(node));
        keys.map(|(key, node)| (*node, *key)).collect()
    }

    /// Part of [`crate::Scheduler::check`].
    pub(crate) fn check(&self) {
        let mut strangers = self.strangers.iter();
        let known = strangers.all(|(node, identity)| self.known.get(identity) == Some(node));
        assert!(known, "a stranger under another number");
        assert!(self.known.values().all(|node| node.0 <= self.last), "a number not yet given");
        assert!(self.seen.keys().all(|node| !self.is_stranger(*node)), "a stranger remembered");
    }
}
