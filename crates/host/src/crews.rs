//! The crews this node is in: each has a member that decides; here it is wired to the socket, the GPU process
//! and the radio.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use shoal_node::session::RadioDo;
use shoal_node::{
    Input, JobInfo, Member, MemberConfig, MemberInput, MemberOutput, SimAnswer, StageCommand,
    SwarmInput,
};
use shoal_protocol::frame::split;
use shoal_protocol::{
    CrewId, CrewSay, CrewTask, CrewTold, Enlist, Epoch, Failure, Finished, FromNode, JobId,
    LinkKey, Micros, NodeId, Path, PublicKey, SimTask, StageTask, Time,
};
use shoal_seal::Keys;

use super::lanes::no_gpu;
use super::radio::{Heard, News, Order, Radio};
use super::{Asker, Host, Notice, stages};
use crate::fail::Fail;
use crate::keys::random;

/// All crews of this node, and what they share.
pub(super) struct Crews {
    secret: [u8; 32],
    unix_at_zero: u64,
    /// Who this node is, and to whom, once it joined.
    me: Option<NodeId>,
    coordinator: Option<PublicKey>,
    seats: BTreeMap<CrewId, Enlisted>,
    radio: Option<Radio>,
}

/// This node's place in one crew.
struct Enlisted {
    member: Member,
    me: NodeId,
    /// Of its job; talk has none.
    info: Option<Arc<JobInfo>>,
    /// Whom the radio was told of.
    called: BTreeSet<NodeId>,
}

impl Crews {
    /// Without a radio every link stays on the relay.
    pub(super) fn new(radio: Option<Radio>) -> Result<Crews, Fail> {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let unix_at_zero = since.as_micros() as u64;
        let (secret, seats) = (random()?, BTreeMap::new());
        Ok(Crews { secret, unix_at_zero, me: None, coordinator: None, seats, radio })
    }

    pub(super) fn key(&self) -> LinkKey {
        Keys::new(self.secret).public()
    }

    pub(super) fn challenged_by(&mut self, coordinator: PublicKey) {
        self.coordinator = Some(coordinator);
    }

    pub(super) fn next_timeout(&self) -> Option<Time> {
        self.seats.values().filter_map(|seat| seat.member.next_timeout()).min()
    }

    fn order(&self, order: Order) {
        if let Some(radio) = &self.radio {
            radio.order(order);
        }
    }
}

