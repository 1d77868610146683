//! What the scheduler knows: jobs and names are durable, peers and loans die with the process.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};
use shoal_protocol::{
    Attempt, Caps, Failure, Identity, JobId, JobSpec, Lane, Micros, NodeId, Span, Time, ToNode,
};

use crate::fact::Place;
use crate::meter::Meter;
use crate::split::SpanSet;
use crate::{Input, Output};

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

#[derive(Default)]
pub struct Scheduler {
    pub(crate) outputs: VecDeque<Output>,
    /// Counts starts of the coordinator; the high part of every attempt.
    pub(crate) life: u32,
    pub(crate) last_attempt: u32,
    pub(crate) last_job: u64,
    pub(crate) jobs: BTreeMap<JobId, Job>,
    /// Jobs with items to lend, those served least first.
    pub(crate) ready: BTreeSet<(u64, JobId)>,
    /// Every node that ever joined.
    pub(crate) known: BTreeMap<Identity, NodeId>,
    /// Nodes that have done nothing yet: no facts tell of them, and the oldest are forgotten.
    pub(crate) strangers: BTreeMap<NodeId, Identity>,
    pub(crate) last_node: u64,
    /// What nodes called themselves when last seen.
    pub(crate) names: BTreeMap<NodeId, String>,
    pub(crate) peers: BTreeMap<NodeId, Peer>,
    pub(crate) conns: BTreeMap<Conn, NodeId>,
    pub(crate) loans: BTreeMap<Attempt, Loan>,
    /// For each lane, peers that could compute more than they hold.
    pub(crate) hungry: [BTreeSet<NodeId>; 3],
    /// How many jobs run.
    pub(crate) open: usize,
    /// When to look whether a peer fell silent; one entry for each peer.
    pub(crate) timers: BTreeSet<(Time, NodeId)>,
}

pub(crate) struct Job {
    pub(crate) spec: JobSpec,
    pub(crate) state: JobState,
    pub(crate) submitted: Time,
    pub(crate) first_lent: Option<Time>,
    pub(crate) ended: Option<Time>,
    /// Items never lent, or handed back whole.
    pub(crate) waiting: SpanSet,
    /// Units to lend again, with their history.
    pub(crate) again: VecDeque<Again>,
    pub(crate) merged: BTreeMap<u64, Merged>,
    pub(crate) items_done: u64,
    pub(crate) items_leased: u64,
    pub(crate) leased: BTreeSet<Attempt>,
    pub(crate) retries: u64,
    /// Largest unit still tried: lowered when a unit runs out of time.
    pub(crate) size_cap: u64,
    /// Expected microseconds lent so far: the measure of fairness between jobs.
    pub(crate) served: u64,
    pub(crate) shares: BTreeMap<NodeId, Tally>,
    /// Connected peers that were told what the job is.
    pub(crate) told: BTreeSet<NodeId>,
    /// Rate of all peers that have one on this job, in thousandths of items per second.
    pub(crate) total_milli_rate: u64,
    pub(crate) meter: Meter,
    pub(crate) failure: Option<JobFailure>,
}

impl Job {
    pub(crate) fn new(spec: JobSpec, submitted: Time) -> Job {
        Job {
            waiting: SpanSet::of(Span::new(0, spec.items)),
            spec,
            state: JobState::Running,
            submitted,
            first_lent: None,
            ended: None,
            again: VecDeque::new(),
            merged: BTreeMap::new(),
            items_done: 0,
            items_leased: 0,
            leased: BTreeSet::new(),
            retries: 0,
            size_cap: u64::MAX,
            served: 0,
            shares: BTreeMap::new(),
            told: BTreeSet::new(),
            total_milli_rate: 0,
            meter: Meter::default(),
            failure: None,
        }
    }

    /// Items nobody works on and nobody has done.
    pub(crate) fn left(&self) -> u64 {
        self.spec.items - self.items_done - self.items_leased
    }
}

