//! The connected nodes, and every list that follows from what they are: who is on which connection, who is to be
//! looked at when, who rests, who could do more. A list changes with its peer, here and nowhere else.
//!
//! - [`peer`]: one of them
//! - [`register`]: everybody who ever joined

mod peer;
mod register;

pub(crate) use peer::{Arrival, Peer};
pub(crate) use register::Register;
pub use register::Seen;

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use core::ops::Bound::{Excluded, Unbounded};
use shoal_protocol::limit::{IDLE_SILENCE, SILENCE};
use shoal_protocol::{Attempt, Footprint, Lane, Micros, NodeId, PerLane, Time};

use crate::state::Conn;
use crate::verify::{Standing, Trust};

#[derive(Default)]
pub(crate) struct Peers {
    /// Boxed: a peer is large, and whoever looks for one among thousands reads only numbers on the way.
    peers: BTreeMap<NodeId, Box<Peer>>,
    conns: BTreeMap<Conn, NodeId>,
    /// When to look whether a peer fell silent; one entry for each peer.
    timers: BTreeSet<(Time, NodeId)>,
    /// When peers that rest are fed again.
    resting: BTreeSet<(Time, NodeId)>,
    /// The operator's own.
    own: BTreeSet<NodeId>,
    /// For each lane, peers whose word weighs more than a newcomer's.
    elders: PerLane<BTreeSet<NodeId>>,
    /// For each lane, peers that could compute more than they hold.
    hungry: PerLane<BTreeSet<NodeId>>,
    /// Who of those was asked last.
    asked: PerLane<Option<NodeId>>,
}

impl Peers {
    pub(crate) fn get(&self, node: &NodeId) -> Option<&Peer> {
        self.peers.get(node).map(Box::as_ref)
    }

    pub(crate) fn get_mut(&mut self, node: &NodeId) -> Option<&mut Peer> {
        self.peers.get_mut(node).map(Box::as_mut)
    }

    pub(crate) fn contains_key(&self, node: &NodeId) -> bool {
        self.peers.contains_key(node)
    }

    pub(crate) fn len(&self) -> usize {
        self.peers.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.peers.is_empty()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&NodeId, &Peer)> {
        self.peers.iter().map(|(node, peer)| (node, peer.as_ref()))
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &Peer> + Clone {
        self.peers.values().map(Box::as_ref)
    }

    /// Who is on this connection.
    pub(crate) fn on(&self, conn: Conn) -> Option<NodeId> {
        self.conns.get(&conn).copied()
    }

    pub(crate) fn insert(&mut self, peer: Peer) {
        self.conns.insert(peer.conn, peer.node);
        self.timers.insert((peer.timer, peer.node));
        if peer.trusted {
            self.own.insert(peer.node);
        }
        self.peers.insert(peer.node, Box::new(peer));
    }

    /// The connection is gone: nothing more for its node, whatever giving its units back sets free.
    pub(crate) fn cut_off(&mut self, conn: Conn) -> Option<NodeId> {
        let node = self.conns.remove(&conn)?;
        if let Some(peer) = self.peers.get_mut(&node) {
            self.timers.remove(&(peer.timer, node));
            peer.silent = true;
        }
        Some(node)
    }

    /// Nobody has anything of it any more.
    pub(crate) fn remove(&mut self, node: NodeId) -> Option<Box<Peer>> {
        for lane in Lane::ALL {
            self.hungry[lane].remove(&node);
            self.elders[lane].remove(&node);
        }
        self.own.remove(&node);
        let peer = self.peers.remove(&node)?;
        if let Some(until) = peer.rests_until {
            self.resting.remove(&(until, node));
        }
        Some(peer)
    }

    pub(crate) fn next_timeout(&self) -> Option<Time> {
        self.timers.first().into_iter().chain(self.resting.first()).map(|(time, _)| *time).min()
    }
}

/// Silence and rest.
impl Peers {
    pub(crate) fn heard(&mut self, now: Time, node: NodeId) {
        if let Some(peer) = self.peers.get_mut(&node) {
            peer.heard = now;
            peer.silent = false;
        }
    }

    /// It has something to do from now on: silence is noticed sooner.
    pub(crate) fn expect_word(&mut self, now: Time, node: NodeId) {
        let Some(peer) = self.peers.get_mut(&node) else { return };
        look_within(&mut self.timers, peer, now + SILENCE);
        // What it did not say while it had nothing to say does not count.
        peer.heard = peer.heard.max(now);
    }

    /// Who may have been silent for too long. Timers are lazy: one that fires early is set again.
    pub(crate) fn first_due(&mut self, now: Time) -> Option<NodeId> {
        while let Some(&(time, node)) = self.timers.first().filter(|(time, _)| *time <= now) {
            if self.peers.contains_key(&node) {
                return Some(node);
            }
            self.timers.remove(&(time, node));
        }
        None
    }

    pub(crate) fn set_timer(&mut self, node: NodeId, time: Time) {
        let Some(peer) = self.peers.get_mut(&node) else { return };
        move_timer(&mut self.timers, peer, time);
    }

    /// Gets no work until it speaks.
    pub(crate) fn fall_silent(&mut self, node: NodeId) {
        let Some(peer) = self.peers.get_mut(&node) else { return };
        peer.silent = true;
        let until = peer.heard + IDLE_SILENCE;
        self.set_timer(node, until);
    }

    /// Gets nothing until then.
    pub(crate) fn rest(&mut self, node: NodeId, until: Time) {
        let Some(peer) = self.peers.get_mut(&node) else { return };
        if let Some(before) = peer.rests_until.replace(until) {
            self.resting.remove(&(before, node));
        }
        self.resting.insert((until, node));
    }

