//! What clients and the coordinator say to each other over HTTP, as JSON. Pure: the coordinator writes these types,
//! the command line's client reads them, and the OpenAPI document and the SDK's types are made from them
//! (`cargo xtask types`). What is asked for of one kind of work is in its folder in `shoal-kinds`.
//!
//! A client also reads the answers of a coordinator that is newer or older than itself. Fields it does not know are
//! skipped. A field that is added here gets `#[serde(default)]`, and `schema(required)` because it is always said.
//! What may be `null` is always said too; what may be missing is never `null` (`schema(nullable = false)`).

mod beside;
mod job;
mod model;
mod newcomer;
mod node;
mod receipt;
#[cfg(feature = "schema")]
pub mod schema;
mod service;
mod sim;

pub use beside::*;
pub use job::*;
pub use model::*;
pub use newcomer::*;
pub use node::*;
pub use receipt::*;
pub use service::*;
pub use sim::*;

pub use shoal_kinds::exec::{ExecRequest, FileRequest, LinesRequest, OnErrorJson};
pub use shoal_kinds::llm::LlmRequest;
pub use shoal_kinds::map::{
    EdgeJson, KernelJson, KernelRequest, MapInputRequest, MapRequest, OpJson, ReduceJson,
};
pub use shoal_kinds::noop::NoopRequest;
pub use shoal_kinds::onnx::{OnnxInputRequest, OnnxRequest, TensorJson};
pub use shoal_kinds::plan::{
    CommonRequest, JobRequest, LimitsJson, OutputJson, PriorityJson, ServiceCommon, ServiceRequest,
    SignatureJson, StrategyJson, ToleranceJson, WorkRequest,
};
pub use shoal_kinds::render::{RenderJson, RenderRequest};
pub use shoal_kinds::sim::SimRequest;

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Bytes that are stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct BlobJson {
    /// BLAKE3 of the bytes, 64 hexadecimal digits.
    pub hash: String,
    pub size: u64,
}

/// How much of an upload is held so far.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct PartialJson {
    pub offset: u64,
}

/// What is not computed of a job.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct MissingJson {
    pub items: u64,
    /// Items that are computed.
    pub done: u64,
    /// The others, in order.
    pub missing: Vec<SpanJson>,
}

/// Consecutive items.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct SpanJson {
    /// The first one, counted from 0.
    pub start: u64,
    pub len: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct TilesJson {
    pub tiles: Vec<u64>,
}

/// Why things are as they are, one sentence in each line.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ExplainJson {
    pub lines: Vec<String>,
}

/// Every error's body.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ErrorJson {
    pub error: ErrorBody,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ErrorBody {
    /// For machines, stable.
    pub code: Cow<'static, str>,
    /// For people.
    pub message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(nullable = false))]
    pub details: Option<Value>,
}
