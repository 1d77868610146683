//! Asking for runs of a program.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ExecRequest {
    /// Hash of a wasm32-wasip1 module, or of a wasm32-wasip2 component, which only machines run.
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
    /// Files every run finds, read-only, in `/data`. Not for components.
    #[serde(default)]
    pub folder: Vec<FileRequest>,
    /// Whether the program sees the real time.
    #[serde(default)]
    pub clock: bool,
    /// What happens when a run fails: ends with an exit code that is not in `okExit`, traps, or goes over a limit. Default:
    /// `continue`.
    #[serde(default)]
    pub on_error: OnErrorJson,
    /// Exit codes of runs that did not fail. Default: only 0.
    #[serde(default)]
    pub ok_exit: Vec<i32>,
    /// How often a failed run is tried again, each time with other random bytes. At most 100.
    #[serde(default)]
    pub retry: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum OnErrorJson {
    /// All other inputs run. The job is done, and says which ones failed.
    #[default]
    Continue,
    /// The first failed run ends the job, which fails.
    Stop,
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
