//! What is shown of nodes and of the pool.

use std::collections::BTreeMap;

use serde::Serialize;
use utoipa::ToSchema;

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
    /// Bytes of memory lent: all units that run at once stay within it.
    pub(crate) memory: u64,
    /// Threads for all of them.
    pub(crate) threads: u16,
    pub(crate) engines: Vec<EngineJson>,
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
    /// Its public key, 64 hexadecimal digits.
    pub(crate) identity: String,
    /// Which numbers its floating point gives, 16 hexadecimal digits: nodes of one class agree bit for bit.
    pub(crate) class: Option<String>,
    /// The operator's own: its word decides.
    pub(crate) trusted: bool,
    /// Between it and the coordinator and back.
    pub(crate) round_trip_ms: Option<f64>,
    /// Its rate in percent of its best.
    pub(crate) pace_percent: u8,
    pub(crate) condition: ConditionJson,
    pub(crate) trust: TrustsJson,
    pub(crate) units_done: u64,
    pub(crate) units_failed: u64,
    /// Bytes of blobs it gave to other nodes.
    pub(crate) gave_bytes: u64,
    /// How many nodes say that it gave them wrong ones.
    pub(crate) gave_wrong: u64,
    pub(crate) joined: u64,
}

/// How its device is doing.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ConditionJson {
    /// The page is in front.
    pub(crate) visible: bool,
    pub(crate) battery_percent: Option<u8>,
    pub(crate) charging: bool,
    pub(crate) metered: bool,
}

/// What its answers were worth, by kind of work.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct TrustsJson {
    pub(crate) gpu: TrustJson,
    pub(crate) cpu: TrustJson,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct TrustJson {
    /// Answers in a row that were checked and right.
    pub(crate) streak: u32,
    /// Wrong answers not yet made up for.
    pub(crate) wrong: u32,
    /// Wrong so often that it gets no more.
    pub(crate) barred: bool,
    /// Right so often that not all is checked.
    pub(crate) veteran: bool,
}

/// Something that computes, by the name jobs ask for it.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct EngineJson {
    pub(crate) name: String,
    pub(crate) version: String,
    /// What it does in a second by its own measure; left out if nobody measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) speed: Option<f64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct GpuJson {
    pub(crate) name: String,
    pub(crate) backend: String,
    /// A CPU that plays GPU.
    pub(crate) software: bool,
    /// Bytes for all buffers of units that run at once; `null` if nobody knows.
    pub(crate) memory: Option<u64>,
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
    /// The coordinator's public key, which receipts are signed with: 64 hexadecimal digits.
    pub(crate) key: String,
    pub(crate) version: &'static str,
    pub(crate) nodes: u64,
    pub(crate) offers: OffersJson,
    /// Crews at work, and how often the members of one changed.
    pub(crate) crews: u64,
    pub(crate) epochs: u64,
    pub(crate) relay: RelayJson,
    pub(crate) blobs: PoolBlobsJson,
}

/// How blobs reach nodes, in bytes since the coordinator's start.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
pub(crate) struct PoolBlobsJson {
    /// Given by the coordinator.
    pub(crate) served: u64,
    /// Given by one node to another.
    pub(crate) exchanged: u64,
    /// Pairs of nodes that can exchange some now.
    pub(crate) links: u64,
}

/// What nodes said to each other through the coordinator, since its start.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RelayJson {
    pub(crate) frames: u64,
    pub(crate) bytes: u64,
    /// Of those bytes.
    pub(crate) socket: WayJson,
    pub(crate) quic: WayJson,
    /// Ways by QUIC that nodes opened, and connections that were refused there.
    pub(crate) quic_opened: u64,
    pub(crate) quic_refused: u64,
    /// Frames not passed on, by reason.
    pub(crate) dropped: BTreeMap<&'static str, u64>,
}

/// Bytes that came by one way, and bytes that left by it.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct WayJson {
    #[serde(rename = "in")]
    pub(crate) came: u64,
    #[serde(rename = "out")]
    pub(crate) left: u64,
}

/// The most any one node offers, and sums where they make sense.
#[derive(Clone, Copy, Debug, Default, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OffersJson {
    pub(crate) gpu_nodes: u64,
    pub(crate) cpu_slots: u64,
    /// Bytes of memory, all nodes together, and the most of one.
    pub(crate) memory: u64,
    pub(crate) largest_memory: u64,
    /// Bytes of the largest GPU buffer.
    pub(crate) largest_buffer: u64,
    pub(crate) workgroup_invocations: u32,
    pub(crate) workgroup_bytes: u32,
    pub(crate) storage_buffers: u32,
}
