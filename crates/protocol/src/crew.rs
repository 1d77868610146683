//! What a coordinator says to the members of a crew, and they to it. What members say to each other goes in
//! frames and is not the coordinator's business.

use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::frame::FrameKind;
use crate::id::{Attempt, BlobRef, CrewId, Epoch, Identity, JobId, NodeId, Span};
use crate::sign::{LinkKey, Signature};
use crate::time::Micros;

/// A node's place in a crew, for one epoch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Enlist {
    pub crew: CrewId,
    pub epoch: Epoch,
    /// This node's place in `members`.
    pub rank: u8,
    /// By rank.
    pub members: Vec<MemberInfo>,
    /// What this node may do to the others: shown to them, checked by them. Filled by the coordinator's shell.
    #[serde(with = "crate::raw")]
    pub token: Vec<u8>,
    /// STUN and TURN servers for direct links, as URLs; a TURN URL is `turn:host:port user password`.
    pub ice: Vec<String>,
    pub task: CrewTask,
}

/// One of a crew, as the others must know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberInfo {
    pub node: NodeId,
    pub identity: Identity,
    /// What its links are sealed with, signed by its identity.
    pub key: LinkKey,
    pub proof: Signature,
}

/// What the crew is for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum CrewTask {
    Sim(SimTask),
    /// Nothing of the coordinator's: an application's own talk, called for by one of the two.
    Talk,
    /// Two that give each other pieces of blobs.
    Swarm,
    /// A service that several keep ready together.
    Stage(StageTask),
}

/// A service in parts, in a row: what one member makes is the next one's input. The first gets the requests, the last
/// answers them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StageTask {
    pub job: JobId,
    /// Parts of each rank. Together all parts, in order, none empty.
    pub parts: Vec<Span>,
    /// Requests go round and round through all members, each until it is answered.
    pub rounds: bool,
}

/// A simulation from a checkpoint on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SimTask {
    pub job: JobId,
    /// Rows of each rank. Together all rows, in order, none empty, none smaller than the halo.
    pub bands: Vec<Span>,
    /// Steps done already.
    pub from: u64,
    /// The state after `from` steps; empty if the kernel's `init` makes it.
    pub kept: Vec<CheckpointPart>,
    /// Steps between two checkpoints, counted from step 0; 0 for none.
    pub keep_every: u64,
    /// Hands in this node's rows of the final state.
    pub attempt: Attempt,
    /// Only up to this step: its rows are kept and not handed in, because others' are compared with them.
    pub check: Option<u64>,
    /// Go on with guessed halos where true ones are late.
    pub speculate: bool,
    /// Pokes of an earlier epoch for steps from `from` on: they count again for the same ones.
    pub pokes: Vec<(u64, Poke)>,
    /// Compute the edges of bands apart and first, so that they travel while the rest is computed.
    pub apart: bool,
}

/// Rows of a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckpointPart {
    pub rows: Span,
    pub blob: BlobRef,
}

/// From a member. The first in each epoch is `Progress`, so that the coordinator knows it is heard.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum CrewSay {
    /// The answer to an audition: what one step of so many cells took here, once warm.
    Auditioned { cells: u64, took: Micros },
    /// Every [`crate::limit::HEARTBEAT`], and in between when there is reason to.
    Progress {
        /// Steps done here.
        step: u64,
        /// Time at work and time spent waiting for neighbours, since the epoch began.
        computed: Micros,
        waited: Micros,
        /// Guessed halos that were right, and those that were not and were corrected.
        guessed: u64,
        corrected: u64,
        links: Vec<LinkReport>,
    },
    /// The state of this member's rows after so many steps is stored (`PUT /node/kept/...`).
    Checkpoint { step: u64, part: CheckpointPart },
    /// That member is waited for; it may wait for another itself.
    Slow { node: NodeId },
    /// That member did what no honest one does; in words.
    Bad { node: NodeId, why: String },
    /// This member cannot go on.
    Failed { failure: Failure },
    /// Calls for a crew of two: this node and that one, for an application's own talk.
    Meet { with: NodeId },
    /// This application's talk with the other is over.
    Leave,
    /// From rank 0, in answer to [`CrewTold::Poke`]: the step it counts for; none if it comes too late, or too
    /// many wait. Said before anything that follows from it.
    Poked { poke: Poke, step: Option<u64> },
    /// From rank 0: what the members made of all their rows after so many steps, as the job asked.
    Total { step: u64, numbers: Vec<f64> },
    /// This member's parts of a service are loaded: requests may come.
    Loaded,
    /// Of a member that keeps parts of a service, every [`crate::limit::HEARTBEAT`].
    Staged(StageReport),
}

/// How a member does that keeps parts of a service ready.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StageReport {
    /// Counted whenever something was done here in this epoch, however much: it goes on.
    pub turns: u64,
    /// Requests done here in this epoch, and those that are here now.
    pub done: u64,
    pub held: u32,
    /// Time at work on them, and time between two of them. Where requests go round and round, what passes while there
    /// are none does not count.
    pub computed: Micros,
    pub waited: Micros,
    /// What was handed on: so often, so many bytes, and how long they were on their way.
    pub passed: u64,
    pub bytes: u64,
    pub travelled: Micros,
    pub links: Vec<LinkReport>,
}

/// How a link to another member is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkReport {
    pub with: NodeId,
    pub via: Path,
    pub round_trip: Micros,
    /// Known while the link was full lately.
    pub bytes_per_second: Option<u64>,
    /// Lost chunks of a million.
    pub loss: u32,
    /// Bytes sent to it by relay and directly, in this crew.
    pub relayed: u64,
    pub direct: u64,
}

/// How two nodes reach each other. Each delivers in order or dies; what is under way then is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Path {
    /// Through the coordinator. There as long as both nodes are connected.
    Relay,
    /// A data channel or a stream between the two. Comes and goes.
    Direct,
}

impl Path {
    pub const ALL: [Path; 2] = [Path::Relay, Path::Direct];

    /// What its frames are. Nothing goes unsealed through the relay.
    pub fn kind(self) -> FrameKind {
        match self {
            Path::Relay => FrameKind::Sealed,
            Path::Direct => FrameKind::Plain,
        }
    }
}

/// To a member at work.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum CrewTold {
    /// Somebody stirs the field. To rank 0 alone, which tells the others for which step it counts.
    Poke(Poke),
    /// Somebody looks at the field (`true`): send pictures; or nobody does.
    Watch(bool),
    /// The node called for is not here, or talks to nobody. In no crew's name.
    NotMet { with: NodeId },
    /// That request to a service is over: whoever has it stops and forgets it.
    Drop { call: Attempt },
}

/// A poke over the field: from a place, by a way, in cells.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Poke {
    pub at: [f32; 2],
    pub by: [f32; 2],
    pub radius: f32,
    pub strength: f32,
}
