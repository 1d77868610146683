//! What only time brings about: ways that do not come to be or are not needed, pieces that never come, nodes that
//! wait in vain. And what must hold.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use shoal_protocol::{Micros, Time};

use super::Part;
use super::deal::PATIENCE;
use super::meet::CLIMB;
use crate::Scheduler;
use crate::assign::crew::PairTask;

/// How often swarms are looked at while somebody needs something or is linked.
const LOOK_EVERY: Micros = Micros::from_millis(500);
/// A way that nobody used for this long is given up; the next blob makes a new one.
const IDLE: Micros = Micros::from_secs(20);
/// A node that hears nothing of a piece itself says so; this is for those that do not.
const NEVER: Micros = Micros::from_secs(60);

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
        let blobs: Vec<_> = self.swarms.blobs.keys().copied().collect();
        let mut anybody = !self.swarms.ways.is_empty();
        for blob in blobs {
            let Some(swarm) = self.swarms.blobs.get_mut(&blob) else { continue };
            let asked = swarm.parts.values().flat_map(|part| &part.asked);
            let open = asked.filter(|(_, asked)| asked.from.is_none()).map(|(piece, _)| *piece);
            let open: BTreeSet<u32> = open.collect();
            swarm.handed.retain(|piece, at| open.contains(piece) || now < *at + PATIENCE);
            let wanting = swarm.parts.iter().filter(|(_, part)| part.wants);
            let wanting: Vec<_> = wanting.map(|(node, _)| *node).collect();
            anybody |= !wanting.is_empty();
            for node in &wanting {
                self.unask(*node, &blob, |asked| now >= asked.at + NEVER);
                self.seek(now, &blob, *node);
            }
            if !wanting.is_empty() {
                self.deal(now, &blob);
            }
        }
        self.swarms.due = anybody.then_some(now + LOOK_EVERY);
    }

    fn end_ways(&mut self, now: Time) {
        let (mut far, mut idle) = (Vec::new(), Vec::new());
        for (crew, way) in &self.swarms.ways {
            if !way.is_near() && now >= way.made + CLIMB {
                far.push((*crew, way.nodes));
            } else if now >= way.used.max(way.made) + IDLE {
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
            for (node, part) in &swarm.parts {
                assert!(swarms.of.get(node).is_some_and(|of| of.contains(blob)), "index of parts");
                assert!(self.peers.contains_key(node), "a part of nobody");
                assert_eq!(part.counted, self.may_give(*node), "node {node} is counted wrong");
                assert_eq!(part.wants, !part.has.is_full(), "node {node} needs what it has");
                for (piece, asked) in &part.asked {
                    assert!(!part.has.has(*piece), "a piece that is there is asked for");
                    if let Some(giver) = asked.from {
                        *loads.entry(giver).or_default() += 1;
                        let links = swarms.links.get(node);
                        let linked = links.is_some_and(|links| links.contains_key(&giver));
                        assert!(linked, "node {node} is to take from {giver} without a link");
                    }
                }
            }
            for (piece, copies) in swarm.copies.iter().enumerate() {
                let has = |part: &&Part| part.counted && part.has.has(piece as u32);
                let held = swarm.parts.values().filter(has).count();
                assert_eq!(held as u32, *copies, "copies of piece {piece}");
            }
        }
        let parts: usize = swarms.of.values().map(|of| of.len()).sum();
        let known: usize = swarms.blobs.values().map(|swarm| swarm.parts.len()).sum();
        assert_eq!(parts, known, "parts");
        for (node, giver) in &swarms.givers {
            assert_eq!(loads.get(node).copied().unwrap_or(0), giver.load, "load of node {node}");
        }
        let pairs = self.pairs.iter().filter(|(_, pair)| pair.what == PairTask::Share);
        assert!(pairs.map(|(crew, _)| crew).eq(swarms.ways.keys()), "pairs that share");
        let links: usize = swarms.links.values().map(|links| links.len()).sum();
        assert_eq!(links, 2 * swarms.ways.len(), "links");
    }
}
