//! The node's side of the GPU process: starts it, feeds it and ends it as the supervisor says, which decides when.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use shoal_node::supervise::{Answer, Ask, EngineId, EngineInput, EngineOutput, Kind, Supervisor};
use shoal_node::{JobInfo, SimAnswer, SimCommand};
use shoal_protocol::{Attempt, CrewId, Failure, JobId, Lease, Micros, Time};

use super::super::Ran;
use super::process::{Access, GpuEvent, Notify, Process};
use super::talk::{FromWorker, Opened, ToWorker};

/// What the node must do after an event.
pub(crate) enum News {
    Ran(Ran),
    /// The device is open, for the first time or anew.
    Ready(Opened),
    /// What a step of a job takes: so many cells in this time.
    Auditioned(CrewId, Result<(u64, Micros), Failure>),
    Answer(CrewId, SimAnswer),
    /// The process was started anew, for this reason.
    Restarted(String),
    /// There is no device for now; [`News::Ready`] follows if there is one again.
    Gone(String),
}

pub(crate) struct GpuLane {
    supervisor: Supervisor,
    /// The supervisor's time begins here.
    start: Instant,
    session: Option<Access>,
    notify: Notify,
    process: Option<(EngineId, Process)>,
    units: BTreeMap<Attempt, Lease>,
    jobs: BTreeMap<JobId, Arc<JobInfo>>,
    news: VecDeque<News>,
}

impl GpuLane {
    /// Starts the process. [`News::Ready`] or [`News::Gone`] follows.
    pub(crate) fn start(notify: Notify) -> GpuLane {
        let mut lane = GpuLane {
            supervisor: Supervisor::new(Kind::Device),
            start: Instant::now(),
            session: None,
            notify,
            process: None,
            units: BTreeMap::new(),
            jobs: BTreeMap::new(),
            news: VecDeque::new(),
        };
        lane.supervise(EngineInput::Most(1));
        lane
    }

    /// A new connection: what the process needs to fetch and store.
    pub(crate) fn session(&mut self, access: Access) {
        self.tell(access.message());
        self.session = Some(access);
    }

    pub(crate) fn run(&mut self, lease: Lease, info: &Arc<JobInfo>) {
        let (attempt, job, limit) = (lease.attempt, lease.job, info.limits.time);
        self.jobs.entry(job).or_insert_with(|| info.clone());
        self.units.insert(attempt, lease);
        self.supervise(EngineInput::Run { attempt, job, limit });
    }

    /// Ends a unit if it is this lane's.
    pub(crate) fn abort(&mut self, attempt: Attempt) {
        if self.units.remove(&attempt).is_some() {
            self.supervise(EngineInput::Abort(attempt));
        }
    }

    /// Has a step of the job timed; [`News::Auditioned`] follows.
    pub(crate) fn audition(&mut self, crew: CrewId, job: JobId, info: &Arc<JobInfo>) {
        let limit = info.limits.time;
        self.supervise(EngineInput::Asked { crew, ask: Ask::Audition, limit });
        self.know(job, info);
        self.tell(ToWorker::Audition { crew, job });
    }

    /// A crew's member asks its engine; [`News::Answer`] follows.
    pub(crate) fn crew(&mut self, crew: CrewId, command: SimCommand, info: &Arc<JobInfo>) {
        let (epoch, limit) = (command.epoch(), info.limits.time);
        if let SimCommand::Open { job, .. } = command {
            self.supervise(EngineInput::Asked { crew, ask: Ask::Open(epoch), limit });
            self.know(job, info);
        } else if let SimCommand::Step { .. } = command {
            self.supervise(EngineInput::Asked { crew, ask: Ask::Step(epoch), limit });
        }
        if self.supervisor.has_band(crew, epoch) {
            self.tell(ToWorker::Crew { crew, command });
        }
    }

    /// The crew goes on without this node, or ended.
    pub(crate) fn leave(&mut self, crew: CrewId) {
        self.supervise(EngineInput::Left(crew));
        self.tell(ToWorker::Leave(crew));
    }

    pub(crate) fn forget(&mut self, job: JobId) {
        self.jobs.remove(&job);
        if let Some((_, process)) = &mut self.process {
            process.forget(job);
        }
        self.tell(ToWorker::Forget(job));
    }

    pub(crate) fn handle(&mut self, event: GpuEvent) {
        // Others are from a process that was killed already.
        match event {
            GpuEvent::Said { engine, message } if self.is(engine) => self.said(engine, message.0),
            GpuEvent::Died { engine } if self.is(engine) => self.died(engine),
            GpuEvent::Said { .. } | GpuEvent::Died { .. } => {}
        }
    }

