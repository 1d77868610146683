//! Models, in the words of the Open Inference Protocol, version 2.

use serde::{Deserialize, Serialize};

use crate::BlobJson;

/// Who answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ServerJson {
    pub name: String,
    pub version: String,
    pub extensions: Vec<String>,
}

/// Whether the coordinator runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct LiveJson {
    pub live: bool,
}

/// Whether it, or a model of it, may be asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ReadyJson {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(nullable = false))]
    pub name: Option<String>,
    pub ready: bool,
}

/// What a model takes and gives.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ModelJson {
    pub name: String,
    pub versions: Vec<String>,
    pub platform: String,
    pub inputs: Vec<PortJson>,
    pub outputs: Vec<PortJson>,
    /// The ONNX file. The protocol does not have this.
    pub file: BlobJson,
    /// The parts that devices share if the model is split; empty if it runs whole. The protocol does not have this.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<ModelPartJson>,
}

/// A part of a model, a file of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct ModelPartJson {
    /// Operators that it computes, and numbers it holds for them.
    pub operators: u32,
    pub parameters: u64,
    /// Bytes of its file, and of the tensors that it hands on.
    pub bytes: u64,
    pub out_bytes: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct PortJson {
    pub name: String,
    /// `FP32`, `UINT8`, ...
    pub datatype: String,
    /// -1 where a request decides.
    pub shape: Vec<i64>,
}
