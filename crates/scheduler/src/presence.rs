//! Nodes joining, speaking, falling silent and leaving.

use alloc::vec::Vec;
use shoal_protocol::id::clip;
use shoal_protocol::limit::{
    IDLE_SILENCE, MAX_ENGINE_TEXT, MAX_ENGINES, MAX_NODES, MAX_TEXT_BYTES, OLDEST_VERSION,
    PROTOCOL_VERSION, SILENCE,
};
use shoal_protocol::{Attempt, Caps, FromNode, Hello, Identity, NodeId, Refusal, Time, ToNode};

use crate::Output;
use crate::fact::Fact;
use crate::peers::{Arrival, Peer};
use crate::service::Part;
use crate::state::{Conn, Scheduler};

impl Scheduler {
    pub(crate) fn connected(&mut self, now: Time, seat: Arrival, hello: Hello) {
        let conn = seat.conn;
        if self.peers.on(conn).is_some() {
            return;
        }
        if let Err(refusal) = self.may_join(&hello) {
            self.outputs.push_back(Output::Refuse { conn, refusal });
            return;
        }
        let peers = &self.peers;
        let node = self.register.number(hello.identity, |node| peers.contains_key(node));
        if let Some(node) = self.register.reserve() {
            self.record(Fact::Numbered { node });
        }
        if let Some(old) = self.peers.get(&node).map(|peer| peer.conn) {
            self.outputs.push_back(Output::Refuse { conn: old, refusal: Refusal::Replaced });
            self.disconnected(now, old);
        }
        self.seat(now, &seat, node, (hello.identity, hello.caps));
        if seat.trusted {
            // The operator's own keep their numbers, whether or not they ever computed.
            self.introduce(node);
        }
        self.recall_conduct(now, node);
        let message = ToNode::Welcome { node, session: seat.session };
        self.outputs.push_back(Output::Send { conn, message });
        self.adopt(now, node, hello.held);
        self.came_back(now, node);
        self.replicas_come_back(node);
        self.feed(now, node);
    }

    fn may_join(&self, hello: &Hello) -> Result<(), Refusal> {
        if hello.version < OLDEST_VERSION || hello.version > PROTOCOL_VERSION {
            return Err(Refusal::Version {
                oldest: OLDEST_VERSION,
                newest: PROTOCOL_VERSION,
                yours: hello.version,
            });
        }
        if self.peers.len() >= MAX_NODES {
            return Err(Refusal::Full);
        }
        Ok(())
    }

    /// From its first answer that counts on, a node is remembered for good.
    pub(crate) fn introduce(&mut self, node: NodeId) {
        let Some(known) = self.register.introduce(node) else { return };
        self.record(Fact::Node { node, identity: known.identity });
        if let Some(class) = known.class {
            self.record(Fact::Class { node, class });
        }
        if let Some(joined) = self.peers.get(&node).map(|peer| peer.joined) {
            self.note_seen(joined, node, 0);
        }
    }

    /// What is remembered of a node when it is not here.
    fn note_seen(&mut self, at: Time, node: NodeId, failed: u64) {
        let Some(peer) = self.peers.get(&node) else { return };
        if let Some(seen) = self.register.see(at, peer, failed).cloned() {
            self.record(Fact::Seen { node, seen });
        }
    }

    fn seat(&mut self, now: Time, seat: &Arrival, node: NodeId, hello: (Identity, Caps)) {
        let (identity, caps) = hello;
        let caps = clipped(caps);
        self.register.note_name(node, &caps.name);
        self.note_class(node, caps.class);
        self.peers.insert(Peer::new(now, seat, (node, identity), caps));
        self.call_roll(node);
        self.note_standing(node);
    }

    fn note_class(&mut self, node: NodeId, class: u64) {
        if self.register.note_class(node, class) {
            self.record(Fact::Class { node, class });
        }
    }

    pub(crate) fn disconnected(&mut self, now: Time, conn: Conn) {
        let Some(node) = self.peers.cut_off(conn) else { return };
        let failed = self.peers.get(&node).map_or(0, |peer| peer.units_failed);
        self.note_seen(now, node, failed);
        let loans = self.loans_of(node);
        self.miss(now, node);
        self.loans.remember(node, &loans);
        self.give_back(now, &loans, true);
        self.replicas_leave(node);
        let peer = self.peers.remove(node);
        self.call_roll(node);
        self.part(node);
        self.leave_swarms(node);
        self.untry(node);
        self.wake_crews(now);
        if let Some(peer) = peer {
            for id in &peer.told {
                let Some(job) = self.jobs.get_mut(id) else { continue };
                job.told.remove(&node);
                let pace = peer.paces.get(id).map_or(0, |pace| pace.all_slots());
                job.total_milli_rate = job.total_milli_rate.saturating_sub(pace);
            }
        }
        self.feed_hungry(now);
    }

