//! What nodes say about blobs.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use shoal_protocol::limit::{MAX_NODES, MAX_SHARED_BLOBS};
use shoal_protocol::share::{is_shared, piece_span, pieces_of};
use shoal_protocol::{BlobRef, Missed, NodeId, PieceSet, ShareSay, Time};

use super::{Asked, MAX_SWARMS, Part, Swarm};
use crate::Scheduler;

impl Scheduler {
    pub(crate) fn share_said(&mut self, now: Time, node: NodeId, say: ShareSay) {
        match say {
            // Nothing is made as large as a stranger says.
            ShareSay::Wants { blob, .. } if !is_shared(&blob) => {}
            ShareSay::Wants { blob, has } => {
                let has = PieceSet::from_words(pieces_of(&blob), &has);
                self.take_part(now, node, blob, has);
                self.seek(now, &blob, node);
                self.deal(now, &blob);
            }
            ShareSay::Holds { blobs } => {
                for blob in blobs.into_iter().take(MAX_SHARED_BLOBS).filter(is_shared) {
                    self.take_part(now, node, blob, PieceSet::full(pieces_of(&blob)));
                    self.deal(now, &blob);
                }
            }
            ShareSay::Got { blob, piece, from } => {
                self.got(now, node, &blob, piece, from);
                self.deal(now, &blob);
            }
            ShareSay::Missed { blob, piece, from, why } => {
                self.missed(node, &blob, (piece, from), why);
                self.deal(now, &blob);
            }
            ShareSay::Drops { blob } => {
                self.leave_swarm(node, &blob);
                self.deal(now, &blob);
            }
            ShareSay::Near { node: other, near } => self.near(now, node, other, near),
        }
    }

    /// A node needs or has a blob. What it said of it before does not count any more.
    fn take_part(&mut self, now: Time, node: NodeId, blob: BlobRef, has: PieceSet) {
        self.leave_swarm(node, &blob);
        let swarms = &mut self.swarms;
        let known = swarms.of.get(&node).map_or(0, BTreeSet::len);
        let room = swarms.blobs.len() < MAX_SWARMS || swarms.blobs.contains_key(&blob);
        if known >= MAX_SHARED_BLOBS || !room {
            return;
        }
        swarms.of.entry(node).or_default().insert(blob);
        let swarm = swarms.blobs.entry(blob).or_insert_with(|| Swarm {
            parts: BTreeMap::new(),
            copies: alloc::vec![0; pieces_of(&blob) as usize],
            handed: BTreeMap::new(),
        });
        let part = Part {
            wants: !has.is_full(),
            has,
            asked: BTreeMap::new(),
            shunned: BTreeSet::new(),
            fed: now,
            resorted: now,
            alone: false,
            counted: false,
        };
        swarm.parts.insert(node, part);
        self.count(node, &blob);
        self.plan_look(now);
    }

    fn got(&mut self, now: Time, node: NodeId, blob: &BlobRef, piece: u32, from: Option<NodeId>) {
        let asked = self.release(node, blob, piece);
        let Some(swarm) = self.swarms.blobs.get_mut(blob) else { return };
        let Some(part) = swarm.parts.get_mut(&node) else { return };
        if !part.has.insert(piece) {
            return;
        }
        part.wants = !part.has.is_full();
        if part.counted
            && let Some(copies) = swarm.copies.get_mut(piece as usize)
        {
            *copies += 1;
        }
        let Some(giver) = from else { return };
        // Only what was to come from there counts as given.
        if asked.is_some_and(|asked| asked.from == from) {
            (part.fed, part.alone) = (now, false);
            let (_, bytes) = piece_span(blob, piece);
            self.swarms.between += bytes;
            self.swarms.givers.entry(giver).or_default().bytes += bytes;
            self.use_way(now, node, giver);
        }
    }

    fn missed(&mut self, node: NodeId, blob: &BlobRef, (piece, from): (u32, NodeId), why: Missed) {
        let swarm = self.swarms.blobs.get(blob);
        let asked = swarm.and_then(|swarm| swarm.parts.get(&node)?.asked.get(&piece));
        // Whoever was not sent to that node cannot complain of it.
        if asked.is_none_or(|asked| asked.from != Some(from)) {
            return;
        }
        self.shun(node, blob, from);
        if why == Missed::Bad {
            self.swarms.givers.entry(from).or_default().accusers.insert(node);
            self.forget_accused();
            self.recount(from);
        }
    }

    /// A node gets nothing more of a blob from that one: what was to come is dealt anew.
    pub(super) fn shun(&mut self, node: NodeId, blob: &BlobRef, from: NodeId) {
        let Some(swarm) = self.swarms.blobs.get_mut(blob) else { return };
        let Some(part) = swarm.parts.get_mut(&node) else { return };
        part.shunned.insert(from);
        self.unask(node, blob, |asked| asked.from == Some(from));
    }

