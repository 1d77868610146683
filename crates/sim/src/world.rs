//! The world: events in virtual time between one coordinator and many devices.

use std::collections::BTreeMap;

use shoal_node::Node;
use shoal_protocol::codec::Wire;
use shoal_protocol::{Attempt, Failure, FromNode, Lease, Micros, Time, ToNode, UnitOutput};
use shoal_scheduler::{Arrived, Conn, Fact, Input, Output, RequestId, Scheduler};

use crate::device::{Device, caps, spec};
use crate::oracle::Oracle;
use crate::random::Random;
use crate::scenario::Scenario;

/// Virtual time after which a world that has not finished never will.
const PATIENCE: u64 = 3_600_000_000;
/// How long a crashed coordinator is away, and a vanished or frozen device, in microseconds.
const ABSENCE: (u64, u64) = (10_000, 4_000_000);

/// Told when the scheduler works, so that a shell with a clock can measure it.
pub trait Probe {
    fn before(&mut self) {}
    fn after(&mut self) {}
}

impl Probe for () {}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    pub events: u64,
    /// Inputs the scheduler handled.
    pub inputs: u64,
    pub units: u64,
    pub virtual_micros: u64,
    /// A fingerprint of the whole trace: the same seed gives the same one.
    pub trace: u64,
    pub crashes: u64,
    pub vanished: u64,
}

pub(crate) enum Event {
    Join(usize),
    Opened {
        device: usize,
        birth: u32,
        conn: Conn,
    },
    ToNode(Conn, ToNode),
    FromNode(Conn, FromNode),
    /// The device learns that its socket is gone.
    Closed(Conn),
    /// The coordinator learns that a socket is gone.
    Gone(Conn),
    Ran {
        device: usize,
        birth: u32,
        attempt: Attempt,
        took: Micros,
        ok: bool,
    },
    NodeTimer(usize),
    Timer,
    Submit(usize),
    Vanish,
    Freeze,
    Crash,
    Restart,
}

pub struct World<P> {
    pub(crate) scenario: Scenario,
    pub(crate) random: Random,
    pub(crate) now: Time,
    events: BTreeMap<(Time, u64), Event>,
    count: u64,
    /// `None` while the coordinator is down.
    scheduler: Option<Scheduler>,
    facts: Vec<Fact>,
    devices: Vec<Device>,
    sockets: BTreeMap<Conn, Socket>,
    next_conn: u64,
    oracle: Oracle,
    report: Report,
    timer: Option<Time>,
    probe: P,
}

/// A connection keeps the order of what is sent in each direction.
struct Socket {
    device: usize,
    to_node: Time,
    from_node: Time,
}

/// Runs a world drawn from the seed to its end; panics where a promise is broken.
pub fn run(seed: u64) -> Report {
    let mut random = Random::new(seed);
    let scenario = Scenario::random(&mut random);
    run_probed(seed, scenario, ()).0
}

pub fn run_probed<P: Probe>(seed: u64, scenario: Scenario, probe: P) -> (Report, P) {
    let mut world = World::new(seed, scenario, probe);
    world.run();
    (world.report, world.probe)
}

impl<P: Probe> World<P> {
    fn new(seed: u64, scenario: Scenario, probe: P) -> World<P> {
        let mut random = Random::new(seed ^ 0x5eed);
        let devices = (0..scenario.nodes).map(|n| Device::new(n, &scenario, &mut random)).collect();
        let report = Report {
            events: 0,
            inputs: 0,
            units: 0,
            virtual_micros: 0,
            trace: 0xcbf2_9ce4_8422_2325,
            crashes: 0,
            vanished: 0,
        };
        World {
            scenario,
            random,
            now: Time(0),
            events: BTreeMap::new(),
            count: 0,
            scheduler: Some(Scheduler::new()),
            facts: Vec::new(),
            devices,
            sockets: BTreeMap::new(),
            next_conn: 0,
            oracle: Oracle::default(),
            report,
            timer: None,
            probe,
        }
    }

