//! What the devices' shells would do for their members: places, frames, engines.

use shoal_node::{Input, MemberInput, MemberOutput, Phase, SimAnswer, SwarmInput};
use shoal_protocol::{
    CrewId, CrewSay, CrewTask, Enlist, Epoch, Finished, FromNode, Header, JobId, Micros, NodeId,
    Path, Time, UnitOutput, frame,
};
use shoal_scheduler::Conn;

use super::device::bytes;
use super::engine::Engine;
use super::{CrewEvent, CrewPlan};
use crate::world::{Event, Probe, World};

/// Rows that a device computes to show how fast it is.
const AUDITIONED_ROWS: u64 = 10;

impl<P: Probe> World<P> {
    pub(crate) fn crew_event(&mut self, event: CrewEvent) {
        if let Some(until) = self.sleeps_until(&event) {
            return self.at(until.0 + 1, Event::Crew(event));
        }
        match event {
            CrewEvent::ToRelay(conn, bytes) => self.relay(conn, bytes),
            CrewEvent::FromRelay(conn, bytes) => self.frame_came(conn, &bytes),
            CrewEvent::Direct { from, to, birth, bytes } => {
                self.direct_came(from, to, birth, &bytes);
            }
            CrewEvent::DirectUp(pair) => self.direct_up(pair),
            CrewEvent::DirectDown(pair) => self.direct_down(pair),
            CrewEvent::Auditioned { device, birth, crew } => self.auditioned(device, birth, crew),
            CrewEvent::Engine { device, birth, crew } => self.engine_done(device, birth, crew),
            CrewEvent::Answered { device, birth, crew, answer } => {
                if self.devices[device].birth == birth {
                    self.tell_member(device, crew, MemberInput::Engine(answer));
                }
            }
            CrewEvent::Staged { device, birth, crew, answer } => {
                if self.devices[device].birth == birth {
                    self.tell_member(device, crew, MemberInput::Stage(answer));
                }
            }
            CrewEvent::Compared { life, crew, same } => {
                if life == self.life {
                    self.give(shoal_scheduler::Input::RowsCompared { crew, same });
                }
            }
            CrewEvent::Submit(plan) => self.submit_crew(plan),
            CrewEvent::Poke(plan) => self.poke(plan),
        }
    }

    /// What happens to a frozen device happens when it wakes.
    fn sleeps_until(&self, event: &CrewEvent) -> Option<Time> {
        let frozen = |at: usize| self.devices[at].frozen_until;
        let until = match event {
            CrewEvent::FromRelay(conn, _) => frozen(self.sockets.get(conn)?.device),
            CrewEvent::Direct { to, .. } => frozen(*to),
            CrewEvent::DirectUp(pair) | CrewEvent::DirectDown(pair) => {
                frozen(pair.devices.0).max(frozen(pair.devices.1))
            }
            CrewEvent::Auditioned { device, .. }
            | CrewEvent::Engine { device, .. }
            | CrewEvent::Answered { device, .. }
            | CrewEvent::Staged { device, .. } => frozen(*device),
            CrewEvent::ToRelay(..)
            | CrewEvent::Compared { .. }
            | CrewEvent::Submit(_)
            | CrewEvent::Poke(_) => return None,
        };
        (until > self.now).then_some(until)
    }

    /// The socket to the coordinator is open and greeted, or lost.
    pub(crate) fn relay_changed(&mut self, at: usize, up: bool) {
        let phase = self.devices[at].node.status().phase;
        let Some(linked) = &mut self.devices[at].linked else { return };
        let crews: Vec<_> = linked.members.keys().copied().collect();
        if let Phase::Joined(id) = phase {
            linked.id = Some(id);
            // A number that was not durable may have been another's.
            self.crews.called.insert(id, at);
        }
        for crew in crews {
            self.tell_member(at, crew, MemberInput::Relay(up));
        }
        self.swarm(at, if up { SwarmInput::Joined } else { SwarmInput::Away });
        if up {
            self.want_blob(at);
        }
    }

    pub(crate) fn members_tick(&mut self, at: usize) {
        let Some(linked) = &self.devices[at].linked else { return };
        let is_due = |due: Option<Time>| due.is_some_and(|due| due <= self.now);
        let due = linked.members.iter().filter(|(_, member)| is_due(member.next_timeout()));
        let due: Vec<_> = due.map(|(crew, _)| *crew).collect();
        for crew in due {
            self.tell_member(at, crew, MemberInput::Tick);
        }
    }

