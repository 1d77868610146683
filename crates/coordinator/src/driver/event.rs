//! Everything that reaches the driver, as one closed list.

use std::sync::Arc;

use shoal_kinds::plan::Note;
use shoal_kinds::{JobSpec, LlmWork, OnnxWork, ServiceSpec};
use shoal_protocol::{
    Attempt, BlobRef, CrewId, CrewSay, Epoch, FromNode, Hello, JobId, Micros, NodeId, Poke,
    Priority, Span,
};
use shoal_scheduler::{CallId, CompareId, Conn, Outcome, Place, Receipt, SubmitError};
use tokio::sync::{mpsc, oneshot};

use super::conns::Outgoing;
use super::keyed::{Key, Taken};
use crate::answer::Giver;
use crate::store::facts::Stored;
use crate::store::results::Region;
use crate::store::send::Extent;
use shoal_api::{ExplainServiceJson, JobJson, LeftNodeJson, NodeJson, ServiceJson, UnitsJson};

/// Answers that may come late or, when the driver stops, never.
pub(crate) type Reply<T> = oneshot::Sender<T>;

pub(crate) enum Event {
    /// A node said `Hello` with the right token and proved who it is.
    Connected {
        conn: Conn,
        hello: Box<Hello>,
        session: String,
        /// It has the API key: it is the operator's own.
        trusted: bool,
        network: u64,
        outgoing: mpsc::Sender<Outgoing>,
        kill: oneshot::Sender<()>,
    },
    Said {
        conn: Conn,
        message: FromNode,
    },
    Disconnected {
        conn: Conn,
    },
    /// A ping came back.
    RoundTrip {
        conn: Conn,
        took: Micros,
    },
    /// What [`super::compare`] found.
    Compared {
        id: CompareId,
        outcome: Outcome,
    },
    /// The same of rows that a crew and its checker made; none if they could not be read.
    RowsCompared {
        crew: CrewId,
        same: Option<bool>,
    },
    Submit(Box<Submission>),
    Cancel {
        job: JobId,
        reply: Reply<Option<JobJson>>,
    },
    /// Cancels a running job, removes an ended one.
    Delete {
        job: JobId,
        reply: Reply<Option<JobJson>>,
    },
    /// A node is about to send a result by HTTP, or to write it itself.
    Reserve {
        conn: Conn,
        job: JobId,
        attempt: Attempt,
        size: u64,
        writer: Writer,
        reply: Reply<Result<Reserved, ReserveError>>,
    },
    /// It has written it itself: looks whether that is where it was to.
    Placed {
        conn: Conn,
        job: JobId,
        attempt: Attempt,
        part: Extent,
        reply: Reply<Result<Reserved, ReserveError>>,
    },
    /// It did; answered once that is durable.
    Stored {
        stored: Stored,
        reply: Reply<()>,
    },
    /// It did, but the disk was full.
    Unkept {
        conn: Conn,
        attempt: Attempt,
    },
    Crew(CrewEvent),
    Service(ServiceEvent),
    Query(Query),
    /// Tell the nodes and stop.
    Stop,
}

/// What concerns services.
pub(crate) enum ServiceEvent {
    Serve {
        spec: Box<ServiceSpec>,
        key: Option<Key>,
        reply: Reply<Result<JobId, NotTaken>>,
    },
    /// Says whether there was one.
    Unserve {
        name: String,
        reply: Reply<bool>,
    },
    /// Parts of the answer are given as they come, then how it ended. `answer` is dropped at once if there is no
    /// such service.
    Ask {
        name: String,
        body: Vec<u8>,
        wish: Wish,
        answer: Giver,
        /// Told which request this is. If nobody listens any more, it is not taken in.
        reply: Reply<CallId>,
    },
    HangUp(CallId),
}

/// How soon somebody wants an answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wish {
    /// There is none after that.
    pub(crate) within: Micros,
    pub(crate) priority: Priority,
    /// Near its end a second node may be asked.
    pub(crate) budget: Option<Micros>,
}

