//! What a node knows.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::string::String;
use alloc::vec::Vec;
use shoal_kinds::Kind;
use shoal_protocol::{
    Attempt, Caps, Condition, CrewId, Enlist, Finished, Footprint, FromNode, Identity, JobId, Lane,
    Lease, Limits, LinkKey, NodeId, PerLane, PublicKey, Signed, Span, Time,
};

use crate::consent::{Consent, Elsewhere, Rules};
use crate::quic::Quic;
use crate::serve::Calls;
use crate::{Input, Output};

/// What a shell must tell a new node.
#[derive(Clone, Debug)]
pub struct Config {
    /// The token of the join link.
    pub token: String,
    pub identity: Identity,
    pub caps: Caps,
    /// For whom the device works.
    pub rules: Rules,
    /// Whether applications of other nodes may talk to this one.
    pub talks: bool,
    /// Whether the shell exchanges blobs with other nodes.
    pub shares: bool,
    /// Spreads reconnects of many nodes over time.
    pub seed: u64,
}

/// A job as a node knows it.
#[derive(Clone, Debug)]
pub struct JobInfo {
    pub name: String,
    pub owner: String,
    pub items: u64,
    pub work: Kind,
    pub limits: Limits,
    /// What a unit takes while it runs.
    pub takes: Footprint,
    /// Who stands for the code.
    pub signed: Option<Signed>,
    pub(crate) consent: Consent,
    /// The coordinator was told that it is declined, or no longer.
    pub(crate) told_declined: bool,
    /// The check under way is of something else that had this job's number.
    pub(crate) check_again: bool,
}

impl JobInfo {
    /// The part of the node that computes it.
    pub fn lane(&self) -> Lane {
        self.work.lane()
    }
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
    Greeting {
        until: Time,
    },
    Joined(NodeId),
    /// Waiting to connect again.
    Waiting {
        until: Time,
    },
    Stopped,
}

pub struct Node {
    pub(crate) config: Config,
    pub(crate) phase: Phase,
    pub(crate) paused: bool,
    /// The coordinator was told of a pause on this connection.
    pub(crate) told_pause: bool,
    pub(crate) condition: Condition,
    pub(crate) session: Option<String>,
    /// What this connection's challenge asks to sign.
    pub(crate) challenge: Option<Vec<u8>>,
    /// Who challenged this connection.
    pub(crate) coordinator: Option<PublicKey>,
    pub(crate) link_key: Option<LinkKey>,
    /// Jobs to try once they may run.
    pub(crate) auditions: BTreeSet<(JobId, CrewId)>,
    /// Places in crews that wait until the job's code was checked.
    pub(crate) called: BTreeMap<CrewId, Box<Enlist>>,
    pub(crate) crews: BTreeMap<CrewId, CrewOf>,
    pub(crate) quic: Quic,
    pub(crate) outputs: VecDeque<Output>,
    pub(crate) jobs: BTreeMap<JobId, JobInfo>,
    pub(crate) elsewhere: Elsewhere,
    /// Jobs whose code the shell is checking; one at a time for each number.
    pub(crate) checking: BTreeSet<JobId>,
    /// Units lent and not begun, for each lane.
    pub(crate) queues: PerLane<VecDeque<Lease>>,
    pub(crate) running: BTreeMap<Attempt, Running>,
    /// Requests to services.
    pub(crate) calls: Calls,
    /// The donor lends less than what runs takes: the coordinator is about to take units back.
    pub(crate) overdrawn: bool,
    /// The newest unit ever lent: attempts are counted upwards.
    pub(crate) newest: Attempt,
    /// Answers not yet sent.
    pub(crate) finished: Vec<Answer>,
    pub(crate) finished_bytes: usize,
    pub(crate) last_flush: Time,
    pub(crate) next_beat: Time,
    /// Connections that failed since the last that worked.
    pub(crate) misses: u32,
    pub(crate) random: u64,
    pub(crate) units_done: u64,
    pub(crate) units_failed: u64,
}

/// What a crew this node is in is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CrewOf {
    Sim(JobId),
    Talk,
    Swarm,
    /// Parts of a service.
    Stage(JobId),
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Running {
    pub(crate) job: JobId,
    pub(crate) span: Span,
    pub(crate) lane: Lane,
}

