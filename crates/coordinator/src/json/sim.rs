//! Simulations: pokes over them, and what is shown of them.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A poke over the field of a simulation.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PokeRequest {
    /// Where, in cells: x, y.
    pub(crate) at: [f32; 2],
    /// By how much, in cells: x, y.
    #[serde(default)]
    pub(crate) by: [f32; 2],
    /// In cells; 8 if left out.
    #[serde(default = "radius")]
    pub(crate) radius: f32,
    /// What it means is the kernel's business; 1 if left out.
    #[serde(default = "strength")]
    pub(crate) strength: f32,
}

fn radius() -> f32 {
    8.0
}

fn strength() -> f32 {
    1.0
}

/// How a simulation gets on.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SimJson {
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) steps: u64,
    /// Steps that all members have done.
    pub(crate) step: u64,
    pub(crate) halo: u32,
    /// Numbers in a cell.
    pub(crate) lanes: u32,
    /// `f32`, `i32` or `u32`.
    pub(crate) scalar: String,
    /// What the members made of all cells, if the job asks for it: the last there is.
    pub(crate) reduced: Option<TotalJson>,
    pub(crate) crew: Option<CrewJson>,
}

/// All cells brought together, each number of a cell by itself.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct TotalJson {
    /// `sum`, `min`, `max` or `mean`.
    pub(crate) how: &'static str,
    /// Of the state after so many steps.
    pub(crate) step: u64,
    /// One for each number of a cell; `null` for what is not a finite number.
    pub(crate) values: Vec<Option<f64>>,
}

impl SimJson {
    /// By what a step takes now, or should take.
    pub(crate) fn seconds_left(&self) -> Option<f64> {
        let crew = self.crew.as_ref()?;
        let step = crew.step_ms.or(crew.predicted_step_ms)?;
        Some(self.steps.saturating_sub(self.step) as f64 * step / 1e3)
    }
}

/// The nodes that compute it together.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CrewJson {
    /// Counts changes of membership.
    pub(crate) epoch: u32,
    /// `forming` (it waits for members, or to see how fast they are) or `working`.
    pub(crate) state: &'static str,
    /// By rank.
    pub(crate) members: Vec<MemberJson>,
    /// Nodes that could step in.
    pub(crate) spares: u64,
    /// What a step should take by what was measured before.
    pub(crate) predicted_step_ms: Option<f64>,
    /// What a step takes, on average in this epoch.
    pub(crate) step_ms: Option<f64>,
    /// What a step should take on the fastest node alone, if the grid fits there.
    pub(crate) alone_step_ms: Option<f64>,
    /// Steps of the newest whole checkpoint.
    pub(crate) kept_step: u64,
    /// What happened to it, oldest first.
    pub(crate) changes: Vec<ChangeJson>,
}

#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct ChangeJson {
    /// Milliseconds since the Unix epoch.
    pub(crate) at: u64,
    pub(crate) epoch: u32,
    pub(crate) what: String,
}

#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MemberJson {
    pub(crate) node: u64,
    pub(crate) name: String,
    /// The first of its rows, and how many they are.
    pub(crate) rows: [u64; 2],
    pub(crate) step: u64,
    /// Time at work and time spent waiting for neighbours, in this epoch.
    pub(crate) computed_ms: f64,
    pub(crate) waited_ms: f64,
    /// Guessed halos that were right, and those that were not and were corrected.
    pub(crate) guessed: u64,
    pub(crate) corrected: u64,
    pub(crate) links: Vec<LinkJson>,
}

/// How its link to another member is doing.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LinkJson {
    pub(crate) with: u64,
    /// `relay` or `direct`.
    pub(crate) via: &'static str,
    pub(crate) round_trip_ms: f64,
    /// Known while the link was full lately.
    pub(crate) bytes_per_second: Option<u64>,
    /// Lost chunks of a million.
    pub(crate) loss: u32,
    /// Bytes sent through the coordinator and directly, in this crew.
    pub(crate) relayed: u64,
    pub(crate) direct: u64,
}