impl Host<'_> {
    /// The relay is there: this node joined.
    pub(super) fn crews_joined(&mut self, me: NodeId) {
        self.crews.me = Some(me);
        self.talk_joined(me);
        self.every_crew(|_| Some(MemberInput::Relay(true)));
    }

    pub(super) fn crews_away(&mut self) {
        self.every_crew(|_| Some(MemberInput::Relay(false)));
    }

    pub(super) fn crews_tick(&mut self) {
        let now = self.now();
        let is_due = |member: &Member| member.next_timeout().is_some_and(|at| at <= now);
        self.every_crew(|member| is_due(member).then_some(MemberInput::Tick));
    }

    pub(super) fn enlist(&mut self, enlist: Box<Enlist>) {
        let crew = enlist.crew;
        let job = match &enlist.task {
            CrewTask::Sim(task) => Some(task.job),
            CrewTask::Stage(task) => Some(task.job),
            CrewTask::Talk | CrewTask::Swarm => None,
        };
        match &enlist.task {
            CrewTask::Sim(task) => notice(&enlist, task).into_iter().for_each(self.notify),
            CrewTask::Talk => {}
            CrewTask::Stage(task) => self.tell_of_stage(&enlist, task),
            CrewTask::Swarm => {
                if let Some(other) = other(&enlist) {
                    self.swarm_linked(crew, other);
                }
            }
        }
        if !enlist.ice.is_empty() {
            self.crews.order(Order::Servers(enlist.ice.clone()));
        }
        // Who came back under another number has no link to anybody any more.
        let is_new = self.crews.seats.get(&crew).is_none_or(|seat| Some(seat.me) != self.crews.me);
        if is_new {
            self.dismiss(crew);
            match self.seat(job) {
                Ok(seat) => drop(self.crews.seats.insert(crew, seat)),
                Err(failure) => {
                    let (epoch, say) = (enlist.epoch, CrewSay::Failed { failure });
                    return self.replies.tell_brain(Input::CrewSays { crew, epoch, say });
                }
            }
            self.member(crew, MemberInput::Relay(true));
        }
        if matches!(enlist.task, CrewTask::Talk) {
            self.talk_met(&enlist);
        }
        self.member(crew, MemberInput::Enlist(enlist));
    }

    fn seat(&mut self, job: Option<JobId>) -> Result<Enlisted, Failure> {
        let internal = |message: &str| Failure::Internal { message: message.into() };
        let (info, work) = match job.map(|job| self.info(job)) {
            None => (None, None),
            Some(None) => return Err(internal("a crew of an unknown job")),
            Some(Some(info)) => {
                let work = info.work.sim().cloned();
                (Some(info), work)
            }
        };
        let (Some(me), Some(coordinator)) = (self.crews.me, self.crews.coordinator) else {
            return Err(internal("a crew before this node joined"));
        };
        let seed = random().map_err(|_| internal("this machine has no random numbers"))?;
        let config = MemberConfig {
            me,
            coordinator,
            secret: self.crews.secret,
            seed,
            unix_at_zero: self.crews.unix_at_zero,
            tries_direct: self.crews.radio.is_some(),
            work,
        };
        let member = Member::new(self.now(), config);
        Ok(Enlisted { member, me, info, called: BTreeSet::new() })
    }

    pub(super) fn dismiss(&mut self, crew: CrewId) {
        let Some(seat) = self.crews.seats.remove(&crew) else { return };
        self.talk_parted(crew);
        self.swarm_unlinked(crew);
        for node in seat.called {
            self.crews.order(Order::Hang((crew, node)));
        }
        self.lanes.leave(crew);
    }

    pub(super) fn tell_crew(&mut self, crew: CrewId, say: CrewTold) {
        if let CrewTold::NotMet { with } = say {
            return self.talk_not_met(with);
        }
        self.member(crew, MemberInput::Told(say));
    }

    /// A frame from the relay; one of no crew here is dropped.
    pub(super) fn crew_frame(&mut self, frame: &[u8]) {
        if let Ok((header, _)) = split(frame) {
            self.member(header.crew, MemberInput::Frame(frame));
        }
    }

    pub(super) fn crew_heard(&mut self, heard: Heard) {
        let news = self.crews.radio.as_ref().and_then(|radio| radio.present(heard));
        let Some(((crew, node), news)) = news else { return };
        match news {
            News::Words(words) => self.member(crew, MemberInput::Radio(node, words)),
            News::Up => self.member(crew, MemberInput::DirectUp(node)),
            News::Down => self.member(crew, MemberInput::DirectDown(node)),
            News::Frame(frame) => self.member(crew, MemberInput::Direct(node, &frame)),
        }
    }

    pub(super) fn crew_answer(&mut self, crew: CrewId, answer: SimAnswer) {
        self.member(crew, MemberInput::Engine(answer));
    }

    fn every_crew(&mut self, input: impl Fn(&Member) -> Option<MemberInput<'static>>) {
        let inputs = self.crews.seats.iter().map(|(crew, seat)| (*crew, input(&seat.member)));
        let inputs: Vec<_> = inputs.collect();
        for (crew, input) in inputs {
            if let Some(input) = input {
                self.member(crew, input);
            }
        }
    }

    /// One input to a member, then everything it asks for.
    pub(super) fn member(&mut self, crew: CrewId, input: MemberInput<'_>) {
        let now = self.now();
        let Some(seat) = self.crews.seats.get_mut(&crew) else { return };
        seat.member.handle(now, input);
        loop {
            let Some(seat) = self.crews.seats.get_mut(&crew) else { return };
            let Some(output) = seat.member.poll_output() else { return };
            self.member_wants(crew, output);
        }
    }

    fn member_wants(&mut self, crew: CrewId, output: MemberOutput) {
        match output {
            MemberOutput::Frame(frame) => {
                if self.connection.is_open()
                    && let Some(frame) = self.quic.pass(frame)
                {
                    self.connection.pass(frame);
                }
            }
            MemberOutput::Direct(node, frame) => self.crews.order(Order::Send((crew, node), frame)),
            MemberOutput::Radio(node, todo) => {
                if let Some(seat) = self.crews.seats.get_mut(&crew) {
                    seat.called.insert(node);
                }
                let peer = (crew, node);
                self.crews.order(match todo {
                    RadioDo::Dial => Order::Dial(peer),
                    RadioDo::Listen => Order::Listen(peer),
                    RadioDo::Hear(words) => Order::Hear(peer, words),
                    RadioDo::Hang => Order::Hang(peer),
                });
            }
            MemberOutput::Engine(command) => self.engine(crew, command),
            MemberOutput::Stage(command) => self.stage(crew, command),
            MemberOutput::Answer { call, result } => {
                self.replies.tell_brain(Input::CrewAnswers { crew, call, result });
            }
            MemberOutput::Part { call, at, bytes, last } => {
                self.replies.tell_brain(Input::CrewPart { crew, call, at, bytes, last });
            }
            MemberOutput::Says { epoch, say } => {
                self.replies.tell_brain(Input::CrewSays { crew, epoch, say });
            }
            MemberOutput::Deliver { attempt, output } => {
                // How long it took is in what the member says of its steps.
                let done = Finished { attempt, took: Micros(1), output };
                self.connection.say(&FromNode::Done(vec![done]));
            }
            MemberOutput::Using(node, path) => {
                tracing::debug!("crew {}: node {} by {path:?}", crew.0, node.0);
                match self.is_swarm(crew) {
                    true => self.swarm(SwarmInput::Near(node, path == Path::Direct)),
                    false => self.talk_using(node, path),
                }
            }
            MemberOutput::App { from, channel, bytes } => match self.is_swarm(crew) {
                true => self.swarm(SwarmInput::Heard { from, words: &bytes }),
                false => self.talk_heard(crew, from, channel, bytes),
            },
            MemberOutput::Refused { to, .. } if !self.is_swarm(crew) => self.talk_refused(to),
            // Less is said of blobs at a time than a link takes, and nothing in common.
            MemberOutput::Refused { .. }
            | MemberOutput::NotBegun(_)
            | MemberOutput::Done { .. } => {}
        }
    }

    /// How fast this node would be in a crew: the GPU process times a step.
    pub(super) fn audition(&mut self, crew: CrewId, job: JobId) {
        let begun = match self.info(job) {
            Some(info) => self.lanes.audition(crew, job, &info),
            None => Err(no_gpu()),
        };
        if let Err(failure) = begun {
            self.auditioned(crew, Err(failure));
        }
    }

    pub(super) fn auditioned(&mut self, crew: CrewId, result: Result<(u64, Micros), Failure>) {
        let say = match result {
            Ok((cells, took)) => CrewSay::Auditioned { cells, took },
            Err(failure) => CrewSay::Failed { failure },
        };
        self.replies.tell_brain(Input::CrewSays { crew, epoch: Epoch(0), say });
    }

    fn stage(&mut self, crew: CrewId, command: StageCommand) {
        let info = self.crews.seats.get(&crew).and_then(|seat| seat.info.clone());
        let begun = match info {
            Some(info) => self.lanes.stage(crew, command.clone(), info),
            None => Err(Failure::Internal { message: "parts of an unknown service".into() }),
        };
        if let Err(failure) = begun
            && let Some(answer) = stages::failed(&command, failure)
        {
            self.replies.tell_stage(crew, answer);
        }
    }

    /// The donor hears what this node keeps ready.
    fn tell_of_stage(&mut self, enlist: &Enlist, task: &StageTask) {
        let Some(info) = self.info(task.job) else { return };
        let Some(parts) = task.parts.get(usize::from(enlist.rank)).copied() else { return };
        let of = task.parts.iter().map(|parts| parts.len).sum();
        let others = enlist.members.len().saturating_sub(1);
        let (asker, memory) = (Asker::of(&info), info.takes.memory);
        (self.notify)(Notice::InService { asker, others, parts, of, memory });
    }

    fn engine(&mut self, crew: CrewId, command: shoal_node::SimCommand) {
        let info = self.crews.seats.get(&crew).and_then(|seat| seat.info.as_ref());
        let epoch = command.epoch();
        let begun = match info {
            Some(info) => self.lanes.command(crew, command, info),
            None => Err(no_gpu()),
        };
        if let Err(failure) = begun {
            self.replies.tell_member(crew, SimAnswer::Failed { epoch, failure });
        }
    }
}

/// What the donor is told of this node's place.
fn notice(enlist: &Enlist, task: &SimTask) -> Option<Notice> {
    let rows = *task.bands.get(usize::from(enlist.rank))?;
    let others = enlist.members.len().saturating_sub(1);
    Some(Notice::InCrew { job: task.job, others, rows, from: task.from })
}

/// The other one of two.
fn other(enlist: &Enlist) -> Option<NodeId> {
    let mine = usize::from(enlist.rank);
    enlist.members.iter().enumerate().find(|(rank, _)| *rank != mine).map(|(_, peer)| peer.node)
}