/// An answer waiting to be sent, with what is needed to offer it again after a reconnect.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) job: JobId,
    pub(crate) span: Span,
    pub(crate) finished: Finished,
}

impl Node {
    pub fn new(config: Config) -> Node {
        Node {
            random: config.seed | 1,
            config,
            phase: Phase::Idle,
            paused: false,
            told_pause: false,
            condition: Condition::default(),
            session: None,
            challenge: None,
            coordinator: None,
            link_key: None,
            auditions: BTreeSet::new(),
            called: BTreeMap::new(),
            crews: BTreeMap::new(),
            quic: Quic::default(),
            outputs: VecDeque::new(),
            jobs: BTreeMap::new(),
            elsewhere: Elsewhere::default(),
            checking: BTreeSet::new(),
            queues: PerLane::default(),
            running: BTreeMap::new(),
            calls: Calls::default(),
            overdrawn: false,
            newest: Attempt(0),
            finished: Vec::new(),
            finished_bytes: 0,
            last_flush: Time(0),
            next_beat: Time(0),
            misses: 0,
            units_done: 0,
            units_failed: 0,
        }
    }

    pub fn handle(&mut self, now: Time, input: Input) {
        if self.phase == Phase::Stopped {
            return;
        }
        match input {
            Input::Start if self.phase == Phase::Idle => self.connect(),
            Input::Opened if self.phase == Phase::Connecting => self.opened(now),
            Input::Signed { statement, proof } => {
                self.greet(&statement, proof);
                self.proved_links(&statement, proof);
            }
            Input::LinkKey(key) => self.link_with(key),
            Input::CrewSays { crew, epoch, say } => self.crew_says(crew, epoch, say),
            Input::CrewAnswers { crew, call, result } => self.crew_answers(crew, call, result),
            Input::CrewPart { crew, call, at, bytes, last } => {
                self.crew_part(crew, call, at, bytes, last);
            }
            Input::SwarmSays(say) => {
                if self.is_joined() {
                    self.send(FromNode::Swarm(say));
                }
            }
            Input::Checked { job, result } => self.checked(job, result),
            Input::Rules(rules) => self.rule(rules),
            Input::Closed => self.lost(now),
            Input::Received(message) if self.has_socket() => self.received(now, message),
            Input::Ran { attempt, took, result } => self.ran(now, attempt, took, result),
            Input::Part { attempt, bytes } => self.part(attempt, bytes),
            Input::Warmed { job, result } => self.warmed(job, result),
            Input::QuicUp => self.quic.up(now),
            Input::QuicDown => self.quic.down(now),
            Input::Offer(caps) => self.offer(caps),
            Input::Pause(paused) => self.pause(paused),
            Input::Condition(condition) => self.feel(condition),
            Input::Stop => self.stop(None),
            // Late echoes of a socket or a start that is history.
            Input::Start | Input::Opened | Input::Received(_) | Input::Tick => {}
        }
        self.on_time(now);
    }

    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    pub fn job(&self, job: JobId) -> Option<&JobInfo> {
        self.jobs.get(&job)
    }

    /// Bearer token for HTTP requests of the present connection.
    pub fn session(&self) -> Option<&str> {
        self.session.as_deref()
    }

    pub fn status(&self) -> Status {
        Status {
            phase: self.phase,
            running: self.running.len(),
            queued: self.queues.values().map(VecDeque::len).sum(),
            units_done: self.units_done,
            units_failed: self.units_failed,
            job: self.calls.job_at_work().or_else(|| self.running.values().next().map(|r| r.job)),
        }
    }

    pub(crate) fn is_joined(&self) -> bool {
        matches!(self.phase, Phase::Joined(_))
    }

    fn has_socket(&self) -> bool {
        matches!(self.phase, Phase::Greeting { .. } | Phase::Joined(_))
    }

    pub(crate) fn send(&mut self, message: FromNode) {
        self.outputs.push_back(Output::Send(message));
    }

    pub(crate) fn holds_units(&self) -> bool {
        !self.running.is_empty()
            || !self.calls.is_empty()
            || !self.finished.is_empty()
            || self.queues.values().any(|queue| !queue.is_empty())
    }
}
