//! The world: events in virtual time between one coordinator and many devices. What each side's shell would do
//! is in [`crate::coordinator`] and [`crate::fleet`], what goes wrong in [`crate::fault`].

use std::collections::BTreeMap;

use shoal_protocol::{Attempt, FromNode, Micros, Time, ToNode};
use shoal_scheduler::{CompareId, Conn, Fact, Input, Outcome, Scheduler, UnitState, WhyJob};

use crate::callers::Callers;
use crate::clockwork::Events;
use crate::crew::{CrewEvent, Crews};
use crate::device::Device;
use crate::fault::Fault;
use crate::liar::{Conspiracy, Content};
use crate::oracle::Oracle;
use crate::random::Random;
use crate::report::{JobReport, Report};
use crate::scenario::Scenario;
use crate::swarm::{Swarm, SwarmEvent};

/// Virtual time after which a world that has not finished never will.
const PATIENCE: u64 = 3_600_000_000;

/// Told when the scheduler works, so that a shell with a clock can measure it.
pub trait Probe {
    fn before(&mut self) {}
    fn after(&mut self) {}
}

impl Probe for () {}

/// When devices join that are late.
const LATE: u64 = 2_000_000;

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
        content: Option<Content>,
    },
    Compared {
        life: u64,
        id: CompareId,
        outcome: Outcome,
    },
    /// Somebody asks the service, for the so-many-th time.
    Ask(u64),
    /// A device has the answer to a request.
    Called {
        device: usize,
        birth: u32,
        attempt: Attempt,
        bytes: Option<Vec<u8>>,
    },
    NodeTimer(usize),
    Timer,
    Submit(usize),
    Fault(Fault),
    /// A device begins to talk.
    Flood,
    /// A hidden page is shown again.
    Show(usize, u32),
    /// A frozen device goes on.
    Thaw(usize),
    Crew(CrewEvent),
    Swarm(SwarmEvent),
    Restart,
}

pub struct World<P> {
    pub(crate) scenario: Scenario,
    pub(crate) random: Random,
    pub(crate) now: Time,
    events: Events<Event>,
    /// `None` while the coordinator is down.
    pub(crate) scheduler: Option<Scheduler>,
    /// How far the coordinator's clock is ahead of the world's.
    pub(crate) ahead: u64,
    pub(crate) facts: Vec<Fact>,
    /// The coordinator dies after so many more facts.
    pub(crate) kill_after: Option<u64>,
    pub(crate) life: u64,
    pub(crate) devices: Vec<Device>,
    pub(crate) sockets: BTreeMap<Conn, Socket>,
    pub(crate) next_conn: u64,
    /// A device that is not hostile has greeted the coordinator.
    pub(crate) has_honest: bool,
    pub(crate) oracle: Oracle,
    pub(crate) conspiracy: Conspiracy,
    pub(crate) callers: Callers,
    pub(crate) crews: Crews,
    pub(crate) swarm: Option<Swarm>,
    pub(crate) report: Report,
    pub(crate) timer: Option<Time>,
    pub(crate) probe: P,
}

/// A connection keeps the order of what is sent in each direction, unless chance wants otherwise.
pub(crate) struct Socket {
    pub(crate) device: usize,
    pub(crate) to_node: Time,
    pub(crate) from_node: Time,
}

pub fn run_probed<P: Probe>(seed: u64, scenario: Scenario, probe: P) -> (Report, P) {
    let mut world = World::new(seed, scenario, probe);
    world.run();
    (world.report, world.probe)
}

