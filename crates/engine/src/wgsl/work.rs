//! Units of whatever kind: one arm for each kind that runs on a GPU.

use shoal_kinds::{About, Kind};
use shoal_protocol::{Failure, Span};

use super::fault::internal;
use super::{Gpu, Input, Pipeline, Readback};

impl Gpu {
    /// Compiles what units of this work run.
    pub async fn prepare_work(&self, work: &Kind) -> Result<Pipeline, Failure> {
        match work {
            Kind::Map(map) => self.prepare_map(map).await,
            Kind::Render(render) => self.prepare(&render.kernel).await,
            #[cfg(feature = "count")]
            Kind::Count(count) => self.prepare_map(&super::count::as_map(count)).await,
            Kind::Noop(_) | Kind::Exec(_) | Kind::Onnx(_) | Kind::Llm(_) | Kind::Sim(_) => {
                Err(not_here(&**work))
            }
        }
    }

    /// Computes a unit of a job of `items`. `inputs` are what its kind's feeds name, in their order.
    pub async fn run(
        &self,
        pipeline: &Pipeline,
        work: &Kind,
        items: u64,
        span: Span,
        inputs: Vec<Input>,
    ) -> Result<Readback, Failure> {
        match work {
            Kind::Map(map) => self.map(pipeline, map, items, span, inputs).await,
            Kind::Render(render) => self.render(pipeline, render, span).await,
            #[cfg(feature = "count")]
            Kind::Count(count) => {
                self.map(pipeline, &super::count::as_map(count), items, span, inputs).await
            }
            Kind::Noop(_) | Kind::Exec(_) | Kind::Onnx(_) | Kind::Llm(_) | Kind::Sim(_) => {
                Err(not_here(&**work))
            }
        }
    }
}

fn not_here(work: &dyn About) -> Failure {
    internal(format!("units of the kind {} do not run on a GPU", work.name()))
}