    /// When [`GpuLane::overdue`] has something to do.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        let at = self.supervisor.next_timeout()?;
        Some(self.start + Duration::from_micros(at.0))
    }

    pub(crate) fn overdue(&mut self) {
        if self.next_deadline().is_some_and(|at| at <= Instant::now()) {
            self.supervise(EngineInput::Tick);
        }
    }

    /// What came of it, to be asked after whatever the lane was told.
    pub(crate) fn news(&mut self) -> Option<News> {
        self.news.pop_front()
    }

    fn is(&self, engine: EngineId) -> bool {
        self.process.as_ref().is_some_and(|(present, _)| *present == engine)
    }

    fn said(&mut self, engine: EngineId, message: FromWorker) {
        match message {
            FromWorker::Ready(Ok(opened)) => {
                self.supervise(EngineInput::Ready(engine));
                self.news.push_back(News::Ready(opened));
            }
            FromWorker::Ready(Err(why)) => {
                self.process = None;
                self.supervise(EngineInput::Broken { engine, why });
            }
            FromWorker::Computing(attempt) => self.supervise(EngineInput::Computing(attempt)),
            FromWorker::Computed(attempt) => self.supervise(EngineInput::Resting(attempt)),
            FromWorker::Ended { attempt, took, result } => {
                self.supervise(EngineInput::Ended(attempt));
                if self.units.remove(&attempt).is_some() {
                    self.news.push_back(News::Ran(Ran { attempt, took, result }));
                }
            }
            FromWorker::Auditioned { crew, result } => {
                let answer = Answer::Auditioned;
                self.supervise(EngineInput::Answered { crew, answer });
                self.news.push_back(News::Auditioned(crew, result));
            }
            FromWorker::Answer { crew, answer } => {
                self.answered(crew, &answer);
                self.news.push_back(News::Answer(crew, answer));
            }
        }
    }

    fn answered(&mut self, crew: CrewId, answer: &SimAnswer) {
        let answer = match answer {
            SimAnswer::Edges { epoch, .. } => Answer::Edges(*epoch),
            SimAnswer::Failed { epoch, .. } => Answer::Failed(*epoch),
            SimAnswer::Kept { .. }
            | SimAnswer::Final { .. }
            | SimAnswer::Shown { .. }
            | SimAnswer::Reduced { .. } => return,
        };
        self.supervise(EngineInput::Answered { crew, answer });
    }

    fn died(&mut self, engine: EngineId) {
        let process = self.process.take().map(|(_, process)| process);
        let why = process.map_or_else(|| "the GPU process ended".into(), Process::epitaph);
        self.supervise(EngineInput::Died { engine, why });
    }

    fn supervise(&mut self, input: EngineInput) {
        self.supervisor.handle(self.now(), input);
        while let Some(output) = self.supervisor.poll_output() {
            self.obey(output);
        }
    }

    fn now(&self) -> Time {
        Time(self.start.elapsed().as_micros() as u64)
    }

    fn obey(&mut self, output: EngineOutput) {
        match output {
            EngineOutput::Start(engine) => self.spawn(engine),
            EngineOutput::Kill(engine) => {
                if self.is(engine) {
                    self.process = None;
                }
            }
            EngineOutput::Give { attempt, .. } => self.give(attempt),
            EngineOutput::Cancel { attempt, .. } => self.tell(ToWorker::Cancel(attempt)),
            EngineOutput::Failed { attempt, took, fault } => {
                self.units.remove(&attempt);
                let result = Err(fault.into());
                self.news.push_back(News::Ran(Ran { attempt, took, result }));
            }
            EngineOutput::CrewLost { crew, epoch, fault } => {
                let failure = fault.into();
                self.news.push_back(News::Answer(crew, SimAnswer::Failed { epoch, failure }));
            }
            EngineOutput::AuditionLost { crew, fault } => {
                self.news.push_back(News::Auditioned(crew, Err(fault.into())));
            }
            EngineOutput::Restarted(reason) => self.news.push_back(News::Restarted(reason)),
            EngineOutput::Gone(reason) => self.news.push_back(News::Gone(reason)),
        }
    }

    fn spawn(&mut self, engine: EngineId) {
        match Process::start(engine, self.notify.clone()) {
            Ok(process) => self.process = Some((engine, process)),
            Err(why) => self.supervise(EngineInput::Broken { engine, why }),
        }
        if let Some(session) = self.session.clone() {
            self.tell(session.message());
        }
    }

    fn give(&mut self, attempt: Attempt) {
        let Some(lease) = self.units.get(&attempt).copied() else { return };
        if let Some(info) = self.jobs.get(&lease.job).cloned() {
            self.know(lease.job, &info);
        }
        self.tell(ToWorker::Run(lease));
    }

    /// Sees to it that the process knows the job.
    fn know(&mut self, job: JobId, info: &Arc<JobInfo>) {
        if self.process.as_mut().is_some_and(|(_, process)| process.is_news(job)) {
            let (items, work) = (info.items, Box::new(info.work.clone()));
            self.tell(ToWorker::Job { job, items, work });
        }
    }

    fn tell(&mut self, message: ToWorker) {
        if let Some((_, process)) = &mut self.process {
            process.tell(message);
        }
    }
}