    /// What was asked is not any more, where it `fits`.
    pub(super) fn unask(&mut self, node: NodeId, blob: &BlobRef, fits: impl Fn(&Asked) -> bool) {
        let part = self.swarms.blobs.get(blob).and_then(|swarm| swarm.parts.get(&node));
        let asked = part.into_iter().flat_map(|part| &part.asked);
        let over: Vec<_> =
            asked.filter(|(_, asked)| fits(asked)).map(|(piece, _)| *piece).collect();
        for piece in over {
            self.release(node, blob, piece);
        }
    }

    fn release(&mut self, node: NodeId, blob: &BlobRef, piece: u32) -> Option<Asked> {
        let part = self.swarms.blobs.get_mut(blob)?.parts.get_mut(&node)?;
        let asked = part.asked.remove(&piece)?;
        if let Some(giver) = asked.from.and_then(|from| self.swarms.givers.get_mut(&from)) {
            giver.load = giver.load.saturating_sub(1);
        }
        Some(asked)
    }

    fn leave_swarm(&mut self, node: NodeId, blob: &BlobRef) {
        self.unask(node, blob, |_| true);
        let swarms = &mut self.swarms;
        let Some(swarm) = swarms.blobs.get_mut(blob) else { return };
        let Some(part) = swarm.parts.remove(&node) else { return };
        if part.counted {
            uncount(&mut swarm.copies, &part.has);
        }
        let needed: Vec<_> = swarm.parts.keys().copied().collect();
        if needed.is_empty() {
            swarms.blobs.remove(blob);
        }
        // Who has it again later hears again to whom it may give it.
        let crews = swarms.links.get(&node).into_iter().flat_map(|links| links.values());
        for crew in crews {
            if let Some(way) = swarms.ways.get_mut(crew) {
                way.gives.remove(&(node, *blob));
            }
        }
        if let Some(of) = swarms.of.get_mut(&node) {
            of.remove(blob);
            if of.is_empty() {
                swarms.of.remove(&node);
            }
        }
        for other in needed {
            self.unask(other, blob, |asked| asked.from == Some(node));
        }
    }

    /// A node is gone. Its links went before.
    pub(crate) fn leave_swarms(&mut self, now: Time, node: NodeId) {
        let blobs: Vec<_> = self.swarms.of.get(&node).into_iter().flatten().copied().collect();
        for blob in blobs {
            self.leave_swarm(node, &blob);
            self.deal(now, &blob);
        }
        let honest = |giver: &super::Giver| giver.accusers.is_empty();
        if self.swarms.givers.get(&node).is_some_and(honest) {
            self.swarms.givers.remove(&node);
        }
    }

    /// Liars are remembered, but not without bound.
    fn forget_accused(&mut self) {
        while self.swarms.givers.len() > MAX_NODES {
            let gone = self.swarms.givers.keys().find(|node| !self.peers.contains_key(node));
            let Some(node) = gone.copied() else { return };
            self.swarms.givers.remove(&node);
        }
    }

    /// A donor paused or went on, moved to the battery or back.
    pub(crate) fn may_give_changed(&mut self, now: Time, node: NodeId) {
        let links = self.swarms.links.get(&node).into_iter().flatten();
        let crews: Vec<_> = links.map(|(_, crew)| *crew).collect();
        if !self.may_meet(node) {
            crews.into_iter().for_each(|crew| self.end_pair(crew));
        }
        self.recount(node);
        self.deal_all(now, node);
    }

    /// Whether this node's pieces are there for others may have changed.
    fn recount(&mut self, node: NodeId) {
        let blobs: Vec<_> = self.swarms.of.get(&node).into_iter().flatten().copied().collect();
        for blob in blobs {
            self.count(node, &blob);
        }
    }

    fn count(&mut self, node: NodeId, blob: &BlobRef) {
        let gives = self.may_give(node);
        let Some(swarm) = self.swarms.blobs.get_mut(blob) else { return };
        let Some(part) = swarm.parts.get_mut(&node) else { return };
        if part.counted && !gives {
            uncount(&mut swarm.copies, &part.has);
        } else if gives && !part.counted {
            let pieces = swarm.copies.iter_mut().enumerate();
            pieces.for_each(|(at, copies)| *copies += u32::from(part.has.has(at as u32)));
        }
        part.counted = gives;
    }
}

fn uncount(copies: &mut [u32], has: &PieceSet) {
    let pieces = copies.iter_mut().enumerate();
    pieces.for_each(|(at, copies)| *copies -= u32::from(has.has(at as u32)));
}
