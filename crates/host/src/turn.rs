//! One turn of the node's loop: an input to the brain, then everything the brain asks for.

use std::collections::VecDeque;
use std::sync::Arc;

use shoal_node::{Input, MemberInput, Output, SimAnswer, StageAnswer, SwarmInput};
use shoal_protocol::{CrewId, Failure, JobId, Lane, Lease, Micros, NodeId, ToNode, UnitOutput};

use super::cpu::Worked;
use super::gpu::News;
use super::models::Noted;
use super::socket::NotOpened;
use super::swarm::Sharing;
use super::{Asker, Event, Host, Notice, Ran};
use crate::fail::Fail;

/// Answers that need no waiting, given to the brain and the members before the loop waits again: a task or a channel
/// per unit would cost more than the unit.
#[derive(Default)]
pub(super) struct Replies {
    brain: VecDeque<Input>,
    members: Vec<(CrewId, SimAnswer)>,
    stages: VecDeque<(CrewId, StageAnswer)>,
}

enum Reply {
    Brain(Input),
    Member(CrewId, SimAnswer),
    Stage(CrewId, StageAnswer),
}

impl Replies {
    pub(super) fn tell_brain(&mut self, input: Input) {
        self.brain.push_back(input);
    }

    pub(super) fn tell_member(&mut self, crew: CrewId, answer: SimAnswer) {
        self.members.push((crew, answer));
    }

    pub(super) fn tell_stage(&mut self, crew: CrewId, answer: StageAnswer) {
        self.stages.push_back((crew, answer));
    }

    fn next(&mut self) -> Option<Reply> {
        let member = self.members.pop().map(|(crew, answer)| Reply::Member(crew, answer));
        let stages = &mut self.stages;
        let stage = || stages.pop_front().map(|(crew, answer)| Reply::Stage(crew, answer));
        member.or_else(stage).or_else(|| self.brain.pop_front().map(Reply::Brain))
    }
}

