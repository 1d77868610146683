//! A crew of meshes, the relay between them and their radios, in virtual time. Every fault comes from the seed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use shoal_node::mesh::*;
use shoal_protocol::*;
use shoal_seal::{Keys, Rights};

use crate::crew::{CREW, UNIX, coordinator};

/// What the relay does to frames.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Faults {
    pub(crate) lost_per_mille: u64,
    pub(crate) doubled_per_mille: u64,
    /// Frames come up to this much later, so that they overtake each other.
    pub(crate) jitter: u64,
    /// An old frame is said again beside a new one.
    pub(crate) replayed_per_mille: u64,
}

pub(crate) struct Node {
    pub(crate) mesh: Mesh,
    pub(crate) online: bool,
    pub(crate) key_seed: u8,
    pub(crate) rights: Rights,
    pub(crate) buffers: (u32, u32),
    /// From the world's beginning.
    pub(crate) token_lives: Micros,
    pub(crate) got: Vec<(NodeId, u16, Vec<u8>)>,
    /// Everything else it said.
    pub(crate) said: Vec<MeshOutput>,
}

pub(crate) enum OnTheWay {
    Relay {
        to: NodeId,
        bytes: Vec<u8>,
    },
    Direct {
        from: NodeId,
        to: NodeId,
        life: u64,
        bytes: Vec<u8>,
    },
    /// The radios found each other.
    Found {
        pair: (NodeId, NodeId),
        life: u64,
    },
}

/// The radios of two nodes.
#[derive(Clone, Copy, Default)]
pub(crate) struct Channel {
    /// Frames and words of an earlier life are lost.
    pub(crate) life: u64,
    pub(crate) up: bool,
    /// Nothing passes, and nobody is told.
    pub(crate) dead: bool,
}

impl Channel {
    pub(crate) fn fall(&mut self) {
        *self = Channel { life: self.life + 1, ..Channel::default() };
    }
}

pub(crate) struct World {
    pub(crate) now: Time,
    pub(crate) epoch: u32,
    pub(crate) members: Vec<NodeId>,
    pub(crate) nodes: BTreeMap<NodeId, Node>,
    pub(crate) faults: Faults,
    /// The relay loses every wish to be called.
    pub(crate) loses_asks: bool,
    /// Radios find each other.
    pub(crate) ice: bool,
    pub(crate) channels: BTreeMap<(NodeId, NodeId), Channel>,
    on_the_way: BTreeMap<(Time, u64), OnTheWay>,
    /// All that ever passed the relay, to be replayed, and what the relay must never see.
    pub(crate) seen: Vec<Vec<u8>>,
    pub(crate) relayed: u64,
    count: u64,
    random: u64,
    pub(crate) trace: Hasher,
}

impl World {
    pub(crate) fn new(seed: u64, count: u64) -> World {
        let mut world = World {
            now: Time(1_000_000),
            epoch: 0,
            members: (1..=count).map(NodeId).collect(),
            nodes: BTreeMap::new(),
            faults: Faults::default(),
            loses_asks: false,
            ice: false,
            channels: BTreeMap::new(),
            on_the_way: BTreeMap::new(),
            seen: Vec::new(),
            relayed: 0,
            count: 0,
            random: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            trace: Hasher::new(),
        };
        for node in world.members.clone() {
            world.start(node, node.0 as u8, true);
        }
        world
    }

    /// A node's mesh begins, or begins anew. The relay is there for it.
    pub(crate) fn start(&mut self, node: NodeId, key_seed: u8, tries_direct: bool) {
        self.start_at(node, key_seed, tries_direct, UNIX);
    }

    /// Its clock is what it is.
    pub(crate) fn start_at(
        &mut self,
        node: NodeId,
        key_seed: u8,
        tries_direct: bool,
        unix_at_zero: u64,
    ) {
        self.count += 1;
        let seed = hash(&[self.count.to_le_bytes(), self.random.to_le_bytes()].concat()).0;
        let config = MeshConfig {
            me: node,
            coordinator: coordinator(),
            keys: Keys::new([key_seed; 32]),
            seed,
            unix_at_zero,
            tries_direct,
        };
        let node_state = Node {
            mesh: Mesh::new(self.now, config),
            online: true,
            key_seed,
            rights: Rights::WRITE,
            buffers: (1, 15),
            token_lives: Micros::from_secs(86_400),
            got: Vec::new(),
            said: Vec::new(),
        };
        self.nodes.insert(node, node_state);
        for (pair, channel) in &mut self.channels {
            if pair.0 == node || pair.1 == node {
                channel.fall();
            }
        }
        self.give(node, MeshInput::RelayUp);
    }

    pub(crate) fn send(&mut self, from: u64, to: u64, channel: u16, bytes: &[u8]) {
        let (to, message) = (NodeId(to), Arc::new(bytes.to_vec()));
        self.give(NodeId(from), MeshInput::Send { to, channel, message });
    }

    pub(crate) fn give(&mut self, node: NodeId, input: MeshInput<'_>) {
        let now = self.now;
        let Some(state) = self.nodes.get_mut(&node) else { return };
        state.mesh.handle(now, input);
        state.mesh.check();
        let outputs: Vec<_> = std::iter::from_fn(|| state.mesh.poll_output()).collect();
        for output in outputs {
            self.act(node, output);
        }
    }

