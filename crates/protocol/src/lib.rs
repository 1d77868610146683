//! What Shoal's parts say to each other. Pure: it decides nothing and touches nothing; every crate speaks it.
//!
//! - [`id`]: names of jobs, nodes, attempts and bytes
//! - [`time`]: moments and durations as plain numbers, because the pure crates never read a clock
//! - [`work`]: what is to be computed, and [`job`]: how it may be split and where it may run
//! - [`policy`]: how a job is treated beside others and how its answers are checked
//! - [`plan`]: what a check of user code finds out
//! - [`caps`]: what a node offers, [`condition`]: how its device is doing, and [`failure`]: what went wrong with a unit
//! - [`sign`]: keys, signatures and what is signed
//! - [`message`]: the words between node and coordinator, and [`codec`]: their bytes
//! - [`crew`]: what a coordinator and a crew's members say, [`sim`]: what a simulation is
//! - [`share`]: what is said about blobs that go from node to node
//! - [`frame`]: the header of what two nodes say to each other, [`quic`]: how frames go by QUIC, and [`hash`]: BLAKE3
//! - [`limit`]: every bound, with its reason
#![no_std]

extern crate alloc;

pub mod caps;
pub mod codec;
pub mod condition;
pub mod crew;
pub mod failure;
pub mod fold;
pub mod frame;
pub mod hash;
pub mod id;
pub mod job;
pub mod limit;
pub mod message;
pub mod pieces;
pub mod plan;
pub mod policy;
pub mod quic;
pub mod share;
pub mod sign;
pub mod sim;
pub mod time;
pub mod window;
pub mod work;

pub use caps::{Caps, GpuCaps, NodeKind};
pub use condition::Condition;
pub use crew::{
    CrewSay, CrewTask, CrewTold, Enlist, KeptPart, LinkReport, MemberInfo, Poke, SimTask, Via,
};
pub use failure::{Failure, LimitKind};
pub use fold::Fold;
pub use frame::{FrameKind, Header};
pub use hash::{Hasher, hash};
pub use id::{Attempt, BlobRef, CrewId, Epoch, Hash, Identity, JobId, NodeId, Span};
pub use job::{JobSpec, Lane, Limits, Needs, Sizing, Strategy};
pub use message::{Finished, FromNode, Held, Hello, Lease, QuicOffer, Refusal, ToNode, UnitOutput};
pub use pieces::PieceSet;
pub use plan::{
    ElementType, FoldPlan, InputAsk, IntakeError, MapAsk, MapPlan, MapReading, Reading, RenderPlan,
    TooFar,
};
pub use policy::{Dtype, Policy, Priority, Tolerance, Verify};
pub use share::{Missed, PieceWord, ShareSay, ShareTold};
pub use sign::{LinkKey, PublicKey, Signature, Signed};
pub use sim::{Pass, SimField, SimSlots, SimWork};
pub use time::{Micros, Time};
pub use window::{Edge, Window, Windows};
pub use work::{
    Binding, ExecItems, ExecWork, Field, InputSplit, Kernel, MapInput, MapWork, Params, Pixel,
    RenderWork, Slot, Space, Work,
};
