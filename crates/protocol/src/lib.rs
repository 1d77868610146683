//! What Shoal's parts say to each other. Pure: it decides nothing and touches nothing; every crate speaks it.
//!
//! - [`id`]: names of jobs, nodes, attempts and bytes
//! - [`time`]: moments and durations as plain numbers, because the pure crates never read a clock
//! - [`work`]: what is to be computed, sealed for its kind, and [`job`]: how it may be split and where it may run
//! - [`policy`]: how a job is treated beside others and how its answers are checked
//! - [`caps`]: what a node offers, [`condition`]: how its device is doing, and [`failure`]: what went wrong with a unit
//! - [`sign`]: keys, signatures and what is signed
//! - [`message`]: the words between node and coordinator, [`codec`]: their bytes, and [`raw`]: those that are bytes anyway
//! - [`crew`]: what a coordinator and a crew's members say
//! - [`swarm`]: what is said about blobs that go from node to node
//! - [`frame`]: the header of what two nodes say to each other, [`quic`]: how frames go by QUIC, and [`hash`]: BLAKE3
//! - [`limit`]: every bound, with its reason
#![no_std]

extern crate alloc;

pub mod caps;
pub mod codec;
pub mod condition;
pub mod crew;
pub mod failure;
pub mod frame;
pub mod hash;
pub mod id;
pub mod job;
pub mod lane;
pub mod limit;
pub mod message;
pub mod pieces;
pub mod policy;
pub mod quic;
pub mod raw;
pub mod sign;
pub mod swarm;
pub mod time;
pub mod work;

pub use bytes::Bytes;
pub use caps::{Caps, Engine, GpuCaps, NodeKind};
pub use condition::Condition;
pub use crew::{
    CheckpointPart, CrewSay, CrewTask, CrewTold, Enlist, LinkReport, MemberInfo, Path, Poke,
    SimTask, StageReport, StageTask,
};
pub use failure::{Failure, LimitKind};
pub use frame::{FrameKind, Header};
pub use hash::{Hasher, hash};
pub use id::{Attempt, BlobRef, CrewId, Epoch, Hash, Identity, JobId, NodeId, Span};
pub use job::{Footprint, Limits, Needs, Sizing, Strategy};
pub use lane::{Lane, PerLane};
pub use message::{Finished, FromNode, Held, Hello, Lease, QuicOffer, Refusal, ToNode, UnitOutput};
pub use pieces::PieceSet;
pub use policy::{Dtype, Policy, Priority, Tolerance, Verify};
pub use sign::{LinkKey, PublicKey, Signature, Signed};
pub use swarm::{Missed, PieceWord, SwarmSay, SwarmTold};
pub use time::{Micros, Time};
pub use work::Work;
