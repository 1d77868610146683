//! Nodes joining, speaking, falling silent and leaving.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use shoal_protocol::id::clip;
use shoal_protocol::limit::{
    IDLE_SILENCE, MAX_NODES, MAX_TEXT_BYTES, OLDEST_VERSION, PROTOCOL_VERSION, SILENCE,
};
use shoal_protocol::{
    Attempt, Caps, Condition, FromNode, Hello, Identity, NodeId, Refusal, Time, ToNode,
};

use crate::Output;
use crate::fact::Fact;
use crate::meter::Meter;
use crate::state::{Conn, LaneLoad, Peer, Scheduler, Seat};
use crate::verify::Standing;

impl Scheduler {
    pub(crate) fn connected(&mut self, now: Time, seat: Seat, hello: Hello) {
        let conn = seat.conn;
        if self.conns.contains_key(&conn) {
            return;
        }
        if let Err(refusal) = self.may_join(&hello) {
            self.outputs.push_back(Output::Refuse { conn, refusal });
            return;
        }
        let node = self.number(hello.identity);
        if let Some(old) = self.peers.get(&node).map(|peer| peer.conn) {
            self.outputs.push_back(Output::Refuse { conn: old, refusal: Refusal::Replaced });
            self.disconnected(now, old);
        }
        self.seat(now, &seat, node, (hello.identity, hello.caps));
        self.recall_conduct(now, node);
        let message = ToNode::Welcome { node, session: seat.session };
        self.outputs.push_back(Output::Send { conn, message });
        self.adopt(now, node, hello.held);
        self.came_back(now, node);
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

    fn number(&mut self, identity: Identity) -> NodeId {
        if let Some(node) = self.known.get(&identity) {
            return *node;
        }
        self.forget_a_stranger();
        self.last_node += 1;
        let node = NodeId(self.last_node);
        self.known.insert(identity, node);
        self.strangers.insert(node, identity);
        node
    }

    /// Strangers are remembered for a while, so that a tab is the same node again, but not without bound.
    fn forget_a_stranger(&mut self) {
        if self.strangers.len() < MAX_NODES {
            return;
        }
        let mut gone = self.strangers.keys().filter(|node| !self.peers.contains_key(node));
        if let Some(node) = gone.next().copied()
            && let Some(identity) = self.strangers.remove(&node)
        {
            self.known.remove(&identity);
            self.names.remove(&node);
            self.classes.remove(&node);
        }
    }

    /// From its first answer that counts on, a node is remembered for good.
    pub(crate) fn introduce(&mut self, node: NodeId) {
        let Some(identity) = self.strangers.remove(&node) else { return };
        self.record(Fact::Node { node, identity });
        if let Some(&class) = self.classes.get(&node) {
            self.record(Fact::Class { node, class });
        }
    }

    fn seat(&mut self, now: Time, seat: &Seat, node: NodeId, hello: (Identity, Caps)) {
        let (identity, caps) = hello;
        let conn = seat.conn;
        let caps = clipped(caps);
        self.names.insert(node, caps.name.clone());
        self.note_class(node, caps.class);
        self.conns.insert(conn, node);
        let timer = now + IDLE_SILENCE;
        self.timers.insert((timer, node));
        let peer = Peer {
            node,
            identity,
            conn,
            caps,
            trusted: seat.trusted,
            network: seat.network,
            standing: [Standing::Newcomer; 3],
            barred: [false; 3],
            links: None,
            condition: Condition::default(),
            paused: false,
            declined: BTreeSet::new(),
            round_trip: None,
            silent: false,
            joined: now,
            heard: now,
            timer,
            loans: BTreeSet::new(),
            late: 0,
            rests_until: None,
            lanes: [LaneLoad::default(); 3],
            told: BTreeSet::new(),
            forgot: BTreeSet::new(),
            paces: BTreeMap::new(),
            units_done: 0,
            units_failed: 0,
            busy: Meter::default(),
            last_job: None,
        };
        self.peers.insert(node, peer);
        self.note_standing(node);
    }

    fn note_class(&mut self, node: NodeId, class: u64) {
        if self.classes.get(&node).copied().unwrap_or(0) != class {
            self.classes.insert(node, class);
            if !self.strangers.contains_key(&node) {
                self.record(Fact::Class { node, class });
            }
        }
    }

    pub(crate) fn disconnected(&mut self, now: Time, conn: Conn) {
        let Some(node) = self.conns.remove(&conn) else { return };
        let loans = self.loans_of(node);
        self.miss(now, node);
        if let Some(peer) = self.peers.get_mut(&node) {
            self.timers.remove(&(peer.timer, node));
            // Nothing more for it, whatever giving its units back sets free.
            peer.silent = true;
        }
        self.remember(node, &loans);
        self.give_back(now, &loans, true);
        for hungry in &mut self.hungry {
            hungry.remove(&node);
        }
        let peer = self.peers.remove(&node);
        self.part(node);
        self.leave_swarms(node);
        self.untry(node);
        self.stir_crews(now);
        self.note_standing(node);
        if let Some(peer) = peer {
            self.rest_no_more(node, &peer);
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
        let Some(&node) = self.conns.get(&conn) else { return };
        // Only what says how units fare extends leases: mere talk is no progress.
        if matches!(message, FromNode::Alive { .. }) {
            self.heard(now, node);
        }
        match message {
            // Answers come as `Input::Done`, greetings as `Input::Connected`.
            FromNode::Hello(_) | FromNode::Done(_) => {}
            // What is made up sets nothing free, and asking everybody has its price.
            FromNode::Failed { attempt, .. } if !self.holds(node, attempt) => {}
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
            FromNode::Share(say) => self.share_said(now, node, say),
        }
        self.feed(now, node);
    }

    /// The donor changed what is lent: units the node can no longer do go to others.
    fn offered(&mut self, now: Time, node: NodeId, caps: Caps) {
        let mut caps = clipped(caps);
        // Found out once for a connection: whoever changes it back and forth must not fill the disk.
        let before = self.peers.get(&node).map_or(0, |peer| peer.caps.class);
        caps.class = if before == 0 { caps.class } else { before };
        let unfit: Vec<_> = self
            .loans_of(node)
            .into_iter()
            .filter(|attempt| {
                let job = self.loans.get(attempt).and_then(|loan| self.jobs.get(&loan.job));
                job.is_some_and(|job| !caps.meets(&job.spec.needs))
            })
            .collect();
        self.note_class(node, caps.class);
        if let Some(peer) = self.peers.get_mut(&node) {
            self.names.insert(node, caps.name.clone());
            peer.caps = caps;
            let conn = peer.conn;
            if !unfit.is_empty() {
                let message = ToNode::Revoke(unfit.clone());
                self.outputs.push_back(Output::Send { conn, message });
            }
        }
        self.give_back(now, &unfit, false);
        self.feed_hungry(now);
    }

    pub(crate) fn heard(&mut self, now: Time, node: NodeId) {
        if let Some(peer) = self.peers.get_mut(&node) {
            peer.heard = now;
            peer.silent = false;
        }
    }

    /// Timers are lazy: one that fires early for a peer heard since is set again.
    pub(crate) fn look_for_silence(&mut self, now: Time) {
        while let Some(&(time, node)) = self.timers.first() {
            if time > now {
                return;
            }
            self.timers.remove(&(time, node));
            let Some(peer) = self.peers.get_mut(&node) else { continue };
            let patience = if peer.loans.is_empty() { IDLE_SILENCE } else { SILENCE };
            let due = peer.heard + patience;
            if due > now {
                peer.timer = due;
                self.timers.insert((due, node));
                continue;
            }
            let conn = peer.conn;
            if peer.loans.is_empty() {
                self.outputs.push_back(Output::Refuse { conn, refusal: Refusal::Closing });
                self.timers.insert((time, node));
                self.disconnected(now, conn);
                continue;
            }
            peer.silent = true;
            peer.timer = peer.heard + IDLE_SILENCE;
            self.timers.insert((peer.timer, node));
            let loans = self.loans_of(node);
            let message = ToNode::Revoke(loans.clone());
            self.outputs.push_back(Output::Send { conn, message });
            self.remember(node, &loans);
            self.broke(now, node);
            // A starved device falls silent through no fault of the unit.
            self.give_back(now, &loans, false);
            self.feed_hungry(now);
        }
    }

    pub(super) fn holds(&self, node: NodeId, attempt: Attempt) -> bool {
        self.loans.get(&attempt).is_some_and(|loan| loan.node == node)
    }

    fn loans_of(&self, node: NodeId) -> Vec<Attempt> {
        self.peers.get(&node).map(|peer| peer.loans.iter().copied().collect()).unwrap_or_default()
    }
}

/// Texts of a stranger are cut to size before they are kept.
fn clipped(mut caps: Caps) -> Caps {
    caps.name = clip(caps.name, MAX_TEXT_BYTES);
    if let Some(gpu) = &mut caps.gpu {
        gpu.name = clip(core::mem::take(&mut gpu.name), MAX_TEXT_BYTES);
        gpu.backend = clip(core::mem::take(&mut gpu.backend), MAX_TEXT_BYTES);
    }
    caps
}
