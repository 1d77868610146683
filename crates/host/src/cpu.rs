//! The lane for programs and models: one thread per slot, each with its own connection.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::Instant;

use shoal_engine::onnx::{self, Memory, Stays};
use shoal_engine::wasi;
use shoal_kinds::{ExecWork, LlmWork, OnnxWork};
use shoal_node::{JobInfo, StageAnswer, StageCommand};
use shoal_protocol::limit::MAX_LEASES_PER_NODE;
use shoal_protocol::{Attempt, CrewId, Failure, JobId, Lease, Micros, UnitOutput};

use super::accelerator::Accelerator;
use super::backlog::Backlog;
use super::cache::Cache;
use super::courier::Courier;
use super::languages::{Caller, Languages, Word};
use super::models::{Models, Noted};
use super::program::{Answers, Programs};
use super::session::Session;
use super::stages::{self, Stages};
use super::swarm::Library;
use super::wire::Origin;
use super::{Event, Ran};
use crate::fail::Fail;

/// The engine walks a model's operators on its stack, at about 400 bytes for each: four times as many as are allowed in
/// a row. Memory that nothing is written to costs nothing.
const STACK_BYTES: usize = 16 << 20;

/// Units that wait for a thread. The brain begins no more than there are slots, so that only units
/// taken back behind threads still busy can add up; a node holds no more units than this anyway.
const MAX_TASKS: usize = MAX_LEASES_PER_NODE;
/// Of crews: one loads its parts while another computes.
const STAGE_THREADS: u16 = 2;

/// What a thread does with what became of a task.
#[derive(Clone)]
struct Report {
    tell: Arc<dyn Fn(Worked) + Send + Sync>,
    backlog: Arc<Backlog>,
}

impl Report {
    /// A part of an answer: waits while too much is on its way.
    fn part(&self, call: Attempt, bytes: Vec<u8>, ended: &AtomicBool) {
        self.backlog.give(bytes.len(), ended);
        (self.tell)(Worked::Part { call, bytes });
    }
}

pub(super) struct CpuLane {
    tasks: mpsc::SyncSender<Task>,
    /// What crews' members ask for: others wait for each of them, so none waits behind units and requests.
    stages: mpsc::SyncSender<Task>,
    engines: Arc<Engines>,
    cancels: BTreeMap<Attempt, Arc<AtomicBool>>,
}

struct Task {
    what: What,
    info: Arc<JobInfo>,
    cancel: Arc<AtomicBool>,
}

enum What {
    Unit(Lease),
    /// A request to a service, with its input.
    Call(Lease, Arc<Vec<u8>>),
    /// A service is to be made ready.
    Warm(JobId),
    /// A crew's member asks for something.
    Stage(CrewId, StageCommand),
}

/// What became of a task.
pub(super) enum Worked {
    Ran(Ran),
    /// A request's answer, in part.
    Part {
        call: Attempt,
        bytes: Vec<u8>,
    },
    Warmed {
        job: JobId,
        result: Result<(), Failure>,
    },
    /// Which engine a model has now.
    Noted(Noted),
    /// What a crew's member asked for, if it is to be answered.
    Staged(CrewId, Option<StageAnswer>),
}

/// The lane of a node that lends processors.
pub(super) fn open(
    (slots, memory, accelerator): (u16, u64, Option<Arc<Accelerator>>),
    (origin, session, library): (&Origin, &Session, Option<Library>),
    work: PathBuf,
    (to_loop, backlog): (&tokio::sync::mpsc::Sender<Event>, &Arc<Backlog>),
) -> Result<Option<CpuLane>, Fail> {
    if slots == 0 {
        return Ok(None);
    }
    let to_loop = to_loop.clone();
    let tell = Arc::new(move |worked| drop(to_loop.blocking_send(Event::Cpu(worked))));
    let report = Report { tell, backlog: backlog.clone() };
    let (noted, memory) = (report.tell.clone(), Memory::of(memory));
    let tell = Arc::new(move |note| noted(Worked::Noted(note)));
    let models = Models::new(slots, memory.clone(), accelerator, tell);
    let lane = CpuLane::start(slots, (origin, session, library), work, (memory, models), &report);
    lane.map(Some).map_err(|message| Fail::world("engine", message))
}

