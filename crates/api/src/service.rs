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
    /// `exec`.
    pub kind: Cow<'static, str>,
    /// Nodes that always keep it ready.
    pub least: u16,
    /// Nodes that keep it ready at most.
    pub most: u16,
    /// Whether other people's devices may serve it.
    pub strangers: bool,
    pub replicas: Vec<ReplicaJson>,
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
pub struct ReplicaJson {
    pub node: u64,
    pub name: String,
    pub ready: bool,
    pub running: u64,
}
