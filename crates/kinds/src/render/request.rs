//! Asking for a picture.

use alloc::string::String;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct RenderRequest {
    pub wgsl: String,
    #[serde(default)]
    pub entry: Option<String>,
    pub width: u32,
    pub height: u32,
    /// Default: 1.
    #[serde(default)]
    pub samples: Option<u32>,
    /// Edge of a tile in pixels. Default: 64.
    #[serde(default)]
    pub tile: Option<u32>,
    #[serde(default)]
    pub params: Map<String, Value>,
}