impl Host<'_> {
    pub(super) fn input(&mut self, input: Input) {
        self.node.handle(self.now(), input);
        self.outputs();
        self.settle();
    }

    /// Gives the brain and the members what was answered here and now, until nothing more follows from it.
    pub(super) fn settle(&mut self) {
        loop {
            match self.replies.next() {
                Some(Reply::Member(crew, answer)) => self.crew_answer(crew, answer),
                Some(Reply::Stage(crew, answer)) => {
                    self.member(crew, MemberInput::Stage(answer));
                }
                Some(Reply::Brain(input)) => {
                    self.node.handle(self.now(), input);
                    self.outputs();
                }
                None => match self.lanes.news() {
                    Some(news) => self.news(news),
                    None => return,
                },
            }
        }
    }

    pub(super) fn received(&mut self, message: ToNode) {
        // Trying again cannot help, and signing for another pool must not happen.
        if let ToNode::Challenge { coordinator, .. } = &message
            && let Err(fail) = self.pool.check(coordinator)
        {
            self.stopped = Some(Err(fail));
            return;
        }
        if let ToNode::Challenge { coordinator, .. } = &message {
            self.crews.challenged_by(*coordinator);
        }
        if let ToNode::Revoke(attempts) = &message {
            self.connection.retract(attempts);
        }
        let welcome = match &message {
            ToNode::Welcome { node, session } => Some((node.0, session.clone())),
            ToNode::Refused(_)
            | ToNode::Job { .. }
            | ToNode::Lend(_)
            | ToNode::Revoke(_)
            | ToNode::Forget(_)
            | ToNode::Challenge { .. }
            | ToNode::Audition { .. }
            | ToNode::Enlist(_)
            | ToNode::Dismiss { .. }
            | ToNode::ToCrew { .. }
            | ToNode::Quic(_)
            | ToNode::Warm { .. }
            | ToNode::Ask { .. }
            | ToNode::AskMore { .. }
            | ToNode::Swarm(_)
            | ToNode::Link => None,
        };
        // The lanes need the session before the first unit.
        if let Some((node, token)) = welcome {
            let shelf = self.sharing.as_ref().map(Sharing::folder);
            self.lanes.joined(self.pool.joined(token, shelf));
            self.connection.joined();
            (self.notify)(Notice::Joined { node });
            self.input(Input::Received(message));
            // After the brain: crews of a connection that is gone are not told that it is there.
            self.crews_joined(NodeId(node));
            self.swarm(SwarmInput::Joined);
            return self.settle();
        }
        self.input(Input::Received(message));
    }

    pub(super) fn event(&mut self, event: Event) {
        match event {
            Event::Opened(socket) => {
                self.connection.opened(socket);
                self.input(Input::Opened);
            }
            Event::NotOpened(NotOpened::Away(reason)) => self.away(reason),
            // Trying again cannot help, and joining a stranger must not happen.
            Event::NotOpened(NotOpened::Untrusted(reason)) => {
                self.stopped = Some(Err(Fail::world("untrusted", reason)));
            }
            Event::Cpu(Worked::Warmed { job, result }) => {
                if let (true, Some(info)) = (result.is_ok(), self.jobs.get(job)) {
                    let memory = info.takes.memory;
                    (self.notify)(Notice::Serves { asker: Asker::of(info), memory });
                }
                self.input(Input::Warmed { job, result });
            }
            Event::Cpu(Worked::Part { call, bytes }) => {
                let given = bytes.len();
                self.input(Input::Part { attempt: call, bytes });
                self.connection.taken(given);
            }
            Event::Cpu(Worked::Ran(ran)) => {
                self.lanes.ended(ran.attempt);
                let Ran { attempt, took, result } = ran;
                self.input(Input::Ran { attempt, took, result });
            }
            Event::Cpu(Worked::Noted(Noted { asker, note })) => {
                (self.notify)(Notice::Engine { asker, note });
            }
            Event::Cpu(Worked::Staged(crew, answer)) => {
                if let Some(answer) = answer {
                    self.member(crew, MemberInput::Stage(answer));
                }
                self.settle();
            }
            Event::Order(order) => self.talk_order(order),
            Event::Swarm(event) => self.swarm_event(*event),
            Event::Gpu(event) => {
                self.lanes.heard(event);
                self.settle();
            }
        }
    }

    pub(super) fn time_passed(&mut self) {
        self.look_at_power();
        self.lanes.overdue();
        self.crews_tick();
        self.swarm_tick();
        self.input(Input::Tick);
    }

    /// The connection is gone, or could not be made.
    pub(super) fn away(&mut self, reason: String) {
        self.connection.closed();
        if self.connection.is_news(&reason) {
            (self.notify)(Notice::Away { reason });
        }
        self.crews_away();
        self.swarm(SwarmInput::Away);
        self.input(Input::Closed);
    }

    fn news(&mut self, news: News) {
        match news {
            News::Ran(Ran { attempt, took, result }) => {
                self.replies.tell_brain(Input::Ran { attempt, took, result });
            }
            News::Auditioned(crew, result) => self.auditioned(crew, result),
            News::Answer(crew, answer) => self.crew_answer(crew, answer),
            News::Ready(opened) => {
                if let Some(caps) = self.lanes.gpu_ready(opened) {
                    (self.notify)(Notice::GpuRestarted { reason: "it answers again".into() });
                    self.replies.tell_brain(Input::Offer(caps));
                }
            }
            News::Restarted(reason) => (self.notify)(Notice::GpuRestarted { reason }),
            News::Gone(reason) => {
                if let Some(caps) = self.lanes.gpu_gone() {
                    (self.notify)(Notice::GpuGone { reason });
                    self.replies.tell_brain(Input::Offer(caps));
                }
            }
        }
    }

    fn outputs(&mut self) {
        while let Some(output) = self.node.poll_output() {
            match output {
                Output::Connect => self.pool.connect(self.to_loop.clone()),
                Output::Disconnect => {
                    self.connection.closed();
                    self.crews_away();
                    self.swarm(SwarmInput::Away);
                }
                Output::Send(message) => {
                    self.overhear(&message);
                    self.connection.say(&message);
                }
                Output::Sign(statement) => {
                    let proof = self.pool.sign(&statement);
                    self.replies.tell_brain(Input::Signed { statement, proof });
                }
                Output::Check(job) => {
                    let result = self.check(job);
                    self.replies.tell_brain(Input::Checked { job, result });
                }
                Output::Run { lease, lane, body } => self.begin(lease, lane, body),
                Output::Warm(job) => self.warm(job),
                Output::Abort(attempt) => {
                    self.swarm_abort(attempt);
                    self.lanes.abort(attempt);
                }
                Output::Forget(job) => {
                    self.jobs.forget(job);
                    self.swarm_forget(job);
                    self.lanes.forget(job);
                }
                Output::Audition { crew, job } => self.audition(crew, job),
                Output::Enlist(enlist) => self.enlist(enlist),
                Output::Dismiss(crew) => self.dismiss(crew),
                Output::ToCrew { crew, say } => self.tell_crew(crew, say),
                Output::AskCrew { crew, call, body } => {
                    self.member(crew, MemberInput::Ask { call, body });
                }
                Output::OpenQuic(offer) => self.open_quic(offer),
                Output::CloseQuic => self.quic.close(),
                Output::Swarm(told) => self.swarm(SwarmInput::Told(told)),
                // A machine has its key from the start.
                Output::Link => {}
                Output::Stopped(None) => self.stopped = Some(Ok(())),
                Output::Stopped(Some(refusal)) => {
                    let (code, message) = ("refused".into(), refusal.to_string());
                    self.stopped = Some(Err(Fail::Input { code, message }));
                }
            }
        }
    }

    /// Makes a service ready: a program is fetched and compiled before its first request.
    fn warm(&mut self, job: JobId) {
        let Some(info) = self.info(job) else { return };
        if let Err(failure) = self.lanes.warm(job, info) {
            self.replies.tell_brain(Input::Warmed { job, result: Err(failure) });
        }
    }

    fn begin(&mut self, lease: Lease, lane: Lane, body: Option<Arc<Vec<u8>>>) {
        let attempt = lease.attempt;
        let Some(info) = self.info(lease.job) else { return };
        let is_unsigned = info.signed.is_none() && info.work.code().is_some();
        let begun = match lane {
            Lane::Inline => {
                let result = Ok(UnitOutput::Inline(Vec::new()));
                return self.replies.tell_brain(Input::Ran { attempt, took: Micros(1), result });
            }
            Lane::Gpu | Lane::Cpu if is_unsigned => {
                Err(Failure::Signature { message: "nobody signed the code".into() })
            }
            Lane::Gpu => self.lanes.lends_gpu().map(|()| self.begin_on_gpu(lease, &info)),
            Lane::Cpu => self.lanes.run_on_cpu(lease, info, body),
        };
        if let Err(failure) = begun {
            let result = Err(failure);
            self.replies.tell_brain(Input::Ran { attempt, took: Micros(0), result });
        }
    }
}
