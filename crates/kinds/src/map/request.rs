//! Asking for a map.

use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::kernel::Edge;

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MapRequest {
    pub wgsl: String,
    /// The entry point; may be left out if there is only one.
    #[serde(default)]
    pub entry: Option<String>,
    /// One for each read-only array of the kernel, in binding order.
    #[serde(default)]
    pub inputs: Vec<MapInputRequest>,
    /// How many items there are; needed when no input is split.
    #[serde(default)]
    pub items: Option<u64>,
    /// Elements of output for each item. Default: 1.
    #[serde(default)]
    pub out_per_item: Option<u32>,
    /// Values for the kernel's parameter block, by member name.
    #[serde(default)]
    pub params: Map<String, Value>,
    /// What an item reads before the first and behind the last element. Default: `clamp`.
    #[serde(default)]
    pub edge: Option<EdgeJson>,
    /// Brings the outputs of all items together. The result is one of each block of 256 items, in order; the
    /// job's `reduced` says how to go on until one is left.
    #[serde(default)]
    pub reduce: Option<ReduceJson>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(untagged)]
pub enum ReduceJson {
    Op(OpJson),
    /// WGSL with a function `combine` of two elements of the output, the earlier one first.
    Code {
        wgsl: String,
    },
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum OpJson {
    /// Of whole numbers in 64 bits.
    Sum,
    Min,
    Max,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum EdgeJson {
    /// The first or the last element.
    #[default]
    Clamp,
    /// The array goes round.
    Wrap,
    /// The array is reflected, its ends included.
    Mirror,
}

impl From<EdgeJson> for Edge {
    fn from(edge: EdgeJson) -> Edge {
        match edge {
            EdgeJson::Clamp => Edge::Clamp,
            EdgeJson::Wrap => Edge::Wrap,
            EdgeJson::Mirror => Edge::Mirror,
        }
    }
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MapInputRequest {
    /// Hash of the array's bytes.
    pub blob: String,
    /// Every unit gets all of it, instead of its share.
    #[serde(default)]
    pub whole: bool,
    /// Elements for each item. Default: 1.
    #[serde(default)]
    pub per_item: Option<u32>,
    /// How many elements away from its own an item may look. Default: what the kernel does.
    #[serde(default)]
    pub overlap: Option<u32>,
    /// What the bytes are: `f32`, `i32`, `u32`, or the whole element as the kernel writes it, such as
    /// `vec2<f32>`. The job is refused if the kernel reads something else. Left out, the bytes are taken as
    /// whatever the kernel reads.
    #[serde(default, rename = "type")]
    pub element: Option<String>,
}

/// A map kernel to be looked at, as in a job's request.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct KernelRequest {
    pub wgsl: String,
    /// The entry point; may be left out if there is only one.
    #[serde(default)]
    pub entry: Option<String>,
    /// Values for the kernel's parameter block, by member name; they are checked too.
    #[serde(default)]
    pub params: Map<String, Value>,
}