/// A unit that came back without an answer.
#[derive(Clone, Debug)]
pub(crate) struct Again {
    pub(crate) span: Span,
    pub(crate) history: History,
}

/// What happened to a unit so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    /// Distinct nodes that reported a failure.
    pub(crate) failed_on: Vec<NodeId>,
    /// Lendings that ended in failure or in the node's vanishing while it computed.
    pub(crate) tries: u32,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Merged {
    pub(crate) len: u64,
    pub(crate) node: NodeId,
    pub(crate) place: Option<Place>,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) items: u64,
    pub(crate) units: u64,
}

/// A unit lent to a node.
#[derive(Clone, Debug)]
pub(crate) struct Loan {
    pub(crate) job: JobId,
    pub(crate) span: Span,
    pub(crate) node: NodeId,
    pub(crate) lane: Lane,
    pub(crate) since: Time,
    /// When the node first said that it computes it.
    pub(crate) running: Option<Time>,
    /// How long it should take.
    pub(crate) expected: Micros,
    pub(crate) history: History,
}

/// A connected node.
pub(crate) struct Peer {
    pub(crate) conn: Conn,
    pub(crate) caps: Caps,
    pub(crate) paused: bool,
    /// Said nothing for too long; gets no work until it speaks.
    pub(crate) silent: bool,
    pub(crate) joined: Time,
    pub(crate) heard: Time,
    pub(crate) timer: Time,
    pub(crate) loans: BTreeSet<Attempt>,
    pub(crate) lanes: [LaneLoad; 3],
    pub(crate) told: BTreeSet<JobId>,
    /// Jobs it was told of and seems not to know.
    pub(crate) forgot: BTreeSet<JobId>,
    pub(crate) paces: BTreeMap<JobId, Pace>,
    pub(crate) units_done: u64,
    pub(crate) units_failed: u64,
    /// Microseconds of computing.
    pub(crate) busy: Meter,
    pub(crate) last_job: Option<JobId>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LaneLoad {
    pub(crate) units: usize,
    pub(crate) expected: Micros,
}

/// How fast a peer does one job.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pace {
    /// Items per second of one slot, in thousandths.
    pub(crate) milli_rate: u64,
    pub(crate) slots: u64,
    pub(crate) last_size: u64,
}

impl Pace {
    pub(crate) fn all_slots(&self) -> u64 {
        self.milli_rate.saturating_mul(self.slots)
    }
}

impl Scheduler {
    pub fn new() -> Scheduler {
        Scheduler::default()
    }

    pub fn handle(&mut self, now: Time, input: Input) {
        match input {
            Input::Start => self.start(),
            Input::Submit { request, spec } => self.submit(now, request, spec),
            Input::Cancel { job } => self.cancel(now, job),
            Input::Remove { job } => self.remove(job),
            Input::Connected { conn, hello, session } => self.connected(now, conn, hello, session),
            Input::Disconnected { conn } => self.disconnected(now, conn),
            Input::Said { conn, message } => self.said(now, conn, message),
            Input::Done { conn, results } => self.arrived(now, conn, &results),
            Input::Tick => {}
        }
        self.look_for_silence(now);
    }

    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    pub fn next_timeout(&self) -> Option<Time> {
        self.timers.first().map(|(time, _)| *time)
    }

    fn start(&mut self) {
        self.life += 1;
        self.last_attempt = 0;
        self.record(crate::Fact::Life { life: self.life });
    }

    pub(crate) fn record(&mut self, fact: crate::Fact) {
        self.outputs.push_back(Output::Record(fact));
    }

    pub(crate) fn send(&mut self, conn: Conn, message: ToNode) {
        self.outputs.push_back(Output::Send { conn, message });
    }

    /// After four billion lendings a new life begins, so that no number is used twice.
    pub(crate) fn next_attempt(&mut self) -> Attempt {
        if self.last_attempt == u32::MAX {
            self.start();
        }
        self.last_attempt += 1;
        Attempt::new(self.life, self.last_attempt)
    }
}
