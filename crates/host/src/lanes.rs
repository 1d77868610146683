//! The lanes that compute for this node, and what is offered of them. A GPU comes and goes; the offer follows it.

use std::sync::Arc;
use std::time::Instant;

use shoal_node::{JobInfo, SimCommand, StageCommand};
use shoal_protocol::{Attempt, Caps, CrewId, Failure, GpuCaps, JobId, Lane, Lease};

use super::accelerator::Accelerator;
use super::caps::engines;
use super::cpu::CpuLane;
use super::gpu::{Access, GpuEvent, GpuLane, News, Opened};

pub(super) struct Lanes {
    caps: Caps,
    /// What the donor said, if anything.
    lent_memory: Option<u64>,
    cpu: Option<CpuLane>,
    gpu: Option<GpuLane>,
    accelerator: Option<Arc<Accelerator>>,
}

impl Lanes {
    pub(super) fn new(
        caps: Caps,
        lent_memory: Option<u64>,
        cpu: Option<CpuLane>,
        gpu: Option<GpuLane>,
        accelerator: Option<Arc<Accelerator>>,
    ) -> Lanes {
        let lanes = Lanes { caps, lent_memory, cpu, gpu, accelerator };
        lanes.check();
        lanes
    }

    /// A new connection: what the GPU process needs to fetch and store.
    pub(super) fn joined(&mut self, access: Access) {
        if let Some(gpu) = &mut self.gpu {
            gpu.session(access);
        }
    }

    /// Makes a service ready: a program is fetched and compiled before its first request.
    pub(super) fn warm(&mut self, job: JobId, info: Arc<JobInfo>) -> Result<(), Failure> {
        match (info.lane(), &mut self.cpu) {
            (Lane::Cpu, Some(cpu)) => cpu.warm(job, info),
            (Lane::Inline | Lane::Gpu | Lane::Cpu, _) => {
                Err(Failure::Unable { message: "this node serves programs only".into() })
            }
        }
    }

    /// Begins a unit of a program, or a request to one.
    pub(super) fn run_on_cpu(
        &mut self,
        lease: Lease,
        info: Arc<JobInfo>,
        body: Option<Arc<Vec<u8>>>,
    ) -> Result<(), Failure> {
        match &mut self.cpu {
            Some(cpu) => cpu.run(lease, info, body),
            None => Err(not_lent()),
        }
    }

    /// Begins a unit of a kernel.
    pub(super) fn run_on_gpu(&mut self, lease: Lease, info: &Arc<JobInfo>) {
        if let Some(gpu) = &mut self.gpu {
            gpu.run(lease, info);
        }
    }

    /// Whether kernels can be begun.
    pub(super) fn lends_gpu(&self) -> Result<(), Failure> {
        if self.gpu.is_some() { Ok(()) } else { Err(not_lent()) }
    }

    /// A program's thread ended.
    pub(super) fn ended(&mut self, attempt: Attempt) {
        if let Some(cpu) = &mut self.cpu {
            cpu.ended(attempt);
        }
    }

    /// Ends a unit, whichever lane has it.
    pub(super) fn abort(&mut self, attempt: Attempt) {
        if let Some(cpu) = &mut self.cpu {
            cpu.abort(attempt);
        }
        if let Some(gpu) = &mut self.gpu {
            gpu.abort(attempt);
        }
    }

    pub(super) fn forget(&mut self, job: JobId) {
        if let Some(cpu) = &self.cpu {
            cpu.forget(job);
        }
        if let Some(gpu) = &mut self.gpu {
            gpu.forget(job);
        }
    }

    /// Has a step of the job timed.
    pub(super) fn audition(
        &mut self,
        crew: CrewId,
        job: JobId,
        info: &Arc<JobInfo>,
    ) -> Result<(), Failure> {
        let gpu = self.gpu.as_mut().ok_or_else(no_gpu)?;
        gpu.audition(crew, job, info);
        Ok(())
    }

    /// A crew's member asks its engine.
    pub(super) fn command(
        &mut self,
        crew: CrewId,
        command: SimCommand,
        info: &Arc<JobInfo>,
    ) -> Result<(), Failure> {
        let gpu = self.gpu.as_mut().ok_or_else(no_gpu)?;
        gpu.crew(crew, command, info);
        Ok(())
    }

    /// A crew's member has something to do for parts of a service.
    pub(super) fn stage(
        &mut self,
        crew: CrewId,
        command: StageCommand,
        info: Arc<JobInfo>,
    ) -> Result<(), Failure> {
        match (info.lane(), &self.cpu) {
            (Lane::Cpu, Some(cpu)) => cpu.stage(crew, command, info),
            (Lane::Inline | Lane::Gpu | Lane::Cpu, _) => Err(not_lent()),
        }
    }

    /// The crew goes on without this node, or ended.
    pub(super) fn leave(&mut self, crew: CrewId) {
        if let Some(cpu) = &self.cpu {
            cpu.leave(crew);
        }
        if let Some(gpu) = &mut self.gpu {
            gpu.leave(crew);
        }
    }

    pub(super) fn heard(&mut self, event: GpuEvent) {
        if let Some(gpu) = &mut self.gpu {
            gpu.handle(event);
        }
    }

    /// Ends what takes too long.
    pub(super) fn overdue(&mut self) {
        if let Some(gpu) = &mut self.gpu {
            gpu.overdue();
        }
    }

    /// When [`Lanes::overdue`] has something to do.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.gpu.as_ref().and_then(GpuLane::next_deadline)
    }

    pub(super) fn news(&mut self) -> Option<News> {
        self.gpu.as_mut().and_then(GpuLane::news)
    }

    /// There is no device for now. What is offered from now on, if that is new: a device that is looked at again in
    /// vain is no news.
    pub(super) fn gpu_gone(&mut self) -> Option<Caps> {
        self.caps.gpu.take()?;
        self.caps.class = 0;
        self.offer()
    }

    /// There is a device. What is offered from now on, if it was gone.
    pub(super) fn gpu_ready(&mut self, opened: Opened) -> Option<Caps> {
        if self.caps.gpu.is_some() {
            return None;
        }
        let gpu = GpuCaps { memory: self.lent_memory, ..opened.caps };
        (self.caps.gpu, self.caps.class) = (Some(gpu), opened.class);
        self.offer()
    }

    fn offer(&mut self) -> Option<Caps> {
        let accelerator = self.accelerator.as_deref();
        self.caps.engines = engines(self.caps.cpu_slots, self.caps.gpu.is_some(), accelerator);
        self.check();
        Some(self.caps.clone())
    }

    /// What is offered can be computed: no GPU without its lane, no slots without theirs.
    fn check(&self) {
        debug_assert!(self.caps.gpu.is_none() || self.gpu.is_some());
        debug_assert_eq!(self.caps.cpu_slots > 0, self.cpu.is_some());
    }
}

pub(super) fn no_gpu() -> Failure {
    Failure::DeviceLost { message: "this node no longer lends its GPU".into() }
}

/// Lent before the coordinator heard that the lane is gone.
fn not_lent() -> Failure {
    Failure::DeviceLost { message: "this node no longer lends this".into() }
}