    pub(crate) fn enlist(&mut self, at: usize, enlist: Box<Enlist>) {
        let crew = enlist.crew;
        let job = match &enlist.task {
            CrewTask::Sim(task) => Some(task.job),
            CrewTask::Stage(task) => Some(task.job),
            CrewTask::Talk => panic!("nobody talks here"),
            CrewTask::Swarm => {
                let other = enlist.members[1 - usize::from(enlist.rank)].node;
                if let Some(shelf) = &mut self.devices[at].shelf {
                    shelf.links.insert(other, crew);
                }
                None
            }
        };
        let known = self.devices[at].linked.as_ref();
        let checks = matches!(&enlist.task, CrewTask::Sim(task) if task.check.is_some());
        self.crews.liar_checks |= checks && known.is_some_and(|linked| linked.spoils.is_some());
        if known.is_some_and(|linked| !linked.members.contains_key(&crew)) {
            self.take_seat(at, crew, job);
        }
        self.tell_member(at, crew, MemberInput::Enlist(enlist));
    }

    fn take_seat(&mut self, at: usize, crew: CrewId, job: Option<JobId>) {
        let (key, seed) = (self.crews.coordinator(), bytes(&mut self.random));
        let plan = job.and_then(|job| self.plan_of_crew(job));
        let device = &mut self.devices[at];
        let work = job.and_then(|job| device.node.job(job)?.work.sim().cloned());
        let Some(linked) = &mut device.linked else { return };
        let Some(member) = linked.member(self.now, work, key, seed) else { return };
        linked.members.insert(crew, member);
        if let Some(plan) = plan {
            linked.engines.insert(crew, Engine::new(plan.grid, plan.row_micros, linked.spoils));
        }
        self.tell_member(at, crew, MemberInput::Relay(true));
    }

    fn plan_of_crew(&self, job: JobId) -> Option<CrewPlan> {
        Some(self.scenario.crews[*self.crews.jobs.get(&job)?])
    }

    pub(crate) fn leave_crew(&mut self, at: usize, crew: CrewId) {
        if let Some(linked) = &mut self.devices[at].linked {
            linked.members.remove(&crew);
            linked.engines.remove(&crew);
            linked.stages.remove(&crew);
        }
        self.hang_up(at, crew);
        let Some(shelf) = &mut self.devices[at].shelf else { return };
        let gone = shelf.links.iter().find(|(_, known)| **known == crew).map(|(node, _)| *node);
        if let Some(node) = gone {
            shelf.links.remove(&node);
            self.swarm(at, SwarmInput::Gone(node));
        }
    }

    pub(crate) fn tell_member(&mut self, at: usize, crew: CrewId, input: MemberInput<'_>) {
        let Some(linked) = &mut self.devices[at].linked else { return };
        let Some(member) = linked.members.get_mut(&crew) else { return };
        member.handle(self.now, input);
        let outputs: Vec<_> = std::iter::from_fn(|| member.poll_output()).collect();
        member.check();
        for output in outputs {
            self.member_acts(at, crew, output);
        }
        self.wind(at);
    }

    fn member_acts(&mut self, at: usize, crew: CrewId, output: MemberOutput) {
        match output {
            MemberOutput::Frame(bytes) => self.pass_to_relay(at, bytes),
            MemberOutput::Direct(peer, bytes) => self.send_direct(at, crew, peer, bytes),
            MemberOutput::Radio(peer, order) => self.radio(at, crew, peer, order),
            MemberOutput::Engine(command) => {
                let linked = self.devices[at].linked.as_mut();
                if let Some(engine) = linked.and_then(|linked| linked.engines.get_mut(&crew)) {
                    engine.ask(command);
                }
                self.engine_begins(at, crew);
            }
            MemberOutput::Stage(command) => self.stage_asked(at, crew, command),
            MemberOutput::Answer { call, result } => {
                self.report.answered_split += u64::from(result.is_ok());
                self.tell_device(at, Input::CrewAnswers { crew, call, result });
            }
            MemberOutput::Part { call, at: from, bytes, last } => {
                self.report.answered_split += u64::from(last);
                let part = Input::CrewPart { crew, call, at: from, bytes, last };
                self.tell_device(at, part);
            }
            MemberOutput::Says { epoch, say } => {
                self.tell_device(at, Input::CrewSays { crew, epoch, say });
            }
            MemberOutput::Deliver { attempt, output } => {
                let done = Finished { attempt, took: Micros(1), output };
                self.send_from_node(at, FromNode::Done(vec![done]));
            }
            MemberOutput::Using(node, path) => {
                if self.is_swarm(at, crew) {
                    self.swarm(at, SwarmInput::Near(node, path == Path::Direct));
                }
            }
            MemberOutput::App { from, bytes, .. } => {
                self.swarm(at, SwarmInput::Heard { from, words: &bytes });
            }
            // A piece that does not fit the queue is asked for again.
            MemberOutput::Refused { .. } => {}
            MemberOutput::NotBegun(_) | MemberOutput::Done { .. } => panic!("nobody talks here"),
        }
    }

