//! What the coordinator's shell would do: carry inputs and outputs, keep facts, compare bytes, crash and start again.

use shoal_protocol::codec::Wire;
use shoal_protocol::{FromNode, Hash, Time, ToNode, UnitOutput};
use shoal_scheduler::{
    Arrived, Conn, Fact, Failed, Input, Outcome, Output, Place, RequestId, Scheduler,
};

use crate::callers::SERVICE;
use crate::device::{Device, spec};
use crate::fault::ABSENCE;
use crate::liar::Content;
use crate::world::{Event, Probe, World};

/// How long a comparison of bytes takes.
const COMPARING: u64 = 300;

impl<P: Probe> World<P> {
    pub(crate) fn give(&mut self, input: Input) {
        let clock = self.clock();
        let Some(scheduler) = &mut self.scheduler else { return };
        self.report.inputs += 1;
        self.probe.before();
        scheduler.handle(clock, input);
        let outputs: Vec<Output> = std::iter::from_fn(|| scheduler.poll_output()).collect();
        self.probe.after();
        // A check costs as much as there are units: the more, the less often.
        let every = self.scenario.check_every.saturating_mul(1 + self.oracle.units() / 400);
        if self.report.inputs.is_multiple_of(every) {
            scheduler.check();
        }
        let timeout = scheduler.next_timeout();
        for output in outputs {
            if let Output::Record(_) = output
                && self.is_killed()
            {
                return;
            }
            self.act(output);
        }
        if let Some(live) = &self.scheduler {
            self.liars_are_out(live);
        }
        if let Some(due) = timeout {
            let due = Time(due.0.saturating_sub(self.ahead));
            let due = Time(due.0.max(self.now.0 + 1));
            if self.timer.is_none_or(|timer| timer > due) {
                self.timer = Some(due);
                self.at(due.0, Event::Timer);
            }
        }
    }

    /// Between any two facts the coordinator may be killed: what comes after never happened.
    fn is_killed(&mut self) -> bool {
        match self.kill_after {
            None => false,
            Some(0) => {
                self.kill_after = None;
                self.go_down();
                true
            }
            Some(facts) => {
                self.kill_after = Some(facts - 1);
                false
            }
        }
    }

    fn act(&mut self, output: Output) {
        match output {
            Output::Record(fact) => self.record(fact),
            Output::Send { conn, mut message } => {
                if let ToNode::Enlist(enlist) = &mut message {
                    self.seal_order(enlist);
                }
                // A measurement of the scheduler is not to measure this.
                if self.scenario.check_every < u64::MAX {
                    self.oracle.sent(&message, self.scheduler.as_ref());
                }
                self.callers.lies.told(conn, &message);
                self.send_to_node(conn, message);
            }
            Output::Refuse { conn, refusal } => {
                self.callers.lies.closed(conn);
                self.send_to_node(conn, ToNode::Refused(refusal));
                let at = self.sockets.get(&conn).map_or(self.now, |socket| socket.to_node);
                self.at(at.0 + 1, Event::Closed(conn));
            }
            Output::Write { job, span, .. } => {
                panic!("job {job} goes on without {span}, which no kind of this world does")
            }
            Output::Ended(job) => {
                self.oracle.ended(job);
                if self.scenario.in_turn && self.pending_jobs() {
                    let next = self.oracle.submitted();
                    self.at(self.now.0 + 1, Event::Submit(next));
                }
            }
            Output::Reply { request, result } => {
                let id = result.expect("a job was refused");
                if request == SERVICE {
                    self.callers.served(id);
                }
            }
            Output::Answered { call, part, last, ran } => {
                self.callers.answered(call, &part, last, ran);
            }
            Output::Unanswered { call, error } => {
                let clock = self.clock();
                self.callers.unanswered(clock, call, &error);
            }
            Output::Removed(_) => {}
            Output::Route { crew, epoch, members } => self.route(crew, epoch, members),
            Output::Drop(blobs) => self.crews.drop_parts(&blobs),
            Output::CompareRows { crew, a, b, .. } => self.compare_rows(crew, &a, &b),
            Output::Compare { id, items, a, b, .. } => {
                let near = Content::read(&a.place.hash).same(&Content::read(&b.place.hash), items);
                let outcome = match near {
                    true if a.place.hash == b.place.hash => Outcome::Same,
                    true => Outcome::Near,
                    false => Outcome::Different,
                };
                let life = self.life;
                self.at(self.now.0 + COMPARING, Event::Compared { life, id, outcome });
            }
        }
    }

