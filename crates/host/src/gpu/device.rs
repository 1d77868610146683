//! The open device of the GPU process: what all its slots and bands share, and how a unit is computed on it.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use pollster::block_on;
use shoal_engine::wgsl::{Gpu, Input, Pipeline, Readback, Shared, SimProgram, Stage};
use shoal_kinds::{Feed, InputSplit, Kind};
use shoal_protocol::{Attempt, Failure, JobId, Lease, Micros, Span, UnitOutput};

use super::super::courier::{Courier, WHOLE_BYTES};
use super::talk::{self, FromWorker};
use crate::child::leave;

/// What all slots and bands share.
pub(super) struct Device {
    pub(super) gpu: Gpu,
    /// One unit or step computes at a time, so that the others' transfers overlap with it and its
    /// time is its own.
    pub(super) turn: Mutex<()>,
    pub(super) jobs: Mutex<BTreeMap<JobId, Arc<Job>>>,
    pub(super) cancelled: Mutex<BTreeSet<Attempt>>,
}

/// A job and what is kept on the device for it.
pub(super) struct Job {
    items: u64,
    pub(super) work: Kind,
    pipeline: Mutex<Option<Pipeline>>,
    pub(super) program: Mutex<Option<SimProgram>>,
    /// Whole inputs, by position.
    shared: Mutex<BTreeMap<usize, Shared>>,
}

impl Job {
    pub(super) fn new(items: u64, work: Kind) -> Job {
        let (pipeline, program, shared) = Default::default();
        Job { items, work, pipeline, program, shared }
    }
}

impl Device {
    pub(super) fn new(gpu: Gpu) -> Device {
        let (turn, jobs, cancelled) = Default::default();
        Device { gpu, turn, jobs, cancelled }
    }

    pub(super) fn serve(&self, courier: &mut Courier, lease: &Lease) {
        let began = Instant::now();
        let result = self.unit(courier, lease);
        let took = Micros(began.elapsed().as_micros() as u64);
        lock(&self.cancelled).remove(&lease.attempt);
        say(&FromWorker::Ended { attempt: lease.attempt, took, result });
        self.leave_if_lost();
    }

    /// A new process gets a new device.
    pub(super) fn leave_if_lost(&self) {
        if self.gpu.is_lost() {
            std::process::exit(1);
        }
    }

    fn unit(&self, courier: &mut Courier, lease: &Lease) -> Result<UnitOutput, Failure> {
        let job = lock(&self.jobs).get(&lease.job).cloned();
        let job = job.ok_or_else(|| internal("a unit of a job this process was not told of"))?;
        let inputs = self.inputs(courier, &job, lease.span)?;
        let result = self.in_turn(lease.attempt, || {
            let pipeline = self.pipeline(&job)?;
            block_on(self.gpu.run(&pipeline, &job.work, job.items, lease.span, inputs))
        })?;
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

    fn pipeline(&self, job: &Job) -> Result<Pipeline, Failure> {
        let mut pipeline = lock(&job.pipeline);
        if let Some(pipeline) = &*pipeline {
            return Ok(pipeline.clone());
        }
        Ok(pipeline.insert(block_on(self.gpu.prepare_work(&job.work))?).clone())
    }

    fn inputs(&self, courier: &mut Courier, job: &Job, span: Span) -> Result<Vec<Input>, Failure> {
        let feeds = job.work.feeds();
        let mut inputs = Vec::with_capacity(feeds.len());
        for (position, input) in feeds.iter().enumerate() {
            inputs.push(match input.split {
                InputSplit::Whole => self.whole(courier, job, position, input)?.into(),
                InputSplit::PerItem { .. } => {
                    let (start, end) = input.range(span);
                    self.part(courier, input, start, end - start)?.into()
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
        input: &Feed,
    ) -> Result<Shared, Failure> {
        let mut shared = lock(&job.shared);
        if let Some(shared) = shared.get(&position) {
            return Ok(shared.clone());
        }
        let stage = match courier.shelved(input.blob) {
            Some(bytes) => {
                let mut stage = block_on(self.gpu.stage(input.blob.size))?;
                stage.write(0, &bytes)?;
                stage
            }
            None => self.part(courier, input, 0, input.blob.size)?,
        };
        let made = block_on(self.gpu.share(stage))?;
        shared.insert(position, made.clone());
        Ok(made)
    }

    /// Bytes of an input in GPU memory, on the shortest way from the socket.
    fn part(
        &self,
        courier: &mut Courier,
        input: &Feed,
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

pub(super) fn say(message: &FromWorker) {
    if talk::write(&mut io::stdout().lock(), message).is_err() {
        leave();
    }
}

pub(super) fn internal(message: &str) -> Failure {
    Failure::Internal { message: message.into() }
}

/// A panic of one unit leaves nothing half-done behind these locks.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
