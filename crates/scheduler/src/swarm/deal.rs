//! Which piece comes from where. Whoever has a direct way to one that has it gets it there; what nobody has is
//! handed out by the coordinator, each piece to one node; the rest waits until somebody has it.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use shoal_protocol::limit::MAX_PIECES_ASKED;
use shoal_protocol::{BlobRef, Micros, NodeId, SwarmTold, Time, ToNode};

use super::{Asked, Part, Swarm};
use crate::Scheduler;

/// Pieces on the way to one node: two from each of a few others, so that no word stands between two pieces.
const AHEAD: usize = 8;
/// Of those from the coordinator.
const FROM_COORDINATOR: usize = 2;
/// Pieces on the way from one node to all others: its line is full, and its memory bounded.
pub(super) const GIVES: usize = 4;
/// A node that gets nothing from others for this long is given what the coordinator did not hand out lately.
pub(super) const PATIENCE: Micros = Micros::from_secs(8);
/// So often.
const RESORT_EVERY: Micros = Micros::from_secs(1);
/// After this long it is given everything.
const ALONE_AFTER: Micros = Micros::from_secs(24);

type Takes = BTreeMap<(NodeId, Option<NodeId>), Vec<u32>>;

impl Scheduler {
    /// Tells those of these who need the blob what to take now.
    pub(super) fn deal(&mut self, now: Time, blob: &BlobRef, to: &[NodeId]) {
        let Some(swarm) = self.swarms.blobs.get(blob) else { return };
        let room = |node: &&NodeId| swarm.parts.get(node).is_some_and(Part::has_room);
        let mut left: Vec<_> = to.iter().filter(room).copied().collect();
        let mut takes = Takes::new();
        // In turn, so that nobody gets all there is.
        while !left.is_empty() {
            left.retain(|node| {
                let choice = self.choose_piece(now, blob, *node);
                if let Some((piece, from)) = choice {
                    self.ask(now, blob, *node, (piece, from));
                    takes.entry((*node, from)).or_default().push(piece);
                }
                choice.is_some()
            });
        }
        for ((node, from), pieces) in takes {
            if let Some(giver) = from {
                self.let_give(now, blob, node, giver);
            }
            if let Some(conn) = self.conn_of(node) {
                let told = SwarmTold::Take { blob: *blob, pieces, from };
                self.send(conn, ToNode::Swarm(told));
            }
        }
    }

    fn choose_piece(
        &self,
        now: Time,
        blob: &BlobRef,
        node: NodeId,
    ) -> Option<(u32, Option<NodeId>)> {
        let swarm = self.swarms.blobs.get(blob)?;
        let part = swarm.parts.get(&node).filter(|part| part.has_room())?;
        // Everybody begins elsewhere, so that soon somebody has each piece.
        let start = (node.0 as u32).wrapping_mul(0x9e37_79b1) >> 8;
        let from_node = self.pick_from_node(swarm, part, node, start);
        from_node.map(|(piece, giver)| (piece, Some(giver))).or_else(|| {
            let piece = pick_from_coordinator(now, swarm, part, start)?;
            Some((piece, None))
        })
    }

    /// From the one with the least to do of those who have something.
    fn pick_from_node(
        &self,
        swarm: &Swarm,
        part: &Part,
        node: NodeId,
        start: u32,
    ) -> Option<(u32, NodeId)> {
        let links = self.swarms.links.get(&node)?;
        let able = links.iter().filter_map(|(giver, crew)| {
            let near = self.swarms.pairs.get(crew).is_some_and(super::Pair::is_near);
            let load = self.load_of(*giver);
            let fits = near && load < GIVES && part.asked_of(Some(*giver)) < MAX_PIECES_ASKED;
            if !fits || part.shunned.contains(giver) || !self.may_give(*giver) {
                return None;
            }
            let has = &swarm.parts.get(giver)?.has;
            let piece = has.first_also(&part.lacks, start, |at| !part.asked.contains_key(&at))?;
            Some((load, *giver, piece))
        });
        able.min().map(|(_, giver, piece)| (piece, giver))
    }

    fn ask(
        &mut self,
        now: Time,
        blob: &BlobRef,
        node: NodeId,
        (piece, from): (u32, Option<NodeId>),
    ) {
        let Some(swarm) = self.swarms.blobs.get_mut(blob) else { return };
        let rare = swarm.copies.is_missing(piece);
        let Some(part) = swarm.parts.get_mut(&node) else { return };
        part.asked.insert(piece, Asked { from, at: now });
        match from {
            Some(giver) => self.swarms.givers.entry(giver).or_default().load += 1,
            None => {
                match rare {
                    true => part.fed = now,
                    false => part.resorted = now,
                }
                swarm.copies.hand(now, piece);
            }
        }
    }

    /// Pieces on their way from a node.
    pub(super) fn load_of(&self, giver: NodeId) -> usize {
        self.swarms.givers.get(&giver).map_or(0, |giver| giver.load)
    }
}

/// What nobody has; or anything, for one that others do not help.
fn pick_from_coordinator(now: Time, swarm: &Swarm, part: &Part, start: u32) -> Option<u32> {
    if part.asked_of(None) >= FROM_COORDINATOR {
        return None;
    }
    let open = |piece: u32| !part.asked.contains_key(&piece);
    if let Some(piece) = swarm.copies.first_rare(&part.lacks, start, open) {
        return Some(piece);
    }
    if part.alone || now >= part.fed + ALONE_AFTER {
        return part.lacks.first(start, open);
    }
    // A piece now and then, not all of them: ways that are slow to open may still come.
    let waits = part.asked.is_empty() && now >= part.fed + PATIENCE;
    let waits = waits && now >= part.resorted + RESORT_EVERY;
    let handed = |piece: u32| swarm.copies.is_handed(piece);
    if waits { part.lacks.first(start, |at| open(at) && !handed(at)) } else { None }
}

impl Part {
    fn has_room(&self) -> bool {
        !self.lacks.is_empty() && self.asked.len() < AHEAD
    }

    fn asked_of(&self, from: Option<NodeId>) -> usize {
        self.asked.values().filter(|asked| asked.from == from).count()
    }
}
