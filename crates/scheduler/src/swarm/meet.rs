//! Who is linked to whom: a node that needs a blob gets a few others that have or need it, drawn by chance, so
//! that pieces spread among all. Those who find no direct way are parted again.

use alloc::vec::Vec;
use shoal_protocol::limit::MAX_SWARM_LINKS;
use shoal_protocol::{BlobRef, CrewId, Micros, NodeId, SwarmTold, Time, ToNode};

use super::{Pair, Part};
use crate::Scheduler;

/// Links a node looks for; others may look for it too. All together have fewer than they may have, so that
/// newcomers always find somebody.
const SOUGHT: usize = 2;
/// Two that have no direct way after this long have none.
pub(super) const CLIMB: Micros = Micros::from_secs(15);
/// Two that found no direct way are not tried again before: networks change slowly.
const FAR_FOR: Micros = Micros::from_secs(300);
/// Others in a swarm looked at for one that seeks, from one drawn by chance on: enough to find some with few links,
/// and in a large swarm the next look sees others.
const PARTNERS_SEEN: usize = 64;

impl Scheduler {
    /// Links a node to others in the swarm, where it has too few.
    pub(super) fn seek(&mut self, now: Time, blob: &BlobRef, node: NodeId) {
        if !self.may_meet(node) {
            return self.set_alone(blob, node, true);
        }
        for _ in 0..SOUGHT {
            let useful = self.useful_links(blob, node).count();
            if useful >= SOUGHT || self.links_of(node).count() >= MAX_SWARM_LINKS {
                break;
            }
            let Some(other) = self.draw_partner(now, blob, node) else { break };
            let nodes = [node.min(other), node.max(other)];
            let Some(crew) = self.pair_to_share(now, nodes) else { break };
            self.linked(now, crew, nodes);
        }
        let alone = self.useful_links(blob, node).next().is_none();
        self.set_alone(blob, node, alone);
    }

    /// Those linked to it that have something of what it needs, or need it too.
    fn useful_links(&self, blob: &BlobRef, node: NodeId) -> impl Iterator<Item = NodeId> {
        let parts = self.swarms.blobs.get(blob).map(|swarm| &swarm.parts);
        let part = parts.and_then(|parts| parts.get(&node));
        self.links_of(node).filter(move |other| {
            let other = parts.and_then(|parts| parts.get(other));
            part.zip(other).is_some_and(|(part, other)| part.may_get_from(other))
        })
    }

    fn draw_partner(&mut self, now: Time, blob: &BlobRef, node: NodeId) -> Option<NodeId> {
        let parts = &self.swarms.blobs.get(blob)?.parts;
        let (last, _) = parts.last_key_value()?;
        let from = NodeId(self.chance.below(last.0.saturating_add(1)));
        let part = parts.get(&node)?;
        let seen = parts.range(from..).chain(parts.range(..from)).take(PARTNERS_SEEN);
        // Two that need different layers of a model have nothing for each other.
        let seen = seen.filter(|(_, other)| part.may_get_from(other));
        let fit = seen.map(|(other, _)| *other).filter(|other| {
            let pair = [node.min(*other), node.max(*other)];
            let far = self.swarms.far.get(&pair).is_some_and(|until| now < *until);
            let linked = self.links_of(node).any(|known| known == *other);
            let room = self.links_of(*other).count() < MAX_SWARM_LINKS;
            let may = *other != node && !far && !linked && !part.shunned.contains(other);
            may && room && self.may_give(*other)
        });
        // Those with few links first: else one that came early carries all.
        let fit: Vec<_> = fit.map(|other| (self.links_of(other).count(), other)).collect();
        let least = fit.iter().map(|(links, _)| *links).min()?;
        let fit: Vec<_> = fit.iter().filter(|(links, _)| *links <= least + 1).collect();
        let drawn = self.chance.below(fit.len() as u64) as usize;
        fit.get(drawn).map(|(_, other)| *other)
    }

    fn set_alone(&mut self, blob: &BlobRef, node: NodeId, alone: bool) {
        let swarm = self.swarms.blobs.get_mut(blob);
        if let Some(part) = swarm.and_then(|swarm| swarm.parts.get_mut(&node)) {
            part.alone = alone;
        }
    }

