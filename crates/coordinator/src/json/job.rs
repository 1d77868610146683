//! What is shown of jobs.

use serde::Serialize;
use shoal_kinds::map::ReducedJson;
use shoal_kinds::plan::{OutputJson, Shown};
use utoipa::ToSchema;

use super::{PriorityJson, SimJson};

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
    /// `noop`, `map`, `render`, `exec` or `sim`.
    pub(crate) kind: &'static str,
    pub(crate) state: StateJson,
    pub(crate) items: u64,
    pub(crate) items_done: u64,
    pub(crate) items_leased: u64,
    pub(crate) units_done: u64,
    pub(crate) units_leased: u64,
    /// Units lent again after a node left, stalled or failed.
    pub(crate) retries: u64,
    /// Copies lent because others were late.
    pub(crate) speculated: u64,
    /// Units whose answers are there and wait for another device to check them.
    pub(crate) units_checking: u64,
    /// Of the units done, those that another device computed too, whole or in part, with the same answer;
    /// under `quorum:N`, those that N devices agreed on.
    pub(crate) units_checked: u64,
    /// Of the units done, those that your own devices computed and nobody checked.
    pub(crate) units_own: u64,
    /// Of the units done, those that nobody checked: a stranger's that nobody else could check, and all
    /// where the policy is `none`.
    pub(crate) units_unchecked: u64,
    /// How answers are checked, as in the request.
    pub(crate) verify: String,
    pub(crate) priority: PriorityJson,
    pub(crate) weight: u16,
    /// Public key of whoever stands for the code.
    pub(crate) signed_by: Option<String>,
    /// Whether that is the coordinator itself, because the code came unsigned.
    pub(crate) signed_here: bool,
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
    #[serde(flatten)]
    pub(crate) shown: Shown,
    pub(crate) sim: Option<SimJson>,
    pub(crate) output: Option<OutputJson>,
    /// What whoever submitted it should know, in sentences.
    pub(crate) notes: Vec<String>,
    /// Of a map whose outputs are brought together.
    pub(crate) reduced: Option<ReducedJson>,
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
