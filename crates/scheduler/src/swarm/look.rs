//! What only time brings about: ways that do not come to be or are not needed, pieces that never come, nodes that
//! wait in vain. And what must hold.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::ops::Bound::{Excluded, Unbounded};
use shoal_protocol::{BlobRef, Micros, NodeId, Time};

use super::deal::PATIENCE;
use super::meet::CLIMB;
use crate::Scheduler;

/// How often swarms are looked at while somebody needs something or is linked.
const LOOK_EVERY: Micros = Micros::from_millis(500);
/// A way that nobody used for this long is given up; the next blob makes a new one.
const IDLE: Micros = Micros::from_secs(20);
/// A node that hears nothing of a piece itself says so; this is for those that do not.
const NEVER: Micros = Micros::from_secs(60);
/// Needs looked at in one look, each a few microseconds: the next look sees others. Whoever gets pieces is dealt to
/// with each of them and does not wait for this.
const WANTS_SEEN: usize = 2048;

impl Scheduler {
    pub(super) fn plan_look(&mut self, now: Time) {
        self.swarms.due.get_or_insert(now + LOOK_EVERY);
    }

    pub(crate) fn look_at_swarms(&mut self, now: Time) {
        if self.swarms.due.is_none_or(|due| now < due) {
            return;
        }
        self.swarms.far.retain(|_, until| now < *until);
        self.end_ways(now);
        self.recount_stale();
        for swarm in self.swarms.blobs.values_mut() {
            swarm.copies.forget_handed(now, PATIENCE);
        }
        let mut waiting = BTreeMap::<BlobRef, Vec<NodeId>>::new();
        for (blob, node) in self.next_wanting() {
            self.unask(node, &blob, |_, asked| now >= asked.at + NEVER);
            self.seek(now, &blob, node);
            waiting.entry(blob).or_default().push(node);
        }
        for (blob, nodes) in waiting {
            self.deal(now, &blob, &nodes);
        }
        let anybody = !self.swarms.wanting.is_empty() || !self.swarms.pairs.is_empty();
        self.swarms.due = anybody.then_some(now + LOOK_EVERY);
    }

    /// Those that need something, in turn.
    fn next_wanting(&mut self) -> Vec<(BlobRef, NodeId)> {
        let wanting = &self.swarms.wanting;
        let after = self.swarms.looked_at.map_or(Unbounded, Excluded);
        let round = wanting.range((after, Unbounded)).chain(wanting).take(wanting.len());
        let next: Vec<_> = round.take(WANTS_SEEN).copied().collect();
        self.swarms.looked_at = next.last().copied();
        next
    }

    fn end_ways(&mut self, now: Time) {
        let (mut far, mut idle) = (Vec::new(), Vec::new());
        for (crew, pair) in &self.swarms.pairs {
            if !pair.is_near() && now >= pair.made + CLIMB {
                far.push((*crew, pair.nodes));
            } else if now >= pair.used.max(pair.made) + IDLE {
                idle.push(*crew);
            }
        }
        for (crew, nodes) in far {
            self.part_for_long(now, nodes);
            self.end_pair(crew);
        }
        for crew in idle {
            self.end_pair(crew);
        }
    }

    pub(crate) fn check_swarms(&self) {
        let swarms = &self.swarms;
        let mut loads = alloc::collections::BTreeMap::<_, usize>::new();
        for (blob, swarm) in &swarms.blobs {
            assert!(!swarm.parts.is_empty(), "books of a blob nobody has");
            assert!(swarms.stored.contains(blob), "books of a blob that is not stored");
            for (node, part) in &swarm.parts {
                assert!(swarms.of.get(node).is_some_and(|of| of.contains(blob)), "index of parts");
                assert!(self.peers.contains_key(node), "a part of nobody");
                let counted = part.counted == self.may_give(*node);
                assert!(counted || swarms.stale.contains(node), "node {node} is counted wrong");
                assert!(!part.lacks.meets(&part.has), "node {node} needs what it has");
                let wanting = swarms.wanting.contains(&(*blob, *node));
                assert_eq!(!part.lacks.is_empty(), wanting, "index of what node {node} needs");
                for (piece, asked) in &part.asked {
                    assert!(part.lacks.has(*piece), "a piece that is not needed is asked for");
                    if let Some(giver) = asked.from {
                        *loads.entry(giver).or_default() += 1;
                        let links = swarms.links.get(node);
                        let linked = links.is_some_and(|links| links.contains_key(&giver));
                        assert!(linked, "node {node} is to take from {giver} without a link");
                    }
                }
            }
            let counted = swarm.parts.values().filter(|part| part.counted);
            let asked = swarm.parts.values().flat_map(|part| &part.asked);
            let open = asked.filter(|(_, asked)| asked.from.is_none()).map(|(piece, _)| *piece);
            swarm.copies.check(counted.map(|part| &part.has), open);
        }
        let wants = swarms.blobs.values().flat_map(|swarm| swarm.parts.values());
        let wants = wants.filter(|part| !part.lacks.is_empty());
        assert_eq!(wants.count(), swarms.wanting.len(), "needs");
        assert!(swarms.stale.iter().all(|node| self.peers.contains_key(node)), "stale strangers");
        let parts: usize = swarms.of.values().map(|of| of.len()).sum();
        let known: usize = swarms.blobs.values().map(|swarm| swarm.parts.len()).sum();
        assert_eq!(parts, known, "parts");
        for (node, giver) in &swarms.givers {
            assert_eq!(loads.get(node).copied().unwrap_or(0), giver.load, "load of node {node}");
        }
        assert!(self.pairs.sharing().eq(swarms.pairs.keys()), "pairs that share");
        let links: usize = swarms.links.values().map(|links| links.len()).sum();
        assert_eq!(links, 2 * swarms.pairs.len(), "links");
    }
}