    pub(crate) fn said(&mut self, now: Time, conn: Conn, message: FromNode) {
        let Some(node) = self.peers.on(conn) else { return };
        // Only what says how units fare extends leases: mere talk is no progress.
        if matches!(message, FromNode::Alive { .. } | FromNode::Answer { .. }) {
            self.peers.heard(now, node);
        }
        match message {
            // Answers come as `Input::Done`, greetings as `Input::Connected`.
            FromNode::Hello(_) | FromNode::Done(_) => {}
            FromNode::Failed { attempt, failure } if self.services.has_call(attempt) => {
                self.call_failed(node, attempt, failure);
            }
            FromNode::Warm { job, result } => self.replica_warmed(node, job, result),
            FromNode::Answer { call, at, part, last } if self.services.has_look(call) => {
                self.look_heard(node, call, &Part { at, bytes: part, last });
            }
            FromNode::Answer { call, at, part, last } => {
                self.call_answered(node, call, Part { at, bytes: part, last });
            }
            // What is made up sets nothing free, and asking everybody has its price.
            FromNode::Failed { attempt, .. } if !self.loans.is_held(node, attempt) => {}
            FromNode::Failed { attempt, failure } => {
                self.failed(now, node, attempt, failure);
                self.feed_hungry(now);
            }
            FromNode::Alive { running, queued } => {
                self.note_lost(now, node, &running, &queued);
                self.note_late(now, node, &running, &queued);
            }
            FromNode::Caps(caps) => self.offered(now, node, caps),
            FromNode::Returned(attempts) => self.returned(now, node, attempts),
            FromNode::Pause(paused) => self.paused(now, node, paused),
            FromNode::Condition(condition) => self.conditioned(now, node, condition),
            FromNode::Declined { job, declined } => self.declined(now, node, job, declined),
            FromNode::Links { key, proof } => self.has_links(now, node, key, proof),
            FromNode::Crew { crew, epoch, say } => self.crew_said(now, node, crew, epoch, say),
            FromNode::Swarm(say) => self.swarm_said(now, node, say),
        }
        self.feed(now, node);
    }

    /// The donor changed what is lent: units the node can no longer do go to others.
    fn offered(&mut self, now: Time, node: NodeId, caps: Caps) {
        let mut caps = clipped(caps);
        // Found out once for a connection: whoever changes it back and forth must not fill the disk.
        let before = self.peers.get(&node).map_or(0, |peer| peer.caps.class);
        caps.class = if before == 0 { caps.class } else { before };
        self.note_class(node, caps.class);
        if let Some(peer) = self.peers.get_mut(&node) {
            self.register.note_name(node, &caps.name);
            peer.caps = caps;
        }
        self.call_roll(node);
        self.replicas_shrink(node);
        self.make_room(now, node);
        self.wake_crews_for(now, node);
        self.feed_hungry(now);
    }

    /// Whoever said nothing for too long loses what it has; whoever has nothing is sent away.
    pub(crate) fn look_for_silence(&mut self, now: Time) {
        while let Some(node) = self.peers.first_due(now) {
            let Some(peer) = self.peers.get(&node) else { return };
            let idle = peer.loans().is_empty() && self.services.calls_of(node) == 0;
            let patience = if idle { IDLE_SILENCE } else { SILENCE };
            let (conn, due) = (peer.conn, peer.heard + patience);
            if due > now {
                self.peers.set_timer(node, due);
                continue;
            }
            if idle {
                self.outputs.push_back(Output::Refuse { conn, refusal: Refusal::Closing });
                self.disconnected(now, conn);
                continue;
            }
            self.peers.fall_silent(node);
            let loans = self.loans_of(node);
            let message = ToNode::Revoke(loans.clone());
            self.outputs.push_back(Output::Send { conn, message });
            self.loans.remember(node, &loans);
            self.broke(now, node);
            // A starved device falls silent through no fault of the unit.
            self.give_back(now, &loans, false);
            self.calls_lost(node);
            self.feed_hungry(now);
        }
    }

    fn loans_of(&self, node: NodeId) -> Vec<Attempt> {
        self.peers.get(&node).map(|peer| peer.loans().iter().copied().collect()).unwrap_or_default()
    }
}

/// Texts of a stranger are cut to size before they are kept.
fn clipped(mut caps: Caps) -> Caps {
    caps.name = clip(caps.name, MAX_TEXT_BYTES);
    caps.engines.truncate(MAX_ENGINES);
    for engine in &mut caps.engines {
        engine.name = clip(core::mem::take(&mut engine.name), MAX_ENGINE_TEXT);
        engine.version = clip(core::mem::take(&mut engine.version), MAX_ENGINE_TEXT);
    }
    if let Some(gpu) = &mut caps.gpu {
        gpu.name = clip(core::mem::take(&mut gpu.name), MAX_TEXT_BYTES);
        gpu.backend = clip(core::mem::take(&mut gpu.backend), MAX_TEXT_BYTES);
    }
    caps
}