impl<P: Probe> World<P> {
    fn new(seed: u64, scenario: Scenario, probe: P) -> World<P> {
        let mut random = Random::new(seed ^ 0x5eed);
        let nodes = scenario.nodes;
        let all = nodes + scenario.enemies.len() as u64;
        let mut devices: Vec<_> =
            (0..all).map(|n| Device::new(n, &scenario, &mut random)).collect();
        // Of another chance, so that a world without crews is the same as ever.
        let mut others = Random::new(seed ^ 0xc4e35);
        let crews = Crews::new(&mut others);
        let swarm = scenario.swarm.map(|plan| Swarm::new(plan, &mut devices, &mut others));
        let numbers = devices.iter().map(|device| (device.identity, device.number));
        World {
            oracle: Oracle::new(&scenario, numbers.collect()),
            scenario,
            random,
            now: Time(0),
            events: Events::default(),
            scheduler: Some(Scheduler::new()),
            ahead: 0,
            facts: Vec::new(),
            kill_after: None,
            life: 0,
            devices,
            sockets: BTreeMap::new(),
            next_conn: 0,
            has_honest: false,
            conspiracy: Conspiracy::default(),
            callers: Callers::default(),
            crews,
            swarm,
            report: Report { nodes, trace: 0xcbf2_9ce4_8422_2325, ..Report::default() },
            timer: None,
            probe,
        }
    }

    fn run(&mut self) {
        let seed = self.random.draw();
        self.give(Input::Start { seed });
        for device in 0..self.devices.len() {
            let at = self.random.range(0, 1_000_000);
            // Most honest devices are here by then.
            let hostile = self.devices[device].hostile.is_some();
            let late = self.scenario.is_late(device as u64);
            let later = if hostile { 1_500_000 } else { u64::from(late) * LATE };
            self.at(at + later, Event::Join(device));
        }
        for job in 0..self.scenario.jobs.len() {
            if job == 0 || !self.scenario.in_turn {
                self.at(self.scenario.jobs[job].at, Event::Submit(job));
            }
            let plan = &self.scenario.jobs[job];
            self.report.jobs.push(JobReport { items: plan.items, ..JobReport::default() });
        }
        self.plan_faults();
        self.plan_flood();
        self.plan_calls();
        self.plan_crews();
        self.plan_swarm();
        while !self.is_over() {
            let Some((time, event)) = self.events.pop() else {
                panic!("the world stands still with jobs unfinished");
            };
            assert!(time.0 < PATIENCE, "jobs do not finish: {}", self.picture());
            self.now = time;
            self.step(event);
        }
        self.finish();
    }

    fn finish(&mut self) {
        if let Some(live) = self.scheduler.take() {
            live.check();
            self.fields_are_true(&live);
            self.blobs_are_true(&live);
            self.lies_are_found(&live);
            self.oracle.compare(&live, &self.facts, self.clock());
            let may_fail = self.scenario.may_fail();
            self.oracle.all_finished(&live, self.clock(), may_fail);
            // Nobody stored a blob, whatever was claimed.
            let stored = usize::from(self.swarm.is_some());
            assert!(live.swarms().blobs as usize <= stored, "claims are in the books");
            // Where nobody lies, nobody may be called a liar.
            let framed = self.report.honest_rejected > 0 && self.scenario.liars.is_empty();
            assert!(!framed, "an honest device was convicted");
            self.report.speculated = live.jobs(self.clock()).iter().map(|job| job.speculated).sum();
        }
        self.report.virtual_micros = self.now.0;
        for at in 0..self.devices.len() {
            self.count_capacity(at);
        }
        self.oracle.fill(&mut self.report);
        self.callers.fill(&mut self.report);
        let found = |device: &Device| self.oracle.answers_when_barred(device.number);
        let liars = self.devices.iter().filter(|device| device.lies > 0);
        self.report.liar_answers = liars.clone().filter_map(found).collect();
        self.report.liars_left = liars.filter(|device| found(device).is_none()).count() as u64;
    }

