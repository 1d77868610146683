//! The node brain for JavaScript. Each call is one input; it answers with all outputs in order.

use js_sys::Uint8Array;
use shoal_node::{Config, Input, Node, Output, Phase};
use shoal_protocol::codec::{DecodeError, Wire};
use shoal_protocol::{
    Attempt, Caps, GpuCaps, Hash, Identity, JobId, Lane, Micros, NodeKind, Time, ToNode, UnitOutput,
};
use wasm_bindgen::prelude::*;

use crate::describe;
use crate::failure::{self, UnitFailure};
use crate::object::Fields;

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = r#"
/** What the device lends. */
export interface Offer {
  name: string;
  cpuSlots: number;
  speed: number;
  gpu?: GpuOffer;
}
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
/** One thing for the Worker to do. */
export type BrainOutput =
  | { type: "connect" }
  | { type: "disconnect" }
  | { type: "send"; bytes: Uint8Array }
  | { type: "run"; attempt: number; job: number; start: number; len: number; lane: "inline" | "gpu" | "cpu" }
  | { type: "abort"; attempt: number }
  | { type: "forget"; job: number }
  | { type: "stopped"; reason?: string };
export interface BrainStatus {
  phase: "idle" | "connecting" | "greeting" | "joined" | "waiting" | "stopped";
  node?: number;
  running: number;
  queued: number;
  unitsDone: number;
  unitsFailed: number;
  job?: number;
}
"#;

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(typescript_type = "Offer")]
    pub type Offer;
    #[wasm_bindgen(method, getter)]
    fn name(this: &Offer) -> String;
    #[wasm_bindgen(method, getter, js_name = cpuSlots)]
    fn cpu_slots(this: &Offer) -> u16;
    #[wasm_bindgen(method, getter)]
    fn speed(this: &Offer) -> u32;
    #[wasm_bindgen(method, getter)]
    fn gpu(this: &Offer) -> Option<GpuOffer>;

    #[wasm_bindgen(typescript_type = "GpuOffer")]
    pub type GpuOffer;
    #[wasm_bindgen(method, getter)]
    fn name(this: &GpuOffer) -> String;
    #[wasm_bindgen(method, getter)]
    fn backend(this: &GpuOffer) -> String;
    #[wasm_bindgen(method, getter)]
    fn software(this: &GpuOffer) -> bool;
    #[wasm_bindgen(method, getter, js_name = bufferBytes)]
    fn buffer_bytes(this: &GpuOffer) -> f64;
    #[wasm_bindgen(method, getter, js_name = workgroupInvocations)]
    fn workgroup_invocations(this: &GpuOffer) -> u32;
    #[wasm_bindgen(method, getter, js_name = workgroupBytes)]
    fn workgroup_bytes(this: &GpuOffer) -> u32;
    #[wasm_bindgen(method, getter, js_name = storageBuffers)]
    fn storage_buffers(this: &GpuOffer) -> u32;
    #[wasm_bindgen(method, getter)]
    fn slots(this: &GpuOffer) -> u16;

    #[wasm_bindgen(typescript_type = "BrainOutput[]")]
    pub type Outputs;
    #[wasm_bindgen(typescript_type = "BrainStatus")]
    pub type BrainStatus;
}

/// Times are milliseconds as `performance.now()` gives them.
#[wasm_bindgen]
pub struct Brain {
    node: Node,
}

#[wasm_bindgen]
impl Brain {
    /// `identity`: the 16 random bytes this device made once and keeps.
    #[wasm_bindgen(constructor)]
    pub fn new(token: String, identity: &[u8], offer: &Offer, seed: f64) -> Result<Brain, JsError> {
        let identity = identity.try_into().map_err(|_| {
            JsError::new(&format!("an identity of {} bytes; expected 16", identity.len()))
        })?;
        let config =
            Config { token, identity: Identity(identity), caps: caps(offer), seed: seed as u64 };
        Ok(Brain { node: Node::new(config) })
    }

    pub fn start(&mut self, now: f64) -> Outputs {
        self.handle(now, Input::Start)
    }

    pub fn opened(&mut self, now: f64) -> Outputs {
        self.handle(now, Input::Opened)
    }

    pub fn closed(&mut self, now: f64) -> Outputs {
        self.handle(now, Input::Closed)
    }

    /// A frame from the coordinator. Fails if it is no message: close the socket then.
    pub fn received(&mut self, now: f64, frame: &[u8]) -> Result<Outputs, JsError> {
        match ToNode::decode(frame) {
            Ok(message) => Ok(self.handle(now, Input::Received(message))),
            Err(DecodeError::UnknownKind(_)) => Ok(self.handle(now, Input::Tick)),
            Err(error @ (DecodeError::TooLarge(_) | DecodeError::Garbled)) => {
                Err(JsError::new(&format!("the coordinator sent {error}")))
            }
        }
    }

    /// A unit finished; its result is small enough to ride along. `took` in milliseconds.
    #[wasm_bindgen(js_name = ranInline)]
    pub fn ran_inline(&mut self, now: f64, attempt: f64, took: f64, result: Vec<u8>) -> Outputs {
        self.ran(now, attempt, took, Ok(UnitOutput::Inline(result)))
    }

