//! The GPU process: takes units from its node, fetches their inputs straight into GPU memory,
//! computes, and stores the results itself. It knows no leases; its node kills it when a kernel
//! does not end.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufReader, IsTerminal};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::{Duration, Instant};

use pollster::block_on;
use shoal_engine::wgsl::{Gpu, Input, Pipeline, Readback, Shared, Stage, probe};
use shoal_protocol::limit::MAX_LEASES_PER_NODE;
use shoal_protocol::{
    Attempt, Failure, InputSplit, JobId, Kernel, Lease, MapInput, MapWork, Micros, Span,
    UnitOutput, Work,
};

use super::super::courier::{Cache, Courier, WHOLE_BYTES};
use super::super::session::Session;
use super::super::wire::Origin;
use super::talk::{self, FromWorker, Opened, ToWorker};
use crate::tls::Trust;

/// What a driver may take to wind up.
const LEAVE_WITHIN: Duration = Duration::from_secs(2);

/// Units that wait for a slot: no node holds more. Beyond them, the side that listens waits for a
/// slot, which never waits for it.
const MAX_UNITS: usize = MAX_LEASES_PER_NODE;

/// The hidden verb `shoal gpu-worker`.
pub(crate) fn run() -> ExitCode {
    if io::stdin().is_terminal() {
        eprintln!("shoal gpu-worker is started by a node, not by hand");
        return ExitCode::from(2);
    }
    let gpu = block_on(Gpu::open());
    say(&FromWorker::Ready(gpu.as_ref().map(opened).map_err(Clone::clone)));
    let Ok(gpu) = gpu else { return ExitCode::SUCCESS };
    let device =
        Device { gpu, turn: Mutex::new(()), jobs: Mutex::default(), cancelled: Mutex::default() };
    Worker {
        device: Arc::new(device),
        session: Session::default(),
        trust: Trust::nobody(),
        units: None,
    }
    .listen();
    leave()
}

/// A device that cannot even run the probe may still compute: its answers are compared by tolerance.
fn opened(gpu: &Gpu) -> Opened {
    Opened { caps: gpu.caps(), class: block_on(probe(gpu)).unwrap_or(0) }
}

/// The node is gone. A driver that still runs a kernel may keep a process from ending, but not for
/// long.
fn leave() -> ! {
    std::thread::spawn(|| std::process::exit(0));
    std::thread::sleep(LEAVE_WITHIN);
    std::process::abort()
}

/// The side that listens to the node.
struct Worker {
    device: Arc<Device>,
    session: Session,
    trust: Trust,
    /// The way to the slots, once they know where to fetch from.
    units: Option<mpsc::SyncSender<Lease>>,
}

impl Worker {
    fn listen(mut self) {
        let mut input = BufReader::new(io::stdin());
        while let Ok(message) = talk::read(&mut input) {
            match message {
                ToWorker::Session { base, token, pin } => self.session(&base, &token, pin),
                ToWorker::Job { job, items, work } => {
                    lock(&self.device.jobs).insert(job, Arc::new(Job::new(items, work)));
                }
                ToWorker::Run(lease) => {
                    if let Some(units) = &self.units {
                        let _ = units.send(lease);
                    }
                }
                ToWorker::Cancel(attempt) => {
                    lock(&self.device.cancelled).insert(attempt);
                }
                ToWorker::Forget(job) => {
                    lock(&self.device.jobs).remove(&job);
                }
            }
        }
    }

    fn session(&mut self, base: &str, token: &str, pin: Option<String>) {
        if let Some(pin) = pin.and_then(|pin| pin.parse().ok()) {
            self.trust.pin(pin);
        }
        self.session.set(token);
        if self.units.is_none() {
            let tls = self.trust.config().ok();
            let origin = tls.and_then(|tls| Origin::new(base, tls));
            self.units = origin.map(|origin| self.start_slots(&origin));
        }
    }

    fn start_slots(&self, origin: &Origin) -> mpsc::SyncSender<Lease> {
        let (units, queue) = mpsc::sync_channel::<Lease>(MAX_UNITS);
        let queue = Arc::new(Mutex::new(queue));
        let cache = Cache::default();
        for _ in 0..self.device.gpu.caps().slots.max(1) {
            let mut courier = Courier::new(origin.clone(), self.session.clone(), cache.clone());
            let (queue, device) = (queue.clone(), self.device.clone());
            std::thread::spawn(move || {
                loop {
                    let next = lock(&queue).recv();
                    let Ok(lease) = next else { return };
                    device.serve(&mut courier, &lease);
                }
            });
        }
        units
    }
}

/// What all slots share.
struct Device {
    gpu: Gpu,
    /// One unit computes at a time, so that the others' transfers overlap with it and its time is
    /// its own.
    turn: Mutex<()>,
    jobs: Mutex<BTreeMap<JobId, Arc<Job>>>,
    cancelled: Mutex<BTreeSet<Attempt>>,
}