    fn run(&mut self) {
        self.give(Input::Start);
        for device in 0..self.devices.len() {
            let at = self.random.range(0, 1_000_000);
            self.at(at, Event::Join(device));
        }
        for job in 0..self.scenario.jobs.len() {
            self.at(self.scenario.jobs[job].at, Event::Submit(job));
        }
        self.plan_fault(self.scenario.churn, Event::Vanish);
        self.plan_fault(self.scenario.freezes, Event::Freeze);
        self.plan_fault(self.scenario.crashes, Event::Crash);
        while !self.is_over() {
            let Some(((time, _), event)) = self.events.pop_first() else {
                panic!("the world stands still with jobs unfinished");
            };
            assert!(time.0 < PATIENCE, "jobs do not finish");
            self.now = time;
            self.step(event);
        }
        let may_fail = self.scenario.mishaps + self.scenario.churn + self.scenario.freezes > 0;
        if let Some(live) = &self.scheduler {
            live.check();
            self.oracle.compare(live, &self.facts, self.now);
            self.oracle.all_finished(live, self.now, may_fail);
        }
        self.report.units = self.oracle.units;
        self.report.virtual_micros = self.now.0;
    }

    fn is_over(&self) -> bool {
        let Some(live) = &self.scheduler else { return false };
        if self.now.0 < self.scenario.faults_until || self.pending_jobs() {
            return false;
        }
        live.open_jobs() == 0
    }

    fn pending_jobs(&self) -> bool {
        self.scenario.jobs.iter().any(|job| job.at >= self.now.0)
    }

    fn step(&mut self, event: Event) {
        self.report.events += 1;
        self.trace(&event);
        match event {
            Event::Join(device) => self.tell_device(device, shoal_node::Input::Start),
            Event::Opened { device, birth, conn } => self.opened(device, birth, conn),
            Event::ToNode(conn, message) => {
                if let Some(device) = self.sockets.get(&conn).map(|socket| socket.device) {
                    self.tell_device(device, shoal_node::Input::Received(message));
                }
            }
            Event::FromNode(conn, message) => self.heard(conn, message),
            Event::Closed(conn) => {
                if let Some(socket) = self.sockets.remove(&conn) {
                    self.devices[socket.device].conn = None;
                    self.tell_device(socket.device, shoal_node::Input::Closed);
                }
            }
            Event::Gone(conn) => self.give(Input::Disconnected { conn }),
            Event::Ran { device, birth, attempt, took, ok } => {
                self.ran(device, birth, attempt, took, ok);
            }
            Event::NodeTimer(device) => {
                self.devices[device].timer = None;
                self.tell_device(device, shoal_node::Input::Tick);
            }
            Event::Timer => {
                self.timer = None;
                self.give(Input::Tick);
            }
            Event::Submit(job) => self.submit(job),
            Event::Vanish => self.vanish(),
            Event::Freeze => self.freeze(),
            Event::Crash => self.crash(),
            Event::Restart => self.restart(),
        }
    }

    // What the coordinator's shell would do.

    fn give(&mut self, input: Input) {
        let Some(scheduler) = &mut self.scheduler else { return };
        self.report.inputs += 1;
        self.probe.before();
        scheduler.handle(self.now, input);
        let outputs: Vec<Output> = std::iter::from_fn(|| scheduler.poll_output()).collect();
        self.probe.after();
        if self.report.inputs.is_multiple_of(self.scenario.check_every) {
            scheduler.check();
        }
        let timeout = scheduler.next_timeout();
        for output in outputs {
            self.act(output);
        }
        if let Some(due) = timeout
            && self.timer.is_none_or(|timer| timer > due)
        {
            self.timer = Some(due);
            self.at(due.0.max(self.now.0 + 1), Event::Timer);
        }
    }

    fn act(&mut self, output: Output) {
        match output {
            Output::Record(fact) => {
                self.oracle.recorded(&fact);
                self.facts.push(fact);
            }
            Output::Send { conn, message } => self.send_to_node(conn, message),
            Output::Refuse { conn, refusal } => {
                self.send_to_node(conn, ToNode::Refused(refusal));
                let at = self.sockets.get(&conn).map_or(self.now, |socket| socket.to_node);
                self.at(at.0 + 1, Event::Closed(conn));
            }
            Output::Ended(job) => self.oracle.ended(job),
            Output::Reply { result, .. } => {
                assert!(result.is_ok(), "a job was refused: {result:?}")
            }
            Output::Removed(_) => {}
        }
    }

    fn send_to_node(&mut self, conn: Conn, message: ToNode) {
        let delay = self.delay();
        let lost = self.has_faults() && self.random.chance(self.scenario.loss);
        let Some(socket) = self.sockets.get_mut(&conn) else { return };
        socket.to_node = (self.now + delay).max(socket.to_node);
        let at = socket.to_node.0;
        if lost {
            return;
        }
        let message = if self.scenario.check_every == 1 { reread(&message) } else { message };
        self.at(at, Event::ToNode(conn, message));
    }