    fn record(&mut self, fact: Fact) {
        self.oracle.recorded(&fact, self.now);
        self.crews.recorded(&fact);
        self.report.crew.epochs += u64::from(matches!(fact, Fact::Epoch { .. }));
        if let Fact::ServiceCrew { seats, .. } = &fact {
            self.report.split += u64::from(!seats.is_empty());
        }
        if let Fact::Rejected { job, node, rounds, .. } = &fact {
            let number = self.oracle.device_of(*node);
            let device = self.devices.get(number as usize);
            let honest = device.is_some_and(Device::is_honest);
            self.report.honest_rejected += u64::from(honest && !rounds);
            let lane = self.scheduler.as_ref().and_then(|live| Some(live.spec(*job)?.needs.lane));
            let trust = lane.and_then(|lane| Some(self.scheduler.as_ref()?.trust_of(*node, lane)));
            if trust.is_some_and(|trust| trust.is_barred()) {
                self.oracle.barred(number, device.map_or(0, |device| device.answers));
            }
        }
        self.facts.push(fact);
    }

    /// Said on every new connection; who is who is not in doubt here.
    pub(crate) fn challenge(&mut self, conn: Conn) {
        let (nonce, coordinator) = ([0; 32], self.crews.coordinator());
        self.send_to_node(conn, ToNode::Challenge { nonce, coordinator });
    }

    fn send_to_node(&mut self, conn: Conn, message: ToNode) {
        let delay = self.delay();
        let Some(device) = self.sockets.get(&conn).map(|socket| socket.device) else { return };
        let in_order = matches!(
            message,
            ToNode::Welcome { .. } | ToNode::Refused(_) | ToNode::Challenge { .. }
        );
        if self.is_sure(&message) {
            let due = (self.now + delay).max(self.devices[device].cut_until + delay);
            let Some(socket) = self.sockets.get_mut(&conn) else { return };
            socket.to_node = socket.to_node.max(due);
            let (due, message) = (socket.to_node, reread(&message));
            return self.at(due.0, Event::ToNode(conn, message));
        }
        let Some((copies, disorder)) = self.passage(device, in_order) else { return };
        let Some(socket) = self.sockets.get_mut(&conn) else { return };
        let due = self.now + delay;
        socket.to_node = if disorder { socket.to_node } else { due.max(socket.to_node) };
        let at = if disorder { due } else { socket.to_node };
        let message = if self.scenario.check_every == 1 { reread(&message) } else { message };
        for _ in 1..copies {
            let again = self.delay();
            self.at((at + again).0, Event::ToNode(conn, message.clone()));
        }
        self.at(at.0, Event::ToNode(conn, message));
    }

    /// Of crews and of blobs nothing is said again: a socket that is open carries it, in order.
    fn is_sure(&self, message: &ToNode) -> bool {
        match message {
            ToNode::Job { job, .. } | ToNode::Forget(job) => {
                let split = self.scenario.split.is_some() && self.callers.is_service(*job);
                self.crews.has(*job) && matches!(message, ToNode::Job { .. }) || split
            }
            ToNode::Audition { .. }
            | ToNode::Enlist(_)
            | ToNode::Dismiss { .. }
            | ToNode::ToCrew { .. }
            | ToNode::Swarm(_)
            | ToNode::Quic(_) => true,
            ToNode::Welcome { .. }
            | ToNode::Refused(_)
            | ToNode::Lend(_)
            | ToNode::Revoke(_)
            | ToNode::Challenge { .. }
            | ToNode::Warm { .. }
            | ToNode::Ask { .. }
            | ToNode::AskMore { .. }
            | ToNode::Link => false,
        }
    }