impl CpuLane {
    fn start(
        slots: u16,
        (origin, session, library): (&Origin, &Session, Option<Library>),
        work: PathBuf,
        (memory, models): (Memory, Models),
        report: &Report,
    ) -> Result<CpuLane, String> {
        let (programs, languages) = (Programs::new(work)?, Languages::new(slots));
        let stages = Stages::new(slots, memory.clone());
        let promised = Mutex::default();
        let engines = Engines { programs, models, languages, stages, memory, promised };
        let engines = Arc::new(engines);
        let cache = Cache::default();
        let courier = || {
            let courier = Courier::new(origin.clone(), session.clone(), cache.clone());
            courier.with_library(library.clone())
        };
        // As many again: requests do not wait for units, and run beside them.
        let tasks = threads("program", 2 * slots, &engines, report, &courier)?;
        let stages = threads("stage", STAGE_THREADS, &engines, report, &courier)?;
        Ok(CpuLane { tasks, stages, engines, cancels: BTreeMap::new() })
    }

    /// Begins a unit, or says why it cannot: the node's loop must not wait for a thread.
    pub(super) fn run(
        &mut self,
        lease: Lease,
        info: Arc<JobInfo>,
        body: Option<Arc<Vec<u8>>>,
    ) -> Result<(), Failure> {
        let what = match body {
            Some(body) => What::Call(lease, body),
            None => What::Unit(lease),
        };
        let cancel = begin(&self.tasks, what, info)?;
        self.cancels.insert(lease.attempt, cancel);
        Ok(())
    }

    /// Fetches and compiles a program, so that its first request need not wait.
    pub(super) fn warm(&mut self, job: JobId, info: Arc<JobInfo>) -> Result<(), Failure> {
        begin(&self.tasks, What::Warm(job), info).map(drop)
    }

    /// A crew's member asks for something, which is answered when a thread has done it.
    pub(super) fn stage(
        &self,
        crew: CrewId,
        command: StageCommand,
        info: Arc<JobInfo>,
    ) -> Result<(), Failure> {
        match &command {
            StageCommand::Load { parts, .. } => self.engines.stages.want(crew, *parts),
            // At once: it takes no time, and must not get lost.
            StageCommand::Drop { call, .. } => {
                self.engines.stages.forget(crew, *call);
                return Ok(());
            }
            StageCommand::Run { .. } | StageCommand::Turn { .. } => {}
        }
        begin(&self.stages, What::Stage(crew, command), info).map(drop)
    }

    /// This node is not in the crew any more.
    pub(super) fn leave(&self, crew: CrewId) {
        self.engines.stages.leave(crew);
    }

    /// Ends a unit if it is this lane's.
    pub(super) fn abort(&mut self, attempt: Attempt) {
        if let Some(cancel) = self.cancels.remove(&attempt) {
            cancel.store(true, Ordering::Relaxed);
        }
    }

    /// A job has left, and what was kept for it may go.
    pub(super) fn forget(&self, job: JobId) {
        self.engines.models.forget(job);
        self.engines.languages.forget(job);
        self.engines.promised().remove(&job);
    }

    pub(super) fn ended(&mut self, attempt: Attempt) {
        self.cancels.remove(&attempt);
    }
}

/// Threads that do one task after the other, each with a way to fetch things of its own.
fn threads(
    name: &str,
    count: u16,
    engines: &Arc<Engines>,
    report: &Report,
    courier: &dyn Fn() -> Courier,
) -> Result<mpsc::SyncSender<Task>, String> {
    let (tasks, queue) = mpsc::sync_channel::<Task>(MAX_TASKS);
    let queue = Arc::new(Mutex::new(queue));
    for number in 0..count {
        let (queue, engines, report) = (queue.clone(), engines.clone(), report.clone());
        let mut courier = courier();
        let work = move || {
            loop {
                let next = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
                let Ok(task) = next else { return };
                if let Some(worked) = work_on(&engines, &mut courier, &task, &report) {
                    (report.tell)(worked);
                }
            }
        };
        std::thread::Builder::new()
            .name(format!("{name}-{number}"))
            .stack_size(STACK_BYTES)
            .spawn(work)
            .map_err(|error| format!("cannot start a thread: {error}"))?;
    }
    Ok(tasks)
}

fn begin(
    tasks: &mpsc::SyncSender<Task>,
    what: What,
    info: Arc<JobInfo>,
) -> Result<Arc<AtomicBool>, Failure> {
    let cancel = Arc::new(AtomicBool::new(false));
    let task = Task { what, info, cancel: cancel.clone() };
    tasks.try_send(task).map_err(|_| Failure::Internal {
        message: "programs that were ended still hold all slots".into(),
    })?;
    Ok(cancel)
}

