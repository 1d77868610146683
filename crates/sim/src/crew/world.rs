//! Events in virtual time between one coordinator and a few devices.

use std::collections::{BTreeMap, BTreeSet};

use ed25519_dalek::SigningKey;
use shoal_node::{Input as NodeInput, SimAnswer};
use shoal_protocol::{CrewId, Epoch, FromNode, JobId, Micros, NodeId, Time, ToNode};
use shoal_scheduler::{Conn, Fact, Input, JobState, RequestId, Scheduler, WhyJob};

use super::device::{Device, bytes};
use super::engine::Blobs;
use super::{CrewReport, Plan};
use crate::random::Random;

/// Virtual time after which a world that has not finished never will.
const PATIENCE: u64 = 1_200_000_000;
const JOB: JobId = JobId(1);

pub(super) enum Event {
    Wake(usize),
    Opened {
        device: usize,
        birth: u32,
        conn: Conn,
    },
    ToNode(Conn, ToNode),
    FromNode(Conn, FromNode),
    /// A frame on its way to the relay, and from it.
    ToRelay(Conn, Vec<u8>),
    FromRelay(Conn, Vec<u8>),
    Direct {
        from: NodeId,
        to: usize,
        birth: u32,
        bytes: Vec<u8>,
    },
    DirectUp {
        pair: (usize, usize),
        births: (u32, u32),
        crew: CrewId,
    },
    DirectDown {
        pair: (usize, usize),
        births: (u32, u32),
        crew: CrewId,
    },
    Closed(Conn),
    Gone(Conn),
    Auditioned {
        device: usize,
        birth: u32,
        crew: CrewId,
    },
    /// The engine is done with its command.
    Engine {
        device: usize,
        birth: u32,
        crew: CrewId,
    },
    Answered {
        device: usize,
        birth: u32,
        crew: CrewId,
        answer: SimAnswer,
    },
    Timer,
    Fault,
    /// Somebody stirs the field.
    Stroke,
    Restart,
}

pub(super) struct World {
    pub(super) plan: Plan,
    pub(super) random: Random,
    pub(super) now: Time,
    events: BTreeMap<(Time, u64), Event>,
    count: u64,
    pub(super) scheduler: Option<Scheduler>,
    pub(super) facts: Vec<Fact>,
    pub(super) key: SigningKey,
    pub(super) devices: Vec<Device>,
    pub(super) sockets: BTreeMap<Conn, Socket>,
    pub(super) next_conn: u64,
    pub(super) routes: BTreeMap<CrewId, (Epoch, BTreeMap<NodeId, Conn>)>,
    /// Direct channels that are open.
    pub(super) channels: BTreeSet<(CrewId, usize, usize)>,
    /// How many devices vanished: nodes that vanish are a kernel's victims if they are many.
    pub(super) vanished: u32,
    pub(super) blobs: Blobs,
    pub(super) report: CrewReport,
    pub(super) timer: Option<Time>,
}

/// Keeps the order of what is sent in each direction.
pub(super) struct Socket {
    pub(super) device: usize,
    pub(super) to_node: Time,
    pub(super) from_node: Time,
}

impl World {
    pub(super) fn new(plan: Plan, mut random: Random) -> World {
        let key = SigningKey::from_bytes(&bytes(&mut random));
        let devices = (0..plan.devices).map(|at| Device::new(at, &mut random)).collect();
        World {
            plan,
            random,
            now: Time(0),
            events: BTreeMap::new(),
            count: 0,
            scheduler: Some(Scheduler::new()),
            facts: Vec::new(),
            key,
            devices,
            sockets: BTreeMap::new(),
            next_conn: 0,
            routes: BTreeMap::new(),
            channels: BTreeSet::new(),
            vanished: 0,
            blobs: Blobs::new(),
            report: CrewReport::default(),
            timer: None,
        }
    }