    fn is_swarm(&self, at: usize, crew: CrewId) -> bool {
        let shelf = self.devices[at].shelf.as_ref();
        shelf.is_some_and(|shelf| shelf.links.values().any(|known| *known == crew))
    }

    /// A device is asked how fast it is.
    pub(crate) fn audition(&mut self, at: usize, crew: CrewId, job: JobId) {
        let Some(plan) = self.plan_of_crew(job) else { return };
        let took = self.rows_take(at, plan.row_micros, AUDITIONED_ROWS);
        let birth = self.devices[at].birth;
        let event = CrewEvent::Auditioned { device: at, birth, crew };
        self.at(self.now.0 + 3 * took, Event::Crew(event));
    }

    fn auditioned(&mut self, at: usize, birth: u32, crew: CrewId) {
        let job = self.scheduler.as_ref().and_then(|live| live.job_of(crew));
        let plan = job.and_then(|job| self.plan_of_crew(job));
        let Some(plan) = plan.filter(|_| self.devices[at].birth == birth) else { return };
        let boasts = self.devices[at].linked.as_ref().is_some_and(|one| one.spoils.is_some());
        let took = self.rows_take(at, plan.row_micros, AUDITIONED_ROWS);
        let took = Micros(if boasts { 1 } else { took });
        let cells = AUDITIONED_ROWS * u64::from(plan.grid.width);
        let say = CrewSay::Auditioned { cells, took };
        self.tell_device(at, Input::CrewSays { crew, epoch: Epoch(0), say });
    }

    fn rows_take(&self, at: usize, row_micros: u64, rows: u64) -> u64 {
        let slowness = self.devices[at].linked.as_ref().map_or(100, |linked| linked.slowness);
        (rows * row_micros * slowness / 100).max(1)
    }

    fn engine_begins(&mut self, at: usize, crew: CrewId) {
        let birth = self.devices[at].birth;
        let Some(linked) = &mut self.devices[at].linked else { return };
        let (slowness, hangs) = (linked.slowness, linked.hangs);
        let Some(engine) = linked.engines.get_mut(&crew) else { return };
        let Some(took) = engine.begins(slowness) else { return };
        let due = self.now.0.max(hangs.0) + took.0;
        self.at(due, Event::Crew(CrewEvent::Engine { device: at, birth, crew }));
    }

    fn engine_done(&mut self, at: usize, birth: u32, crew: CrewId) {
        if self.devices[at].birth != birth {
            return;
        }
        let Some(linked) = &mut self.devices[at].linked else { return };
        let Some(engine) = linked.engines.get_mut(&crew) else { return };
        let reduced = engine.reduced();
        let answer = engine.ends(&mut self.crews.blobs);
        if let Some(answer) = reduced {
            let answered = CrewEvent::Answered { device: at, birth, crew, answer };
            self.at(self.now.0, Event::Crew(answered));
        }
        if let Some(answer) = answer {
            if let SimAnswer::Final { output: UnitOutput::Stored { hash, .. }, .. } = &answer {
                self.crews.results.insert(*hash);
            }
            // Bytes that are stored take a while longer; edges do not wait for them.
            let stored = matches!(answer, SimAnswer::Kept { .. } | SimAnswer::Final { .. });
            let due = if stored { self.now.0 + 2 * self.delay().0 } else { self.now.0 };
            let event = CrewEvent::Answered { device: at, birth, crew, answer };
            self.at(due, Event::Crew(event));
        }
        self.engine_begins(at, crew);
    }

    fn frame_came(&mut self, conn: Conn, bytes: &[u8]) {
        let Some(at) = self.sockets.get(&conn).map(|socket| socket.device) else { return };
        let Ok((Header { crew, .. }, _)) = frame::split(bytes) else { return };
        if self.now >= self.devices[at].cut_until {
            self.tell_member(at, crew, MemberInput::Frame(bytes));
        }
    }

    pub(crate) fn device_of(&self, node: NodeId) -> Option<usize> {
        let device = *self.crews.called.get(&node)?;
        let linked = self.devices[device].linked.as_ref()?;
        (linked.id == Some(node)).then_some(device)
    }
}
