//! The open device: what all parts of the engine share.

use std::sync::Arc;

use shoal_kinds::{Kernel, MapWork, RenderWork};
use shoal_protocol::{Failure, GpuCaps, Span};
use wgpu::{BufferAsyncError, CommandEncoder, Device, Limits, MapMode, Queue, SubmissionIndex};

use super::adapter::{self, Opened};
use super::fault::{Lost, Scopes, internal};
use super::guard::{Flag, Guard};
use super::memory::{Input, Readback, Route, Shared, Stage};
use super::oneshot::oneshot;
use super::pipeline::Pipeline;
#[cfg(not(target_arch = "wasm32"))]
use super::poller::Poller;
use super::pool::{Lease, Pool, Role};
use super::report::{Report, Said};

/// An open device. Cheap to clone. Once [`Gpu::is_lost`], drop it with all it made and open
/// another.
#[derive(Clone)]
pub struct Gpu {
    pub(super) core: Arc<Core>,
}

pub(super) struct Core {
    pub(super) device: Device,
    pub(super) queue: Queue,
    pub(super) limits: Limits,
    pub(super) route: Route,
    pub(super) pool: Pool,
    pub(super) lost: Lost,
    pub(super) caps: GpuCaps,
    /// If the device ends loops early.
    pub(super) guard: Option<Guard>,
    #[cfg(not(target_arch = "wasm32"))]
    poller: Poller,
}

impl Gpu {
    /// Opens the best adapter: a real GPU if there is one, else software, which
    /// [`GpuCaps::software`] says.
    pub async fn open() -> Result<Gpu, String> {
        Gpu::open_by(None).await
    }

    pub(super) async fn open_by(route: Option<Route>) -> Result<Gpu, String> {
        let Opened { device, queue, limits, caps, route } = adapter::open(route).await?;
        let lost = Lost::default();
        lost.watch(&device);
        let core = Core {
            guard: None,
            pool: Pool::new(device.clone(), lost.clone(), caps.buffer_bytes, route),
            #[cfg(not(target_arch = "wasm32"))]
            poller: Poller::start(device.clone())?,
            device,
            queue,
            limits,
            route,
            lost,
            caps,
        };
        #[cfg(not(target_arch = "wasm32"))]
        let core = super::guard::find(core).await?;
        Ok(Gpu { core: Arc::new(core) })
    }

    pub fn caps(&self) -> GpuCaps {
        self.core.caps.clone()
    }

    pub fn is_lost(&self) -> bool {
        self.core.lost.is_lost()
    }

    /// Compiles a kernel for this device. What its compiler refuses is a [`Failure::Kernel`].
    pub async fn prepare(&self, kernel: &Kernel) -> Result<Pipeline, Failure> {
        Pipeline::new(&self.core, kernel).await
    }

    /// The same for a map, with what brings its outputs together.
    pub async fn prepare_map(&self, work: &MapWork) -> Result<Pipeline, Failure> {
        Pipeline::of_map(&self.core, work).await
    }

    /// Memory for `bytes` of input, which the shell fills.
    pub async fn stage(&self, bytes: u64) -> Result<Stage, Failure> {
        Stage::new(&self.core, bytes).await
    }

    /// Keeps a filled stage on the device, to be read by many units.
    pub async fn share(&self, stage: Stage) -> Result<Shared, Failure> {
        Shared::new(&self.core, stage).await
    }

    /// Computes `span` of a map job of `items` items. One input for each of [`MapWork::inputs`], in
    /// order.
    pub async fn map(
        &self,
        pipeline: &Pipeline,
        work: &MapWork,
        items: u64,
        span: Span,
        inputs: Vec<Input>,
    ) -> Result<Readback, Failure> {
        super::map::run(&self.core, pipeline, work, items, span, inputs).await
    }

    /// Computes the tiles of `span`, in order, each in one dispatch.
    pub async fn render(
        &self,
        pipeline: &Pipeline,
        work: &RenderWork,
        span: Span,
    ) -> Result<Readback, Failure> {
        super::render::run(&self.core, pipeline, work, span).await
    }
}

impl Core {
    pub(super) fn scopes(&self) -> Scopes {
        Scopes::open(&self.device, &self.lost)
    }

    /// Submits what was recorded and waits until `result` can be read. `scopes` must have been
    /// opened before the recording, in this thread, without a wait since.
    pub(super) fn finish(
        &self,
        scopes: Scopes,
        mut encoder: CommandEncoder,
        result: Lease,
        size: u64,
        (flag, report): (Option<Flag>, Option<Report>),
    ) -> impl Future<Output = Result<Readback, Failure>> + use<'_> {
        let flag = flag.map(|flag| flag.gather(&mut encoder));
        let report = report.map(|report| report.gather(&mut encoder));
        let index = self.queue.submit([encoder.finish()]);
        let result = self.read(&index, result, size);
        let flag = flag.map(|(word, guard)| (self.read(&index, word, 4), guard));
        let report = report.map(|(words, said)| (self.read(&index, words, Said::BYTES), said));
        let caught = scopes.close();
        async move {
            let result = result.await;
            let raised = match flag {
                Some((word, guard)) => Some((word.await, guard)),
                None => None,
            };
            let report = match report {
                Some((words, said)) => Some((words.await, said)),
                None => None,
            };
            caught.await?;
            if let Some((word, guard)) = raised
                && word?.iter().any(|byte| *byte != 0)
            {
                return Err(guard.failure());
            }
            if let Some((words, said)) = report
                && let Some(failure) = said.failure(&words?)
            {
                return Err(failure);
            }
            result
        }
    }

    /// Reads a buffer in place once a submission is through.
    pub(super) fn read(
        &self,
        index: &SubmissionIndex,
        lease: Lease,
        size: u64,
    ) -> impl Future<Output = Result<Readback, Failure>> + use<'_> {
        let (answer, mapped) = oneshot::<Result<(), BufferAsyncError>>();
        let callback = answer.clone();
        let range = 0..aligned(size, 4);
        lease.buffer.map_async(MapMode::Read, range, move |outcome| callback.send(outcome));
        self.see_to(index.clone(), answer);
        async move {
            match mapped.await {
                Some(Ok(())) => Readback::new(lease, size),
                Some(Err(_)) | None => {
                    self.lost.check()?;
                    Err(internal("the GPU's result could not be read"))
                }
            }
        }
    }

    #[cfg(not(target_arch = "wasm32"))]
    fn see_to(
        &self,
        index: SubmissionIndex,
        answer: super::oneshot::Sender<Result<(), BufferAsyncError>>,
    ) {
        self.poller.wait(index, answer);
    }

    /// A browser calls back by itself.
    #[cfg(target_arch = "wasm32")]
    fn see_to(
        &self,
        _index: SubmissionIndex,
        _answer: super::oneshot::Sender<Result<(), BufferAsyncError>>,
    ) {
    }

    /// The buffer a kernel writes its result to.
    pub(super) async fn output(&self, size: u64) -> Result<Lease, Failure> {
        self.pool.take(Role::Output, size).await
    }
}

/// The next multiple of `to`, a power of two.
pub(super) fn aligned(size: u64, to: u64) -> u64 {
    size.next_multiple_of(to)
}