    /// What the coordinator shows, for whoever must find out why a world does not end.
    fn picture(&self) -> String {
        let Some(live) = &self.scheduler else { return String::from("the coordinator is down") };
        let nodes = live.nodes(self.clock());
        let jobs = live.jobs(self.clock()).into_iter().filter(|job| job.ended.is_none());
        let jobs = jobs.map(|job| {
            let policy = live.spec(job.job).map(|spec| spec.policy);
            let why: Vec<_> = live.explain_job(job.job).iter().map(WhyJob::to_string).collect();
            let open = live.units(job.job, usize::MAX).into_iter();
            let open = open.filter(|unit| unit.state == UnitState::Waiting).take(3);
            let open: Vec<_> = open.map(|u| live.explain_unit(job.job, u.span.start)).collect();
            format!("job {}, {policy:?}: {}\n{open:?}\n", job.job, why.join("; "))
        });
        let (jobs, liars) = (jobs.collect::<String>(), &self.scenario.liars);
        format!("{} nodes\n{jobs}{liars:?} {:?}", nodes.len(), self.scenario.enemies)
    }

    fn is_over(&self) -> bool {
        let Some(live) = &self.scheduler else { return false };
        if self.has_faults() || self.pending_jobs() {
            return false;
        }
        let answered = self.callers.are_done() && self.looks_are_over();
        live.open_jobs() == 0 && answered && self.all_served()
    }

    pub(crate) fn pending_jobs(&self) -> bool {
        self.oracle.submitted() < self.scenario.jobs.len()
            || self.crews.submitted() < self.scenario.crews.len()
    }

    fn step(&mut self, event: Event) {
        self.report.events += 1;
        self.trace(&event);
        match event {
            Event::Join(device) => self.join(device),
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
            Event::Gone(conn) => {
                self.callers.lies.closed(conn);
                self.give(Input::Disconnected { conn });
            }
            Event::Ran { device, birth, attempt, took, content } => {
                self.ran(device, birth, attempt, took, content);
            }
            Event::Compared { life, id, outcome } if life == self.life => {
                self.give(Input::Compared { id, outcome });
            }
            Event::Compared { .. } => {}
            Event::NodeTimer(device) => self.rings(device),
            Event::Thaw(device) => self.wake(device),
            Event::Timer => {
                // One that was set anew since does not ring.
                if self.timer == Some(self.now) {
                    self.timer = None;
                    self.give(Input::Tick);
                }
            }
            Event::Ask(number) => self.ask_service(number),
            Event::Called { device, birth, attempt, bytes } => {
                self.called(device, birth, attempt, bytes);
            }
            Event::Submit(job) => self.submit(job),
            Event::Restart => self.restart(),
            Event::Fault(fault) => self.fault(fault),
            Event::Flood => self.flood(),
            Event::Show(device, birth) => self.show(device, birth),
            Event::Crew(event) => self.crew_event(event),
            Event::Swarm(event) => self.swarm_event(event),
        }
    }

    // Chance and time.

    pub(crate) fn has_faults(&self) -> bool {
        self.now.0 < self.scenario.faults.until
    }

    /// What the coordinator's clock shows.
    pub(crate) fn clock(&self) -> Time {
        Time(self.now.0 + self.ahead)
    }

    pub(crate) fn delay(&mut self) -> Micros {
        let (low, high) = self.scenario.delay;
        Micros(self.random.range(low, high))
    }

    pub(crate) fn at(&mut self, micros: u64, event: Event) {
        self.events.at(Time(micros), event);
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
            Event::Fault(fault) => (11, *fault as u64),
            Event::Restart => (12, 0),
            Event::Compared { outcome, .. } => (13, u64::from(*outcome == Outcome::Same)),
            Event::Show(device, _) => (14, *device as u64),
            Event::Flood => (15, 0),
            Event::Ask(number) => (16, *number),
            Event::Called { attempt, .. } => (17, attempt.0),
            Event::Thaw(device) => (18, *device as u64),
            Event::Crew(_) => (19, 0),
            Event::Swarm(_) => (20, 0),
        };
        for part in [self.now.0, kind, detail] {
            self.report.trace = (self.report.trace ^ part).wrapping_mul(0x0100_0000_01b3);
        }
    }
}
