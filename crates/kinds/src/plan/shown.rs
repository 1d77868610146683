//! What is remembered and shown of a job beside its spec.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};
use shoal_protocol::BlobRef;

use crate::kernel::Kernel;
use crate::map::ReducedJson;
use crate::onnx::TensorJson;
use crate::render::RenderJson;

/// Elements of a result that is one array.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct OutputJson {
    /// The WGSL scalar: `f32`, `i32`, `u32`, `f16`. Of a model also `i64`, `i8`, `u8` and `bool`.
    #[serde(rename = "type")]
    pub scalar: String,
    /// Scalars for each item.
    pub per_item: u32,
}

/// What must be remembered of a job, beside its spec.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Note {
    /// Element type of a map's result.
    pub output: Option<OutputJson>,
    /// Lines in one run of an exec over lines.
    pub lines_per_run: Option<u64>,
    /// Where a map's items look, in sentences, if that is more than one would think.
    #[serde(default)]
    pub looks: Vec<String>,
    /// How a map's blocks are brought together further.
    #[serde(default)]
    pub reduced: Option<ReducedJson>,
}

/// What clients are shown of a job because of its kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Shown {
    pub render: Option<RenderJson>,
    /// Of a model over many inputs: what a row of the result holds, in order. A row belongs to an item.
    pub tensors: Option<Vec<TensorJson>>,
}

/// What a receipt says of what was asked for. Its keys are in order, because it is signed as text.
pub type Settings = serde_json::Map<String, serde_json::Value>;

/// A blob that a job computes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedInput {
    /// `input` of a map, a simulation or a model; `lines`, `file` or `folder` of an exec.
    pub role: &'static str,
    pub name: Option<String>,
    pub hash: String,
    pub size: u64,
}

impl NamedInput {
    pub(crate) fn plain(role: &'static str, blob: &BlobRef) -> NamedInput {
        NamedInput { role, name: None, hash: blob.hash.to_string(), size: blob.size }
    }
}

pub(crate) fn kernel_settings(kernel: &Kernel) -> Settings {
    let mut settings = Settings::new();
    settings.insert("entry".into(), kernel.entry.as_str().into());
    if let Some(params) = &kernel.params {
        settings.insert("params".into(), hex(&params.bytes).into());
    }
    settings
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| alloc::format!("{byte:02x}")).collect()
}
