//! One node's links to the other members of a crew: they agree on keys, seal what the relay carries, show
//! their tokens, and climb from the relay to a direct channel and back. Pure; its owner is a crew's member.
//!
//! The contract is the brains': one [`MeshInput`] with the time, then drain [`Mesh::poll_output`].
//!
//! `enlist` knows who belongs to the crew; `shake` agrees on keys with one peer, `line` is what comes of it: a
//! link, its seal and what its peer may do; `radio` and `climb` are the ladder; `peer` puts these together; `control`
//! has the words of channel 0; `desk` is what all peers share.

mod climb;
mod control;
mod desk;
mod enlist;
mod hear;
mod line;
mod peer;
mod radio;
mod shake;
mod waiting;

pub use control::{CONTROL, MAX_RADIO_BYTES};
pub use desk::MeshDropped;

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use shoal_protocol::limit::MAX_MEMBERS;
use shoal_protocol::{Enlist, LinkReport, NodeId, Path, PublicKey, Time};
use shoal_seal::Keys;

use crate::session::RadioDo;
use desk::Desk;
use peer::OtherMember;

/// Whose links they are.
#[derive(Clone)]
pub struct MeshConfig {
    pub me: NodeId,
    pub coordinator: PublicKey,
    /// The other half of the key in this node's `Enlist`.
    pub keys: Keys,
    /// Fresh randomness, used for nothing else and for no other mesh: fresh keys come out of it.
    pub seed: [u8; 32],
    /// Unix time in microseconds at `Time(0)`, to see whether tokens are still good.
    pub unix_at_zero: u64,
    /// The shell has a radio for direct links.
    pub tries_direct: bool,
}

/// One change in the mesh's world.
#[derive(Clone, Debug)]
pub enum MeshInput<'a> {
    /// Who belongs to the crew, in the first or in a new epoch. All that was being said is forgotten.
    Enlist(&'a Enlist),
    /// The socket to the coordinator is open and greeted, or lost.
    RelayUp,
    RelayDown,
    /// A whole frame from that socket.
    Relay(&'a [u8]),
    /// The radio has a direct channel to that node, or has it no more (or gave up trying). Of a channel from
    /// before its last `Dial`, `Listen` or `Hang` nothing is said.
    DirectUp(NodeId),
    DirectDown(NodeId),
    /// A whole frame from that channel.
    Direct(NodeId, &'a [u8]),
    /// Words of this shell's radio for that node's radio.
    Radio(NodeId, Vec<u8>),
    /// Say this to that member. It waits until there is a link. Channels of programs are 1 and more.
    Send {
        to: NodeId,
        channel: u16,
        message: Arc<Vec<u8>>,
    },
    /// Take nothing more of that member for now (`true`), or again.
    Hold(NodeId, bool),
    /// Nothing but time passed.
    Tick,
}

/// One thing to do, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MeshOutput {
    /// Send this on the socket to the coordinator: a whole frame, sealed.
    Relay(Vec<u8>),
    /// Send this on the direct channel to that node: a whole frame.
    Direct(NodeId, Vec<u8>),
    /// The radio for that node has something to do. `Dial` and `Listen` begin anew.
    Radio(NodeId, RadioDo),
    /// That member said this, and may.
    Message { from: NodeId, channel: u16, bytes: Vec<u8> },
    /// Not said: too much is waiting, it is too large, or there is no such member to talk to.
    Refused { to: NodeId, channel: u16 },
    /// What is said to that node goes this way from now on.
    Using(NodeId, Path),
    /// How the link is doing, on the way in use.
    Report(LinkReport),
    /// There is something to say to that member, and nothing of it arrives for seconds.
    Slow(NodeId),
    /// That member did what no honest one does.
    Bad { node: NodeId, why: String },
}

pub struct Mesh {
    desk: Desk,
    peers: BTreeMap<NodeId, OtherMember>,
}

impl Mesh {
    pub fn new(now: Time, config: MeshConfig) -> Mesh {
        Mesh { desk: Desk::new(now, config), peers: BTreeMap::new() }
    }

    pub fn handle(&mut self, now: Time, input: MeshInput<'_>) {
        match input {
            MeshInput::Enlist(enlist) => self.enlist(now, enlist),
            MeshInput::RelayUp => self.relay(now, true),
            MeshInput::RelayDown => self.relay(now, false),
            MeshInput::Relay(frame) => self.hear(now, frame),
            MeshInput::Direct(node, frame) => {
                self.with(node, |peer, desk| peer.hear_direct(now, desk, frame));
            }
            MeshInput::DirectUp(node) => self.with(node, |peer, desk| peer.rise(now, desk)),
            MeshInput::DirectDown(node) => self.with(node, |peer, desk| peer.fall(now, desk)),
            MeshInput::Radio(node, words) => {
                self.with(node, |peer, desk| peer.radio_says(now, desk, &words));
            }
            MeshInput::Send { to, channel, message } => match self.peers.get_mut(&to) {
                Some(peer) if channel != CONTROL => {
                    peer.send(now, &mut self.desk, channel, message);
                }
                Some(_) | None => self.desk.put(MeshOutput::Refused { to, channel }),
            },
            MeshInput::Hold(node, hold) => {
                self.with(node, |peer, desk| peer.hold(now, desk, hold));
            }
            MeshInput::Tick => self.peers.values_mut().for_each(|peer| {
                if peer.next_timeout(&self.desk).is_some_and(|due| due <= now) {
                    peer.tick(now, &mut self.desk);
                }
            }),
        }
    }

    pub fn poll_output(&mut self) -> Option<MeshOutput> {
        self.desk.take()
    }

    /// When to say `Tick` if nothing else happens.
    pub fn next_timeout(&self) -> Option<Time> {
        self.peers.values().filter_map(|peer| peer.next_timeout(&self.desk)).min()
    }

    /// Whether both have shown their tokens: what is said now arrives, and what comes is heard.
    pub fn is_open(&self, node: NodeId) -> bool {
        self.peers.get(&node).is_some_and(OtherMember::is_open)
    }

    /// Bytes of messages that member has yet to take.
    pub fn queued_bytes(&self, node: NodeId) -> u64 {
        self.peers.get(&node).map_or(0, OtherMember::queued_bytes)
    }

    /// Whether a member has yet to take something that was said.
    pub fn is_busy(&self) -> bool {
        self.peers.values().any(OtherMember::is_busy)
    }

    /// Frames that were not taken, and why. What links themselves dropped is not in it.
    pub fn dropped(&self) -> MeshDropped {
        self.desk.dropped
    }

    /// Panics where an invariant does not hold.
    pub fn check(&self) {
        assert!(self.peers.len() < MAX_MEMBERS, "more peers than a crew has");
        assert!(!self.peers.contains_key(&self.desk.me()), "a link to itself");
        self.peers.values().for_each(|peer| peer.check(&self.desk));
    }

    fn relay(&mut self, now: Time, up: bool) {
        self.desk.relay_up = up;
        self.peers.values_mut().for_each(|peer| peer.relay(now, &mut self.desk, up));
    }

    fn with(&mut self, node: NodeId, act: impl FnOnce(&mut OtherMember, &mut Desk)) {
        if let Some(peer) = self.peers.get_mut(&node) {
            act(peer, &mut self.desk);
        }
    }
}
