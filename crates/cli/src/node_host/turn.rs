//! One turn of the node's loop: an input to the brain, then everything the brain asks for.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use futures_util::SinkExt;
use shoal_node::{Input, JobInfo, Output};
use shoal_protocol::codec::Wire as _;
use shoal_protocol::{Failure, FromNode, JobId, Lane, Lease, Micros, ToNode, UnitOutput};
use tokio_tungstenite::tungstenite::Message;

use super::gpu::{Access, News};
use super::socket::NotOpened;
use super::{Asker, Event, Host, Notice, Ran, SEND_TIMEOUT, pools, socket};
use crate::fail::Fail;

/// Jobs as the lanes share them, copied once from the brain.
pub(super) type Jobs = BTreeMap<JobId, Arc<JobInfo>>;

impl Host<'_> {
    pub(super) async fn input(&mut self, input: Input) {
        self.node.handle(self.now(), input);
        self.outputs().await;
        // Answered here and now: a task or a channel per unit would cost more than the unit.
        while let Some(reply) = self.replies.pop() {
            self.node.handle(self.now(), reply);
            self.outputs().await;
        }
    }

    pub(super) async fn received(&mut self, message: ToNode) {
        // Trying again cannot help, and signing for another pool must not happen.
        if let ToNode::Challenge { coordinator, .. } = &message
            && let Err(fail) = pools::check(&self.data, &self.link.base, coordinator)
        {
            self.stopped = Some(Err(fail));
            return;
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
            | ToNode::ToCrew { .. } => None,
        };
        // The lanes need the session before the first unit.
        if let Some((node, token)) = welcome {
            self.session.set(&token);
            if let Some(gpu) = &mut self.gpu {
                let pin = self.trust.seen().map(|seen| seen.to_string());
                gpu.session(Access { base: self.link.base.clone(), token, pin });
            }
            self.last_away = None;
            (self.notify)(Notice::Joined { node });
        }
        self.input(Input::Received(message)).await;
    }

    pub(super) async fn event(&mut self, event: Event) {
        match event {
            Event::Opened(socket) => {
                self.socket = Some(socket);
                self.input(Input::Opened).await;
            }
            Event::NotOpened(NotOpened::Away(reason)) => self.away(reason).await,
            // Trying again cannot help, and joining a stranger must not happen.
            Event::NotOpened(NotOpened::Untrusted(reason)) => {
                self.stopped = Some(Err(Fail::world("untrusted", reason)));
            }
            Event::Cpu(ran) => {
                if let Some(cpu) = &mut self.cpu {
                    cpu.ended(ran.attempt);
                }
                self.ran(ran).await;
            }
            Event::Gpu(event) => {
                let news = self.gpu.as_mut().map(|gpu| gpu.handle(event));
                self.news(news.unwrap_or_default()).await;
            }
        }
    }

    pub(super) async fn time_passed(&mut self) {
        self.look_at_power().await;
        let news = self.gpu.as_mut().map(|gpu| gpu.overdue(Instant::now()));
        self.news(news.unwrap_or_default()).await;
        self.input(Input::Tick).await;
    }

    /// The connection is gone, or could not be made.
    pub(super) async fn away(&mut self, reason: String) {
        self.socket = None;
        self.unsent = false;
        // The same reason again and again is no news.
        if self.last_away.as_ref() != Some(&reason) {
            (self.notify)(Notice::Away { reason: reason.clone() });
            self.last_away = Some(reason);
        }
        Box::pin(self.input(Input::Closed)).await;
    }

    async fn ran(&mut self, ran: Ran) {
        let Ran { attempt, took, result } = ran;
        self.input(Input::Ran { attempt, took, result }).await;
    }

    async fn news(&mut self, news: Vec<News>) {
        for news in news {
            match news {
                News::Ran(ran) => self.ran(ran).await,
                // Known before the first connection.
                News::Ready(_) => {}
                News::Restarted(reason) => (self.notify)(Notice::GpuRestarted { reason }),
                News::Gone(reason) => {
                    (self.notify)(Notice::GpuGone { reason });
                    self.gpu = None;
                    if let Some(caps) = self.without_gpu() {
                        self.input(Input::Offer(caps)).await;
                    }
                }
            }
        }
    }

    async fn outputs(&mut self) {
        while let Some(output) = self.node.poll_output() {
            match output {
                Output::Connect => self.connect(),
                Output::Disconnect => self.socket = None,
                Output::Send(message) => {
                    self.overhear(&message);
                    self.send(&message).await;
                }
                Output::Sign(statement) => {
                    let proof = self.key.sign(&statement);
                    self.replies.push(Input::Signed { statement, proof });
                }
                Output::Check(job) => {
                    let result = self.check(job);
                    self.replies.push(Input::Checked { job, result });
                }
                Output::Run { lease, lane } => self.begin(lease, lane),
                Output::Abort(attempt) => {
                    if let Some(cpu) = &mut self.cpu {
                        cpu.abort(attempt);
                    }
                    if let Some(gpu) = &mut self.gpu {
                        gpu.abort(attempt);
                    }
                }
                Output::Forget(job) => {
                    self.jobs.remove(&job);
                    self.declined.remove(&job);
                    if let Some(gpu) = &mut self.gpu {
                        gpu.forget(job);
                    }
                }
                // Not offered to this shell yet.
                Output::Audition { .. }
                | Output::Enlist(_)
                | Output::Dismiss(_)
                | Output::ToCrew { .. } => {}
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

    async fn send(&mut self, message: &FromNode) {
        let Some(socket) = &mut self.socket else { return };
        let frame = Message::Binary(message.encode().into());
        self.unsent = true;
        let fed = tokio::time::timeout(SEND_TIMEOUT, socket.feed(frame)).await;
        if !matches!(fed, Ok(Ok(()))) {
            // The next read of the socket reports it to the brain, after these outputs.
            self.unsent = false;
        }
    }

    fn begin(&mut self, lease: Lease, lane: Lane) {
        let attempt = lease.attempt;
        let Some(info) = self.info(lease.job) else { return };
        if lane == Lane::Inline {
            let result = Ok(UnitOutput::Inline(Vec::new()));
            self.replies.push(Input::Ran { attempt, took: Micros(1), result });
            return;
        }
        if info.signed.is_none() {
            let message = "nobody signed the code".into();
            let result = Err(Failure::Signature { message });
            self.replies.push(Input::Ran { attempt, took: Micros(0), result });
            return;
        }
        let begun = match (lane, &mut self.gpu, &mut self.cpu) {
            (Lane::Gpu, Some(gpu), _) => {
                gpu.run(lease, &info);
                Ok(())
            }
            (Lane::Cpu, _, Some(cpu)) => cpu.run(lease, info),
            // Lent before the coordinator heard that the lane is gone.
            (Lane::Inline | Lane::Gpu | Lane::Cpu, _, _) => {
                Err(Failure::DeviceLost { message: "this node lends that no more".into() })
            }
        };
        if let Err(failure) = begun {
            let result = Err(failure);
            self.replies.push(Input::Ran { attempt, took: Micros(0), result });
        }
    }

    fn info(&mut self, job: JobId) -> Option<Arc<JobInfo>> {
        if let Some(info) = self.jobs.get(&job) {
            return Some(info.clone());
        }
        let info = Arc::new(self.node.job(job)?.clone());
        self.jobs.insert(job, info.clone());
        (self.notify)(Notice::Works(Asker::of(&info)));
        Some(info)
    }
}
