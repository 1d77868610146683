//! What the scheduler knows: jobs and names are durable, peers and loans die with the process.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use shoal_protocol::limit::RECONNECT_LONGEST;
use shoal_protocol::{Attempt, Micros, Time, ToNode};

use crate::assign::crew::{Crews, Pairs};
use crate::assign::{Conducts, Review};
use crate::jobs::Jobs;
use crate::loans::Loans;
use crate::numbers::{Chance, Numbers};
use crate::peers::{Arrival, Peers, Register};
use crate::service::Services;
use crate::swarm::Swarms;
use crate::verify::Trusts;
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
    /// When the last input came.
    pub(crate) now: Time,
    pub(crate) numbers: Numbers,
    pub(crate) jobs: Jobs,
    /// Everybody who ever joined, and whoever is here.
    pub(crate) register: Register,
    pub(crate) peers: Peers,
    pub(crate) loans: Loans,
    pub(crate) trust: Trusts,
    pub(crate) conducts: Conducts,
    pub(crate) review: Review,
    pub(crate) crews: Crews,
    /// Nodes whose applications talk, or that give each other blobs.
    pub(crate) pairs: Pairs,
    /// Blobs that nodes give each other.
    pub(crate) swarms: Swarms,
    pub(crate) services: Services,
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
                self.connected(now, Arrival { conn, session, trusted, network }, hello);
            }
            Input::Disconnected { conn } => self.disconnected(now, conn),
            Input::Stored { blob } => self.stored(blob),
            Input::Said { conn, message } => self.said(now, conn, message),
            Input::Done { conn, results } => self.arrived(now, conn, &results),
            Input::RoundTrip { conn, took } => self.timed(conn, took),
            Input::Written { job, span, place } => self.written(now, job, span, place),
            Input::Compared { id, outcome } => self.compared(now, id, outcome),
            Input::Serve { request, spec } => self.serve(now, request, spec),
            Input::Unserve { service } => self.unserve(service),
            Input::Ask { call, service, body, urgency } => {
                self.take_call(call, service, (body, urgency));
            }
            Input::HangUp { call } => self.hang_up(call),
            Input::RowsCompared { crew, same } => self.rows_compared(now, crew, same),
            Input::Poke { job, poke } => self.poke(job, poke),
            Input::Watch { job, on } => self.watch(job, on),
            Input::Tick => {}
        }
        self.look_for_silence(now);
        self.wake_rested(now);
        self.review_if_due(now);
        self.look_at_crews(now);
        self.look_at_swarms(now);
        self.look_at_services(now);
        self.judge_again(now);
        if self.review.take_woken() {
            self.feed_hungry(now);
        }
        self.plan_review(now);
    }

    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    pub fn next_timeout(&self) -> Option<Time> {
        let all = [
            self.peers.next_timeout(),
            self.review.next_timeout(),
            self.crews.next_timeout(),
            self.swarms.next_timeout(),
            self.services.next_timeout(),
        ];
        all.into_iter().flatten().min()
    }

    fn start(&mut self, now: Time, seed: u64) {
        self.chance = Chance::new(seed);
        self.next_life();
        // Of nodes that did nothing yet no fact tells, but they may have been here in the life before.
        if self.numbers.life() > 1 {
            self.conducts.settle_at(now + BACK_AFTER_START);
        }
        self.form_again(now);
        // The last life may have ended between a job's last unit and its end.
        let running: Vec<_> = self.jobs.running().iter().copied().collect();
        for id in running {
            self.finish_if_whole(now, id);
        }
    }

    fn next_life(&mut self) {
        let life = self.numbers.life() + 1;
        self.begin_life(life);
        self.record(crate::Fact::Life { life });
    }

    pub(crate) fn record(&mut self, fact: crate::Fact) {
        self.outputs.push_back(Output::Record(fact));
    }

    pub(crate) fn send(&mut self, conn: Conn, message: ToNode) {
        self.outputs.push_back(Output::Send { conn, message });
    }

    /// After four billion lendings a new life begins, so that no number is used twice.
    pub(crate) fn next_attempt(&mut self) -> Attempt {
        loop {
            match self.numbers.next_attempt() {
                Some(attempt) => return attempt,
                None => self.next_life(),
            }
        }
    }
}
