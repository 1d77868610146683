//! What the devices' shells would do: sockets, members, engines.

use shoal_node::{Input, MemberInput, MemberOutput, Output, Phase, SimAnswer};
use shoal_protocol::{
    CrewId, CrewSay, Epoch, Finished, FromNode, Header, Micros, Time, ToNode, frame,
};
use shoal_scheduler::Conn;

use super::device::bytes;
use super::engine::Engine;
use super::world::{Event, World};

impl World {
    pub(super) fn wake(&mut self, at: usize) {
        let device = &mut self.devices[at];
        device.timer = None;
        if device.away > self.now {
            return;
        }
        if device.frozen > self.now {
            let until = device.frozen.0;
            device.timer = Some(Time(until));
            return self.at(until, Event::Wake(at));
        }
        if device.node.status().phase == Phase::Idle {
            let key = device.link_keys().public();
            self.tell(at, Input::LinkKey(key));
            self.tell(at, Input::Start);
        } else {
            self.tell(at, Input::Tick);
        }
        let crews: Vec<_> = self.devices[at].members.keys().copied().collect();
        for crew in crews {
            self.tell_member(at, crew, MemberInput::Tick);
        }
    }

    pub(super) fn opened(&mut self, at: usize, birth: u32, conn: Conn) {
        if self.devices[at].birth != birth || self.devices[at].away > self.now {
            return;
        }
        if self.scheduler.is_none() {
            return self.tell(at, Input::Closed);
        }
        self.devices[at].conn = Some(conn);
        self.socket(at, conn);
        self.tell(at, Input::Opened);
        let (nonce, coordinator) = ([0; 32], self.coordinator());
        self.send(conn, ToNode::Challenge { nonce, coordinator });
    }

    pub(super) fn closed(&mut self, at: usize) {
        self.devices[at].conn = None;
        let crews: Vec<_> = self.devices[at].members.keys().copied().collect();
        for crew in crews {
            self.tell_member(at, crew, MemberInput::Relay(false));
        }
        self.tell(at, Input::Closed);
    }

    pub(super) fn tell(&mut self, at: usize, input: Input) {
        let device = &mut self.devices[at];
        if device.away > self.now {
            return;
        }
        device.node.handle(self.now, input);
        let outputs: Vec<_> = std::iter::from_fn(|| device.node.poll_output()).collect();
        device.node.check();
        for output in outputs {
            self.node_acts(at, output);
        }
        self.wind(at);
    }

    fn node_acts(&mut self, at: usize, output: Output) {
        match output {
            Output::Connect => {
                self.next_conn += 1;
                let (birth, conn) = (self.devices[at].birth, Conn(self.next_conn));
                let due = self.later();
                self.at(due.0, Event::Opened { device: at, birth, conn });
            }
            Output::Disconnect => {
                if let Some(conn) = self.devices[at].conn.take() {
                    self.sockets.remove(&conn);
                    let due = self.later();
                    self.at(due.0, Event::Gone(conn));
                }
            }
            Output::Send(message) => {
                if let Some(conn) = self.devices[at].conn {
                    self.say(conn, Event::FromNode(conn, message));
                }
            }
            Output::Sign(statement) => {
                let proof = self.devices[at].sign(&statement);
                self.tell(at, Input::Signed { statement, proof });
            }
            Output::Check(job) => self.tell(at, Input::Checked { job, result: Ok(()) }),
            Output::Audition { crew, .. } => {
                let (birth, took) = (self.devices[at].birth, self.step_micros(at, 10));
                let due = self.now.0 + 3 * took;
                self.at(due, Event::Auditioned { device: at, birth, crew });
            }
            Output::Enlist(enlist) => self.enlist(at, enlist),
            Output::Dismiss(crew) => {
                self.devices[at].members.remove(&crew);
                self.devices[at].engines.remove(&crew);
            }
            Output::ToCrew { crew, say } => self.tell_member(at, crew, MemberInput::Told(say)),
            // Nobody here exchanges blobs.
            Output::Share(_) => {}
            Output::Stopped(refusal) => panic!("a device stopped: {refusal:?}"),
            Output::Run { .. }
            | Output::Abort(_)
            | Output::Forget(_)
            | Output::OpenQuic(_)
            | Output::CloseQuic => {}
        }
    }

    fn enlist(&mut self, at: usize, enlist: Box<shoal_protocol::Enlist>) {
        let Phase::Joined(id) = self.devices[at].node.status().phase else { return };
        self.devices[at].id = Some(id);
        let crew = enlist.crew;
        if !self.devices[at].members.contains_key(&crew) {
            let (grid, key, seed) = (self.plan.grid, self.coordinator(), bytes(&mut self.random));
            let Some(member) = self.devices[at].member(self.now, grid, key, seed) else { return };
            self.devices[at].members.insert(crew, member);
            self.devices[at].engines.insert(crew, Engine::new(grid));
            self.tell_member(at, crew, MemberInput::Relay(true));
        }
        self.tell_member(at, crew, MemberInput::Enlist(enlist));
    }

