//! Simulations: one member's band of a grid, step by step.
//!
//! [`Gpu::sim`] compiles, [`SimProgram::open`] makes room for a band of rows with a halo on either side,
//! [`SimBand::load`] or [`SimBand::init`] gives it its first state, [`SimBand::step`] goes on. A step reads the
//! halos into the rows at both ends of the buffer and runs every pass over all of it; what is wrong at the
//! ends creeps in by no more than a halo in one step, so the band itself is always right.
//!
//! Where the way to the neighbours is long, the two edges, which they wait for, are computed first and apart, each from
//! three halos of rows; the band follows while they travel, without halos, and its ends are replaced by the edges. That
//! costs four halos of rows more. Each row comes of the same rows either way: the bits are the same.

mod band;
mod block;
mod field;
mod reach;
mod record;
mod show;
mod tape;
mod time;

use std::sync::Arc;

use shoal_kinds::{Binding, Kernel, Pass, SimWork, Slot, Space};
use shoal_protocol::{Failure, Micros, Span, Time};

use super::gpu::{Core, Gpu};
use super::pipeline::Pipeline;
pub use band::{Edges, SimBand};
use show::Show;
pub use show::View;

/// A simulation compiled for one device. Cheap to clone; keep one per job.
#[derive(Clone)]
pub struct SimProgram(Arc<Program>);

struct Program {
    core: Arc<Core>,
    work: SimWork,
    /// One step, in order, and how often each is run.
    passes: Vec<(Pipeline, u32)>,
    init: Option<Pipeline>,
    show: Show,
}

impl Gpu {
    /// Compiles a simulation for this device. What its compiler refuses is a [`Failure::Kernel`].
    pub async fn sim(&self, work: &SimWork) -> Result<SimProgram, Failure> {
        let core = self.core.clone();
        let mut passes: Vec<(Pipeline, u32)> = Vec::with_capacity(work.passes.len());
        for (at, pass) in work.passes.iter().enumerate() {
            let earlier = work.passes[..at].iter().position(|it| it.entry == pass.entry);
            let pipeline = match earlier {
                Some(at) => passes[at].0.clone(),
                None => Pipeline::new(&core, &kernel(work, pass, work.slots.next)).await?,
            };
            passes.push((pipeline, pass.times));
        }
        let init = match &work.init {
            Some(pass) => Some(Pipeline::new(&core, &kernel(work, pass, work.slots.next)).await?),
            None => None,
        };
        let show = Show::new(&core, work).await?;
        Ok(SimProgram(Arc::new(Program { core, work: work.clone(), passes, init, show })))
    }

    /// How long one step of so many cells takes here, once warm; `now` reads a clock.
    pub async fn time_sim(
        &self,
        work: &SimWork,
        now: impl Fn() -> Time,
    ) -> Result<(u64, Micros), Failure> {
        self.sim(work).await?.time(now).await
    }
}

impl SimProgram {
    /// Room for some rows of the grid, their state all zero. With `apart`, edges are computed apart and first, if the
    /// band has rows enough for that.
    pub async fn open(&self, rows: Span, apart: bool) -> Result<SimBand, Failure> {
        SimBand::new(self, rows, apart).await
    }

    /// How long one step of so many cells takes here, once warm; `now` reads a clock.
    pub async fn time(&self, now: impl Fn() -> Time) -> Result<(u64, Micros), Failure> {
        time::time(self, now).await
    }

    pub fn work(&self) -> &SimWork {
        &self.0.work
    }
}

impl Program {
    fn row_bytes(&self) -> u64 {
        self.work.row_bytes()
    }

    fn halo(&self) -> u64 {
        u64::from(self.work.halo)
    }

    /// Dispatches of one step.
    fn runs(&self) -> u32 {
        self.passes.iter().map(|(_, times)| times).sum()
    }
}

/// One entry point of the file, which writes the binding `output`.
fn kernel(work: &SimWork, pass: &Pass, output: u32) -> Kernel {
    let binding = |index, space, slot| Binding { index, space, slot };
    Kernel {
        source: work.source.clone(),
        entry: pass.entry.clone(),
        workgroup: pass.workgroup,
        bindings: vec![
            binding(work.slots.params, Space::Uniform, Slot::Params),
            binding(work.slots.state, Space::StorageRead, Slot::Input(0)),
            binding(output, Space::StorageReadWrite, Slot::Output),
        ],
        params: None,
        windows: None,
    }
}

#[cfg(all(test, not(target_arch = "wasm32")))]
mod tests;
