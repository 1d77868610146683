//! A job as the Workers need it: what to fetch, how to run it. Kernels and models go as bytes, which only their
//! engine's module reads.

use js_sys::{Array, Uint8Array};
use shoal_kinds::Plain;
use shoal_node::JobInfo;
use wasm_bindgen::prelude::*;

use crate::object::Fields;

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = r#"
export interface Blob32 { hash: string; size: number }
export interface BrainJob {
  name: string;
  owner: string;
  items: number;
  /** The key that stands for the code, 64 hex digits; left out where there is none. */
  signer?: string;
  /** Milliseconds and bytes. */
  limits: { time: number; memory: number; output: number };
  /** Bytes of memory that a unit or a service takes while it is here. */
  takes: number;
  /** Which engine Worker computes it; left out where none has to. */
  engine?: "wgsl" | "wasi" | "onnx" | "llm";
  work:
    | { kind: "noop" }
    | KernelWork
    | { kind: "sim"; bytes: Uint8Array; width: number; height: number; first?: Blob32 }
    | { kind: "exec" } & ExecWork
    | { kind: "onnx" } & OnnxWork
    | { kind: "llm" } & LlmWork;
}
/** Any kind whose units run on a GPU: what the engine reads, and what is fetched for it. */
export interface KernelWork { kind: string; bytes: Uint8Array; inputs: KernelInput[] }
export interface KernelInput { blob: Blob32; perItem?: number; reach?: number }
export interface ExecWork {
  module: Blob32;
  args: string[];
  env: [string, string][];
  items: { kind: "lines"; data: Blob32; ends: Blob32 } | { kind: "files"; manifest: Blob32 } | { kind: "requests" };
  folder?: Blob32;
  clock: boolean;
  /** Whether the first failed run ends the job, which exit codes are good, how often a failed run is tried again. */
  failing: { stop: boolean; ok: number[]; retry: number };
  /** Whether runs find `/out`, and leave its files and the ends of their stderr beside their answers. */
  leaves: boolean;
}
/** A model: its file, what its engine reads, the files of its parts if it may be split, and what is fetched for a unit if
 * it runs over many inputs. */
export interface OnnxWork { bytes: Uint8Array; model: Blob32; parts: Blob32[]; inputs: KernelInput[] }
/** A language model: its file, and what its engine reads. */
export interface LlmWork { bytes: Uint8Array; model: Blob32 }
"#;

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(typescript_type = "BrainJob")]
    pub type BrainJob;
}

pub(crate) fn job(info: &JobInfo) -> BrainJob {
    let limits = Fields::new()
        .with("time", info.limits.time.0 as f64 / 1_000.0)
        .with("memory", info.limits.memory as f64)
        .with("output", info.limits.output as f64)
        .done();
    Fields::new()
        .with("name", info.name.as_str())
        .with("owner", info.owner.as_str())
        .with("items", info.items as f64)
        .with("signer", info.signed.map(|signed| signed.by.to_string()))
        .with("limits", limits)
        .with("takes", info.takes.memory as f64)
        .with("engine", info.work.engine())
        .with("work", js(info.work.plain()))
        .done()
        .unchecked_into()
}

fn js(plain: Plain) -> JsValue {
    match plain {
        Plain::Text(text) => text.into(),
        Plain::Number(number) => number.into(),
        Plain::Truth(truth) => truth.into(),
        Plain::Bytes(bytes) => Uint8Array::from(bytes.as_slice()).into(),
        Plain::List(list) => list.into_iter().map(js).collect::<Array>().into(),
        Plain::Object(fields) => {
            let fields = fields.into_iter();
            fields.fold(Fields::new(), |object, (name, value)| object.with(name, js(value))).done()
        }
    }
}
