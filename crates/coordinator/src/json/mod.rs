//! What clients read and write: the types of the HTTP API, as its OpenAPI document shows them.

mod job;
mod newcomer;
mod node;
mod receipt;
mod service;
mod sim;

pub(crate) use job::*;
pub(crate) use newcomer::*;
pub(crate) use node::*;
pub(crate) use receipt::*;
pub(crate) use service::*;
pub(crate) use sim::*;

pub(crate) use shoal_kinds::map::{KernelJson, KernelRequest, MapRequest};
pub(crate) use shoal_kinds::plan::{
    CommonRequest, JobRequest, OutputJson, PriorityJson, WorkRequest,
};

use serde::{Deserialize, Serialize};
use serde_json::Value;
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

#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct TilesJson {
    pub(crate) tiles: Vec<u64>,
}

/// Why things are as they are, one sentence in each line.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct ExplainJson {
    pub(crate) lines: Vec<String>,
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
