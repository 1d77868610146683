//! What the devices' shells would do: open sockets, compute, and lie if that is their character.

use shoal_node::{Input, MemberInput, Output, SwarmInput};
use shoal_protocol::{Attempt, Failure, FromNode, Lease, Micros, Signature, Time, UnitOutput};
use shoal_scheduler::Conn;

use crate::coordinator::reread;
use crate::liar::{Asked, Content};
use crate::world::{Event, Probe, Socket, World};

/// What a hidden page takes beside a shown one, in hundredths.
const HIDDEN_TIME: u64 = 270;

impl<P: Probe> World<P> {
    pub(crate) fn join(&mut self, at: usize) {
        if self.devices[at].hostile.is_some() {
            return self.hostile_hears(at, Input::Start);
        }
        self.devices[at].up_since.get_or_insert(self.now);
        if let Some(linked) = &self.devices[at].linked {
            let key = linked.keys().public();
            self.tell_device(at, Input::LinkKey(key));
        }
        self.tell_device(at, Input::Start);
    }

    pub(crate) fn tell_device(&mut self, at: usize, input: Input) {
        let device = &mut self.devices[at];
        if device.hostile.is_some() {
            return self.hostile_hears(at, input);
        }
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
            if device.conn.is_none() && matches!(input, Input::Received(_)) {
                continue;
            }
            if let Input::Offer(caps) = &input {
                device.caps = caps.clone();
            }
            let was = device.is_joined();
            device.node.handle(self.now, input);
            let outputs: Vec<_> = std::iter::from_fn(|| device.node.poll_output()).collect();
            device.node.check();
            let is = device.is_joined();
            for output in outputs {
                self.device_acts(at, output);
            }
            if was != is {
                self.relay_changed(at, is);
            }
        }
        self.wind(at);
    }

    /// Sets the clock for whatever comes next on the device.
    pub(crate) fn wind(&mut self, at: usize) {
        let device = &mut self.devices[at];
        let linked = device.linked.iter().flat_map(|linked| linked.members.values());
        let members = linked.filter_map(|member| member.next_timeout());
        let shelf = device.shelf.as_ref().and_then(|shelf| shelf.swarms.next_timeout());
        let Some(due) = members.chain(shelf).chain(device.node.next_timeout()).min() else {
            return;
        };
        let due = Time(due.0.max(self.now.0 + 1));
        if device.timer.is_none_or(|timer| timer > due) {
            device.timer = Some(due);
            self.at(due.0, Event::NodeTimer(at));
        }
    }

    /// Its clock rings, unless it was set anew since.
    pub(crate) fn rings(&mut self, at: usize) {
        if self.devices[at].hostile.is_some() {
            return self.hostile_hears(at, Input::Tick);
        }
        if self.devices[at].timer == Some(self.now) {
            self.devices[at].timer = None;
            self.wake(at);
        }
    }

    /// Time passed; a frozen device does not notice.
    pub(crate) fn wake(&mut self, at: usize) {
        if self.devices[at].is_away(self.now) {
            return;
        }
        self.tell_device(at, Input::Tick);
        self.members_tick(at);
        self.swarm_tick(at);
        self.wind(at);
    }

    fn device_acts(&mut self, at: usize, output: Output) {
        match output {
            Output::Connect => {
                self.next_conn += 1;
                let delay = self.delay();
                let (birth, conn) = (self.devices[at].birth, Conn(self.next_conn));
                self.at((self.now + delay).0, Event::Opened { device: at, birth, conn });
            }
            Output::Disconnect => {
                if let Some(conn) = self.devices[at].conn.take() {
                    self.sockets.remove(&conn);
                    let delay = self.delay();
                    self.at((self.now + delay).0, Event::Gone(conn));
                }
            }
            Output::Send(message) => self.send_from_node(at, message),
            Output::Sign(statement) => {
                let linked = self.devices[at].linked.as_ref();
                let nobody = Signature([0; 32], [0; 32]);
                let proof = linked.map_or(nobody, |linked| linked.sign(&statement));
                self.tell_device(at, Input::Signed { statement, proof });
            }
            Output::Check(job) => self.tell_device(at, Input::Checked { job, result: Ok(()) }),
            Output::Run { lease, body: Some(body), .. } => self.begin_call(at, lease, &body),
            Output::Run { lease, body: None, .. } => self.begin(at, lease),
            Output::Warm(job) => self.tell_device(at, Input::Warmed { job, result: Ok(()) }),
            Output::Abort(attempt) => {
                self.devices[at].running.remove(&attempt);
            }
            Output::Audition { crew, job } => self.audition(at, crew, job),
            Output::Enlist(enlist) => self.enlist(at, enlist),
            Output::Dismiss(crew) => self.leave_crew(at, crew),
            Output::ToCrew { crew, say } => self.tell_member(at, crew, MemberInput::Told(say)),
            Output::AskCrew { crew, call, body } => self.ask_member(at, crew, call, body),
            Output::Swarm(told) => self.swarm(at, SwarmInput::Told(told)),
            Output::Forget(_) | Output::OpenQuic(_) | Output::CloseQuic | Output::Link => {}
            Output::Stopped(refusal) => {
                // Only a newer connection of the same device ends one for good.
                assert!(refusal.is_some(), "a device stopped by itself");
            }
        }
    }

    pub(crate) fn opened(&mut self, at: usize, birth: u32, conn: Conn) {
        if self.devices[at].birth != birth {
            return;
        }
        if self.scheduler.is_none() || self.now < self.devices[at].cut_until {
            self.tell_device(at, Input::Closed);
            return;
        }
        let socket = Socket { device: at, to_node: self.now, from_node: self.now };
        self.sockets.insert(conn, socket);
        self.devices[at].conn = Some(conn);
        self.tell_device(at, Input::Opened);
        self.challenge(conn);
    }

    pub(crate) fn send_from_node(&mut self, at: usize, message: FromNode) {
        let delay = self.delay();
        let in_order = match message {
            FromNode::Hello(_)
            | FromNode::Pause(_)
            | FromNode::Condition(_)
            | FromNode::Declined { .. }
            | FromNode::Links { .. }
            | FromNode::Crew { .. }
            | FromNode::Warm { .. }
            | FromNode::Answer { .. }
            | FromNode::Swarm(_) => true,
            FromNode::Done(_)
            | FromNode::Failed { .. }
            | FromNode::Alive { .. }
            | FromNode::Caps(_)
            | FromNode::Returned(_) => false,
        };
        let Some(conn) = self.devices[at].conn else { return };
        if is_sure(&message) {
            let due = (self.now + delay).max(self.devices[at].cut_until + delay);
            let Some(socket) = self.sockets.get_mut(&conn) else { return };
            socket.from_node = socket.from_node.max(due);
            let (due, message) = (socket.from_node, reread(&message));
            return self.at(due.0, Event::FromNode(conn, message));
        }
        let Some((copies, disorder)) = self.passage(at, in_order) else { return };
        let Some(socket) = self.sockets.get_mut(&conn) else { return };
        let due = self.now + delay;
        socket.from_node = if disorder { socket.from_node } else { due.max(socket.from_node) };
        let at = if disorder { due } else { socket.from_node };
        let message = if self.scenario.check_every == 1 { reread(&message) } else { message };
        for _ in 1..copies {
            let again = self.delay();
            self.at((at + again).0, Event::FromNode(conn, message.clone()));
        }
        self.at(at.0, Event::FromNode(conn, message));
    }

    /// How often a message to or from a device arrives, and whether later ones may overtake it; `None` if
    /// it is lost.
    pub(crate) fn passage(&mut self, device: usize, in_order: bool) -> Option<(u64, bool)> {
        let faults = &self.scenario.faults;
        let (loss, twice, disorder) = (faults.loss, faults.twice, faults.disorder);
        if self.now < self.devices[device].cut_until {
            return None;
        }
        if !self.has_faults() {
            return Some((1, false));
        }
        if self.random.chance(loss) {
            return None;
        }
        let copies = if !in_order && self.random.chance(twice) { 2 } else { 1 };
        Some((copies, !in_order && self.random.chance(disorder)))
    }

    fn begin(&mut self, at: usize, lease: Lease) {
        let mishap = self.has_faults() && self.random.chance(self.scenario.faults.mishaps);
        let device = &mut self.devices[at];
        let hidden = self.now < device.hidden_until;
        let slower = if hidden { HIDDEN_TIME } else { 100 };
        let took = Micros(device.item_micros * lease.span.len * slower / 100);
        let (birth, attempt) = (device.birth, lease.attempt);
        let floats = self.oracle.plan_of(lease.job).map(|job| self.scenario.jobs[job].floats);
        let class = if floats == Some(true) { device.class() } else { 0 };
        let asked = Asked { job: lease.job, span: lease.span, class };
        let content = self.conspiracy.answer(device, asked, &mut self.random);
        let lies = content.is_wrong(lease.span);
        let takes = self.oracle.takes(lease.job);
        let device = &mut self.devices[at];
        device.begins(attempt, takes);
        device.answers += 1;
        device.lies += u64::from(lies);
        if let Some(job) = self.oracle.plan_of(lease.job) {
            self.report.jobs[job].computed += lease.span.len;
        }
        let content = Some(content).filter(|_| !mishap);
        let event = Event::Ran { device: at, birth, attempt, took, content };
        self.at((self.now + took).0, event);
    }

    pub(crate) fn ran(
        &mut self,
        at: usize,
        birth: u32,
        attempt: Attempt,
        took: Micros,
        content: Option<Content>,
    ) {
        if self.devices[at].birth != birth {
            return;
        }
        self.devices[at].running.remove(&attempt);
        let result = match content {
            // Where only scheduling is measured, answers are empty.
            Some(_) if self.scenario.check_every == u64::MAX => Ok(UnitOutput::Inline(Vec::new())),
            Some(content) => Ok(UnitOutput::Inline(content.bytes())),
            None => Err(Failure::Internal { message: "a mishap".into() }),
        };
        self.tell_device(at, Input::Ran { attempt, took, result });
    }

    /// Books what a device could have computed while it was there.
    pub(crate) fn count_capacity(&mut self, at: usize) {
        let (from, until) = self.oracle.busy(self.now);
        let device = &mut self.devices[at];
        let Some(since) = device.up_since.take() else { return };
        let micros = (until - since.max(from)).0;
        self.report.capacity_items += micros * device.slots / device.item_micros.max(1);
    }
}

/// Of members and of blobs nothing is said again: a socket that is open carries it, in order.
fn is_sure(message: &FromNode) -> bool {
    match message {
        FromNode::Links { .. } | FromNode::Crew { .. } | FromNode::Swarm(_) => true,
        FromNode::Done(done) => {
            done.iter().any(|done| matches!(done.output, UnitOutput::Stored { .. }))
        }
        FromNode::Hello(_)
        | FromNode::Failed { .. }
        | FromNode::Alive { .. }
        | FromNode::Caps(_)
        | FromNode::Returned(_)
        | FromNode::Pause(_)
        | FromNode::Condition(_)
        | FromNode::Declined { .. }
        | FromNode::Warm { .. }
        | FromNode::Answer { .. } => false,
    }
}