    fn heard(&mut self, conn: Conn, message: FromNode) {
        match message {
            FromNode::Hello(hello) => {
                self.give(Input::Connected { conn, hello, session: String::from("s") });
            }
            FromNode::Done(results) => {
                let results = results.into_iter().map(|done| Arrived {
                    attempt: done.attempt,
                    took: done.took,
                    place: None,
                });
                let results = results.collect();
                self.give(Input::Done { conn, results });
            }
            FromNode::Failed { .. }
            | FromNode::Alive { .. }
            | FromNode::Caps(_)
            | FromNode::Returned(_)
            | FromNode::Pause(_) => self.give(Input::Said { conn, message }),
        }
    }

    fn submit(&mut self, job: usize) {
        if self.scheduler.is_none() {
            // The client finds nobody and tries again.
            self.scenario.jobs[job].at = self.now.0 + 500_000;
            self.at(self.now.0 + 500_000, Event::Submit(job));
            return;
        }
        let spec = spec(&self.scenario.jobs[job]);
        self.give(Input::Submit { request: RequestId(job as u64), spec });
    }

    fn crash(&mut self) {
        self.plan_fault(self.scenario.crashes, Event::Crash);
        if self.scheduler.is_none() || !self.has_faults() {
            return;
        }
        self.report.crashes += 1;
        if let Some(live) = &self.scheduler {
            self.oracle.compare(live, &self.facts, self.now);
        }
        self.scheduler = None;
        let conns: Vec<Conn> = self.sockets.keys().copied().collect();
        for conn in conns {
            let delay = self.delay();
            self.at((self.now + delay).0, Event::Closed(conn));
        }
        let away = self.random.range(ABSENCE.0, ABSENCE.1);
        self.at(self.now.0 + away, Event::Restart);
    }

    fn restart(&mut self) {
        self.scheduler = Some(Scheduler::replay(self.facts.iter().cloned()));
        self.timer = None;
        self.give(Input::Start);
    }

    // What a device's shell would do.

    fn tell_device(&mut self, at: usize, input: shoal_node::Input) {
        let device = &mut self.devices[at];
        if device.is_away(self.now) {
            // Frozen: it happens when the device wakes. Vanished: it never happens.
            device.missed.push(input);
            return;
        }
        let mut inputs = std::mem::take(&mut device.missed);
        inputs.push(input);
        for input in inputs {
            let device = &mut self.devices[at];
            // A shell drops what comes from a socket that its node has closed.
            if device.conn.is_none() && matches!(input, shoal_node::Input::Received(_)) {
                continue;
            }
            device.node.handle(self.now, input);
            let outputs: Vec<_> = std::iter::from_fn(|| device.node.poll_output()).collect();
            device.node.check();
            for output in outputs {
                self.device_acts(at, output);
            }
        }
        let device = &mut self.devices[at];
        if let Some(due) = device.node.next_timeout()
            && device.timer.is_none_or(|timer| timer > due)
        {
            device.timer = Some(due);
            self.at(due.0.max(self.now.0 + 1), Event::NodeTimer(at));
        }
    }

    fn device_acts(&mut self, at: usize, output: shoal_node::Output) {
        match output {
            shoal_node::Output::Connect => {
                self.next_conn += 1;
                let delay = self.delay();
                let (birth, conn) = (self.devices[at].birth, Conn(self.next_conn));
                self.at((self.now + delay).0, Event::Opened { device: at, birth, conn });
            }
            shoal_node::Output::Disconnect => {
                if let Some(conn) = self.devices[at].conn.take() {
                    self.sockets.remove(&conn);
                    let delay = self.delay();
                    self.at((self.now + delay).0, Event::Gone(conn));
                }
            }
            shoal_node::Output::Send(message) => self.send_from_node(at, message),
            shoal_node::Output::Run { lease, .. } => self.begin(at, lease),
            shoal_node::Output::Abort(_) | shoal_node::Output::Forget(_) => {}
            shoal_node::Output::Stopped(refusal) => {
                // Only a newer connection of the same device ends one for good.
                assert!(refusal.is_some(), "a device stopped by itself");
            }
        }
    }

    fn opened(&mut self, at: usize, birth: u32, conn: Conn) {
        if self.devices[at].birth != birth {
            return;
        }
        if self.scheduler.is_none() {
            self.tell_device(at, shoal_node::Input::Closed);
            return;
        }
        let socket = Socket { device: at, to_node: self.now, from_node: self.now };
        self.sockets.insert(conn, socket);
        self.devices[at].conn = Some(conn);
        self.tell_device(at, shoal_node::Input::Opened);
    }

