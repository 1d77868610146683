//! A crew of meshes, the relay between them and their radios. Every fault comes from the seed.

use std::collections::BTreeMap;
use std::sync::Arc;

use shoal_node::mesh::*;
use shoal_protocol::*;
use shoal_seal::{Keys, Rights};
use shoal_sim::{Clock, Clockwork, Wire};

use crate::crew::{CREW, UNIX, coordinator};

/// The relay while nothing goes wrong.
pub(crate) const CALM: Wire =
    Wire { delay: Micros(20_000), jitter: Micros(0), lost: 0, doubled: 0 };

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
    pub(crate) clock: Clock<OnTheWay>,
    pub(crate) epoch: u32,
    pub(crate) members: Vec<NodeId>,
    pub(crate) nodes: BTreeMap<NodeId, Node>,
    pub(crate) relay: Wire,
    /// So often, in a million, an old frame is said again beside a new one.
    pub(crate) replayed: u64,
    /// The relay loses every wish to be called.
    pub(crate) loses_asks: bool,
    /// Radios find each other.
    pub(crate) ice: bool,
    pub(crate) channels: BTreeMap<(NodeId, NodeId), Channel>,
    /// All that ever passed the relay, to be replayed, and what the relay must never see.
    pub(crate) seen: Vec<Vec<u8>>,
    pub(crate) relayed: u64,
}

impl World {
    pub(crate) fn new(seed: u64, count: u64) -> World {
        let mut world = World {
            clock: Clock::new(seed),
            epoch: 0,
            members: (1..=count).map(NodeId).collect(),
            nodes: BTreeMap::new(),
            relay: CALM,
            replayed: 0,
            loses_asks: false,
            ice: false,
            channels: BTreeMap::new(),
            seen: Vec::new(),
            relayed: 0,
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
        let seed = hash(&self.chance().to_le_bytes()).0;
        let config = MeshConfig {
            me: node,
            coordinator: coordinator(),
            keys: Keys::new([key_seed; 32]),
            seed,
            unix_at_zero,
            tries_direct,
        };
        let node_state = Node {
            mesh: Mesh::new(self.clock.now, config),
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
        let now = self.clock.now;
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
                    self.clock.after(Micros(5_000), way);
                }
            }
            MeshOutput::Radio(to, act) => self.radio(node, to, act),
            MeshOutput::Message { from, channel, bytes } => {
                self.clock.trace.update(&hash(&bytes).0);
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
        if ask && self.loses_asks {
            return;
        }
        for late in self.relay.copies(&mut self.clock.random) {
            self.clock.after(late, OnTheWay::Relay { to, bytes: bytes.clone() });
        }
        if self.clock.random.chance(self.replayed) {
            let at = self.chance() as usize % self.seen.len();
            let old = self.seen[at].clone();
            let (header, _) = frame::split(&old).unwrap();
            self.post(header.destination, old);
        }
    }

    pub(crate) fn post(&mut self, to: NodeId, bytes: Vec<u8>) {
        let late = self.relay.late(&mut self.clock.random);
        self.clock.after(late, OnTheWay::Relay { to, bytes });
    }
}

impl Clockwork for World {
    type Event = OnTheWay;

    fn clock(&self) -> &Clock<OnTheWay> {
        &self.clock
    }

    fn clock_mut(&mut self) -> &mut Clock<OnTheWay> {
        &mut self.clock
    }

    fn due(&self) -> Option<Time> {
        self.nodes.values().filter_map(|node| node.mesh.next_timeout()).min()
    }

    fn wake(&mut self) {
        let all: Vec<_> = self.nodes.keys().copied().collect();
        all.into_iter().for_each(|node| self.give(node, MeshInput::Tick));
    }

    fn happens(&mut self, event: OnTheWay) {
        match event {
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
    }
}

pub(crate) fn pair(one: NodeId, two: NodeId) -> (NodeId, NodeId) {
    (one.min(two), one.max(two))
}
