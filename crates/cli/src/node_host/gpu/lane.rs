//! The node's side of the GPU process: starts it, feeds it, ends it when a kernel runs over its
//! time or is no longer wanted, and starts it again with the units that are not to blame.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use shoal_node::{JobInfo, SimAnswer, SimCommand};
use shoal_protocol::{Attempt, CrewId, Failure, JobId, Lease, LimitKind, Micros};

use super::super::Ran;
use super::crews::{Crews, Lost};
use super::process::{GpuEvent, Notify, Process};
use super::talk::{FromWorker, Opened, ToWorker};
use super::unit::{Access, Unit};

/// Starts of the process that bring no device, one after the other, before the lane gives up.
const MAX_FAILED_STARTS: u32 = 3;
/// Times one unit is given to a new process without being to blame itself.
const MAX_REPEATS: u32 = 3;

/// What the node must do after an event.
pub(crate) enum News {
    Ran(Ran),
    /// The device was opened for the first time.
    Ready(Opened),
    /// What a step of a job takes: so many cells in this time.
    Auditioned(CrewId, Result<(u64, Micros), Failure>),
    Answer(CrewId, SimAnswer),
    /// The process was started anew, for this reason.
    Restarted(String),
    /// There is no device, or none any more: the lane has given up.
    Gone(String),
}

pub(crate) struct GpuLane {
    session: Option<Access>,
    notify: Notify,
    process: Option<Process>,
    life: u64,
    failed_starts: u32,
    is_ready: bool,
    units: BTreeMap<Attempt, Unit>,
    crews: Crews,
    jobs: BTreeMap<JobId, Arc<JobInfo>>,
}

impl GpuLane {
    /// Starts the process. [`News::Ready`] or [`News::Gone`] follows.
    pub(crate) fn start(notify: Notify) -> Result<GpuLane, String> {
        let mut lane = GpuLane {
            session: None,
            notify,
            process: None,
            life: 0,
            failed_starts: 0,
            is_ready: false,
            units: BTreeMap::new(),
            crews: Crews::default(),
            jobs: BTreeMap::new(),
        };
        lane.spawn()?;
        Ok(lane)
    }

    /// A new connection: what the process needs to fetch and store.
    pub(crate) fn session(&mut self, access: Access) {
        self.tell(access.message());
        self.session = Some(access);
    }

    pub(crate) fn run(&mut self, lease: Lease, info: &Arc<JobInfo>) {
        self.jobs.entry(lease.job).or_insert_with(|| info.clone());
        let limit = info.limits.time;
        let unit = Unit { lease, limit, computing: None, aborted: None, repeats: 0 };
        self.units.insert(lease.attempt, unit);
        self.give(lease);
    }

    /// Ends a unit if it is this lane's.
    pub(crate) fn abort(&mut self, attempt: Attempt) {
        let Some(unit) = self.units.get_mut(&attempt) else { return };
        unit.aborted = Some(Instant::now());
        self.tell(ToWorker::Cancel(attempt));
    }

    /// Has a step of the job timed; [`News::Auditioned`] follows.
    pub(crate) fn audition(&mut self, crew: CrewId, job: JobId, info: &Arc<JobInfo>) {
        self.crews.auditions(crew, info.limits.time);
        self.know(job, info);
        self.tell(ToWorker::Audition { crew, job });
    }

    /// A crew's member asks its engine; [`News::Answer`] follows.
    pub(crate) fn crew(&mut self, crew: CrewId, command: SimCommand, info: &Arc<JobInfo>) {
        if self.crews.told(crew, &command, info.limits.time) {
            if let SimCommand::Open { job, .. } = command {
                self.know(job, info);
            }
            self.tell(ToWorker::Crew { crew, command });
        }
    }

    /// The crew goes on without this node, or ended.
    pub(crate) fn leave(&mut self, crew: CrewId) {
        if self.crews.leave(crew) {
            self.tell(ToWorker::Leave(crew));
        }
    }

    pub(crate) fn forget(&mut self, job: JobId) {
        self.jobs.remove(&job);
        if let Some(process) = &mut self.process {
            process.forget(job);
        }
        self.tell(ToWorker::Forget(job));
    }

    pub(crate) fn handle(&mut self, event: GpuEvent) -> Vec<News> {
        match event {
            GpuEvent::Said { life, message } if life == self.life => self.said(message.0),
            GpuEvent::Died { life } if life == self.life => self.died(),
            // From a process that was killed already.
            GpuEvent::Said { .. } | GpuEvent::Died { .. } => Vec::new(),
        }
    }