    fn send_from_node(&mut self, at: usize, message: FromNode) {
        let delay = self.delay();
        let lost = self.has_faults() && self.random.chance(self.scenario.loss);
        let Some(conn) = self.devices[at].conn else { return };
        let Some(socket) = self.sockets.get_mut(&conn) else { return };
        socket.from_node = (self.now + delay).max(socket.from_node);
        let at = socket.from_node.0;
        if lost {
            return;
        }
        let message = if self.scenario.check_every == 1 { reread(&message) } else { message };
        self.at(at, Event::FromNode(conn, message));
    }

    fn begin(&mut self, at: usize, lease: Lease) {
        let mishap = self.has_faults() && self.random.chance(self.scenario.mishaps);
        let device = &self.devices[at];
        let took = Micros(device.item_micros * lease.span.len);
        let (birth, attempt) = (device.birth, lease.attempt);
        let event = Event::Ran { device: at, birth, attempt, took, ok: !mishap };
        self.at((self.now + took).0, event);
    }

    fn ran(&mut self, at: usize, birth: u32, attempt: Attempt, took: Micros, ok: bool) {
        if self.devices[at].birth != birth {
            return;
        }
        let result = if ok {
            Ok(UnitOutput::Inline(Vec::new()))
        } else {
            Err(Failure::Internal { message: "a mishap".into() })
        };
        self.tell_device(at, shoal_node::Input::Ran { attempt, took, result });
    }

    /// A device dies with everything it had; after a while it is started again with the same identity.
    fn vanish(&mut self) {
        self.plan_fault(self.scenario.churn, Event::Vanish);
        if !self.has_faults() {
            return;
        }
        self.report.vanished += 1;
        let at = self.random.range(0, self.devices.len() as u64) as usize;
        if let Some(conn) = self.devices[at].conn.take() {
            self.sockets.remove(&conn);
            // Half of them close their socket; the others just fall silent until the system notices.
            let notice = if self.random.chance(500_000) { self.delay().0 } else { 60_000_000 };
            self.at(self.now.0 + notice, Event::Gone(conn));
        }
        let seed = self.random.draw();
        let device = &mut self.devices[at];
        device.birth += 1;
        device.node = Node::new(device.config(caps(at as u64, &mut Random::new(seed)), seed));
        device.missed.clear();
        device.frozen_until = Time(0);
        let back = self.now.0 + self.random.range(ABSENCE.0, ABSENCE.1);
        self.at(back, Event::Join(at));
    }

    fn freeze(&mut self) {
        self.plan_fault(self.scenario.freezes, Event::Freeze);
        if !self.has_faults() {
            return;
        }
        let at = self.random.range(0, self.devices.len() as u64) as usize;
        let until = self.now.0 + self.random.range(ABSENCE.0, ABSENCE.1);
        self.devices[at].frozen_until = Time(until);
        self.at(until + 1, Event::NodeTimer(at));
    }

    // Chance and time.

    fn has_faults(&self) -> bool {
        self.now.0 < self.scenario.faults_until
    }

    fn plan_fault(&mut self, mean: u64, event: Event) {
        let at = self.now.0 + self.random.range(1, mean.max(1) * 2);
        if mean > 0 && at < self.scenario.faults_until {
            self.at(at, event);
        }
    }

    fn delay(&mut self) -> Micros {
        let (low, high) = self.scenario.delay;
        Micros(self.random.range(low, high))
    }

    fn at(&mut self, micros: u64, event: Event) {
        self.count += 1;
        self.events.insert((Time(micros), self.count), event);
    }

    fn trace(&mut self, event: &Event) {
        let (kind, detail) = match event {
            Event::Join(device) => (1, *device as u64),
            Event::Opened { conn, .. } => (2, conn.0),
            Event::ToNode(conn, _) => (3, conn.0),
            Event::FromNode(conn, _) => (4, conn.0),
            Event::Closed(conn) => (5, conn.0),
            Event::Gone(conn) => (6, conn.0),
            Event::Ran { attempt, .. } => (7, attempt.0),
            Event::NodeTimer(device) => (8, *device as u64),
            Event::Timer => (9, 0),
            Event::Submit(job) => (10, *job as u64),
            Event::Vanish => (11, 0),
            Event::Freeze => (12, 0),
            Event::Crash => (13, 0),
            Event::Restart => (14, 0),
        };
        for part in [self.now.0, kind, detail] {
            self.report.trace = (self.report.trace ^ part).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

/// Through the real codec, so that every message of every world is a test of it.
fn reread<M: Wire>(message: &M) -> M {
    M::decode(&message.encode()).expect("a message could not be read back")
}
