//! Who does what: the coordinator's brain. Pure; its shell is `shoal-coordinator`.
//!
//! The contract: give it one [`Input`] with the time, then drain [`Scheduler::poll_output`] to `None`
//! before the next. It never reads a clock, draws chance only from the seed it is started with, and does
//! no IO, so the same inputs give the same outputs. A [`Fact`] it asks to record must be durable before any output after it is
//! acted on; [`Scheduler::replay`] of all facts gives back the durable state.
#![no_std]

extern crate alloc;

mod assign;
mod check;
mod end;
mod explain;
mod fact;
mod job;
mod jobs;
mod loans;
mod merge;
mod meter;
mod numbers;
mod peers;
mod presence;
mod receipt;
mod service;
mod split;
mod state;
mod submit;
mod swarm;
mod unit;
mod verify;
mod view;

pub use assign::crew::{CrewChange, CrewEvent, CrewView, MemberView, Total};
pub use explain::{WhyJob, WhyNode, WhyService, WhyUnit};
pub use fact::{Fact, Failed, Place};
pub use job::{JobFailure, JobState, Proof};
pub use peers::Seen;
pub use receipt::{Receipt, ReceiptNode, ReceiptUnit};
pub use service::{
    AbleView, CallError, CallId, Can, PlacementView, ProofsView, Ran, ReplicaView, ServiceView,
    SplitView, StageView, Took, Urgency,
};
pub use state::{Conn, RequestId, Scheduler};
pub use submit::SubmitError;
pub use swarm::SwarmView;
pub use verify::{Checked, CompareId, Outcome, Sample, Trust, agree, compare};
pub use view::{JobView, LeftView, NodeView, Share, UnitState, UnitView};

use alloc::string::String;
use alloc::vec::Vec;
use shoal_kinds::{JobSpec, ServiceSpec};
use shoal_protocol::{
    Attempt, BlobRef, Bytes, CrewId, Epoch, FromNode, Hello, JobId, Micros, NodeId, Poke, Refusal,
    Span, ToNode,
};

/// One change in the world.
#[derive(Clone, Debug)]
pub enum Input {
    /// Once, after construction or replay: a new life of the coordinator begins. Whoever knows the seed
    /// knows what will be checked: it comes from the system's secret chance.
    Start {
        seed: u64,
    },
    Submit {
        request: RequestId,
        spec: JobSpec,
    },
    Cancel {
        job: JobId,
    },
    /// Forget an ended job and its results.
    Remove {
        job: JobId,
    },
    /// A socket opened and said `Hello` with the right token.
    Connected {
        conn: Conn,
        hello: Hello,
        /// What its HTTP requests will carry.
        session: String,
        /// The operator's own node: its word decides.
        trusted: bool,
        /// A number for where it connects from (a hash of the address' prefix), so that a thousand tabs of
        /// one person are one voice; 0 if unknown or if everybody comes from there, as in a local network.
        network: u64,
    },
    Disconnected {
        conn: Conn,
    },
    /// The coordinator stores this blob, and it is so large: nodes may give it to each other. Said before the first
    /// word of a node about it; what nodes say of other blobs counts for nothing.
    Stored {
        blob: BlobRef,
    },
    /// Anything a node says but `Hello` and `Done`.
    Said {
        conn: Conn,
        message: FromNode,
    },
    /// A node's `Done`, its bytes already stored by the shell.
    Done {
        conn: Conn,
        results: Vec<Arrived>,
    },
    /// How long a word to a node and its echo take.
    RoundTrip {
        conn: Conn,
        took: Micros,
    },
    /// The answer to [`Output::Write`]; no place if they could not be written.
    Written {
        job: JobId,
        span: Span,
        place: Option<Place>,
    },
    /// The outcome of [`Output::Compare`].
    Compared {
        id: CompareId,
        outcome: Outcome,
    },
    /// Keep this ready, and answer requests to it.
    Serve {
        request: RequestId,
        spec: ServiceSpec,
    },
    /// No more.
    Unserve {
        service: JobId,
    },
    /// A request to a service.
    Ask {
        call: CallId,
        service: JobId,
        body: Vec<u8>,
        urgency: Urgency,
    },
    /// Whoever asked does not wait any more.
    HangUp {
        call: CallId,
    },
    /// The answer to [`Output::CompareRows`]; none if bytes could not be read.
    RowsCompared {
        crew: CrewId,
        same: Option<bool>,
    },
    /// Somebody stirs the field of a simulation.
    Poke {
        job: JobId,
        poke: Poke,
    },
    /// Somebody looks at the field of a simulation, or nobody does any more.
    Watch {
        job: JobId,
        on: bool,
    },
    /// Nothing but time passed.
    Tick,
}

/// A finished unit whose bytes are on disk.
#[derive(Clone, Copy, Debug)]
pub struct Arrived {
    pub attempt: Attempt,
    pub took: Micros,
    /// Where the bytes are; `None` for an empty result.
    pub place: Option<Place>,
}

/// Where rows of a simulation are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rows {
    /// Among the parts of checkpoints.
    Stored(BlobRef),
    /// In the job's results.
    Result(Place),
}

/// One thing to do, in order.
#[derive(Clone, Debug)]
pub enum Output {
    /// Make durable before acting on anything after it.
    Record(Fact),
    Send {
        conn: Conn,
        message: ToNode,
    },
    /// Say this and close the socket.
    Refuse {
        conn: Conn,
        refusal: Refusal,
    },
    Reply {
        request: RequestId,
        result: Result<JobId, SubmitError>,
    },
    /// A part of the answer to a request, in order; after the last one nothing more is said of it.
    Answered {
        call: CallId,
        part: Bytes,
        last: bool,
        ran: Ran,
    },
    /// A request is not answered, or not to its end.
    Unanswered {
        call: CallId,
        error: CallError,
    },
    /// Write these bytes as the result of these items: answer with [`Input::Written`].
    Write {
        job: JobId,
        span: Span,
        bytes: Vec<u8>,
    },
    /// The job is done, failed or cancelled.
    Ended(JobId),
    /// The job's results may be deleted.
    Removed(JobId),
    /// Who may send frames to whom: the crew's members in this epoch. Nobody, if it has none: it ended.
    Route {
        crew: CrewId,
        epoch: Epoch,
        members: Vec<(NodeId, Conn)>,
    },
    /// Parts of checkpoints that nobody needs any more.
    Drop(Vec<BlobRef>),
    /// Whether the bytes of `a`, one after another, are those of `b`: answer with [`Input::RowsCompared`].
    CompareRows {
        crew: CrewId,
        job: JobId,
        a: Vec<Rows>,
        b: Vec<Rows>,
    },
    /// Read both samples' bytes of these items, compare them with [`compare`] and answer with
    /// [`Input::Compared`]. Places of a job stay readable until it ends.
    Compare {
        id: CompareId,
        job: JobId,
        items: Span,
        a: Sample,
        b: Sample,
    },
}
