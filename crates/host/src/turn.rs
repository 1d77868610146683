//! One turn of the node's loop: an input to the brain, then everything the brain asks for.

use std::collections::BTreeMap;
use std::sync::Arc;

use shoal_node::{Input, JobInfo, Output, ShareInput};
use shoal_protocol::codec::Wire as _;
use shoal_protocol::{Failure, FromNode, JobId, Lane, Lease, Micros, NodeId, ToNode, UnitOutput};
use tokio_tungstenite::tungstenite::Message;

use super::cpu::Worked;
use super::gpu::{Access, GpuLane, News};
use super::share::Sharing;
use super::socket::NotOpened;
use super::{Asker, Event, Host, Notice, Ran, pools, socket};
use crate::fail::Fail;

/// Jobs as the lanes share them, copied once from the brain.
pub(super) type Jobs = BTreeMap<JobId, Arc<JobInfo>>;

impl Host<'_> {
    pub(super) fn input(&mut self, input: Input) {
        self.node.handle(self.now(), input);
        self.outputs();
        self.settle();
    }

    /// Gives the brain and the members what was answered here and now: a task or a channel per unit would
    /// cost more than the unit.
    pub(super) fn settle(&mut self) {
        loop {
            if let Some((crew, answer)) = self.answers.pop() {
                self.crew_answer(crew, answer);
            } else if let Some(reply) = self.replies.pop_front() {
                self.node.handle(self.now(), reply);
                self.outputs();
            } else if let Some(news) = self.gpu.as_mut().and_then(GpuLane::news) {
                self.news(news);
            } else {
                return;
            }
        }
    }

    pub(super) fn received(&mut self, message: ToNode) {
        // Trying again cannot help, and signing for another pool must not happen.
        if let ToNode::Challenge { coordinator, .. } = &message
            && let Err(fail) = pools::check(&self.data, &self.link.base, coordinator)
        {
            self.stopped = Some(Err(fail));
            return;
        }
        if let ToNode::Challenge { coordinator, .. } = &message {
            self.crews.challenged_by(*coordinator);
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
            | ToNode::Share(_) => None,
        };
        // The lanes need the session before the first unit.
        if let Some((node, token)) = welcome {
            self.session.set(&token);
            if let Some(gpu) = &mut self.gpu {
                let pin = self.trust.seen().map(|seen| seen.to_string());
                let shelf = self.sharing.as_ref().map(Sharing::folder);
                gpu.session(Access { base: self.link.base.clone(), token, pin, shelf });
            }
            self.last_away = None;
            (self.notify)(Notice::Joined { node });
            self.input(Input::Received(message));
            // After the brain: crews of a connection that is gone are not told that it is there.
            self.crews_joined(NodeId(node));
            self.share(ShareInput::Joined);
            return self.settle();
        }
        self.input(Input::Received(message));
    }

    pub(super) fn event(&mut self, event: Event) {
        match event {
            Event::Opened(socket) => {
                self.socket = Some(socket);
                self.outbox.clear();
                self.input(Input::Opened);
            }
            Event::NotOpened(NotOpened::Away(reason)) => self.away(reason),
            // Trying again cannot help, and joining a stranger must not happen.
            Event::NotOpened(NotOpened::Untrusted(reason)) => {
                self.stopped = Some(Err(Fail::world("untrusted", reason)));
            }
            Event::Cpu(Worked::Warmed { job, result }) => {
                if let (true, Some(info)) = (result.is_ok(), self.jobs.get(&job)) {
                    let memory = info.takes.memory;
                    (self.notify)(Notice::Serves { asker: Asker::of(info), memory });
                }
                self.input(Input::Warmed { job, result });
            }
            Event::Cpu(Worked::Part { call, bytes }) => {
                self.input(Input::Part { attempt: call, bytes });
            }
            Event::Cpu(Worked::Ran(ran)) => {
                if let Some(cpu) = &mut self.cpu {
                    cpu.ended(ran.attempt);
                }
                let Ran { attempt, took, result } = ran;
                self.input(Input::Ran { attempt, took, result });
            }
            Event::Order(order) => self.talk_order(order),
            Event::Share(event) => self.share_event(*event),
            Event::Gpu(event) => {
                if let Some(gpu) = &mut self.gpu {
                    gpu.handle(event);
                }
                self.settle();
            }
        }
    }

    pub(super) fn time_passed(&mut self) {
        self.look_at_power();
        if let Some(gpu) = &mut self.gpu {
            gpu.overdue();
        }
        self.crews_tick();
        self.share_tick();
        self.input(Input::Tick);
    }

    /// The connection is gone, or could not be made.
    pub(super) fn away(&mut self, reason: String) {
        self.socket = None;
        self.outbox.clear();
        // The same reason again and again is no news.
        if self.last_away.as_ref() != Some(&reason) {
            (self.notify)(Notice::Away { reason: reason.clone() });
            self.last_away = Some(reason);
        }
        self.crews_away();
        self.share(ShareInput::Away);
        self.input(Input::Closed);
    }

    fn news(&mut self, news: News) {
        match news {
            News::Ran(Ran { attempt, took, result }) => {
                self.replies.push_back(Input::Ran { attempt, took, result });
            }
            News::Auditioned(crew, result) => self.auditioned(crew, result),
            News::Answer(crew, answer) => self.crew_answer(crew, answer),
            News::Ready(opened) => self.gpu_ready(opened),
            News::Restarted(reason) => (self.notify)(Notice::GpuRestarted { reason }),
            News::Gone(reason) => self.gpu_gone(reason),
        }
    }

    fn outputs(&mut self) {
        while let Some(output) = self.node.poll_output() {
            match output {
                Output::Connect => self.connect(),
                Output::Disconnect => {
                    self.socket = None;
                    self.outbox.clear();
                    self.crews_away();
                    self.share(ShareInput::Away);
                }
                Output::Send(message) => {
                    self.overhear(&message);
                    self.send(&message);
                }
                Output::Sign(statement) => {
                    let proof = self.key.sign(&statement);
                    self.replies.push_back(Input::Signed { statement, proof });
                }
                Output::Check(job) => {
                    let result = self.check(job);
                    self.replies.push_back(Input::Checked { job, result });
                }
                Output::Run { lease, lane, body } => self.begin(lease, lane, body),
                Output::Warm(job) => self.warm(job),
                Output::Abort(attempt) => {
                    if let Some(cpu) = &mut self.cpu {
                        cpu.abort(attempt);
                    }
                    self.share_abort(attempt);
                    if let Some(gpu) = &mut self.gpu {
                        gpu.abort(attempt);
                    }
                }
                Output::Forget(job) => {
                    self.jobs.remove(&job);
                    self.declined.remove(&job);
                    self.share_forget(job);
                    if let Some(gpu) = &mut self.gpu {
                        gpu.forget(job);
                    }
                }
                Output::Audition { crew, job } => self.audition(crew, job),
                Output::Enlist(enlist) => self.enlist(enlist),
                Output::Dismiss(crew) => self.dismiss(crew),
                Output::ToCrew { crew, say } => self.tell_crew(crew, say),
                Output::OpenQuic(offer) => self.open_quic(offer),
                Output::CloseQuic => self.quic.close(),
                Output::Share(told) => self.share(ShareInput::Told(told)),
                Output::Stopped(None) => self.stopped = Some(Ok(())),
                Output::Stopped(Some(refusal)) => {
                    let (code, message) = ("refused".into(), refusal.to_string());
                    self.stopped = Some(Err(Fail::Input { code, message }));
                }
            }
        }
    }

    fn connect(&self) {
        let (origin, url) = (self.origin.clone(), self.link.socket_url());
        let to_loop = self.to_loop.clone();
        tokio::spawn(async move {
            let event = match socket::connect(origin, url).await {
                Ok(socket) => Event::Opened(socket),
                Err(reason) => Event::NotOpened(reason),
            };
            // The loop may have ended meanwhile.
            let _ = to_loop.send(event).await;
        });
    }

    pub(super) fn send(&mut self, message: &FromNode) {
        if self.socket.is_some() {
            self.outbox.say(Message::Binary(message.encode().into()));
        }
    }

    /// Makes a service ready: a program is fetched and compiled before its first request.
    fn warm(&mut self, job: JobId) {
        let Some(info) = self.info(job) else { return };
        let begun = match (info.lane(), &mut self.cpu) {
            (Lane::Cpu, Some(cpu)) => cpu.warm(job, info),
            (Lane::Inline | Lane::Gpu | Lane::Cpu, _) => {
                Err(Failure::Unable { message: "this node serves programs only".into() })
            }
        };
        if let Err(failure) = begun {
            self.replies.push_back(Input::Warmed { job, result: Err(failure) });
        }
    }

    fn begin(&mut self, lease: Lease, lane: Lane, body: Option<Arc<Vec<u8>>>) {
        let attempt = lease.attempt;
        let Some(info) = self.info(lease.job) else { return };
        if lane == Lane::Inline {
            let result = Ok(UnitOutput::Inline(Vec::new()));
            self.replies.push_back(Input::Ran { attempt, took: Micros(1), result });
            return;
        }
        if info.signed.is_none() && info.work.code().is_some() {
            let message = "nobody signed the code".into();
            let result = Err(Failure::Signature { message });
            self.replies.push_back(Input::Ran { attempt, took: Micros(0), result });
            return;
        }
        let begun = match (lane, &self.gpu, &mut self.cpu) {
            (Lane::Gpu, Some(_), _) => {
                self.begin_on_gpu(lease, &info);
                Ok(())
            }
            (Lane::Cpu, _, Some(cpu)) => cpu.run(lease, info, body),
            // Lent before the coordinator heard that the lane is gone.
            (Lane::Inline | Lane::Gpu | Lane::Cpu, _, _) => {
                Err(Failure::DeviceLost { message: "this node no longer lends this".into() })
            }
        };
        if let Err(failure) = begun {
            let result = Err(failure);
            self.replies.push_back(Input::Ran { attempt, took: Micros(0), result });
        }
    }

    pub(super) fn info(&mut self, job: JobId) -> Option<Arc<JobInfo>> {
        if let Some(info) = self.jobs.get(&job) {
            return Some(info.clone());
        }
        let info = Arc::new(self.node.job(job)?.clone());
        self.jobs.insert(job, info.clone());
        (self.notify)(Notice::Works(Asker::of(&info)));
        Some(info)
    }
}