    /// A unit finished and its result was stored by HTTP.
    #[wasm_bindgen(js_name = ranStored)]
    pub fn ran_stored(
        &mut self,
        now: f64,
        attempt: f64,
        took: f64,
        hash: &str,
        size: f64,
    ) -> Result<Outputs, JsError> {
        let hash: Hash = hash.parse().map_err(|error| JsError::new(&format!("{error}")))?;
        Ok(self.ran(now, attempt, took, Ok(UnitOutput::Stored { hash, size: size as u64 })))
    }

    #[wasm_bindgen(js_name = ranFailed)]
    pub fn ran_failed(
        &mut self,
        now: f64,
        attempt: f64,
        took: f64,
        failure: &UnitFailure,
    ) -> Outputs {
        self.ran(now, attempt, took, Err(failure::from_js(failure)))
    }

    /// The donor changed what is lent.
    pub fn offer(&mut self, now: f64, offer: &Offer) -> Outputs {
        self.handle(now, Input::Offer(caps(offer)))
    }

    pub fn pause(&mut self, now: f64, paused: bool) -> Outputs {
        self.handle(now, Input::Pause(paused))
    }

    pub fn stop(&mut self, now: f64) -> Outputs {
        self.handle(now, Input::Stop)
    }

    pub fn tick(&mut self, now: f64) -> Outputs {
        self.handle(now, Input::Tick)
    }

    /// When `tick` is due, if at all.
    #[wasm_bindgen(js_name = nextTimeout)]
    pub fn next_timeout(&self) -> Option<f64> {
        self.node.next_timeout().map(|time| time.0 as f64 / 1_000.0)
    }

    /// Bearer token for HTTP requests of the present connection.
    pub fn session(&self) -> Option<String> {
        self.node.session().map(Into::into)
    }

    pub fn job(&self, job: f64) -> Option<describe::BrainJob> {
        self.node.job(JobId(job as u64)).map(describe::job)
    }

    pub fn status(&self) -> BrainStatus {
        let status = self.node.status();
        let (phase, node) = match status.phase {
            Phase::Idle => ("idle", None),
            Phase::Connecting => ("connecting", None),
            Phase::Greeting { .. } => ("greeting", None),
            Phase::Joined(node) => ("joined", Some(node.0 as f64)),
            Phase::Waiting { .. } => ("waiting", None),
            Phase::Stopped => ("stopped", None),
        };
        Fields::new()
            .with("phase", phase)
            .with("node", node)
            .with("running", status.running as f64)
            .with("queued", status.queued as f64)
            .with("unitsDone", status.units_done as f64)
            .with("unitsFailed", status.units_failed as f64)
            .with("job", status.job.map(|job| job.0 as f64))
            .done()
            .unchecked_into()
    }
}

impl Brain {
    fn ran(
        &mut self,
        now: f64,
        attempt: f64,
        took: f64,
        result: Result<UnitOutput, shoal_protocol::Failure>,
    ) -> Outputs {
        let took = Micros((took * 1_000.0) as u64);
        self.handle(now, Input::Ran { attempt: Attempt(attempt as u64), took, result })
    }

    fn handle(&mut self, now: f64, input: Input) -> Outputs {
        self.node.handle(Time((now * 1_000.0) as u64), input);
        let outputs = js_sys::Array::new();
        while let Some(output) = self.node.poll_output() {
            outputs.push(&plain(output));
        }
        JsValue::from(outputs).unchecked_into()
    }
}

fn plain(output: Output) -> JsValue {
    match output {
        Output::Connect => Fields::of("connect"),
        Output::Disconnect => Fields::of("disconnect"),
        Output::Send(message) => {
            Fields::of("send").with("bytes", Uint8Array::from(message.encode().as_slice()))
        }
        Output::Run { lease, lane } => {
            let lane = match lane {
                Lane::Inline => "inline",
                Lane::Gpu => "gpu",
                Lane::Cpu => "cpu",
            };
            Fields::of("run")
                .with("attempt", lease.attempt.0 as f64)
                .with("job", lease.job.0 as f64)
                .with("start", lease.span.start as f64)
                .with("len", lease.span.len as f64)
                .with("lane", lane)
        }
        Output::Abort(attempt) => Fields::of("abort").with("attempt", attempt.0 as f64),
        Output::Forget(job) => Fields::of("forget").with("job", job.0 as f64),
        Output::Stopped(refusal) => {
            Fields::of("stopped").with("reason", refusal.map(|refusal| refusal.to_string()))
        }
    }
    .done()
}

fn caps(offer: &Offer) -> Caps {
    let gpu = offer.gpu().map(|gpu| GpuCaps {
        name: gpu.name(),
        backend: gpu.backend(),
        software: gpu.software(),
        buffer_bytes: gpu.buffer_bytes() as u64,
        workgroup_invocations: gpu.workgroup_invocations(),
        workgroup_bytes: gpu.workgroup_bytes(),
        storage_buffers: gpu.storage_buffers(),
        slots: gpu.slots(),
    });
    Caps {
        kind: NodeKind::Browser,
        name: offer.name(),
        cpu_slots: offer.cpu_slots(),
        gpu,
        speed: offer.speed(),
    }
}
