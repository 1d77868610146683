//! What nodes say about blobs. A word costs the same however many nodes there are: what it sets free is dealt to
//! those it concerns, and everybody else is looked at in turn (see [`super::look`]).

use alloc::vec::Vec;
use shoal_protocol::limit::MAX_SHARED_BLOBS;
use shoal_protocol::swarm::{piece_span, pieces_of};
use shoal_protocol::{BlobRef, Missed, NodeId, PieceSet, SwarmSay, Time};

use super::Asked;
use super::deal::GIVES;
use crate::Scheduler;

impl Scheduler {
    pub(crate) fn swarm_said(&mut self, now: Time, node: NodeId, say: SwarmSay) {
        match say {
            // Nothing is made as large as a stranger says.
            SwarmSay::Part { blob, .. } if !self.knows_blob(&blob) => {}
            SwarmSay::Part { blob, has, needs } => {
                let has = PieceSet::from_words(pieces_of(&blob), &has);
                let lacks = PieceSet::from_words(pieces_of(&blob), &needs).without(&has);
                let needs_more = !lacks.is_empty();
                if self.take_part(now, node, blob, (has, lacks)) && needs_more {
                    self.seek(now, &blob, node);
                    self.deal(now, &blob, &[node]);
                }
            }
            SwarmSay::Holds { blobs } => {
                for blob in blobs.into_iter().take(MAX_SHARED_BLOBS) {
                    if self.knows_blob(&blob) {
                        let count = pieces_of(&blob);
                        let part = (PieceSet::full(count), PieceSet::new(count));
                        self.take_part(now, node, blob, part);
                    }
                }
            }
            SwarmSay::Got { blob, piece, from } => {
                let helped = self.got(now, node, &blob, piece, from);
                self.deal(now, &blob, &helped);
            }
            SwarmSay::Missed { blob, piece, from, why } => {
                if self.missed(now, node, &blob, (piece, from), why) {
                    self.deal(now, &blob, &[node]);
                }
            }
            SwarmSay::Drops { blob } => self.leave_swarm(node, &blob),
            SwarmSay::Near { node: other, near } => self.near(now, node, other, near),
        }
    }

    /// Says who may be able to take something now.
    fn got(
        &mut self,
        now: Time,
        node: NodeId,
        blob: &BlobRef,
        piece: u32,
        from: Option<NodeId>,
    ) -> Vec<NodeId> {
        let busy = from.is_some_and(|giver| self.load_of(giver) >= GIVES);
        let asked = self.release(node, blob, piece);
        if !self.has_now(node, blob, piece) {
            return Vec::new();
        }
        // This one has room again, and those linked to it can get the piece there.
        let mut helped: Vec<_> = core::iter::once(node).chain(self.links_of(node)).collect();
        // Only what was to come from there counts as given.
        let Some(giver) = from.filter(|_| asked.is_some_and(|asked| asked.from == from)) else {
            return helped;
        };
        let part = self.swarms.blobs.get_mut(blob).and_then(|swarm| swarm.parts.get_mut(&node));
        if let Some(part) = part {
            (part.fed, part.alone) = (now, false);
        }
        let (_, bytes) = piece_span(blob, piece);
        self.swarms.between += bytes;
        self.swarms.givers.entry(giver).or_default().bytes += bytes;
        self.use_way(now, node, giver);
        if busy {
            helped.extend(self.links_of(giver));
        }
        helped
    }

    /// Books a piece; whether it is new.
    fn has_now(&mut self, node: NodeId, blob: &BlobRef, piece: u32) -> bool {
        let Some(swarm) = self.swarms.blobs.get_mut(blob) else { return false };
        let Some(part) = swarm.parts.get_mut(&node) else { return false };
        if piece >= part.has.count() || part.has.has(piece) {
            return false;
        }
        let last = part.has.len() + 1 == part.has.count();
        if part.counted && last {
            swarm.copies.remove(&part.has);
        }
        part.has.insert(piece);
        part.lacks.remove(piece);
        let enough = part.lacks.is_empty();
        match (part.counted, last) {
            (true, true) => swarm.copies.add(&part.has),
            (true, false) => swarm.copies.gain(piece),
            (false, true | false) => {}
        }
        if enough {
            self.swarms.wanting.remove(&(*blob, node));
        }
        true
    }

    /// Says whether it was to come from there.
    fn missed(
        &mut self,
        now: Time,
        node: NodeId,
        blob: &BlobRef,
        (piece, from): (u32, NodeId),
        why: Missed,
    ) -> bool {
        let swarm = self.swarms.blobs.get(blob);
        let asked = swarm.and_then(|swarm| swarm.parts.get(&node)?.asked.get(&piece));
        // Whoever was not sent to that node cannot complain of it.
        if asked.is_none_or(|asked| asked.from != Some(from)) {
            return false;
        }
        self.shun(node, blob, from);
        if why == Missed::Bad {
            self.swarms.givers.entry(from).or_default().accusers.insert(node);
            self.forget_accused();
            self.may_give_changed(now, from);
        }
        true
    }

    /// A node gets nothing more of a blob from that one: what was to come is dealt anew.
    fn shun(&mut self, node: NodeId, blob: &BlobRef, from: NodeId) {
        let Some(swarm) = self.swarms.blobs.get_mut(blob) else { return };
        let Some(part) = swarm.parts.get_mut(&node) else { return };
        part.shunned.insert(from);
        self.unask(node, blob, |_, asked| asked.from == Some(from));
    }

    /// What was asked is not any more, where it `fits`.
    pub(super) fn unask(
        &mut self,
        node: NodeId,
        blob: &BlobRef,
        fits: impl Fn(u32, &Asked) -> bool,
    ) {
        let part = self.swarms.blobs.get(blob).and_then(|swarm| swarm.parts.get(&node));
        let asked = part.into_iter().flat_map(|part| &part.asked);
        let over = asked.filter(|(piece, asked)| fits(**piece, asked));
        let over: Vec<_> = over.map(|(piece, _)| *piece).collect();
        for piece in over {
            self.release(node, blob, piece);
        }
    }

    fn release(&mut self, node: NodeId, blob: &BlobRef, piece: u32) -> Option<Asked> {
        let swarm = self.swarms.blobs.get_mut(blob)?;
        let asked = swarm.parts.get_mut(&node)?.asked.remove(&piece)?;
        match asked.from {
            None => swarm.copies.hand_over(piece),
            Some(from) => {
                if let Some(giver) = self.swarms.givers.get_mut(&from) {
                    giver.load = giver.load.saturating_sub(1);
                }
            }
        }
        Some(asked)
    }
}