    pub(super) fn links_of(&self, node: NodeId) -> impl Iterator<Item = NodeId> {
        self.swarms.links.get(&node).into_iter().flatten().map(|(other, _)| *other)
    }

    fn linked(&mut self, now: Time, crew: CrewId, nodes: [NodeId; 2]) {
        let [a, b] = nodes;
        self.swarms.links.entry(a).or_default().insert(b, crew);
        self.swarms.links.entry(b).or_default().insert(a, crew);
        let (near, gives) = ([false; 2], Default::default());
        self.swarms.pairs.insert(crew, Pair { nodes, near, made: now, used: now, gives });
        for node in nodes {
            let blobs = self.swarms.of.get(&node).into_iter().flatten().copied();
            for blob in blobs.collect::<Vec<_>>() {
                self.set_alone(&blob, node, false);
            }
        }
        self.plan_look(now);
    }

    /// The pair is over: what was to come this way is dealt anew by whoever ends it.
    pub(crate) fn unlinked(&mut self, crew: CrewId, [a, b]: [NodeId; 2]) {
        self.swarms.pairs.remove(&crew);
        for (node, other) in [(a, b), (b, a)] {
            if let Some(links) = self.swarms.links.get_mut(&node) {
                links.remove(&other);
                if links.is_empty() {
                    self.swarms.links.remove(&node);
                }
            }
            self.unask_all(node, other);
        }
    }

    /// What was to come from one to the other, of whatever blob, comes from elsewhere.
    fn unask_all(&mut self, node: NodeId, from: NodeId) {
        let blobs: Vec<_> = self.swarms.of.get(&node).into_iter().flatten().copied().collect();
        for blob in blobs {
            self.unask(node, &blob, |_, asked| asked.from == Some(from));
        }
    }

    /// Two that do not get on, or found no way: not tried again soon.
    pub(crate) fn part_for_long(&mut self, now: Time, nodes: [NodeId; 2]) {
        self.swarms.far.insert(nodes, now + FAR_FOR);
    }

    pub(super) fn near(&mut self, now: Time, node: NodeId, other: NodeId, near: bool) {
        let links = self.swarms.links.get(&node);
        let Some(crew) = links.and_then(|links| links.get(&other)).copied() else { return };
        let Some(pair) = self.swarms.pairs.get_mut(&crew) else { return };
        let rank = usize::from(pair.nodes[0] != node);
        if core::mem::replace(&mut pair.near[rank], near) == near {
            return;
        }
        // One that was near and is not any more has as long as a new one to come back.
        pair.made = if near { pair.made } else { now };
        if !near {
            self.unask_all(node, other);
            self.unask_all(other, node);
        }
        self.deal_between(now, [node, other]);
    }

    /// Deals to two what both have a part in.
    pub(crate) fn deal_between(&mut self, now: Time, [a, b]: [NodeId; 2]) {
        let (of, others) = (self.swarms.of.get(&a), self.swarms.of.get(&b));
        let both = of.zip(others).into_iter().flat_map(|(of, others)| of.intersection(others));
        for blob in both.copied().collect::<Vec<_>>() {
            self.deal(now, &blob, &[a, b]);
        }
    }

    pub(super) fn use_way(&mut self, now: Time, node: NodeId, other: NodeId) {
        let crew = self.swarms.links.get(&node).and_then(|links| links.get(&other)).copied();
        if let Some(pair) = crew.and_then(|crew| self.swarms.pairs.get_mut(&crew)) {
            pair.used = now;
        }
    }

    /// A node hears once to whom it may give the blob.
    pub(super) fn let_give(&mut self, now: Time, blob: &BlobRef, to: NodeId, giver: NodeId) {
        let crew = self.swarms.links.get(&giver).and_then(|links| links.get(&to)).copied();
        let Some(pair) = crew.and_then(|crew| self.swarms.pairs.get_mut(&crew)) else { return };
        pair.used = now;
        if pair.gives.insert((giver, *blob))
            && let Some(conn) = self.conn_of(giver)
        {
            self.send(conn, ToNode::Swarm(SwarmTold::Give { blob: *blob, to }));
        }
    }
}

impl Part {
    /// Whether the other has something of what this one needs, or will have.
    fn may_get_from(&self, other: &Part) -> bool {
        self.lacks.meets(&other.has) || self.lacks.meets(&other.lacks)
    }
}
