//! Which key each connected node has.

use std::collections::{BTreeMap, HashMap};

use shoal_protocol::{Identity, NodeId};
use shoal_scheduler::Conn;

/// Entries of nodes that left, before they are cleared away.
const SLACK: usize = 64;

#[derive(Default)]
pub(super) struct Who {
    conns: BTreeMap<Conn, Identity>,
    nodes: HashMap<NodeId, Conn>,
}

impl Who {
    pub(super) fn came(&mut self, conn: Conn, identity: Identity) {
        self.conns.insert(conn, identity);
    }

    /// The scheduler knows it by this number.
    pub(super) fn welcomed(&mut self, conn: Conn, node: NodeId) {
        self.nodes.insert(node, conn);
        if self.nodes.len() > 2 * self.conns.len() + SLACK {
            let conns = &self.conns;
            self.nodes.retain(|_, conn| conns.contains_key(conn));
        }
    }

    pub(super) fn left(&mut self, conn: Conn) {
        self.conns.remove(&conn);
    }

    pub(super) fn identity(&self, node: NodeId) -> Option<&Identity> {
        self.nodes.get(&node).and_then(|conn| self.conns.get(conn))
    }
}
