//! What clients read and write: the types of the HTTP API, as its OpenAPI document shows them.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// Bytes that are stored.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct BlobJson {
    /// BLAKE3 of the bytes, 64 hexadecimal digits.
    pub(crate) hash: String,
    pub(crate) size: u64,
}

/// How much of an upload is held so far.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct PartialJson {
    pub(crate) offset: u64,
}

/// A job to run: what is common to all kinds, and one kind.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct JobRequest {
    #[serde(flatten)]
    pub(crate) common: CommonRequest,
    #[serde(flatten)]
    pub(crate) work: WorkRequest,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct CommonRequest {
    /// What people see; the kind if left out.
    pub(crate) name: Option<String>,
    /// For whom: shown to donors.
    pub(crate) owner: Option<String>,
    pub(crate) strategy: Option<StrategyJson>,
    /// Exactly this many items in each unit; chosen by measured speed if left out.
    pub(crate) unit: Option<u64>,
    pub(crate) limits: LimitsJson,
}

impl CommonRequest {
    pub(crate) const FIELDS: [&'static str; 5] = ["name", "owner", "strategy", "unit", "limits"];
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum StrategyJson {
    Adaptive,
    RoundRobin,
    Weight,
}

/// What one unit may use; for exec, one run of the program.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct LimitsJson {
    /// 30 if left out.
    pub(crate) seconds: Option<f64>,
    /// 256 if left out.
    #[serde(rename = "memoryMiB")]
    pub(crate) memory_mib: Option<u64>,
    /// 16 if left out.
    #[serde(rename = "outputMiB")]
    pub(crate) output_mib: Option<u64>,
}

#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub(crate) enum WorkRequest {
    /// Units without content, to measure the pool itself.
    Noop(NoopRequest),
    /// A WGSL kernel over the elements of arrays.
    Map(MapRequest),
    /// A WGSL kernel over the tiles of a picture.
    Render(RenderRequest),
    /// A WASI program, run once for each line or file.
    Exec(ExecRequest),
}

#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NoopRequest {
    pub(crate) items: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct MapRequest {
    pub(crate) wgsl: String,
    /// The entry point; may be left out if there is only one.
    #[serde(default)]
    pub(crate) entry: Option<String>,
    /// One for each read-only array of the kernel, in binding order.
    #[serde(default)]
    pub(crate) inputs: Vec<MapInputRequest>,
    /// How many items there are; needed when no input is split.
    #[serde(default)]
    pub(crate) items: Option<u64>,
    /// Elements of output for each item; 1 if left out.
    #[serde(default)]
    pub(crate) out_per_item: Option<u32>,
    /// Values for the kernel's parameter block, by member name.
    #[serde(default)]
    pub(crate) params: Map<String, Value>,
}

#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct MapInputRequest {
    /// Hash of the array's bytes.
    pub(crate) blob: String,
    /// Every unit gets all of it, instead of its share.
    #[serde(default)]
    pub(crate) whole: bool,
    /// Elements for each item; 1 if left out.
    #[serde(default)]
    pub(crate) per_item: Option<u32>,
}

#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RenderRequest {
    pub(crate) wgsl: String,
    #[serde(default)]
    pub(crate) entry: Option<String>,
    pub(crate) width: u32,
    pub(crate) height: u32,
    /// 1 if left out.
    #[serde(default)]
    pub(crate) samples: Option<u32>,
    /// Edge of a tile in pixels; 64 if left out.
    #[serde(default)]
    pub(crate) tile: Option<u32>,
    #[serde(default)]
    pub(crate) params: Map<String, Value>,
}

#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExecRequest {
    /// Hash of a wasm32-wasip1 module.
    pub(crate) module: String,
    #[serde(default)]
    pub(crate) args: Vec<String>,
    #[serde(default)]
    pub(crate) env: std::collections::BTreeMap<String, String>,
    /// Run once for each line (or group of lines) of a text.
    #[serde(default)]
    pub(crate) lines: Option<LinesRequest>,
    /// Run once for each file: its bytes on stdin, its name in `SHOAL_INPUT`.
    #[serde(default)]
    pub(crate) files: Vec<FileRequest>,
    /// Files every run finds, read-only, in `/data`.
    #[serde(default)]
    pub(crate) folder: Vec<FileRequest>,
    /// Whether the program sees the real time.
    #[serde(default)]
    pub(crate) clock: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct LinesRequest {
    pub(crate) blob: String,
    /// Lines for each run; 1 if left out.
    #[serde(default)]
    pub(crate) per_run: Option<u64>,
}

#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct FileRequest {
    pub(crate) name: String,
    pub(crate) blob: String,
}

/// A newcomer's one-line job.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SubmitJobRequest {
    /// `matmul`: each element of the product of two made-up matrices.
    #[serde(default = "matmul")]
    pub(crate) compute_type: String,
    #[serde(default = "one")]
    pub(crate) iterations: u32,
    #[serde(default = "tensor_size")]
    pub(crate) tensor_size: u32,
}

fn matmul() -> String {
    "matmul".into()
}

fn one() -> u32 {
    1
}

fn tensor_size() -> u32 {
    256
}

#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SubmitJobJson {
    pub(crate) job_id: u64,
    /// `submitted`, or with `?wait` how it ended: `done`, `failed`, `cancelled`.
    pub(crate) status: String,
}

