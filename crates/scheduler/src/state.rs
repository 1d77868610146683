//! What the scheduler knows: jobs and names are durable, peers and loans die with the process.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::string::String;
use alloc::vec::Vec;
use shoal_protocol::limit::RECONNECT_LONGEST;
use shoal_protocol::{
    Attempt, Caps, Condition, CrewId, Identity, JobId, Lane, LinkKey, Micros, NodeId, Signature,
    Span, Time, ToNode,
};

use crate::assign::crew::{Crew, Pair};
use crate::assign::{Absent, Conduct};
use crate::chance::Chance;
use crate::job::{Job, Turn};
use crate::meter::{Meter, Pace};
use crate::swarm::Swarms;
use crate::unit::Loan;
use crate::verify::{Standing, Trust};
use crate::{Input, Output};

/// One connection of a node, counted by the shell; never used twice in a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Conn(pub u64);

/// A submission waiting for its [`Output::Reply`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RequestId(pub u64);

/// After a restart everybody is back in this time: the longest wait between two attempts, and some.
const BACK_AFTER_START: Micros = Micros(RECONNECT_LONGEST.0 * 6 / 5);

#[derive(Default)]
pub struct Scheduler {
    pub(crate) outputs: VecDeque<Output>,
    pub(crate) chance: Chance,
    /// Counts starts of the coordinator; the high part of every attempt.
    pub(crate) life: u32,
    pub(crate) last_attempt: u32,
    pub(crate) last_job: u64,
    pub(crate) jobs: BTreeMap<JobId, Job>,
    /// Jobs with items to lend, those to be served first in front.
    pub(crate) ready: BTreeSet<Turn>,
    /// Every node that ever joined.
    pub(crate) known: BTreeMap<Identity, NodeId>,
    /// Nodes that have done nothing yet: no facts tell of them, and the oldest are forgotten.
    pub(crate) strangers: BTreeMap<NodeId, Identity>,
    pub(crate) last_node: u64,
    /// Numeric classes of nodes, as last said.
    pub(crate) classes: BTreeMap<NodeId, u64>,
    /// What nodes called themselves when last seen.
    pub(crate) names: BTreeMap<NodeId, String>,
    pub(crate) peers: BTreeMap<NodeId, Peer>,
    pub(crate) conns: BTreeMap<Conn, NodeId>,
    pub(crate) loans: BTreeMap<Attempt, Loan>,
    /// Lendings whose node left with them, oldest first.
    pub(crate) lent_before: BTreeMap<(Attempt, NodeId), (JobId, Span)>,
    /// For each lane, peers that could compute more than they hold.
    pub(crate) hungry: [BTreeSet<NodeId>; 3],
    /// Who of those was asked last.
    pub(crate) asked: [Option<NodeId>; 3],
    /// Jobs that run.
    pub(crate) running: BTreeSet<JobId>,
    /// When to look whether a peer fell silent; one entry for each peer.
    pub(crate) timers: BTreeSet<(Time, NodeId)>,
    pub(crate) trust: BTreeMap<(NodeId, Lane), Trust>,
    /// For each lane, peers whose word weighs more than a newcomer's.
    pub(crate) elders: [BTreeSet<NodeId>; 3],
    /// Units whose answers are being compared.
    pub(crate) ballots: usize,
    /// Ballots in which somebody's word lost its weight, to be judged before anything else happens.
    pub(crate) rejudge: VecDeque<(JobId, u64)>,
    /// A unit began to want somebody while nobody was asked.
    pub(crate) stirred: bool,
    /// The operator's own nodes that are connected.
    pub(crate) own: BTreeSet<NodeId>,
    /// When the last input came.
    pub(crate) now: Time,
    /// How nodes kept what they took; only those that did not are here.
    pub(crate) conducts: BTreeMap<NodeId, Conduct>,
    /// When nodes that rest are fed again.
    pub(crate) resting: BTreeSet<(Time, NodeId)>,
    /// Newcomers who came to nothing, beyond those who did not.
    pub(crate) no_shows: u32,
    /// Nodes that left a moment ago.
    pub(crate) absent: BTreeMap<NodeId, Absent>,
    /// The last loan that was looked at for being late.
    pub(crate) looked_at: Option<Attempt>,
    /// What the last [`crate::Fact::Passed`] says.
    pub(crate) passed: Time,
    /// Until then nodes that were here before a restart may come back.
    pub(crate) settled_at: Time,
    /// Simulations that form or have a crew.
    pub(crate) crews: BTreeMap<JobId, Crew>,
    /// When to look at them.
    pub(crate) crews_due: Option<Time>,
    /// When they were last looked at.
    pub(crate) crews_seen: Time,
    /// Nodes whose applications talk.
    pub(crate) pairs: BTreeMap<CrewId, Pair>,
    pub(crate) last_pair: u64,
    /// Blobs that nodes give each other.
    pub(crate) swarms: Swarms,
    /// When to look again at late units and lonely ballots.
    pub(crate) review: Option<Time>,
}

