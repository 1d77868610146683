//! Kernels over WebGPU for JavaScript. Bytes stay in JavaScript's memory: they are neither copied into
//! the module's on their way to the GPU nor on their way back.

use js_sys::Uint8Array;
use shoal_engine::wgsl::{self, Gpu, Input, Pipeline, Readback, Shared, Stage};
use shoal_kinds::Kind;
use shoal_protocol::{Failure, Span};
use wasm_bindgen::prelude::*;

use crate::failure::{internal, to_js};
use crate::object::Fields;

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = r#"
export interface GpuOffer {
  name: string;
  backend: string;
  software: boolean;
  bufferBytes: number;
  workgroupInvocations: number;
  workgroupBytes: number;
  storageBuffers: number;
  slots: number;
}
"#;

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(typescript_type = "GpuOffer")]
    pub type GpuOffer;
}

/// The device. All promises reject with a `UnitFailure`.
#[wasm_bindgen]
pub struct Engine {
    pub(crate) gpu: Gpu,
}

/// A compiled kernel with what it is part of.
#[wasm_bindgen]
pub struct Program {
    work: Kind,
    pipeline: Pipeline,
}

/// An input on its way to the GPU.
#[wasm_bindgen]
pub struct Part(Input);

#[wasm_bindgen]
impl Part {
    /// Sends bytes to a position that is a multiple of 4; only the last piece may have another length.
    pub fn write(&mut self, at: f64, bytes: &Uint8Array) -> Result<(), JsValue> {
        let written = match &mut self.0 {
            Input::Own(stage) => stage.write_js(at as u64, bytes),
            Input::Shared(_) => Err(Failure::Internal { message: "written when kept".into() }),
        };
        written.map_err(|failure| to_js(&failure))
    }
}

/// An input on the GPU that all units of a job read.
#[wasm_bindgen]
pub struct KeptInput(Shared);

#[wasm_bindgen]
impl KeptInput {
    pub fn part(&self) -> Part {
        Part(self.0.clone().into())
    }
}

/// A unit's result where the browser mapped it.
#[wasm_bindgen]
pub struct Outcome(pub(crate) Readback);

#[wasm_bindgen]
impl Outcome {
    /// Valid until `free`.
    pub fn view(&self) -> Uint8Array {
        self.0.as_js()
    }
}

#[wasm_bindgen]
impl Engine {
    pub async fn open() -> Result<Engine, JsValue> {
        match Gpu::open().await {
            Ok(gpu) => Ok(Engine { gpu }),
            Err(message) => Err(to_js(&Failure::DeviceLost { message })),
        }
    }

    pub fn caps(&self) -> GpuOffer {
        let caps = self.gpu.caps();
        Fields::new()
            .with("name", caps.name)
            .with("backend", caps.backend)
            .with("software", caps.software)
            .with("bufferBytes", caps.buffer_bytes as f64)
            .with("workgroupInvocations", caps.workgroup_invocations)
            .with("workgroupBytes", caps.workgroup_bytes)
            .with("storageBuffers", caps.storage_buffers)
            .with("slots", caps.slots)
            .done()
            .unchecked_into()
    }

    /// Which way the device rounds: devices with the same 16 hex digits agree bit for bit.
    pub async fn probe(&self) -> Result<String, JsValue> {
        let class = wgsl::probe(&self.gpu).await.map_err(|failure| to_js(&failure))?;
        Ok(format!("{class:016x}"))
    }

    /// Compiles the kernel of a job; `work` is what the brain's `job` gives as bytes.
    pub async fn prepare(&self, work: Vec<u8>) -> Result<Program, JsValue> {
        let work: Kind = postcard::from_bytes(&work)
            .map_err(|error| internal(format!("a job that cannot be read: {error}")))?;
        let prepared = self.gpu.prepare_work(&work).await;
        let pipeline = prepared.map_err(|failure| to_js(&failure))?;
        Ok(Program { work, pipeline })
    }

    /// Memory on the GPU for an input.
    pub async fn stage(&self, bytes: f64) -> Result<Part, JsValue> {
        let stage: Stage = self.gpu.stage(bytes as u64).await.map_err(|failure| to_js(&failure))?;
        Ok(Part(stage.into()))
    }

    /// Keeps a written input for all units of a job.
    pub async fn keep(&self, part: Part) -> Result<KeptInput, JsValue> {
        let kept = match part.0 {
            Input::Own(stage) => self.gpu.share(stage).await.map_err(|failure| to_js(&failure))?,
            Input::Shared(shared) => shared,
        };
        Ok(KeptInput(kept))
    }

    /// Computes some items of a job of `items`; `parts` are its inputs in order.
    pub async fn run(
        &self,
        program: &Program,
        items: f64,
        start: f64,
        len: f64,
        parts: Vec<Part>,
    ) -> Result<Outcome, JsValue> {
        let span = Span::new(start as u64, len as u64);
        let inputs = parts.into_iter().map(|part| part.0).collect();
        let Program { work, pipeline } = program;
        let result = self.gpu.run(pipeline, work, items as u64, span, inputs).await;
        result.map(Outcome).map_err(|failure| to_js(&failure))
    }
}