    fn act(&mut self, node: NodeId, output: MeshOutput) {
        match output {
            MeshOutput::Relay(bytes) => self.carry(node, bytes),
            MeshOutput::Direct(to, bytes) => {
                let channel = self.channels.get(&pair(node, to)).copied().unwrap_or_default();
                if channel.up {
                    let way = OnTheWay::Direct { from: node, to, life: channel.life, bytes };
                    self.put(5_000, way);
                }
            }
            MeshOutput::Radio(to, act) => self.radio(node, to, act),
            MeshOutput::Message { from, channel, bytes } => {
                self.trace.update(&hash(&bytes).0);
                self.nodes.get_mut(&node).unwrap().got.push((from, channel, bytes));
            }
            MeshOutput::Refused { .. }
            | MeshOutput::Using(..)
            | MeshOutput::Report(_)
            | MeshOutput::Slow(_)
            | MeshOutput::Bad { .. } => self.nodes.get_mut(&node).unwrap().said.push(output),
        }
    }

    /// The relay: it knows who sends, and drops what is not of the present epoch.
    fn carry(&mut self, from: NodeId, bytes: Vec<u8>) {
        let (header, payload) = frame::split(&bytes).unwrap();
        assert_eq!((header.source, header.crew), (from, CREW), "the relay would refuse it");
        assert_ne!(header.kind, FrameKind::Plain, "unsealed through the relay");
        if self.nodes.get(&from).is_some_and(|node| !node.online) || header.epoch.0 != self.epoch {
            return;
        }
        self.relayed += bytes.len() as u64;
        self.seen.push(bytes.clone());
        let to = header.destination;
        let ask = header.kind == FrameKind::Handshake && payload == [3];
        if self.roll(self.faults.lost_per_mille) || ask && self.loses_asks {
            return;
        }
        if self.roll(self.faults.doubled_per_mille) {
            self.post(to, bytes.clone());
        }
        if self.roll(self.faults.replayed_per_mille) {
            let at = self.chance() as usize % self.seen.len();
            let old = self.seen[at].clone();
            let (header, _) = frame::split(&old).unwrap();
            self.post(header.destination, old);
        }
        self.post(to, bytes);
    }

    pub(crate) fn post(&mut self, to: NodeId, bytes: Vec<u8>) {
        let late = self.chance() % (self.faults.jitter * 1_000 + 1);
        self.put(20_000 + late, OnTheWay::Relay { to, bytes });
    }

    pub(crate) fn put(&mut self, micros: u64, what: OnTheWay) {
        self.count += 1;
        self.on_the_way.insert((self.now + Micros(micros), self.count), what);
    }

    /// Lets this much time pass.
    pub(crate) fn run(&mut self, millis: u64) {
        let end = self.now + Micros::from_millis(millis);
        while self.step(end) {}
        self.now = end;
    }

    /// Until the condition holds; fails after that much time.
    pub(crate) fn until(&mut self, millis: u64, condition: impl Fn(&World) -> bool) -> Micros {
        let (begun, end) = (self.now, self.now + Micros::from_millis(millis));
        while !condition(self) {
            assert!(self.step(end), "it never came to that in {millis} ms");
        }
        self.now - begun
    }

    fn step(&mut self, end: Time) -> bool {
        let arrival = self.on_the_way.first_key_value().map(|((at, _), _)| *at);
        let timers = self.nodes.values().filter_map(|node| node.mesh.next_timeout());
        let timer = timers.min().map(|due| due.max(self.now));
        let Some(at) = arrival.into_iter().chain(timer).min().filter(|at| *at <= end) else {
            return false;
        };
        self.now = at;
        self.trace.update(&at.0.to_le_bytes());
        if arrival != Some(at) {
            let due: BTreeSet<NodeId> = self.nodes.keys().copied().collect();
            due.into_iter().for_each(|node| self.give(node, MeshInput::Tick));
            return true;
        }
        match self.on_the_way.pop_first().unwrap().1 {
            OnTheWay::Relay { to, bytes } => {
                if self.nodes.get(&to).is_some_and(|node| node.online) {
                    self.give(to, MeshInput::Relay(&bytes));
                }
            }
            OnTheWay::Direct { from, to, life, bytes } => {
                let channel = self.channels[&pair(from, to)];
                if channel.up && !channel.dead && channel.life == life {
                    self.give(to, MeshInput::Direct(from, &bytes));
                }
            }
            OnTheWay::Found { pair: (one, two), life } => {
                let channel = self.channels.get_mut(&(one, two)).unwrap();
                if channel.life == life && !channel.up {
                    channel.up = true;
                    self.give(one, MeshInput::DirectUp(two));
                    self.give(two, MeshInput::DirectUp(one));
                }
            }
        }
        true
    }

    fn roll(&mut self, per_mille: u64) -> bool {
        per_mille > 0 && self.chance() % 1_000 < per_mille
    }

    pub(crate) fn chance(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random >> 11
    }
}

pub(crate) fn pair(one: NodeId, two: NodeId) -> (NodeId, NodeId) {
    (one.min(two), one.max(two))
}