    /// When [`GpuLane::overdue`] may have something to do.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        let units = self.units.values().filter_map(Unit::deadline);
        units.chain(self.crews.next_deadline()).min()
    }

    /// Ends kernels that run over their time or are not wanted any more.
    pub(crate) fn overdue(&mut self, now: Instant) -> Vec<News> {
        let late = self.units.values().find(|unit| unit.deadline().is_some_and(|at| at <= now));
        let Some(unit) = late else {
            let Some(lost) = self.crews.overdue(now) else { return Vec::new() };
            let restarted = self.restart("a step did not end in time");
            return [News::from(lost)].into_iter().chain(restarted).collect();
        };
        let attempt = unit.lease.attempt;
        let (allowed, aborted) = (unit.limit, unit.aborted.is_some());
        self.units.remove(&attempt);
        let mut news = Vec::new();
        if !aborted {
            let failure = Failure::Limit {
                item: None,
                which: LimitKind::Time,
                allowed: allowed.0,
                stderr: String::new(),
            };
            news.push(News::Ran(Ran { attempt, took: allowed, result: Err(failure) }));
        }
        news.extend(self.restart("a kernel did not end in time"));
        news
    }

    /// Kills the process.
    pub(crate) fn stop(&mut self) {
        self.process = None;
    }

    fn said(&mut self, message: FromWorker) -> Vec<News> {
        match message {
            FromWorker::Ready(Ok(opened)) => {
                self.failed_starts = 0;
                let is_first = !std::mem::replace(&mut self.is_ready, true);
                is_first.then_some(News::Ready(opened)).into_iter().collect()
            }
            FromWorker::Ready(Err(reason)) => self.give_up(&reason),
            FromWorker::Computing(attempt) => {
                if let Some(unit) = self.units.get_mut(&attempt) {
                    unit.computing = Some(Instant::now());
                }
                Vec::new()
            }
            FromWorker::Computed(attempt) => {
                if let Some(unit) = self.units.get_mut(&attempt) {
                    unit.computing = None;
                }
                Vec::new()
            }
            FromWorker::Ended { attempt, took, result } => match self.units.remove(&attempt) {
                Some(unit) if unit.aborted.is_none() => {
                    vec![News::Ran(Ran { attempt, took, result })]
                }
                Some(_) | None => Vec::new(),
            },
            FromWorker::Auditioned { crew, result } => {
                self.crews.auditioned(crew);
                vec![News::Auditioned(crew, result)]
            }
            FromWorker::Answer { crew, answer } => {
                self.crews.answered(crew, &answer);
                vec![News::Answer(crew, answer)]
            }
        }
    }

    fn died(&mut self) -> Vec<News> {
        let how =
            self.process.take().map_or_else(|| "the GPU process ended".into(), Process::epitaph);
        self.failed_starts += 1;
        // Whose kernel ran when it died is to blame; if none did, everybody may try again.
        let blamed: Vec<Attempt> = self
            .units
            .values()
            .filter(|unit| unit.computing.is_some() || unit.repeats >= MAX_REPEATS)
            .map(|unit| unit.lease.attempt)
            .collect();
        let mut news = Vec::new();
        for attempt in blamed {
            let unit = self.units.remove(&attempt);
            if unit.is_some_and(|unit| unit.aborted.is_none()) {
                let result = Err(Failure::DeviceLost { message: how.clone() });
                news.push(News::Ran(Ran { attempt, took: Micros(0), result }));
            }
        }
        if self.failed_starts >= MAX_FAILED_STARTS {
            news.extend(self.give_up(&how));
            return news;
        }
        news.extend(self.restart(&how));
        news
    }

    /// A new process, with the units that were not to blame.
    fn restart(&mut self, reason: &str) -> Vec<News> {
        self.stop();
        self.units.retain(|_, unit| unit.aborted.is_none());
        if let Err(error) = self.spawn() {
            return self.give_up(&error);
        }
        let lost = self.crews.lose_all(reason).into_iter().map(News::from);
        let leases: Vec<Lease> = self.units.values_mut().map(Unit::again).collect();
        for lease in leases {
            self.give(lease);
        }
        lost.chain([News::Restarted(reason.into())]).collect()
    }

    fn give_up(&mut self, reason: &str) -> Vec<News> {
        self.stop();
        self.life += 1;
        let units = std::mem::take(&mut self.units);
        let failed = units.into_values().filter(|unit| unit.aborted.is_none()).map(|unit| {
            let result = Err(Failure::DeviceLost { message: reason.into() });
            News::Ran(Ran { attempt: unit.lease.attempt, took: Micros(0), result })
        });
        let lost = self.crews.lose_all(reason).into_iter().map(News::from);
        failed.chain(lost).chain([News::Gone(reason.into())]).collect()
    }

    fn give(&mut self, lease: Lease) {
        if let Some(info) = self.jobs.get(&lease.job).cloned() {
            self.know(lease.job, &info);
        }
        self.tell(ToWorker::Run(lease));
    }

    /// Sees to it that the process knows the job.
    fn know(&mut self, job: JobId, info: &Arc<JobInfo>) {
        if self.process.as_mut().is_some_and(|process| process.is_news(job)) {
            let (items, work) = (info.items, Box::new(info.work.clone()));
            self.tell(ToWorker::Job { job, items, work });
        }
    }

    fn tell(&mut self, message: ToWorker) {
        if let Some(process) = &mut self.process {
            process.tell(message);
        }
    }

    fn spawn(&mut self) -> Result<(), String> {
        self.life += 1;
        self.process = Some(Process::start(self.life, self.notify.clone())?);
        if let Some(session) = self.session.clone() {
            self.tell(session.message());
        }
        Ok(())
    }
}

impl From<Lost> for News {
    fn from(lost: Lost) -> News {
        match lost {
            Lost::Crew(crew, answer) => News::Answer(crew, answer),
            Lost::Audition(crew, failure) => News::Auditioned(crew, Err(failure)),
        }
    }
}

impl Drop for GpuLane {
    fn drop(&mut self) {
        self.stop();
    }
}
