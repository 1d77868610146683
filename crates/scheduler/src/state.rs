//! What the scheduler knows.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};
use shoal_protocol::{Attempt, Failure, JobId, JobSpec, NodeId, Span, Time};

use crate::{Fact, Input, JobView, NodeView, Output, Place, UnitView};

/// One connection of a node, counted by the shell; never used twice in a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Conn(pub u64);

/// A submission waiting for its [`Output::Reply`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RequestId(pub u64);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobState {
    Running,
    Done,
    Failed,
    Cancelled,
}

/// Why a job failed: the last node's own words.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobFailure {
    pub span: Span,
    pub nodes: Vec<NodeId>,
    pub failure: Failure,
}

pub struct Scheduler {
    outputs: VecDeque<Output>,
}

impl Scheduler {
    pub fn new() -> Scheduler {
        Scheduler { outputs: VecDeque::new() }
    }

    /// The durable state after these facts. [`Input::Start`] must come next.
    pub fn replay(facts: impl IntoIterator<Item = Fact>) -> Scheduler {
        let _ = facts.into_iter().count();
        Scheduler::new()
    }

    /// After replay, before `Start`: a merged unit's bytes turned out to be missing or torn, so its
    /// items must be computed again.
    pub fn unmerge(&mut self, job: JobId, span: Span) {
        let _ = (job, span);
    }

    pub fn handle(&mut self, now: Time, input: Input) {
        let _ = (now, input);
    }

    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    pub fn next_timeout(&self) -> Option<Time> {
        None
    }

    pub fn check(&self) {}

    /// The job and items of a live attempt; `None` if its answer would change nothing.
    pub fn lease(&self, attempt: Attempt) -> Option<(JobId, Span)> {
        let _ = attempt;
        None
    }

    pub fn spec(&self, job: JobId) -> Option<&JobSpec> {
        let _ = job;
        None
    }

    pub fn job(&self, now: Time, job: JobId) -> Option<JobView> {
        let _ = (now, job);
        None
    }

    /// All jobs, newest first.
    pub fn jobs(&self, now: Time) -> Vec<JobView> {
        let _ = now;
        Vec::new()
    }

    pub fn nodes(&self, now: Time) -> Vec<NodeView> {
        let _ = now;
        Vec::new()
    }

    /// Units of a job in order, at most `most`.
    pub fn units(&self, job: JobId, most: usize) -> Vec<UnitView> {
        let _ = (job, most);
        Vec::new()
    }

    /// Merged units of a job in order with where their bytes are.
    pub fn merged(&self, job: JobId) -> Vec<(Span, Option<Place>)> {
        let _ = job;
        Vec::new()
    }

    /// A node's name as last said, also of one that left.
    pub fn node_name(&self, node: NodeId) -> Option<&str> {
        let _ = node;
        None
    }
}
