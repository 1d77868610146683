//! Who does what: the coordinator's brain. Pure; its shell is `shoal-coordinator`.
//!
//! The contract: give it one [`Input`] with the time, then drain [`Scheduler::poll_output`] to `None`
//! before the next. It never reads a clock, makes no random choice and does no IO, so the same inputs
//! give the same outputs. A [`Fact`] it asks to record must be durable before any output after it is
//! acted on; [`Scheduler::replay`] of all facts gives back the durable state.
#![no_std]

extern crate alloc;

mod assign;
mod check;
mod deliver;
mod fact;
mod job;
mod merge;
mod meter;
mod split;
mod state;
mod submit;
mod unit;
mod view;

pub use fact::{Fact, Place};
pub use job::{JobFailure, JobState};
pub use state::{Conn, RequestId, Scheduler};
pub use submit::SubmitError;
pub use view::{JobView, NodeView, Share, UnitState, UnitView};

use alloc::string::String;
use alloc::vec::Vec;
use shoal_protocol::{Attempt, FromNode, Hello, JobId, JobSpec, Micros, Refusal, ToNode};

/// One change in the world.
#[derive(Clone, Debug)]
pub enum Input {
    /// Once, after construction or replay: a new life of the coordinator begins.
    Start,
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
    /// A socket opened and said `Hello` with the right token. `session` is what its HTTP requests will carry.
    Connected {
        conn: Conn,
        hello: Hello,
        session: String,
    },
    Disconnected {
        conn: Conn,
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
    /// The job is done, failed or cancelled.
    Ended(JobId),
    /// The job's results may be deleted.
    Removed(JobId),
}
