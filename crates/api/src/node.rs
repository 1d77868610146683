//! What is shown of nodes and of the pool.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct NodesJson {
    pub nodes: Vec<NodeJson>,
    /// With `all`: devices that computed here and are not connected, by number.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(required))]
    pub left: Vec<LeftNodeJson>,
}

/// A device that was here.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct LeftNodeJson {
    pub id: u64,
    /// What it last called itself.
    pub name: String,
    pub kind: NodeKindJson,
    /// It was your own device.
    pub trusted: bool,
    pub trust: TrustsJson,
    /// Units of its that counted, ever.
    pub units_done: u64,
    pub units_failed: u64,
    /// To about a minute.
    pub last_seen: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct NodeJson {
    pub id: u64,
    pub name: String,
    pub kind: NodeKindJson,
    pub gpu: Option<GpuJson>,
    pub cpu_slots: u16,
    /// Bytes of memory lent: all work that runs there at once stays within it.
    pub memory: u64,
    /// Threads that all work there may have together.
    pub threads: u16,
    /// What computes there, by the name jobs ask for it.
    pub engines: Vec<EngineJson>,
    /// Declared speed; 100 is a middling laptop.
    pub speed: u32,
    /// Measured items per second.
    pub rate: f64,
    /// Percent of its slots at work.
    pub load: u8,
    pub leases: u64,
    pub running: u64,
    pub job: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(nullable = false))]
    pub job_name: Option<String>,
    pub paused: bool,
    /// Its public key, 64 hexadecimal digits.
    pub identity: String,
    /// Nodes of one class agree bit for bit on floating-point numbers. 16 hexadecimal digits; `null` is unknown.
    pub class: Option<String>,
    /// Your own device (it joined with the API key). Its answers are not checked.
    pub trusted: bool,
    /// From the coordinator to it and back.
    pub round_trip_ms: Option<f64>,
    /// Its recent speed, in percent of its best.
    pub pace_percent: u8,
    pub condition: ConditionJson,
    pub trust: TrustsJson,
    pub units_done: u64,
    pub units_failed: u64,
    /// Bytes of blobs it sent to other nodes.
    pub gave_bytes: u64,
    /// How many nodes say that it sent them wrong bytes.
    pub gave_wrong: u64,
    pub joined: u64,
}

/// What a node is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum NodeKindJson {
    #[default]
    Native,
    Browser,
    Simulated,
}

impl NodeKindJson {
    pub fn word(self) -> &'static str {
        match self {
            NodeKindJson::Native => "native",
            NodeKindJson::Browser => "browser",
            NodeKindJson::Simulated => "simulated",
        }
    }
}

/// How its device is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct ConditionJson {
    /// The page is in front.
    pub visible: bool,
    pub battery_percent: Option<u8>,
    pub charging: bool,
    pub metered: bool,
}

/// How a node's answers turned out so far, by kind of work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct TrustsJson {
    pub gpu: TrustJson,
    pub cpu: TrustJson,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct TrustJson {
    /// Right answers in a row.
    pub streak: u32,
    /// Wrong answers not yet made up for.
    pub wrong: u32,
    /// Wrong too often: it gets no more of this work.
    pub barred: bool,
    /// Right so often that only some answers are checked.
    pub veteran: bool,
}

/// Something that computes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct EngineJson {
    pub name: String,
    pub version: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct GpuJson {
    pub name: String,
    pub backend: String,
    /// A CPU that plays GPU.
    pub software: bool,
    /// Bytes for all buffers of units that run at once; `null` if nobody knows.
    pub memory: Option<u64>,
    /// Bytes of the largest buffer.
    pub buffer_bytes: u64,
    pub workgroup_invocations: u32,
    pub workgroup_bytes: u32,
    pub storage_buffers: u32,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct PoolJson {
    /// The link that lets a device join.
    pub join: String,
    /// Whether other devices can open that link. If not, the coordinator listens for this machine only, or has no
    /// address in a network.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(required))]
    pub reachable: bool,
    /// The coordinator's public key, 64 hexadecimal digits: signs receipts, and code that came unsigned.
    pub key: String,
    pub version: Cow<'static, str>,
    pub nodes: u64,
    pub offers: OffersJson,
    /// Crews at work.
    pub crews: u64,
    /// How often the members of one changed.
    pub epochs: u64,
    pub relay: RelayJson,
    pub blobs: PoolBlobsJson,
}

/// How blobs reach nodes, in bytes since the coordinator's start.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct PoolBlobsJson {
    /// Given by the coordinator.
    pub served: u64,
    /// Given by one node to another.
    pub exchanged: u64,
    /// Pairs of nodes that can exchange some now.
    pub links: u64,
}

/// What nodes said to each other through the coordinator, since its start.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct RelayJson {
    pub frames: u64,
    pub bytes: u64,
    /// Of those bytes, by WebSocket.
    pub socket: WayJson,
    /// Of those bytes, by QUIC.
    pub quic: WayJson,
    /// Ways by QUIC that nodes opened.
    pub quic_opened: u64,
    /// Connections by QUIC that were refused.
    pub quic_refused: u64,
    /// Frames not passed on, by reason.
    pub dropped: BTreeMap<Cow<'static, str>, u64>,
}

/// Bytes that came by one way, and bytes that left by it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct WayJson {
    #[serde(rename = "in")]
    pub came: u64,
    #[serde(rename = "out")]
    pub left: u64,
}

/// The most any one node offers, and sums where they make sense.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct OffersJson {
    pub gpu_nodes: u64,
    pub cpu_slots: u64,
    /// Bytes of memory, all nodes together.
    pub memory: u64,
    /// Bytes of memory, the most of one node.
    pub largest_memory: u64,
    /// Bytes of the largest GPU buffer.
    pub largest_buffer: u64,
    pub workgroup_invocations: u32,
    pub workgroup_bytes: u32,
    pub storage_buffers: u32,
}