#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct JobJson {
    pub(crate) id: u64,
    pub(crate) name: String,
    pub(crate) owner: String,
    /// `noop`, `map`, `render` or `exec`.
    pub(crate) kind: &'static str,
    pub(crate) state: StateJson,
    pub(crate) items: u64,
    pub(crate) items_done: u64,
    pub(crate) items_leased: u64,
    pub(crate) units_done: u64,
    pub(crate) units_leased: u64,
    /// Units lent again after a node left, stalled or failed.
    pub(crate) retries: u64,
    /// Milliseconds since the Unix epoch, as all moments here.
    pub(crate) submitted: u64,
    pub(crate) started: Option<u64>,
    pub(crate) ended: Option<u64>,
    /// Recent items per second.
    pub(crate) rate: f64,
    pub(crate) eta_seconds: Option<f64>,
    /// Connected nodes that could compute it.
    pub(crate) able_nodes: u64,
    pub(crate) shares: Vec<ShareJson>,
    pub(crate) error: Option<JobErrorJson>,
    pub(crate) result: ResultJson,
    pub(crate) render: Option<RenderJson>,
    pub(crate) output: Option<OutputJson>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum StateJson {
    Running,
    Done,
    Failed,
    Cancelled,
}

impl StateJson {
    pub(crate) fn word(self) -> &'static str {
        match self {
            StateJson::Running => "running",
            StateJson::Done => "done",
            StateJson::Failed => "failed",
            StateJson::Cancelled => "cancelled",
        }
    }
}

/// How much of a job one node did.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct ShareJson {
    pub(crate) node: u64,
    pub(crate) name: String,
    pub(crate) items: u64,
    pub(crate) units: u64,
}

#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct JobErrorJson {
    /// A whole sentence with the input, the limit and the nodes.
    pub(crate) message: String,
    /// The item at fault, counted from 0.
    pub(crate) item: Option<u64>,
    /// The file's name or the line at fault.
    pub(crate) input: Option<String>,
    /// The end of what the program wrote to stderr.
    pub(crate) stderr: String,
    pub(crate) nodes: Vec<String>,
}

#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ResultJson {
    /// Size of the whole result; for exec, of what is there so far.
    pub(crate) bytes: u64,
    /// Bytes of each item, where all have the same.
    pub(crate) item_bytes: Option<u64>,
}

#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
pub(crate) struct RenderJson {
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) tile: u32,
    /// `rgba8` or `rgba32float`.
    pub(crate) pixel: &'static str,
    pub(crate) samples: u32,
}

/// Elements of a map's result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OutputJson {
    /// The WGSL scalar: `f32`, `i32`, `u32`, `f16`.
    #[serde(rename = "type")]
    pub(crate) scalar: String,
    /// Scalars for each item.
    pub(crate) per_item: u32,
}

#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct JobsJson {
    pub(crate) jobs: Vec<JobJson>,
}

#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct UnitsJson {
    pub(crate) units: Vec<UnitJson>,
    /// Whether there are more than are shown.
    pub(crate) truncated: bool,
}

#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct UnitJson {
    pub(crate) start: u64,
    pub(crate) len: u64,
    /// `waiting`, `leased` or `done`.
    pub(crate) state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) node: Option<u64>,
}

#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct NodesJson {
    pub(crate) nodes: Vec<NodeJson>,
}

#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NodeJson {
    pub(crate) id: u64,
    pub(crate) name: String,
    /// `native`, `browser` or `simulated`.
    pub(crate) kind: &'static str,
    pub(crate) gpu: Option<GpuJson>,
    pub(crate) cpu_slots: u16,
    /// Declared speed; 100 is a middling laptop.
    pub(crate) speed: u32,
    /// Measured items per second.
    pub(crate) rate: f64,
    /// Percent of its slots at work.
    pub(crate) load: u8,
    pub(crate) leases: u64,
    pub(crate) running: u64,
    pub(crate) job: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) job_name: Option<String>,
    pub(crate) paused: bool,
    pub(crate) units_done: u64,
    pub(crate) units_failed: u64,
    pub(crate) joined: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct GpuJson {
    pub(crate) name: String,
    pub(crate) backend: String,
    /// A CPU that plays GPU.
    pub(crate) software: bool,
    /// Bytes of the largest buffer.
    pub(crate) buffer_bytes: u64,
    pub(crate) workgroup_invocations: u32,
    pub(crate) workgroup_bytes: u32,
    pub(crate) storage_buffers: u32,
}

#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct PoolJson {
    /// The link other devices join by.
    pub(crate) join: String,
    pub(crate) version: &'static str,
    pub(crate) nodes: u64,
    pub(crate) offers: OffersJson,
}

/// The most any one node offers, and sums where they make sense.
#[derive(Clone, Copy, Debug, Default, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OffersJson {
    pub(crate) gpu_nodes: u64,
    pub(crate) cpu_slots: u64,
    /// Bytes of the largest GPU buffer.
    pub(crate) largest_buffer: u64,
    pub(crate) workgroup_invocations: u32,
    pub(crate) workgroup_bytes: u32,
    pub(crate) storage_buffers: u32,
}

#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct TilesJson {
    pub(crate) tiles: Vec<u64>,
}

/// Every error's body.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct ErrorJson {
    pub(crate) error: ErrorBody,
}

#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct ErrorBody {
    /// For machines, stable.
    pub(crate) code: &'static str,
    /// For people.
    pub(crate) message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) details: Option<Value>,
}