    pub(super) fn run(mut self) -> CrewReport {
        let seed = self.random.draw();
        self.give(Input::Start { seed });
        for device in 0..self.plan.devices {
            let at = self.random.range(0, 800_000);
            self.at(at, Event::Wake(device));
        }
        for _ in 0..self.plan.faults {
            let at = self.random.range(500_000, self.plan.faults_until);
            self.at(at, Event::Fault);
        }
        for _ in 0..self.plan.strokes {
            let at = self.random.range(500_000, self.plan.faults_until);
            self.at(at, Event::Stroke);
        }
        let Plan { members, keep_every, speculate, .. } = self.plan;
        let spec = self.plan.grid.spec(members, keep_every, speculate);
        self.give(Input::Submit { request: RequestId(1), spec });
        while !self.is_over() {
            let Some(((time, _), event)) = self.events.pop_first() else {
                panic!("the world stands still: {}", self.picture());
            };
            assert!(time.0 < PATIENCE, "the crew does not finish: {}", self.picture());
            self.now = time;
            self.report.events += 1;
            self.step(event);
        }
        self.report.virtual_micros = self.now.0;
        self.compare();
        self.report
    }

    fn is_over(&self) -> bool {
        self.scheduler.as_ref().is_some_and(|live| live.open_jobs() == 0)
    }

    /// The field is what it would have been if nothing had happened.
    fn compare(&mut self) {
        let Some(live) = &self.scheduler else { return };
        let job = live.job(self.now, JOB).expect("the job is known");
        assert_eq!(job.state, JobState::Done, "{:?}", job.failure);
        let mut field = Vec::new();
        for (_, place) in live.merged(JOB) {
            field.extend_from_slice(&self.blobs[&place.expect("rows have bytes").hash]);
        }
        let strokes = self.strokes();
        self.report.strokes = strokes.len() as u64;
        let undisturbed = self.plan.grid.undisturbed(&strokes);
        assert!(field == undisturbed, "the field differs: {:?}", self.plan);
        self.report.trace ^=
            u64::from_le_bytes(core::array::from_fn(|at| shoal_protocol::hash(&field).0[at]));
    }

    fn picture(&self) -> String {
        let Some(live) = &self.scheduler else { return String::from("the coordinator is down") };
        let why: Vec<_> = live.explain_job(JOB).iter().map(WhyJob::to_string).collect();
        format!("{:?}\n{}\n{} nodes", self.plan, why.join("\n"), live.nodes(self.now).len())
    }

    fn step(&mut self, event: Event) {
        match event {
            Event::Wake(device) => self.wake(device),
            Event::Opened { device, birth, conn } => self.opened(device, birth, conn),
            Event::ToNode(conn, message) => {
                if let Some(device) = self.sockets.get(&conn).map(|socket| socket.device) {
                    self.tell(device, NodeInput::Received(message));
                }
            }
            Event::FromNode(conn, message) => self.heard(conn, message),
            Event::ToRelay(conn, bytes) => self.relay(conn, bytes),
            Event::FromRelay(conn, bytes) => self.frame_came(conn, &bytes),
            Event::Direct { from, to, birth, bytes } => self.direct_came(from, to, birth, &bytes),
            Event::DirectUp { pair, births, crew } => self.direct_up(pair, births, crew),
            Event::DirectDown { pair, births, crew } => self.direct_down(pair, births, crew),
            Event::Closed(conn) => {
                if let Some(socket) = self.sockets.remove(&conn) {
                    self.closed(socket.device);
                }
            }
            Event::Gone(conn) => self.give(Input::Disconnected { conn }),
            Event::Auditioned { device, birth, crew } => self.auditioned(device, birth, crew),
            Event::Engine { device, birth, crew } => self.engine_done(device, birth, crew),
            Event::Answered { device, birth, crew, answer } => {
                self.answered(device, birth, crew, answer);
            }
            Event::Timer => {
                self.timer = None;
                self.give(Input::Tick);
            }
            Event::Fault => self.fault(),
            Event::Stroke => self.stir(),
            Event::Restart => self.restart(),
        }
    }

    pub(super) fn later(&mut self) -> Time {
        let (low, high) = self.plan.delay;
        self.now + Micros(self.random.range(low, high))
    }

    pub(super) fn at(&mut self, micros: u64, event: Event) {
        self.count += 1;
        self.events.insert((Time(micros), self.count), event);
    }

    pub(super) fn socket(&mut self, device: usize, conn: Conn) {
        let (to_node, from_node) = (self.now, self.now);
        self.sockets.insert(conn, Socket { device, to_node, from_node });
    }
}