    pub(crate) fn heard(&mut self, conn: Conn, message: FromNode) {
        match message {
            FromNode::Hello(hello) => {
                let number = self.oracle.number_of(&hello.identity);
                let (trusted, session) = (number < self.scenario.own, String::from("s"));
                let network = self.oracle.network(number);
                self.has_honest |= self.scheduler.is_some() && number < self.scenario.nodes;
                let hello = *hello;
                self.give(Input::Connected { conn, hello, session, trusted, network });
            }
            FromNode::Done(results) => {
                let results = results.into_iter().map(|done| Arrived {
                    attempt: done.attempt,
                    took: done.took,
                    place: place(&done.output),
                });
                self.done(conn, results.collect());
            }
            FromNode::Failed { .. }
            | FromNode::Alive { .. }
            | FromNode::Caps(_)
            | FromNode::Returned(_)
            | FromNode::Pause(_)
            | FromNode::Condition(_)
            | FromNode::Declined { .. }
            | FromNode::Links { .. }
            | FromNode::Crew { .. }
            | FromNode::Warm { .. }
            | FromNode::Answer { .. } => self.said(conn, message),
            FromNode::Swarm(say) => self.heard_of_blobs(conn, say),
        }
    }

    pub(crate) fn give_said(&mut self, conn: Conn, message: FromNode) {
        self.give(Input::Said { conn, message });
    }

    fn done(&mut self, conn: Conn, results: Vec<Arrived>) {
        let live = |arrived: &Arrived| {
            self.scheduler.as_ref().is_some_and(|live| live.lease(arrived.attempt).is_some())
        };
        if results.iter().any(live) {
            self.give(Input::Done { conn, results });
            return;
        }
        // Only time may change anything here, so it passes first.
        self.give(Input::Tick);
        let facts = self.facts.len();
        self.give(Input::Done { conn, results });
        assert_eq!(facts, self.facts.len(), "an answer of a revoked attempt changed something");
    }

    pub(crate) fn submit(&mut self, job: usize) {
        // A client that finds nobody asks again when the coordinator is back.
        if self.scheduler.is_none() || self.oracle.knows(job) {
            return;
        }
        let spec = spec(job, &self.scenario.jobs[job]);
        self.give(Input::Submit { request: RequestId(job as u64), spec });
    }

    pub(crate) fn go_down(&mut self) {
        self.report.crashes += 1;
        self.scheduler = None;
        self.callers.cut_off();
        self.crews.routes.clear();
        let conns: Vec<Conn> = self.sockets.keys().copied().collect();
        for conn in conns {
            let delay = self.delay();
            self.at((self.now + delay).0, Event::Closed(conn));
        }
        let away = self.random.range(ABSENCE.0, ABSENCE.1);
        self.at(self.now.0 + away, Event::Restart);
    }

    pub(crate) fn restart(&mut self) {
        let replayed = Scheduler::replay(self.facts.iter().cloned());
        replayed.check();
        self.scheduler = Some(replayed);
        self.timer = None;
        self.life += 1;
        let seed = self.random.draw();
        self.give(Input::Start { seed });
        self.serve_again();
        self.submit_crews_again();
        for job in 0..self.scenario.jobs.len() {
            if self.scenario.jobs[job].at <= self.now.0 && !self.oracle.knows(job) {
                self.at(self.now.0 + 1, Event::Submit(job));
            }
        }
    }
}

/// Where the bytes would be: here the hash is the bytes.
fn place(output: &UnitOutput) -> Option<Place> {
    let bytes = match output {
        UnitOutput::Inline(bytes) => bytes,
        UnitOutput::Stored { hash, size } => {
            return Some(Place { offset: 0, size: *size, hash: *hash, failed: Failed::default() });
        }
    };
    if bytes.is_empty() {
        return None;
    }
    let mut hash = [0; 32];
    hash[..bytes.len()].copy_from_slice(bytes);
    Some(Place { offset: 0, size: bytes.len() as u64, hash: Hash(hash), failed: Failed::default() })
}

/// Through the real codec, so that every message of every world is a test of it.
pub(crate) fn reread<M: Wire>(message: &M) -> M {
    M::decode(&message.encode()).expect("a message could not be read back")
}
