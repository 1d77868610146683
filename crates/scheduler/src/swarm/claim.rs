//! Who has or needs which blob. Whoever joins may say what it likes, so that a claim counts only for a blob that the
//! coordinator stores, with the size it has there; of others there is no trace.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use shoal_protocol::limit::{MAX_NODES, MAX_SHARED_BLOBS};
use shoal_protocol::swarm::{is_shared, pieces_of};
use shoal_protocol::{BlobRef, NodeId, PieceSet, Time};

use super::copies::Copies;
use super::{Giver, MAX_SWARMS, Part, Swarm};
use crate::Scheduler;

impl Scheduler {
    /// Whether it was said that the coordinator stores this blob: then it need not be looked up again.
    pub fn knows_blob(&self, blob: &BlobRef) -> bool {
        self.swarms.stored.contains(blob)
    }

    pub(crate) fn stored(&mut self, blob: BlobRef) {
        let swarms = &mut self.swarms;
        if !is_shared(&blob) {
            return;
        }
        if swarms.stored.len() >= MAX_SWARMS {
            // Whoever has or needs one of those says so again on its next connection.
            swarms.stored.retain(|known| swarms.blobs.contains_key(known));
        }
        if swarms.stored.len() < MAX_SWARMS {
            swarms.stored.insert(blob);
        }
    }

    /// A node has some pieces of a blob and needs others. What it said of it before does not count any more; what is
    /// on its way to it still is. Says whether it has a part in it now.
    pub(super) fn take_part(
        &mut self,
        now: Time,
        node: NodeId,
        blob: BlobRef,
        (has, lacks): (PieceSet, PieceSet),
    ) -> bool {
        let swarms = &mut self.swarms;
        if !swarms.stored.contains(&blob) {
            return false;
        }
        let of = swarms.of.entry(node).or_default();
        if of.len() >= MAX_SHARED_BLOBS && !of.contains(&blob) {
            return false;
        }
        of.insert(blob);
        match lacks.is_empty() {
            true => swarms.wanting.remove(&(blob, node)),
            false => swarms.wanting.insert((blob, node)),
        };
        let new = || Swarm { parts: BTreeMap::new(), copies: Copies::new(pieces_of(&blob)) };
        let swarm = swarms.blobs.entry(blob).or_insert_with(new);
        match swarm.parts.get_mut(&node) {
            Some(part) => {
                if part.counted {
                    swarm.copies.remove(&part.has);
                    swarm.copies.add(&has);
                }
                (part.has, part.lacks) = (has, lacks.clone());
                self.unask(node, &blob, |piece, _| !lacks.has(piece));
            }
            None => {
                swarm.parts.insert(node, Part::new(now, has, lacks));
                self.count(node, &blob);
            }
        }
        self.plan_look(now);
        true
    }

    pub(super) fn leave_swarm(&mut self, node: NodeId, blob: &BlobRef) {
        self.unask(node, blob, |_, _| true);
        let swarms = &mut self.swarms;
        let Some(swarm) = swarms.blobs.get_mut(blob) else { return };
        let Some(part) = swarm.parts.remove(&node) else { return };
        if part.counted {
            swarm.copies.remove(&part.has);
        }
        if swarm.parts.is_empty() {
            swarms.blobs.remove(blob);
        }
        swarms.wanting.remove(&(*blob, node));
        if let Some(of) = swarms.of.get_mut(&node) {
            of.remove(blob);
            if of.is_empty() {
                swarms.of.remove(&node);
            }
        }
        let links: Vec<_> = swarms.links.get(&node).into_iter().flatten().collect();
        // Who has it again later hears again to whom it may give it.
        for (_, crew) in &links {
            if let Some(pair) = swarms.pairs.get_mut(crew) {
                pair.gives.remove(&(node, *blob));
            }
        }
        // Only who is linked to it was told to take something there.
        let others: Vec<_> = links.into_iter().map(|(other, _)| *other).collect();
        for other in others {
            self.unask(other, blob, |_, asked| asked.from == Some(node));
        }
    }

    /// A node is gone. Its links went before; whoever got something there is dealt to when swarms are looked at.
    pub(crate) fn leave_swarms(&mut self, node: NodeId) {
        let blobs: Vec<_> = self.swarms.of.get(&node).into_iter().flatten().copied().collect();
        for blob in blobs {
            self.leave_swarm(node, &blob);
        }
        self.swarms.stale.remove(&node);
        let honest = |giver: &Giver| giver.accusers.is_empty();
        if self.swarms.givers.get(&node).is_some_and(honest) {
            self.swarms.givers.remove(&node);
        }
    }

    /// Liars are remembered, but not without bound.
    pub(super) fn forget_accused(&mut self) {
        while self.swarms.givers.len() > MAX_NODES {
            let gone = self.swarms.givers.keys().find(|node| !self.peers.contains_key(node));
            let Some(node) = gone.copied() else { return };
            self.swarms.givers.remove(&node);
        }
    }

    /// A donor paused or went on, moved to the battery or back. Whoever is asked for a piece is looked at then; its
    /// copies are counted anew when swarms are looked at, however often it changes its mind until then.
    pub(crate) fn may_give_changed(&mut self, now: Time, node: NodeId) {
        if !self.may_meet(node) {
            let links = self.swarms.links.get(&node).into_iter().flatten();
            let crews: Vec<_> = links.map(|(_, crew)| *crew).collect();
            crews.into_iter().for_each(|crew| self.end_pair(crew));
        }
        if self.swarms.of.contains_key(&node) {
            self.swarms.stale.insert(node);
            self.plan_look(now);
        }
    }

    pub(super) fn recount_stale(&mut self) {
        for node in core::mem::take(&mut self.swarms.stale) {
            let blobs = self.swarms.of.get(&node).into_iter().flatten();
            let blobs: Vec<_> = blobs.copied().collect();
            for blob in blobs {
                self.count(node, &blob);
            }
        }
    }

    fn count(&mut self, node: NodeId, blob: &BlobRef) {
        let gives = self.may_give(node);
        let Some(swarm) = self.swarms.blobs.get_mut(blob) else { return };
        let Some(part) = swarm.parts.get_mut(&node) else { return };
        if part.counted && !gives {
            swarm.copies.remove(&part.has);
        } else if gives && !part.counted {
            swarm.copies.add(&part.has);
        }
        part.counted = gives;
    }
}

impl Part {
    fn new(now: Time, has: PieceSet, lacks: PieceSet) -> Part {
        Part {
            has,
            lacks,
            asked: BTreeMap::new(),
            shunned: BTreeSet::new(),
            fed: now,
            resorted: now,
            alone: false,
            counted: false,
        }
    }
}