    /// One whose rest is over.
    pub(crate) fn wake(&mut self, now: Time) -> Option<NodeId> {
        let &(until, node) = self.resting.first().filter(|(until, _)| *until <= now)?;
        self.resting.remove(&(until, node));
        if let Some(peer) = self.peers.get_mut(&node) {
            peer.rests_until = None;
        }
        Some(node)
    }
}

/// Looks at a peer then at the latest. Says whether its timer would have fired later.
fn look_within(timers: &mut BTreeSet<(Time, NodeId)>, peer: &mut Peer, latest: Time) -> bool {
    let sooner = peer.timer > latest;
    if sooner {
        move_timer(timers, peer, latest);
    }
    sooner
}

fn move_timer(timers: &mut BTreeSet<(Time, NodeId)>, peer: &mut Peer, time: Time) {
    timers.remove(&(peer.timer, peer.node));
    peer.timer = time;
    timers.insert((time, peer.node));
}

/// Standing.
impl Peers {
    pub(crate) fn own(&self) -> &BTreeSet<NodeId> {
        &self.own
    }

    pub(crate) fn elders(&self, lane: Lane) -> &BTreeSet<NodeId> {
        &self.elders[lane]
    }

    /// Says again how a peer stands in each lane; whether it may do more or less than before.
    pub(crate) fn note_standing(&mut self, node: NodeId, trust: impl Fn(Lane) -> Trust) -> bool {
        let Some(peer) = self.peers.get_mut(&node) else { return false };
        let mut turned = false;
        for lane in Lane::ALL {
            let trust = trust(lane);
            let standing = match trust.is_veteran() {
                _ if peer.trusted => Standing::Operator,
                true => Standing::Veteran,
                false => Standing::Newcomer,
            };
            let barred = !peer.trusted && trust.is_barred();
            turned |= peer.barred[lane] != barred;
            peer.standing[lane] = standing;
            peer.barred[lane] = barred;
            if standing == Standing::Newcomer || barred {
                self.elders[lane].remove(&node);
            } else {
                self.elders[lane].insert(node);
            }
        }
        turned
    }
}

/// Hunger and loans.
impl Peers {
    pub(crate) fn hungry(&self, lane: Lane) -> &BTreeSet<NodeId> {
        &self.hungry[lane]
    }

    pub(crate) fn is_any_hungry(&self) -> bool {
        self.hungry.values().any(|hungry| !hungry.is_empty())
    }

    /// Says again in which lanes a peer could compute more than it holds.
    pub(crate) fn set_hungry(&mut self, node: NodeId, hungry: PerLane<bool>) {
        let Some(peer) = self.peers.get_mut(&node).filter(|peer| peer.hungry != hungry) else {
            return;
        };
        peer.hungry = hungry;
        for (lane, hungry) in hungry.iter() {
            let all = &mut self.hungry[lane];
            let _ = if *hungry { all.insert(node) } else { all.remove(&node) };
        }
    }

    /// Goes round those that could compute more.
    pub(crate) fn next_hungry(&mut self, lane: Lane) -> Option<NodeId> {
        let hungry = &self.hungry[lane];
        let last = &mut self.asked[lane];
        let after = last.map_or(Unbounded, Excluded);
        let next = hungry.range((after, Unbounded)).next().or_else(|| hungry.first());
        *last = next.copied();
        *last
    }

    /// Books a loan with its holder. From the first on, silence is noticed sooner.
    pub(crate) fn lend(
        &mut self,
        now: Time,
        node: NodeId,
        attempt: Attempt,
        (lane, takes, expected): (Lane, Footprint, Micros),
    ) -> Option<&Peer> {
        let peer = self.peers.get_mut(&node)?;
        if peer.loans().is_empty() && look_within(&mut self.timers, peer, now + SILENCE) {
            peer.heard = now;
        }
        peer.take(attempt, lane, takes, expected);
        Some(peer)
    }

    /// Part of [`crate::Scheduler::check`]: every list is what the peers make it.
    pub(crate) fn check(&self) {
        assert_eq!(self.conns.len(), self.peers.len(), "one connection for each peer");
        assert_eq!(self.timers.len(), self.peers.len(), "one timer for each peer");
        for (node, peer) in &self.peers {
            assert_eq!(*node, peer.node, "node {node}: a peer under a wrong name");
            assert_eq!(self.conns.get(&peer.conn), Some(node), "node {node}: connection");
            assert!(self.timers.contains(&(peer.timer, *node)), "node {node}: timer");
            assert_eq!(self.own.contains(node), peer.trusted, "node {node}: the operator's own");
            peer.check();
        }
        let resting = self.peers.values().filter_map(|peer| Some((peer.rests_until?, peer.node)));
        let resting: BTreeSet<_> = resting.collect();
        assert_eq!(resting, self.resting, "peers that rest");
        assert!(self.own.iter().all(|node| self.peers.contains_key(node)), "own strangers");
        for lane in Lane::ALL {
            let elders = self
                .peers
                .values()
                .filter(|peer| peer.standing(lane) != Standing::Newcomer && !peer.is_barred(lane));
            let elders = elders.map(|peer| &peer.node);
            assert!(self.elders[lane].iter().eq(elders), "elders of {lane:?}");
        }
        for lane in Lane::ALL {
            let hungry = self.peers.values().filter(|peer| peer.hungry[lane]);
            let hungry = hungry.map(|peer| &peer.node);
            assert!(self.hungry[lane].iter().eq(hungry), "hungry for {lane:?}");
        }
    }
}
