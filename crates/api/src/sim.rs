//! Simulations: pokes at them, and what is shown of them.

use serde::{Deserialize, Serialize};
use shoal_kinds::Reduce;

/// A poke at the field of a simulation.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct PokeRequest {
    /// Where, in cells: x, y.
    #[cfg_attr(feature = "schema", schema(min_items = 2, max_items = 2))]
    pub at: [f32; 2],
    /// By how much, in cells: x, y.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(min_items = 2, max_items = 2))]
    pub by: [f32; 2],
    /// In cells. Default: 8.
    #[serde(default = "radius")]
    pub radius: f32,
    /// What it means is up to the kernel. Default: 1.
    #[serde(default = "strength")]
    pub strength: f32,
}

fn radius() -> f32 {
    8.0
}

fn strength() -> f32 {
    1.0
}

/// How a simulation gets on.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct SimJson {
    pub width: u32,
    pub height: u32,
    pub steps: u64,
    /// Steps that all members have done.
    pub step: u64,
    pub halo: u32,
    /// Numbers in a cell.
    pub lanes: u32,
    /// `f32`, `i32` or `u32`.
    pub scalar: String,
    /// What the members made of all cells, if the job asks for it: the last there is.
    pub reduced: Option<TotalJson>,
    pub crew: Option<CrewJson>,
}

/// All cells brought together, each number of a cell by itself.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct TotalJson {
    pub how: Reduce,
    /// Of the state after so many steps.
    pub step: u64,
    /// One for each number of a cell; `null` for what is not a finite number.
    pub values: Vec<Option<f64>>,
}

impl SimJson {
    /// By what a step takes now, or should take.
    pub fn seconds_left(&self) -> Option<f64> {
        let crew = self.crew.as_ref()?;
        let step = crew.step_ms.or(crew.predicted_step_ms)?;
        Some(self.steps.saturating_sub(self.step) as f64 * step / 1e3)
    }
}

/// The nodes that compute it together.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct CrewJson {
    /// Counts changes of membership.
    pub epoch: u32,
    pub state: CrewStateJson,
    /// By rank.
    pub members: Vec<MemberJson>,
    /// Nodes that could step in.
    pub spares: u64,
    /// What a step should take by what was measured before.
    pub predicted_step_ms: Option<f64>,
    /// What a step takes, on average in this epoch.
    pub step_ms: Option<f64>,
    /// What a step should take on the fastest node alone, if the grid fits there.
    pub alone_step_ms: Option<f64>,
    /// Steps of the newest whole checkpoint.
    pub kept_step: u64,
    /// What happened to it, oldest first.
    pub changes: Vec<ChangeJson>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum CrewStateJson {
    /// It waits for members, or to see how fast they are.
    Forming,
    Working,
}

impl CrewStateJson {
    pub fn word(self) -> &'static str {
        match self {
            CrewStateJson::Forming => "forming",
            CrewStateJson::Working => "working",
        }
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ChangeJson {
    /// Milliseconds since the Unix epoch.
    pub at: u64,
    pub epoch: u32,
    pub what: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct MemberJson {
    pub node: u64,
    pub name: String,
    /// The first of its rows, and how many they are.
    #[cfg_attr(feature = "schema", schema(min_items = 2, max_items = 2))]
    pub rows: [u64; 2],
    pub step: u64,
    /// Time at work in this epoch.
    pub computed_ms: f64,
    /// Time spent waiting for neighbours in this epoch.
    pub waited_ms: f64,
    /// Guessed halos that were right.
    pub guessed: u64,
    /// Guessed halos that were wrong and were corrected.
    pub corrected: u64,
    pub links: Vec<LinkJson>,
}

/// How its link to another member is doing.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct LinkJson {
    pub with: u64,
    pub via: ViaJson,
    pub round_trip_ms: f64,
    /// Known while the link was full lately.
    pub bytes_per_second: Option<u64>,
    /// Lost chunks of a million.
    pub loss: u32,
    /// Bytes sent through the coordinator, in this crew.
    pub relayed: u64,
    /// Bytes sent directly, in this crew.
    pub direct: u64,
}

/// What carries a link now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum ViaJson {
    Relay,
    Direct,
}
