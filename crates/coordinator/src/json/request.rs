//! What clients ask for.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use shoal_protocol::Edge;
use utoipa::ToSchema;

use super::SimRequest;

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
    /// How answers are checked: `none`, `spot` (one in ten is computed twice), `spot:0.25`, `quorum:3`,
    /// or `adaptive` if left out.
    pub(crate) verify: Option<String>,
    /// When two answers of float outputs count as the same; what honest devices stay within if left out.
    pub(crate) tolerance: Option<ToleranceJson>,
    /// `normal` if left out.
    pub(crate) priority: Option<PriorityJson>,
    /// Share beside other jobs of the same priority, 1 to 10000; 100 if left out.
    pub(crate) weight: Option<u32>,
    /// Number of the submitter's own node: an interactive job goes there first.
    pub(crate) home: Option<u64>,
    /// Who stands for the code; the coordinator itself if left out.
    pub(crate) signature: Option<SignatureJson>,
}

impl CommonRequest {
    pub(crate) const FIELDS: [&'static str; 11] = [
        "name",
        "owner",
        "strategy",
        "unit",
        "limits",
        "verify",
        "tolerance",
        "priority",
        "weight",
        "home",
        "signature",
    ];
}

/// Answers agree where one of these bounds holds; those left out are the usual ones of the type.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ToleranceJson {
    /// Largest difference; for 8-bit pixels, in steps of 255.
    pub(crate) abs: Option<f32>,
    /// Largest difference as a part of the larger of the two.
    pub(crate) rel: Option<f32>,
    /// Largest number of representable values between the two.
    pub(crate) ulps: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum PriorityJson {
    Batch,
    Normal,
    Interactive,
}

/// An Ed25519 signature of the words `shoal code 1`, a zero byte and the BLAKE3 hash of the code: of the
/// kernel's text exactly as submitted, or of the module's bytes.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SignatureJson {
    /// The public key, 64 hexadecimal digits.
    pub(crate) key: String,
    /// 128 hexadecimal digits.
    pub(crate) signature: String,
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
    /// A WGSL kernel over a grid, step by step, computed by a crew of nodes together.
    Sim(SimRequest),
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
    /// What an item reads before the first and behind the last element; `clamp` if left out.
    #[serde(default)]
    pub(crate) edge: Option<EdgeJson>,
    /// Brings the outputs of all items together. The result is one of each block of 256 items, in order; the
    /// job's `reduced` says how to go on until one is left.
    #[serde(default)]
    pub(crate) reduce: Option<ReduceJson>,
}

#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum ReduceJson {
    Op(OpJson),
    /// WGSL with a function `combine` of two elements of the output, the earlier one first.
    Code {
        wgsl: String,
    },
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum OpJson {
    /// Of whole numbers in 64 bits.
    Sum,
    Min,
    Max,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum EdgeJson {
    /// The first or the last element.
    #[default]
    Clamp,
    /// The array goes round.
    Wrap,
    /// The array is reflected, its ends included.
    Mirror,
}

impl From<EdgeJson> for Edge {
    fn from(edge: EdgeJson) -> Edge {
        match edge {
            EdgeJson::Clamp => Edge::Clamp,
            EdgeJson::Wrap => Edge::Wrap,
            EdgeJson::Mirror => Edge::Mirror,
        }
    }
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
    /// How many elements away from its own an item may look; found in the kernel if left out.
    #[serde(default)]
    pub(crate) overlap: Option<u32>,
    /// What the bytes are: `f32`, `i32`, `u32`, or the whole element as the kernel writes it, such as
    /// `vec2<f32>`. The job is refused if the kernel reads something else. Left out, the bytes are taken as
    /// whatever the kernel reads.
    #[serde(default, rename = "type")]
    pub(crate) element: Option<String>,
}

/// A map kernel to be looked at, as in a job's request.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct KernelRequest {
    pub(crate) wgsl: String,
    /// The entry point; may be left out if there is only one.
    #[serde(default)]
    pub(crate) entry: Option<String>,
    /// Values for the kernel's parameter block, by member name; they are checked too.
    #[serde(default)]
    pub(crate) params: Map<String, Value>,
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