/// What became of it; nothing if that is told later.
fn work_on(
    engines: &Engines,
    courier: &mut Courier,
    task: &Task,
    report: &Report,
) -> Option<Worked> {
    let began = Instant::now();
    let panicked = || Failure::Internal { message: "the node's program runner panicked".into() };
    match &task.what {
        What::Warm(job) => {
            let warmed = AssertUnwindSafe(|| match code(&task.info)? {
                Code::Program(work) => engines.programs.warm(courier, work),
                Code::Model(work) => engines.models.warm(courier, work, &task.info, *job),
                Code::Language(work) => {
                    let held = engines.memory.hold(task.info.takes.memory);
                    engines.promised().insert(*job, held);
                    engines.languages.warm(courier, work, *job)
                }
            });
            let result = catch_unwind(warmed).unwrap_or_else(|_| Err(panicked()));
            Some(Worked::Warmed { job: *job, result })
        }
        What::Stage(crew, command) => {
            let stages = &engines.stages;
            let done = AssertUnwindSafe(|| stages.perform(courier, *crew, command, &task.info));
            let answer = catch_unwind(done).unwrap_or_else(|_| stages::failed(command, panicked()));
            Some(Worked::Staged(*crew, answer))
        }
        What::Unit(lease) | What::Call(lease, _) => {
            // A fault in one unit must not take its thread, and with it the slot, away.
            let computed = AssertUnwindSafe(|| compute(engines, courier, task, lease, report));
            let result = catch_unwind(computed).unwrap_or_else(|_| Err(panicked()));
            let result = result.transpose()?;
            let took = Micros(began.elapsed().as_micros() as u64);
            Some(Worked::Ran(Ran { attempt: lease.attempt, took, result }))
        }
    }
}

/// What came out; nothing if that is told later.
fn compute(
    engines: &Engines,
    courier: &mut Courier,
    task: &Task,
    lease: &Lease,
    report: &Report,
) -> Result<Option<UnitOutput>, Failure> {
    let Task { what, info, cancel } = task;
    let work = match code(info)? {
        Code::Program(work) => work,
        Code::Model(work) => {
            // Nobody waits for it any more: those behind it must not wait either.
            if cancel.load(Ordering::Relaxed) {
                return Err(Failure::Internal { message: "ended on request".into() });
            }
            let What::Call(_, body) = what else {
                let rows = engines.models.unit(courier, work, info, lease, cancel)?;
                return courier.deliver(lease, &rows).map(Some);
            };
            let answer = engines.models.call(courier, work, info, body)?;
            // As it is: the loop says it from where it lies, and then that it was all.
            report.part(lease.attempt, answer, cancel);
            return Answers::one(&[]).map(|end| Some(UnitOutput::Inline(end)));
        }
        Code::Language(work) => {
            let no_units = || Failure::Internal {
                message: "a unit of a language model, which answers requests".into(),
            };
            let What::Call(_, body) = what else { return Err(no_units()) };
            let caller = caller(lease.attempt, cancel, report);
            engines.languages.call(courier, work, body, caller)?;
            return Ok(None);
        }
    };
    if let What::Call(_, body) = what {
        let (call, ended, report) = (lease.attempt, cancel.clone(), report.clone());
        let give = Box::new(move |bytes: Vec<u8>| report.part(call, bytes, &ended));
        let answers = engines.programs.call(courier, work, info, body, (cancel, give))?;
        return Ok(Some(UnitOutput::Inline(answers)));
    }
    let _held = engines.memory.hold(info.takes.memory);
    let answers = engines.programs.unit(courier, work, info, lease.span, cancel)?;
    courier.deliver(lease, &answers).map(Some)
}

/// Tells what a conversation says.
fn caller(attempt: Attempt, cancel: &Arc<AtomicBool>, report: &Report) -> Caller {
    let (began, ended, report) = (Instant::now(), cancel.clone(), report.clone());
    let hear = move |word| match word {
        Word::Part(bytes) => report.part(attempt, bytes, &ended),
        Word::End(result) => {
            let took = Micros(began.elapsed().as_micros() as u64);
            let result = result.map(UnitOutput::Inline);
            (report.tell)(Worked::Ran(Ran { attempt, took, result }));
        }
    };
    Caller { cancel: cancel.clone(), hear: Box::new(hear) }
}

/// What this lane computes with.
struct Engines {
    programs: Programs,
    models: Models,
    languages: Languages,
    stages: Stages,
    memory: Memory,
    /// What language models hold, by service: they say before how much that is.
    promised: Mutex<BTreeMap<JobId, Stays>>,
}

impl Engines {
    fn promised(&self) -> MutexGuard<'_, BTreeMap<JobId, Stays>> {
        self.promised.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

enum Code<'a> {
    Program(&'a ExecWork),
    Model(&'a OnnxWork),
    Language(&'a LlmWork),
}

fn code(info: &JobInfo) -> Result<Code<'_>, Failure> {
    let neither =
        || Failure::Internal { message: "this lane runs programs and models only".into() };
    let program = wasi::program(&info.work).map(Code::Program);
    let model = || onnx::model(&info.work).map(Code::Model);
    let language = || info.work.language().map(Code::Language);
    program.or_else(model).or_else(language).ok_or_else(neither)
}
