//! A job as the Workers need it: what to fetch, how to run it. Kernels go as bytes, which only the GPU
//! module reads.

use js_sys::{Array, Uint8Array};
use shoal_node::JobInfo;
use shoal_protocol::{BlobRef, ExecItems, ExecWork, InputSplit, MapWork, Work};
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
  work:
    | { kind: "noop" }
    | { kind: "map"; bytes: Uint8Array; inputs: { blob: Blob32; perItem?: number; reach?: number }[] }
    | { kind: "render"; bytes: Uint8Array }
    | { kind: "sim"; bytes: Uint8Array; width: number; height: number; first?: Blob32 }
    | { kind: "exec" } & ExecWork;
}
export interface ExecWork {
  module: Blob32;
  args: string[];
  env: [string, string][];
  items: { kind: "lines"; data: Blob32; ends: Blob32 } | { kind: "files"; manifest: Blob32 };
  folder?: Blob32;
  clock: boolean;
}
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
        .with("work", work(&info.work))
        .done()
        .unchecked_into()
}

fn work(work: &Work) -> JsValue {
    match work {
        Work::Noop => Fields::new().with("kind", "noop"),
        Work::Map(map) => {
            Fields::new().with("kind", "map").with("bytes", bytes(work)).with("inputs", inputs(map))
        }
        Work::Render(_) => Fields::new().with("kind", "render").with("bytes", bytes(work)),
        Work::Sim(sim) => Fields::new()
            .with("kind", "sim")
            .with("bytes", bytes(work))
            .with("width", sim.width)
            .with("height", sim.height)
            .with("first", sim.first.as_ref().map(blob)),
        Work::Exec(exec) => program(exec),
    }
    .done()
}

fn bytes(work: &Work) -> Uint8Array {
    let bytes = postcard::to_allocvec(work).unwrap_or_default();
    Uint8Array::from(bytes.as_slice())
}

fn inputs(map: &MapWork) -> Array {
    let inputs = map.inputs.iter().map(|input| {
        let (per_item, reach) = match input.split {
            InputSplit::PerItem { bytes, reach } => (Some(bytes), Some(reach)),
            InputSplit::Whole => (None, None),
        };
        let fields = Fields::new().with("blob", blob(&input.blob)).with("perItem", per_item);
        fields.with("reach", reach).done()
    });
    inputs.collect()
}

fn program(exec: &ExecWork) -> Fields {
    let items = match &exec.items {
        ExecItems::Lines { data, ends } => {
            Fields::new().with("kind", "lines").with("data", blob(data)).with("ends", blob(ends))
        }
        ExecItems::Files { manifest } => {
            Fields::new().with("kind", "files").with("manifest", blob(manifest))
        }
    };
    let args: Array = exec.args.iter().map(|arg| JsValue::from_str(arg)).collect();
    let env: Array =
        exec.env.iter().map(|(name, value)| Array::of2(&name.into(), &value.into())).collect();
    Fields::new()
        .with("kind", "exec")
        .with("module", blob(&exec.module))
        .with("args", args)
        .with("env", env)
        .with("items", items.done())
        .with("folder", exec.folder.as_ref().map(blob))
        .with("clock", exec.clock)
}

fn blob(blob: &BlobRef) -> JsValue {
    Fields::new().with("hash", blob.hash.to_string()).with("size", blob.size as f64).done()
}
