//! Services, as clients see them.

use serde::Serialize;
use utoipa::ToSchema;

#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct ServicesJson {
    pub(crate) services: Vec<ServiceJson>,
}

#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct ServiceJson {
    pub(crate) id: u64,
    pub(crate) name: String,
    pub(crate) owner: String,
    /// `exec`.
    pub(crate) kind: &'static str,
    /// Nodes that keep it ready: at least and at most.
    pub(crate) least: u16,
    pub(crate) most: u16,
    /// Whether other people's devices may serve it.
    pub(crate) strangers: bool,
    pub(crate) replicas: Vec<ReplicaJson>,
    /// Requests that wait, and that are being answered.
    pub(crate) waiting: u64,
    pub(crate) running: u64,
    /// Since the coordinator started.
    pub(crate) answered: u64,
    pub(crate) failed: u64,
    /// Requests that were asked again because their node was lost.
    pub(crate) repeated: u64,
    /// Why the last node that tried could not keep it ready.
    pub(crate) trouble: Option<String>,
}

/// A node that keeps a service ready.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct ReplicaJson {
    pub(crate) node: u64,
    pub(crate) name: String,
    pub(crate) ready: bool,
    pub(crate) running: u64,
}
