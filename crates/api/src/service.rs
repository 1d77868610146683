//! Services, as clients see them.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ServicesJson {
    pub services: Vec<ServiceJson>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ServiceJson {
    pub id: u64,
    pub name: String,
    pub owner: String,
    /// `exec`, `onnx` or `llm`.
    pub kind: Cow<'static, str>,
    /// Nodes that always keep it ready.
    pub least: u16,
    /// Nodes that keep it ready at most.
    pub most: u16,
    /// Whether other people's devices may serve it.
    pub strangers: bool,
    /// `never`, `auto`, or how many devices keep it ready together.
    pub split: Cow<'static, str>,
    /// Devices that keep all of it ready.
    pub replicas: Vec<ReplicaJson>,
    /// Devices that keep it ready together, each some of its parts.
    pub crew: Option<SplitJson>,
    /// Requests that wait.
    pub waiting: u64,
    /// Requests that are being answered.
    pub running: u64,
    /// Requests answered since the coordinator started.
    pub answered: u64,
    /// Requests that failed since then.
    pub failed: u64,
    /// Requests that went to another node because the first one was lost.
    pub repeated: u64,
    /// Why the last node that tried could not keep it ready.
    pub trouble: Option<String>,
}

/// A node that keeps a service ready.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct ReplicaJson {
    pub node: u64,
    pub name: String,
    pub ready: bool,
    pub running: u64,
    /// Bytes of its file that are there and that it needs, while a large one comes in pieces; before and after that `null`.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(required))]
    pub fetched_bytes: Option<u64>,
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(required))]
    pub needed_bytes: Option<u64>,
}

/// Why a service is kept ready by those who do, and what other numbers of devices would bring.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ExplainServiceJson {
    /// All of it in words, one sentence in each line.
    pub lines: Vec<String>,
    /// What times are for: `token` or `request`.
    pub each: Cow<'static, str>,
    /// Those in use, and the best of each other number of devices.
    pub placements: Vec<PlacementJson>,
    /// The devices that are here, those first that can keep it ready; at most 100.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(required))]
    pub devices: Vec<AbleJson>,
}

/// A device as one that could keep a service ready.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct AbleJson {
    pub node: u64,
    pub name: String,
    /// `whole`, `parts` (some of it, together with others) or `nothing`.
    pub can: Cow<'static, str>,
    /// Why it cannot keep all of it.
    pub why: Option<String>,
    /// What would compute there, with its version.
    pub engines: Vec<String>,
}

/// Devices that keep a service ready together, or could; one device has all of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct PlacementJson {
    /// In the order in which requests go through them.
    pub devices: Vec<PlacedJson>,
    /// It is the one in use.
    pub used: bool,
    pub predicted_ms: Option<f64>,
    /// Of requests that were the only one at work.
    pub measured_ms: Option<f64>,
    /// Answers that were measured.
    pub answers: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct PlacedJson {
    pub node: u64,
    pub name: String,
    pub parts: u64,
    /// Whether its speed for this service is measured. If not, predictions follow what it says of its own speed.
    pub measured: bool,
}

/// Devices that keep one service ready together.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct SplitJson {
    /// Counts the changes of who is in it.
    pub epoch: u64,
    pub ready: bool,
    /// Requests that are on their way through it.
    pub running: u64,
    /// All of them compute each request together, each a share of all of it; otherwise they do so one after another.
    pub side_by_side: bool,
    /// In the order in which requests go through them.
    pub stages: Vec<StageJson>,
    /// What a request should take, by what was known when the devices were chosen.
    pub predicted_ms: f64,
    /// The same on the fastest device alone, if it fits there.
    pub alone_ms: Option<f64>,
}

/// One of them.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct StageJson {
    pub node: u64,
    pub name: String,
    /// The first of its parts, counted from 0, and how many it has.
    pub first_part: u64,
    pub parts: u64,
    /// Bytes of memory that they take.
    pub memory: u64,
    pub ready: bool,
    /// Requests that went through since the devices last changed.
    pub done: u64,
    /// Milliseconds of computing for one request, and of waiting before it, on average.
    pub compute_ms: Option<f64>,
    pub wait_ms: Option<f64>,
    /// Bytes handed to the next device for one request.
    pub hand_on_bytes: Option<u64>,
    /// Milliseconds until the next device says that it has them.
    pub travel_ms: Option<f64>,
    /// How they travel: `direct` or `relay`.
    pub via: Option<Cow<'static, str>>,
}