    pub(super) fn tell_member(&mut self, at: usize, crew: CrewId, input: MemberInput<'_>) {
        let device = &mut self.devices[at];
        if device.away > self.now {
            return;
        }
        let Some(member) = device.members.get_mut(&crew) else { return };
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
            MemberOutput::Frame(bytes) => {
                if let Some(conn) = self.devices[at].conn {
                    self.say(conn, Event::ToRelay(conn, bytes));
                }
            }
            MemberOutput::Direct(peer, bytes) => self.send_direct(at, crew, peer, bytes),
            MemberOutput::Radio(peer, order) => self.radio(at, crew, peer, order),
            MemberOutput::Engine(command) => {
                if let Some(engine) = self.devices[at].engines.get_mut(&crew) {
                    engine.ask(command);
                }
                self.engine_begins(at, crew);
            }
            MemberOutput::Says { epoch, say } => {
                self.tell(at, Input::CrewSays { crew, epoch, say });
            }
            MemberOutput::Deliver { attempt, output } => {
                let done = FromNode::Done(vec![Finished { attempt, took: Micros(1), output }]);
                if let Some(conn) = self.devices[at].conn {
                    self.say(conn, Event::FromNode(conn, done));
                }
            }
            MemberOutput::Using(..) => {}
            MemberOutput::App { .. }
            | MemberOutput::Refused { .. }
            | MemberOutput::NotBegun(_)
            | MemberOutput::Done { .. } => {
                panic!("a simulation does not talk")
            }
        }
    }

    pub(super) fn auditioned(&mut self, at: usize, birth: u32, crew: CrewId) {
        if self.devices[at].birth == birth {
            let took = Micros(self.step_micros(at, 10));
            let cells = 10 * u64::from(self.plan.grid.width);
            let say = CrewSay::Auditioned { cells, took };
            self.tell(at, Input::CrewSays { crew, epoch: Epoch(0), say });
        }
    }

    fn step_micros(&self, at: usize, rows: u64) -> u64 {
        (rows * self.plan.row_micros * self.devices[at].slowness / 100).max(1)
    }

    fn engine_begins(&mut self, at: usize, crew: CrewId) {
        let (rows, slow) =
            (u64::from(self.plan.grid.rows) / self.plan.devices as u64, self.devices[at].hangs);
        let took = self.step_micros(at, rows);
        let device = &mut self.devices[at];
        let Some(engine) = device.engines.get_mut(&crew) else { return };
        if engine.busy || engine.queue.is_empty() {
            return;
        }
        engine.busy = true;
        let birth = device.birth;
        self.at(self.now.0.max(slow.0) + took, Event::Engine { device: at, birth, crew });
    }

    pub(super) fn engine_done(&mut self, at: usize, birth: u32, crew: CrewId) {
        let rows = u64::from(self.plan.grid.rows) / self.plan.devices as u64;
        let took = Micros(self.step_micros(at, rows));
        let device = &mut self.devices[at];
        if device.birth != birth || device.away > self.now {
            return;
        }
        let Some(engine) = device.engines.get_mut(&crew) else { return };
        engine.busy = false;
        if let Some(command) = engine.queue.pop_front()
            && let Some(answer) = engine.act(command, took, &mut self.blobs)
        {
            // Bytes that are stored take a while longer; edges do not wait for them.
            let stored = matches!(answer, SimAnswer::Kept { .. } | SimAnswer::Final { .. });
            let due = if stored { self.later().0 * 2 - self.now.0 } else { self.now.0 };
            self.at(due, Event::Answered { device: at, birth, crew, answer });
        }
        self.engine_begins(at, crew);
    }

    pub(super) fn answered(&mut self, at: usize, birth: u32, crew: CrewId, answer: SimAnswer) {
        if self.devices[at].birth == birth {
            self.tell_member(at, crew, MemberInput::Engine(answer));
        }
    }

    pub(super) fn frame_came(&mut self, conn: Conn, bytes: &[u8]) {
        let Some(at) = self.sockets.get(&conn).map(|socket| socket.device) else { return };
        let Ok((Header { crew, .. }, _)) = frame::split(bytes) else { return };
        self.tell_member(at, crew, MemberInput::Frame(bytes));
    }

    /// Sets the clock for whatever comes next on the device.
    fn wind(&mut self, at: usize) {
        let device = &mut self.devices[at];
        let members = device.members.values().filter_map(|member| member.next_timeout());
        let due = members.chain(device.node.next_timeout()).min();
        if let Some(due) = due
            && device.timer.is_none_or(|timer| timer > due)
        {
            let due = Time(due.0.max(self.now.0 + 1));
            device.timer = Some(due);
            self.at(due.0, Event::Wake(at));
        }
    }
}
