//! Blobs that nodes give each other: who needs what, who has which pieces, and where each piece comes from. The
//! coordinator hands a piece out while nobody has it, about once; later askers get it from those who have it. Who
//! waits in vain gets it from the coordinator after all. Nothing of it is durable: nodes say again what they have.
//!
//! - [`claim`]: who has or needs which blob
//! - [`hear`]: what nodes say about blobs
//! - [`copies`]: how many have each piece
//! - [`deal`]: which piece from where
//! - [`meet`]: who is linked to whom
//! - [`look`]: what only time brings about, and what must hold

mod claim;
mod copies;
mod deal;
mod hear;
mod look;
mod meet;

use alloc::collections::{BTreeMap, BTreeSet};
use shoal_protocol::limit::PIECE_BYTES;
use shoal_protocol::{BlobRef, CrewId, Hash, NodeId, PieceSet, Time};

use copies::Copies;

/// Blobs with books at a time; a node whose blob finds no room fetches it from the coordinator.
const MAX_SWARMS: usize = 4096;
/// So many nodes say that one gives wrong bytes: then it gives nothing any more. A single one may lie.
const BELIEVED: usize = 2;

#[derive(Default)]
pub(crate) struct Swarms {
    /// Blobs that the coordinator stores, as far as somebody spoke of them. Of no others are there books.
    stored: BTreeSet<BlobRef>,
    blobs: BTreeMap<BlobRef, Swarm>,
    /// The blobs each node has a part in.
    of: BTreeMap<NodeId, BTreeSet<BlobRef>>,
    /// Who needs what, and who of those was looked at last.
    wanting: BTreeSet<(BlobRef, NodeId)>,
    looked_at: Option<(BlobRef, NodeId)>,
    /// Nodes that may give now and might not before, or the other way round: their copies are to be counted anew.
    stale: BTreeSet<NodeId>,
    /// With whom each node exchanges pieces.
    links: BTreeMap<NodeId, BTreeMap<NodeId, CrewId>>,
    pairs: BTreeMap<CrewId, Pair>,
    /// Pairs that found no direct way, or fell out: not tried before then.
    far: BTreeMap<[NodeId; 2], Time>,
    givers: BTreeMap<NodeId, Giver>,
    /// Bytes that went from node to node.
    between: u64,
    /// When to look at them.
    due: Option<Time>,
}

/// Those who have or need one blob.
struct Swarm {
    parts: BTreeMap<NodeId, Part>,
    copies: Copies,
}

/// One node's part in a blob.
struct Part {
    has: PieceSet,
    /// Pieces it needs and does not have. One that needs nothing more gives what it has, be it all or not.
    lacks: PieceSet,
    /// Pieces it was told to take.
    asked: BTreeMap<u32, Asked>,
    /// Nodes that failed it with this blob.
    shunned: BTreeSet<NodeId>,
    /// When it last got something from a node, or what nobody had.
    fed: Time,
    /// When the coordinator last gave it what others have.
    resorted: Time,
    /// Nobody can give it anything: the coordinator gives all.
    alone: bool,
    /// Its pieces are counted in `copies`.
    counted: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Asked {
    /// `None` is the coordinator.
    from: Option<NodeId>,
    at: Time,
}

/// Two nodes that can exchange pieces.
struct Pair {
    nodes: [NodeId; 2],
    /// Whether each says that there is a direct way.
    near: [bool; 2],
    made: Time,
    used: Time,
    /// What each was told to give to the other.
    gives: BTreeSet<(NodeId, BlobRef)>,
}

impl Pair {
    /// A piece that goes by the relay goes through the coordinator twice: worse than none.
    fn is_near(&self) -> bool {
        self.near == [true, true]
    }
}

/// What a node gave to others.
#[derive(Clone, Debug, Default)]
struct Giver {
    bytes: u64,
    /// Pieces on their way from it.
    load: usize,
    /// Who says that it gives wrong bytes.
    accusers: BTreeSet<NodeId>,
}

impl Swarms {
    pub(crate) fn next_timeout(&self) -> Option<Time> {
        self.due
    }

    /// Bytes that a node gave to others, as those say.
    pub(crate) fn given_by(&self, node: NodeId) -> u64 {
        self.givers.get(&node).map_or(0, |giver| giver.bytes)
    }

    /// Bytes of a blob that a node has of those it needs, and all of those, while some are missing.
    pub(crate) fn fetched(&self, node: NodeId, hash: Hash) -> Option<(u64, u64)> {
        let mut its = self.of.get(&node)?.iter();
        let blob = its.find(|blob| blob.hash == hash)?;
        let part = self.blobs.get(blob)?.parts.get(&node)?;
        let bytes = |pieces: u32| (u64::from(pieces) * PIECE_BYTES).min(blob.size);
        let (has, lacks) = (part.has.count(), part.lacks.count());
        (lacks > 0).then(|| (bytes(has), bytes(has + lacks)))
    }

    /// How many say that it gave them other bytes than it should.
    pub(crate) fn accusers_of(&self, node: NodeId) -> usize {
        self.givers.get(&node).map_or(0, |giver| giver.accusers.len())
    }
}

/// The exchange of blobs as people see it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SwarmView {
    /// Blobs that somebody needs or has.
    pub blobs: u64,
    /// How many are needed now, each as often as there are nodes that need it.
    pub waiting: u64,
    /// Pairs of nodes that can exchange pieces.
    pub links: u64,
    /// Bytes that went from node to node since the start.
    pub between: u64,
}

impl crate::Scheduler {
    pub fn swarms(&self) -> SwarmView {
        SwarmView {
            blobs: self.swarms.blobs.len() as u64,
            waiting: self.swarms.wanting.len() as u64,
            links: self.swarms.pairs.values().filter(|pair| pair.is_near()).count() as u64,
            between: self.swarms.between,
        }
    }

    /// Whether a node can be linked to others now.
    fn may_meet(&self, node: NodeId) -> bool {
        self.peers.get(&node).is_some_and(|peer| !peer.paused && peer.links.is_some())
    }

    /// Whether it may be asked for pieces: that costs its donor neither money nor battery, and few call it a liar.
    fn may_give(&self, node: NodeId) -> bool {
        let Some(condition) = self.peers.get(&node).map(|peer| peer.condition) else {
            return false;
        };
        let on_battery = condition.battery_percent.is_some() && !condition.charging;
        let believed = self.swarms.accusers_of(node) < BELIEVED;
        self.may_meet(node) && !condition.metered && !on_battery && believed
    }
}