/// A connected node.
pub(crate) struct Peer {
    pub(crate) node: NodeId,
    pub(crate) identity: Identity,
    pub(crate) conn: Conn,
    pub(crate) caps: Caps,
    /// The operator's own.
    pub(crate) trusted: bool,
    /// Where it connects from, as a number; 0 if nobody knows.
    pub(crate) network: u64,
    /// How much its word weighs and whether it gets no work, for each lane.
    pub(crate) standing: [Standing; 3],
    pub(crate) barred: [bool; 3],
    /// What its links are sealed with.
    pub(crate) links: Option<(LinkKey, Signature)>,
    pub(crate) condition: Condition,
    pub(crate) paused: bool,
    /// Jobs whose author the donor does not work for.
    pub(crate) declined: BTreeSet<JobId>,
    pub(crate) round_trip: Option<Micros>,
    /// Said nothing for too long; gets no work until it speaks.
    pub(crate) silent: bool,
    pub(crate) joined: Time,
    pub(crate) heard: Time,
    pub(crate) timer: Time,
    pub(crate) loans: BTreeSet<Attempt>,
    /// How many of those are late.
    pub(crate) late: usize,
    /// Gets nothing before, because it did not keep what it took.
    pub(crate) rests_until: Option<Time>,
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

impl Peer {
    /// Whether it can and may compute a job.
    pub(crate) fn suits(&self, job: &Job) -> bool {
        let needs = &job.spec.needs;
        let may = !self.barred[needs.lane as usize] && !self.declined.contains(&job.id);
        may && !job.is_odd(self.node) && self.caps.meets(needs)
    }
}

/// What the shell knows of a new connection.
pub(crate) struct Seat {
    pub(crate) conn: Conn,
    pub(crate) session: String,
    pub(crate) trusted: bool,
    pub(crate) network: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LaneLoad {
    pub(crate) units: usize,
    /// Of those, how many the node may say it computes.
    pub(crate) running: usize,
    pub(crate) expected: Micros,
}

impl Scheduler {
    pub fn new() -> Scheduler {
        Scheduler::default()
    }

    pub fn handle(&mut self, now: Time, input: Input) {
        self.now = now;
        match input {
            Input::Start { seed } => self.start(now, seed),
            Input::Submit { request, spec } => self.submit(now, request, spec),
            Input::Cancel { job } => self.cancel(now, job),
            Input::Remove { job } => self.remove(job),
            Input::Connected { conn, hello, session, trusted, network } => {
                self.connected(now, Seat { conn, session, trusted, network }, hello);
            }
            Input::Disconnected { conn } => self.disconnected(now, conn),
            Input::Stored { blob } => self.stored(blob),
            Input::Said { conn, message } => self.said(now, conn, message),
            Input::Done { conn, results } => self.arrived(now, conn, &results),
            Input::RoundTrip { conn, took } => self.timed(conn, took),
            Input::Compared { id, outcome } => self.compared(now, id, outcome),
            Input::Poke { job, poke } => self.poke(job, poke),
            Input::Watch { job, on } => self.watch(job, on),
            Input::Tick => {}
        }
        self.look_for_silence(now);
        self.wake_rested(now);
        self.review_if_due(now);
        self.look_at_crews(now);
        self.look_at_swarms(now);
        self.judge_again(now);
        if core::mem::take(&mut self.stirred) {
            self.feed_hungry(now);
        }
        self.plan_review(now);
    }

    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    pub fn next_timeout(&self) -> Option<Time> {
        let silence = self.timers.first().map(|(time, _)| *time);
        let rested = self.resting.first().map(|(time, _)| *time);
        let others = self.review.into_iter().chain(self.crews_due).chain(self.swarms.due);
        silence.into_iter().chain(rested).chain(others).min()
    }

    fn start(&mut self, now: Time, seed: u64) {
        self.chance = Chance::new(seed);
        self.next_life();
        // Of nodes that did nothing yet no fact tells, but they may have been here for the jobs that run.
        if !self.known.is_empty() || !self.running.is_empty() {
            self.settled_at = now + BACK_AFTER_START;
        }
        self.form_again(now);
        // The last life may have ended between a job's last unit and its end.
        let running: Vec<_> = self.running.iter().copied().collect();
        for id in running {
            self.finish_if_whole(now, id);
        }
    }

    fn next_life(&mut self) {
        self.begin_life(self.life + 1);
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
            self.next_life();
        }
        self.last_attempt += 1;
        Attempt::new(self.life, self.last_attempt)
    }
}