/// What concerns crews.
pub(crate) enum CrewEvent {
    Said {
        conn: Conn,
        crew: CrewId,
        epoch: Epoch,
        say: CrewSay,
    },
    /// A member stored its part of a checkpoint. Says whether it still is one.
    Kept {
        crew: CrewId,
        epoch: Epoch,
        conn: Conn,
        blob: BlobRef,
        reply: Reply<bool>,
    },
    /// A part of a checkpoint found the disk full.
    NoRoom,
    /// Somebody stirs a field.
    Poke {
        job: JobId,
        poke: Poke,
    },
    /// Somebody began to look at a field, or nobody does any more.
    Watch {
        job: JobId,
    },
}

/// A member's place in a simulation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GridSeat {
    pub(crate) job: JobId,
    pub(crate) rows: Span,
    pub(crate) row_bytes: u64,
    /// Of the whole grid.
    pub(crate) width: u32,
    pub(crate) height: u32,
}

pub(crate) struct Submission {
    pub(crate) spec: JobSpec,
    pub(crate) ticket: Ticket,
}

/// What is kept of a submission while the scheduler decides.
pub(crate) struct Ticket {
    pub(crate) note: Note,
    /// The client's, if it sent one.
    pub(crate) key: Option<Key>,
    /// Told the job's number as soon as it is durable.
    pub(crate) accepted: Reply<JobId>,
    /// Told the job at once, or with `wait` when it has ended.
    pub(crate) answer: Reply<Result<JobJson, NotTaken>>,
    pub(crate) wait: bool,
}

/// Why a job or a service is not taken in.
#[derive(Debug)]
pub(crate) enum NotTaken {
    Scheduler(SubmitError),
    /// Another request came with the same key and made this job.
    OtherRequest {
        job: JobId,
    },
}

/// Who writes a result's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Writer {
    /// This process, from what comes by HTTP.
    Here,
    /// A node of the operator's that shares the data folder. It may go on after this process is killed, so the room is taken
    /// in the file at once: the next coordinator must not give it away again.
    Beside,
}

/// Where a result may be written and what it must look like.
#[derive(Debug)]
pub(crate) struct Reserved {
    pub(crate) region: Region,
    /// For exec: how many runs it is of, and most bytes that one may leave.
    pub(crate) runs: Option<(u64, u64)>,
}

#[derive(Debug)]
pub(crate) enum ReserveError {
    /// The unit is not lent any more, or never was.
    NotLent,
    /// It is lent to another connection than the one that asks.
    NotHolder,
    /// The attempt's result is here already.
    Stored(Place),
    /// It began too many times.
    TooOften,
    /// It was not given this place, or a coordinator before this one gave it.
    NotPlaced,
    /// The unit's result has another size.
    Size {
        expected: u64,
    },
    TooLarge {
        most: u64,
    },
    Full,
    Disk(std::io::Error),
}

/// A merged unit and where its bytes are.
pub(crate) type Segment = (Span, Option<Place>);

