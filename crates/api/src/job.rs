//! What is shown of jobs.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use shoal_kinds::map::ReducedJson;
use shoal_kinds::plan::{OutputJson, Shown};

use super::{PriorityJson, SimJson};

#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct SubmitJobJson {
    pub job_id: u64,
    /// `submitted`, or with `?wait` how it ended: `done`, `failed`, `cancelled`.
    pub status: String,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct JobJson {
    pub id: u64,
    pub name: String,
    pub owner: String,
    /// `noop`, `map`, `render`, `exec`, `sim` or `onnx`.
    pub kind: Cow<'static, str>,
    pub state: StateJson,
    pub items: u64,
    pub items_done: u64,
    /// Of those done: the program failed on them. `GET /api/v1/jobs/{id}/failures` lists them.
    pub items_failed: u64,
    pub items_leased: u64,
    pub units_done: u64,
    pub units_leased: u64,
    /// Units given to another node because the first one left, stalled or failed.
    pub retries: u64,
    /// Units given to a second node because the first one was slow.
    pub speculated: u64,
    /// Units that are computed and wait for another device to check them.
    pub units_checking: u64,
    /// Of the units done: another device computed them too, whole or in part, with the same answer. Under
    /// `quorum:N`, N devices agreed.
    pub units_checked: u64,
    /// Of the units done: computed by your own devices, not checked.
    pub units_own: u64,
    /// Of the units done: not checked, because no other device could check a stranger's answer, or because
    /// `verify` is `none`.
    pub units_unchecked: u64,
    /// How answers are checked, as in the request.
    pub verify: String,
    pub priority: PriorityJson,
    /// Its share among jobs of the same priority. Default: 100.
    pub weight: u16,
    /// The key that signed its code.
    pub signed_by: Option<String>,
    /// Whether that is the coordinator's own key, because the code came unsigned.
    pub signed_here: bool,
    /// Milliseconds since 1970, as JavaScript's `Date.now()` counts them. So are all moments here.
    pub submitted: u64,
    pub started: Option<u64>,
    pub ended: Option<u64>,
    /// Items per second lately.
    pub rate: f64,
    pub eta_seconds: Option<f64>,
    /// Nodes connected now that could compute this job.
    pub able_nodes: u64,
    /// What it waits for, as a sentence, if it is not being computed.
    #[serde(default)]
    pub waits_for: Option<String>,
    pub shares: Vec<ShareJson>,
    pub error: Option<JobErrorJson>,
    pub result: ResultJson,
    #[serde(flatten)]
    pub shown: Shown,
    pub sim: Option<SimJson>,
    /// Of a map or a simulation.
    pub output: Option<OutputJson>,
    /// What whoever submitted it should know, in sentences.
    pub notes: Vec<String>,
    /// Of a map whose outputs are brought together: how to go on.
    pub reduced: Option<ReducedJson>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum StateJson {
    #[default]
    Running,
    Done,
    Failed,
    Cancelled,
}

impl StateJson {
    pub fn word(self) -> &'static str {
        match self {
            StateJson::Running => "running",
            StateJson::Done => "done",
            StateJson::Failed => "failed",
            StateJson::Cancelled => "cancelled",
        }
    }

    pub fn has_ended(self) -> bool {
        self != StateJson::Running
    }
}

/// Inputs on which the program failed, in order.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct FailuresJson {
    pub failures: Vec<FailureJson>,
    /// There are more: ask for those `from` here.
    pub next: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct FailureJson {
    /// Counted from 0.
    pub item: u64,
    /// The input's name or line number.
    pub input: Option<String>,
    /// None if the program trapped or went over a limit.
    pub exit_code: Option<i32>,
    /// The limit that it went over, if it did.
    #[serde(default)]
    pub limit: Option<LimitJson>,
    /// How the program ended, as a sentence.
    pub message: String,
    /// The end of what it wrote to stderr.
    pub stderr: String,
}

/// What runs left beside their answers, in order.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct LeftListJson {
    pub left: Vec<LeftJson>,
    /// There are more: ask for those `from` here.
    pub next: Option<u64>,
}

/// Of a run that did not fail.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct LeftJson {
    /// Counted from 0.
    pub item: u64,
    /// The input's name or line number.
    pub input: Option<String>,
    /// The end of what the program wrote to stderr.
    pub stderr: String,
    /// What it left in `/out`, in the order of their paths.
    pub files: Vec<LeftFileJson>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct LeftFileJson {
    /// With `/` between folders. The device says it: it may be anything.
    pub path: String,
    pub size: u64,
}

/// What a run may not take more of than its job allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum LimitJson {
    Time,
    Memory,
    Output,
}

/// How much of a job one node did.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ShareJson {
    pub node: u64,
    pub name: String,
    pub items: u64,
    pub units: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct JobErrorJson {
    /// A whole sentence: which input, which limit, which nodes.
    pub message: String,
    /// The item at fault, counted from 0.
    pub item: Option<u64>,
    /// The input's name or line number.
    pub input: Option<String>,
    /// The end of what the program wrote to stderr.
    pub stderr: String,
    pub nodes: Vec<String>,
}

#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct ResultJson {
    pub form: FormJson,
    /// Size of the whole result; for exec, of what is there so far.
    pub bytes: u64,
    /// Bytes of each item, where all have the same.
    pub item_bytes: Option<u64>,
    /// For exec: bytes of what runs left beside their answers so far: files, the ends of stderr, and how those ended that
    /// failed. If it is 0, `GET /api/v1/jobs/{id}/left` lists nothing.
    #[serde(default)]
    pub bytes_left: u64,
}

/// What a result is made of, whatever kind of work gave it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum FormJson {
    /// There is none.
    #[default]
    Nothing,
    /// So many bytes for each item, in order.
    Items,
    /// Square tiles of a picture.
    Tiles,
    /// Answers of any length, one for each item.
    Answers,
    /// Tensors for each item.
    Rows,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct JobsJson {
    pub jobs: Vec<JobJson>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct UnitsJson {
    pub units: Vec<UnitJson>,
    /// Whether there are more than are shown.
    pub truncated: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct UnitJson {
    pub start: u64,
    pub len: u64,
    pub state: UnitStateJson,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(nullable = false))]
    pub node: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum UnitStateJson {
    Waiting,
    Leased,
    Done,
}
