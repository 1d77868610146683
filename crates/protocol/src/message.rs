//! The words between a node and its coordinator. Enums are append-only: the position is the wire format.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use bytes::Bytes;
use core::fmt;
use serde::{Deserialize, Serialize};

use crate::caps::Caps;
use crate::condition::Condition;
use crate::crew::{CrewSay, CrewTold, Enlist};
use crate::failure::Failure;
use crate::id::{Attempt, CrewId, Epoch, Hash, Identity, JobId, NodeId, Span};
use crate::job::{Footprint, Limits};
use crate::sign::{LinkKey, PublicKey, Signature, Signed};
use crate::swarm::{SwarmSay, SwarmTold};
use crate::time::Micros;
use crate::work::Work;

/// From a node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum FromNode {
    /// First on every connection, after the coordinator's [`ToNode::Challenge`].
    /// Boxed, because the other messages are small and many.
    Hello(Box<Hello>),
    Done(Vec<Finished>),
    Failed {
        attempt: Attempt,
        failure: Failure,
    },
    /// Every [`crate::limit::HEARTBEAT`] while units are held: extends the leases it names. Others were
    /// lost on the way.
    Alive {
        running: Vec<Attempt>,
        queued: Vec<Attempt>,
    },
    /// The donor changed what is lent.
    Caps(Caps),
    /// Units handed back unstarted.
    Returned(Vec<Attempt>),
    /// Lend nothing until further notice (`true`), or go on (`false`).
    Pause(bool),
    /// The device's state changed: shown, hidden, on battery.
    Condition(Condition),
    /// The donor does not lend to whoever stands for this job (`true`), or does again.
    Declined {
        job: JobId,
        declined: bool,
    },
    /// The key this node's links are sealed with, signed by its identity
    /// ([`crate::sign::link_statement`]). Without it the node is in no crew.
    Links {
        key: LinkKey,
        proof: Signature,
    },
    /// A member of a crew, or one that tries for it.
    Crew {
        crew: CrewId,
        epoch: Epoch,
        say: CrewSay,
    },
    /// About blobs that nodes give each other.
    Swarm(SwarmSay),
    /// The answer to [`ToNode::Warm`]: requests may come, or why they may not.
    Warm {
        job: JobId,
        result: Result<(), Failure>,
    },
    /// A part of the answer to a request, in order, and how many bytes of it came before. One that fails is
    /// [`FromNode::Failed`].
    Answer {
        call: Attempt,
        at: u64,
        #[serde(with = "crate::raw")]
        part: Bytes,
        last: bool,
    },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Hello {
    pub version: u16,
    /// The join token of the link.
    pub token: String,
    pub identity: Identity,
    /// Of [`crate::sign::join_statement`].
    pub proof: Signature,
    pub caps: Caps,
    /// Units still at work from an earlier connection: kept if nobody else has them.
    pub held: Vec<Held>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    pub attempt: Attempt,
    pub job: JobId,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finished {
    pub attempt: Attempt,
    /// Time at work, without waiting in the node's queue.
    pub took: Micros,
    pub output: UnitOutput,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum UnitOutput {
    Inline(#[serde(with = "crate::raw")] Vec<u8>),
    /// Stored before by `PUT /node/results/{attempt}`.
    Stored {
        hash: Hash,
        size: u64,
    },
}

/// To a node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ToNode {
    Welcome {
        node: NodeId,
        /// Bearer token for this connection's HTTP requests.
        session: String,
    },
    /// The last word on a connection.
    Refused(Refusal),
    /// What a job is, once per connection, before its first lease.
    Job {
        job: JobId,
        name: String,
        owner: String,
        items: u64,
        /// Boxed, because the other messages are small and many.
        work: Box<Work>,
        limits: Limits,
        /// What a unit of it takes while it runs: a node stays within what its donor lends whatever it is lent.
        takes: Footprint,
        /// Who stands for the code: the node checks it before it runs anything.
        signed: Option<Signed>,
    },
    Lend(Vec<Lease>),
    /// Stop and forget these; no answer is wanted.
    Revoke(Vec<Attempt>),
    /// The job is over: drop what is kept for it.
    Forget(JobId),
    /// First on every connection: sign this to prove who you are.
    Challenge {
        nonce: [u8; 32],
        coordinator: PublicKey,
    },
    /// Say how fast this job would be here; the job was told before.
    Audition {
        crew: CrewId,
        job: JobId,
    },
    /// This node is in a crew, in a new epoch. What it did in an older one is over.
    Enlist(Box<Enlist>),
    /// This node is not in the crew any more: it ended, or goes on without it.
    Dismiss {
        crew: CrewId,
    },
    /// For a member at work.
    ToCrew {
        crew: CrewId,
        say: CrewTold,
    },
    /// Frames between nodes may also come and go by QUIC. Said after the welcome, and again when the certificates
    /// change.
    Quic(QuicOffer),
    /// About blobs that nodes give each other.
    Swarm(SwarmTold),
    /// Keep this job ready, because requests will come: it is a service, told before by `Job`. `Forget` ends it.
    Warm {
        job: JobId,
    },
    /// A request to a service. `Revoke` takes it back.
    Ask {
        call: Attempt,
        job: JobId,
        #[serde(with = "crate::raw")]
        body: Bytes,
        /// Bytes of the body that follow in `AskMore`.
        rest: u64,
    },
    /// The next bytes of a request's body.
    AskMore {
        call: Attempt,
        #[serde(with = "crate::raw")]
        body: Bytes,
    },
    /// Have a key for links, and say it (`FromNode::Links`): this node may be asked into a crew that keeps a service
    /// ready, and nobody else could seal anything for it.
    Link,
}

/// Where the coordinator takes frames by QUIC (WebTransport), on the host this node reached it at. See
/// [`crate::quic`] for what is said there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuicOffer {
    /// Of UDP.
    pub port: u16,
    /// SHA-256 of the certificates it may show: the present one and the next.
    pub hashes: Vec<[u8; 32]>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    pub attempt: Attempt,
    pub job: JobId,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Refusal {
    Version {
        oldest: u16,
        newest: u16,
        yours: u16,
    },
    Token,
    Full,
    /// The same identity joined again elsewhere.
    Replaced,
    /// A message that made no sense.
    Garbled,
    /// The coordinator is stopping.
    Closing,
    /// The greeting was not signed with the key it names.
    Identity,
}

impl Refusal {
    /// Whether trying again later can help.
    pub fn is_final(&self) -> bool {
        match self {
            Refusal::Version { .. } | Refusal::Token | Refusal::Replaced | Refusal::Identity => {
                true
            }
            Refusal::Full | Refusal::Garbled | Refusal::Closing => false,
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Version { oldest, newest, yours } if yours < oldest => write!(
                f,
                "this node speaks protocol {yours}, the coordinator {oldest} to {newest}: update this node"
            ),
            Refusal::Version { oldest, newest, yours } => write!(
                f,
                "this node speaks protocol {yours}, the coordinator {oldest} to {newest}: update the coordinator"
            ),
            Refusal::Token => {
                f.write_str("the join token is wrong: use the coordinator's join link")
            }
            Refusal::Full => {
                f.write_str("the coordinator has all the nodes it can hold: try later")
            }
            Refusal::Replaced => f.write_str("the same node joined again from elsewhere"),
            Refusal::Garbled => f.write_str("the coordinator could not read what this node sent"),
            Refusal::Identity => f.write_str(
                "this node could not prove its identity: remove its stored key to get a new one",
            ),
            Refusal::Closing => f.write_str("the coordinator is stopping"),
        }
    }
}
