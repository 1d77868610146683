//! What the coordinator says over HTTP, as far as the client verbs read it. Fields they do not know
//! are kept, so that `--json` prints everything the coordinator said.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What a result is made of.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Elements {
    #[serde(rename = "type")]
    pub(crate) scalar: String,
    pub(crate) per_item: u32,
}

/// How blocks of a map's outputs are brought together further.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Reduced {
    pub(crate) items: u64,
    pub(crate) element: String,
    pub(crate) columns: u32,
    pub(crate) combine: String,
    pub(crate) copy: String,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Job {
    pub(crate) id: u64,
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) owner: String,
    pub(crate) kind: String,
    pub(crate) state: State,
    pub(crate) items: u64,
    pub(crate) items_done: u64,
    #[serde(default)]
    pub(crate) rate: f64,
    #[serde(default)]
    pub(crate) eta_seconds: Option<f64>,
    #[serde(default)]
    pub(crate) able_nodes: u64,
    #[serde(default)]
    pub(crate) verify: String,
    #[serde(default)]
    pub(crate) units_done: u64,
    #[serde(default)]
    pub(crate) units_checking: u64,
    #[serde(default)]
    pub(crate) units_checked: u64,
    #[serde(default)]
    pub(crate) units_own: u64,
    #[serde(default)]
    pub(crate) units_unchecked: u64,
    #[serde(default)]
    pub(crate) notes: Vec<String>,
    #[serde(default)]
    pub(crate) output: Option<Elements>,
    #[serde(default)]
    pub(crate) reduced: Option<Reduced>,
    #[serde(default)]
    pub(crate) submitted: Option<u64>,
    #[serde(default)]
    pub(crate) started: Option<u64>,
    #[serde(default)]
    pub(crate) ended: Option<u64>,
    #[serde(default)]
    pub(crate) shares: Vec<Share>,
    #[serde(default)]
    pub(crate) error: Option<JobError>,
    #[serde(default)]
    pub(crate) render: Option<RenderInfo>,
    #[serde(default)]
    pub(crate) sim: Option<SimInfo>,
    #[serde(flatten)]
    pub(crate) rest: Map<String, Value>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum State {
    Running,
    Done,
    Failed,
    Cancelled,
}

impl State {
    pub(crate) fn name(self) -> &'static str {
        match self {
            State::Running => "running",
            State::Done => "done",
            State::Failed => "failed",
            State::Cancelled => "cancelled",
        }
    }

    pub(crate) fn has_ended(self) -> bool {
        self != State::Running
    }
}

/// How much of a job one node did.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Share {
    pub(crate) node: u64,
    #[serde(default)]
    pub(crate) name: String,
    pub(crate) items: u64,
    #[serde(default)]
    pub(crate) units: u64,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct JobError {
    pub(crate) message: String,
    #[serde(default)]
    pub(crate) stderr: Option<String>,
    #[serde(flatten)]
    pub(crate) rest: Map<String, Value>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct RenderInfo {
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) tile: u32,
    pub(crate) pixel: String,
    #[serde(flatten)]
    pub(crate) rest: Map<String, Value>,
}

/// How a simulation gets on.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct SimInfo {
    pub(crate) steps: u64,
    /// Steps that all members have done.
    pub(crate) step: u64,
    /// What the members last made of all cells.
    #[serde(default)]
    pub(crate) reduced: Option<SimTotal>,
    #[serde(default)]
    pub(crate) crew: Option<CrewInfo>,
    #[serde(flatten)]
    pub(crate) rest: Map<String, Value>,
}

/// All cells brought together.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct SimTotal {
    pub(crate) how: String,
    pub(crate) step: u64,
    pub(crate) values: Vec<Option<f64>>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CrewInfo {
    pub(crate) state: String,
    #[serde(default)]
    pub(crate) members: Vec<CrewMember>,
    #[serde(default)]
    pub(crate) step_ms: Option<f64>,
    #[serde(flatten)]
    pub(crate) rest: Map<String, Value>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct CrewMember {
    #[serde(default)]
    pub(crate) name: String,
    #[serde(flatten)]
    pub(crate) rest: Map<String, Value>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Node {
    pub(crate) id: u64,
    pub(crate) name: String,
    pub(crate) kind: String,
    #[serde(default)]
    pub(crate) gpu: Option<Gpu>,
    #[serde(default)]
    pub(crate) cpu_slots: u64,
    #[serde(default)]
    pub(crate) memory: u64,
    #[serde(default)]
    pub(crate) rate: f64,
    #[serde(default)]
    pub(crate) load: f64,
    #[serde(default)]
    pub(crate) job: Option<u64>,
    #[serde(default)]
    pub(crate) paused: bool,
    #[serde(default)]
    pub(crate) units_done: u64,
    #[serde(default)]
    pub(crate) units_failed: u64,
    /// Its public key.
    #[serde(default)]
    pub(crate) identity: String,
    /// The operator's own.
    #[serde(default)]
    pub(crate) trusted: bool,
    #[serde(default)]
    pub(crate) round_trip_ms: Option<f64>,
    #[serde(default)]
    pub(crate) condition: Condition,
    #[serde(default)]
    pub(crate) trust: Trusts,
    #[serde(flatten)]
    pub(crate) rest: Map<String, Value>,
}

/// How a device is doing.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Condition {
    pub(crate) visible: bool,
    pub(crate) battery_percent: Option<u8>,
    pub(crate) charging: bool,
    pub(crate) metered: bool,
}

impl Default for Condition {
    fn default() -> Condition {
        Condition { visible: true, battery_percent: None, charging: false, metered: false }
    }
}

/// What a node's answers were worth, by kind of work.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct Trusts {
    pub(crate) gpu: Trust,
    pub(crate) cpu: Trust,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct Trust {
    /// Answers in a row that were checked and right.
    pub(crate) streak: u32,
    /// Wrong answers not made up for.
    pub(crate) wrong: u32,
    pub(crate) barred: bool,
    pub(crate) veteran: bool,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Gpu {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) software: bool,
    #[serde(flatten)]
    pub(crate) rest: Map<String, Value>,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct JobList {
    pub(crate) jobs: Vec<Job>,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct NodeList {
    pub(crate) nodes: Vec<Node>,
}

/// Sentences, in order.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Lines {
    pub(crate) lines: Vec<String>,
}

/// Stored bytes, as a job request names them.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct Blob {
    pub(crate) hash: String,
    pub(crate) size: u64,
}

/// The body of every error answer.
#[derive(Debug, Deserialize)]
pub(crate) struct ErrorBody {
    pub(crate) error: ErrorInfo,
}

#[derive(Debug, Deserialize)]
pub(crate) struct ErrorInfo {
    pub(crate) code: String,
    pub(crate) message: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ServiceList {
    pub(crate) services: Vec<ServiceInfo>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ServiceInfo {
    pub(crate) name: String,
    pub(crate) replicas: Vec<ReplicaInfo>,
    pub(crate) waiting: u64,
    pub(crate) running: u64,
    pub(crate) answered: u64,
    pub(crate) failed: u64,
    pub(crate) repeated: u64,
    pub(crate) trouble: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ReplicaInfo {
    pub(crate) name: String,
    pub(crate) ready: bool,
    pub(crate) running: u64,
}
