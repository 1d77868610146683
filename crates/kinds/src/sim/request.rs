//! Asking for a simulation.

use alloc::string::String;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::Reduce;

#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SimRequest {
    /// One WGSL module: its entry points are the passes of a step; `init` and `show` are special.
    pub source: String,
    /// Cells of a row.
    pub width: u32,
    pub height: u32,
    pub steps: u64,
    /// Rows above and below a band that one step reads. Default: what the file says in `// halo: 2`.
    #[serde(default)]
    pub halo: Option<u32>,
    /// One step, as `advect,jacobi*10,project`. Default: what the file says in `// passes: ...`, or its entry
    /// points in order.
    #[serde(default)]
    pub passes: Option<String>,
    /// Values for the kernel's parameter block, by member name.
    #[serde(default)]
    pub params: Map<String, Value>,
    /// Exactly so many nodes. Default: as many as make it fastest.
    #[serde(default)]
    pub members: Option<u32>,
    /// Steps between two checkpoints, 0 for none. Default: what a few seconds bring.
    #[serde(default)]
    pub keep_every: Option<u64>,
    /// Go on with guessed halos where true ones are late, and correct what was guessed wrong.
    #[serde(default)]
    pub speculate: bool,
    /// At every checkpoint and at the end the members bring all cells together, each number of a cell by itself;
    /// the job's `sim.reduced` has the last totals.
    #[serde(default)]
    pub reduce: Option<Reduce>,
    /// Hash of the first state's bytes, row by row. Default: what the kernel's `init` makes, or zeros.
    #[serde(default)]
    pub first: Option<String>,
}