/// Questions about the present state. Answered after the batch they came in is durable, so that nobody
/// is told what a crash could undo.
pub(crate) enum Query {
    Job {
        job: JobId,
        reply: Reply<Option<JobJson>>,
    },
    /// Like `Job`, but answered when the job has ended.
    JobEnd {
        job: JobId,
        reply: Reply<Option<JobJson>>,
    },
    /// Jobs that changed after a version, newest first, and the version now.
    Jobs {
        since: u64,
        reply: Reply<(Vec<JobJson>, u64)>,
    },
    Nodes {
        reply: Reply<Vec<NodeJson>>,
    },
    /// Those that are remembered and not connected.
    Left {
        reply: Reply<Vec<LeftNodeJson>>,
    },
    Services {
        reply: Reply<Vec<ServiceJson>>,
    },
    /// The model of a service with this name, and whether somebody keeps it ready.
    Model {
        name: String,
        reply: Reply<Option<(OnnxWork, bool)>>,
    },
    /// A language model, and whether somebody keeps it ready.
    Language {
        name: String,
        reply: Reply<Option<(LlmWork, bool)>>,
    },
    /// What a client's key stands for.
    Taken {
        key: Key,
        reply: Reply<Option<Taken>>,
    },
    Units {
        job: JobId,
        reply: Reply<Option<UnitsJson>>,
    },
    /// A job's spec and all its merged units in order.
    Merged {
        job: JobId,
        reply: Reply<Option<Merged>>,
    },
    /// The merged unit that holds an item.
    Segment {
        job: JobId,
        item: u64,
        reply: Reply<Option<Found>>,
    },
    /// Merged units in order from an item on, at most so many, up to the first that is missing.
    Prefix {
        job: JobId,
        from: u64,
        most: usize,
        reply: Reply<Option<Prefix>>,
    },
    /// Spans in the order they were merged, from a position of that list on, and where it ends now.
    Log {
        job: JobId,
        from: usize,
        reply: Reply<(Vec<Span>, usize)>,
    },
    /// Where a connection sits in a crew; in its present epoch if none is named.
    Seat {
        crew: CrewId,
        epoch: Option<Epoch>,
        conn: Conn,
        reply: Reply<Option<GridSeat>>,
    },
    Explain {
        what: Explain,
        reply: Reply<Option<Vec<String>>>,
    },
    Receipt {
        job: JobId,
        reply: Reply<Option<Proven>>,
    },
    ExplainService {
        name: String,
        reply: Reply<Option<ExplainServiceJson>>,
    },
    Counts {
        reply: Reply<Counts>,
    },
}

/// What somebody asks why about.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Explain {
    Job { job: JobId, item: Option<u64> },
    Node(NodeId),
}

/// What a job can show, and where its bytes are.
pub(crate) struct Proven {
    pub(crate) receipt: Receipt,
    /// Of its nodes, in the same order.
    pub(crate) names: Vec<String>,
    pub(crate) merged: Merged,
}

/// Where an item is.
pub(crate) struct Found {
    pub(crate) spec: Arc<JobSpec>,
    /// The merged unit that holds it.
    pub(crate) segment: Option<Segment>,
    /// Whether that can still be taken back: the job runs, and its answers are checked.
    pub(crate) unsure: bool,
}

/// Units of a job without a gap between them.
pub(crate) struct Prefix {
    pub(crate) spec: Arc<JobSpec>,
    pub(crate) segments: Vec<Segment>,
    /// Units of the job that were merged and are not believed any more, ever.
    pub(crate) taken_back: u64,
}

/// A job's results so far.
#[derive(Clone)]
pub(crate) struct Merged {
    pub(crate) spec: Arc<JobSpec>,
    pub(crate) state: shoal_scheduler::JobState,
    pub(crate) segments: Arc<Vec<Segment>>,
    pub(crate) note: Note,
}

/// For `/metrics`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) nodes: u64,
    pub(crate) jobs: u64,
    pub(crate) jobs_open: u64,
    pub(crate) batches: u64,
    pub(crate) events: u64,
    pub(crate) units_merged: u64,
    pub(crate) units_failed: u64,
    pub(crate) jobs_submitted: u64,
    pub(crate) commit_micros: u64,
    pub(crate) units_checked: u64,
    pub(crate) answers_rejected: u64,
    pub(crate) units_taken_back: u64,
    pub(crate) comparisons: u64,
    pub(crate) late_copies: u64,
    pub(crate) round_trips: u64,
    pub(crate) round_trip_micros: u64,
    pub(crate) crews: u64,
    pub(crate) epochs: u64,
    pub(crate) disk_full: bool,
    /// Bytes of blobs that went from node to node, and pairs of nodes that could exchange some now.
    pub(crate) blob_bytes: u64,
    pub(crate) blob_links: u64,
    /// Blobs that somebody has or needs.
    pub(crate) blobs_known: u64,
}
