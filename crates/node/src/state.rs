//! What a node knows.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::string::String;
use shoal_protocol::{Caps, Identity, JobId, Limits, NodeId, Time, Work};

use crate::{Input, Output};

/// What a shell must tell a new node.
#[derive(Clone, Debug)]
pub struct Config {
    /// The token of the join link.
    pub token: String,
    pub identity: Identity,
    pub caps: Caps,
    /// Spreads reconnects of many nodes over time.
    pub seed: u64,
}

/// A job as a node knows it.
#[derive(Clone, Debug)]
pub struct JobInfo {
    pub name: String,
    pub owner: String,
    pub items: u64,
    pub work: Work,
    pub limits: Limits,
}

/// For the donor's page.
#[derive(Clone, Debug, PartialEq)]
pub struct Status {
    pub phase: Phase,
    pub running: usize,
    pub queued: usize,
    pub units_done: u64,
    pub units_failed: u64,
    /// A job being computed now.
    pub job: Option<JobId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    Idle,
    Connecting,
    /// The socket is open, the coordinator has not answered yet.
    Greeting,
    Joined(NodeId),
    /// Waiting to connect again.
    Waiting { until: Time },
    Stopped,
}

pub struct Node {
    pub(crate) outputs: VecDeque<Output>,
    pub(crate) jobs: BTreeMap<JobId, JobInfo>,
}

impl Node {
    pub fn new(config: Config) -> Node {
        let _ = config;
        Node { outputs: VecDeque::new(), jobs: BTreeMap::new() }
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

    pub fn job(&self, job: JobId) -> Option<&JobInfo> {
        self.jobs.get(&job)
    }

    /// Bearer token for HTTP requests of the present connection.
    pub fn session(&self) -> Option<&str> {
        None
    }

    pub fn status(&self) -> Status {
        Status { phase: Phase::Idle, running: 0, queued: 0, units_done: 0, units_failed: 0, job: None }
    }
}