/// A job and what is kept on the device for it.
struct Job {
    items: u64,
    work: Work,
    pipeline: Mutex<Option<Pipeline>>,
    /// Whole inputs, by position.
    shared: Mutex<BTreeMap<usize, Shared>>,
}

impl Job {
    fn new(items: u64, work: Work) -> Job {
        Job { items, work, pipeline: Mutex::default(), shared: Mutex::default() }
    }
}

impl Device {
    fn serve(&self, courier: &mut Courier, lease: &Lease) {
        let began = Instant::now();
        let result = self.unit(courier, lease);
        let took = Micros(began.elapsed().as_micros() as u64);
        lock(&self.cancelled).remove(&lease.attempt);
        say(&FromWorker::Ended { attempt: lease.attempt, took, result });
        if self.gpu.is_lost() {
            // A new process gets a new device.
            std::process::exit(1);
        }
    }

    fn unit(&self, courier: &mut Courier, lease: &Lease) -> Result<UnitOutput, Failure> {
        let job = lock(&self.jobs).get(&lease.job).cloned();
        let job = job.ok_or_else(|| internal("a unit of a job this process was not told of"))?;
        let result = match &job.work {
            Work::Map(work) => {
                let inputs = self.inputs(courier, &job, work, lease.span)?;
                self.in_turn(lease.attempt, || {
                    let pipeline = self.pipeline(&job, &work.kernel)?;
                    block_on(self.gpu.map(&pipeline, work, job.items, lease.span, inputs))
                })?
            }
            Work::Render(work) => self.in_turn(lease.attempt, || {
                let pipeline = self.pipeline(&job, &work.kernel)?;
                block_on(self.gpu.render(&pipeline, work, lease.span))
            })?,
            Work::Noop | Work::Exec(_) | Work::Sim(_) => {
                return Err(internal("this lane runs kernels only"));
            }
        };
        courier.deliver(lease, &result)
    }

    /// Computes when it is this unit's turn, and tells the node so.
    fn in_turn(
        &self,
        attempt: Attempt,
        compute: impl FnOnce() -> Result<Readback, Failure>,
    ) -> Result<Readback, Failure> {
        let turn = lock(&self.turn);
        if lock(&self.cancelled).contains(&attempt) {
            return Err(internal("ended on request"));
        }
        say(&FromWorker::Computing(attempt));
        let result = compute();
        drop(turn);
        say(&FromWorker::Computed(attempt));
        result
    }

    fn pipeline(&self, job: &Job, kernel: &Kernel) -> Result<Pipeline, Failure> {
        let mut pipeline = lock(&job.pipeline);
        if let Some(pipeline) = &*pipeline {
            return Ok(pipeline.clone());
        }
        Ok(pipeline.insert(block_on(self.gpu.prepare(kernel))?).clone())
    }

    fn inputs(
        &self,
        courier: &mut Courier,
        job: &Job,
        work: &MapWork,
        span: Span,
    ) -> Result<Vec<Input>, Failure> {
        let mut inputs = Vec::with_capacity(work.inputs.len());
        for (position, input) in work.inputs.iter().enumerate() {
            inputs.push(match input.split {
                InputSplit::Whole => self.whole(courier, job, position, input)?.into(),
                InputSplit::PerItem { bytes } => {
                    let bytes = u64::from(bytes);
                    self.part(courier, input, span.start * bytes, span.len * bytes)?.into()
                }
            });
        }
        Ok(inputs)
    }

    fn whole(
        &self,
        courier: &mut Courier,
        job: &Job,
        position: usize,
        input: &MapInput,
    ) -> Result<Shared, Failure> {
        let mut shared = lock(&job.shared);
        if let Some(shared) = shared.get(&position) {
            return Ok(shared.clone());
        }
        let stage = self.part(courier, input, 0, input.blob.size)?;
        let made = block_on(self.gpu.share(stage))?;
        shared.insert(position, made.clone());
        Ok(made)
    }

    /// Bytes of an input in GPU memory, on the shortest way from the socket.
    fn part(
        &self,
        courier: &mut Courier,
        input: &MapInput,
        start: u64,
        size: u64,
    ) -> Result<Stage, Failure> {
        let mut stage = block_on(self.gpu.stage(size))?;
        if input.blob.size <= WHOLE_BYTES {
            let bytes = courier.part(input.blob, start..start + size)?;
            stage.write(0, &bytes)?;
            return Ok(stage);
        }
        courier.fetch(input.blob, start..start + size, &mut |at, piece| {
            stage.write(at, piece).map_err(|failure| io::Error::other(failure.to_string()))
        })?;
        Ok(stage)
    }
}

fn say(message: &FromWorker) {
    if talk::write(&mut io::stdout().lock(), message).is_err() {
        leave();
    }
}

fn internal(message: &str) -> Failure {
    Failure::Internal { message: message.into() }
}

/// A panic of one unit leaves nothing half-done behind these locks.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
