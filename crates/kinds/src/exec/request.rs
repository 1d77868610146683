//! Asking for runs of a program.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ExecRequest {
    /// Hash of a wasm32-wasip1 module.
    pub module: String,
    #[serde(default)]
    pub args: Vec<String>,
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Run once for each line (or group of lines) of a text.
    #[serde(default)]
    pub lines: Option<LinesRequest>,
    /// Run once for each file: its bytes on stdin, its name in `SHOAL_INPUT`.
    #[serde(default)]
    pub files: Vec<FileRequest>,
    /// Files every run finds, read-only, in `/data`.
    #[serde(default)]
    pub folder: Vec<FileRequest>,
    /// Whether the program sees the real time.
    #[serde(default)]
    pub clock: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LinesRequest {
    pub blob: String,
    /// Lines for each run. Default: 1.
    #[serde(default)]
    pub per_run: Option<u64>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct FileRequest {
    pub name: String,
    pub blob: String,
}
