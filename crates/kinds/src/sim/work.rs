//! What a simulation is: passes of one kernel file over a grid of cells that wraps around at its edges.

use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

use shoal_protocol::BlobRef;

use super::Reduce;

/// A checked simulation. Rows are its items; a step runs every pass in order over a band of rows with `halo`
/// rows of the neighbours on either side, which is as far as all passes of a step together reach.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SimWork {
    pub source: String,
    pub width: u32,
    pub height: u32,
    pub steps: u64,
    pub halo: u32,
    /// One step, in order.
    pub passes: Vec<Pass>,
    /// Makes the first state from the parameters alone. Without it the state is zero, or `first`.
    pub init: Option<Pass>,
    /// Makes a picture of the state: `array<u32>`, one for each cell, as `pack4x8unorm` makes it.
    pub show: Option<Pass>,
    /// The first state as bytes, row by row.
    pub first: Option<BlobRef>,
    /// So many members; 0 for as many as make it fastest.
    pub members: u8,
    /// Steps between two checkpoints: 0 for none, `None` for what a few seconds bring.
    pub keep_every: Option<u64>,
    /// Go on with guessed halos where true ones are late.
    pub speculate: bool,
    /// Bytes of a cell.
    pub cell_bytes: u32,
    /// Numbers in a cell, all `f32`, `i32` or `u32`, for the result's shape.
    pub lanes: u32,
    pub scalar: String,
    pub slots: SimSlots,
    /// Bytes of the parameter block, the user's values in place.
    pub params: Vec<u8>,
    pub fields: Vec<(SimField, u32)>,
    /// What members make of all cells at every checkpoint and at the end.
    pub reduce: Option<Reduce>,
}

/// One entry point, run so many times in a row; the state is swapped after each run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pass {
    pub entry: String,
    pub workgroup: [u32; 3],
    pub times: u32,
}

impl Pass {
    /// `name`, or `name*10` where it is run ten times in a row.
    pub fn words(&self) -> String {
        match self.times {
            1 => self.entry.clone(),
            times => alloc::format!("{}*{times}", self.entry),
        }
    }
}

/// Bindings in group 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SimSlots {
    /// Uniform.
    pub params: u32,
    /// Storage, read: the state before a pass.
    pub state: u32,
    /// Storage, read and write: the state after it.
    pub next: u32,
    /// Storage, read and write: the picture.
    pub picture: Option<u32>,
}

/// A member of the parameter block that is filled at work, found by its name (in `snake_case`). A row of the
/// buffers is `width` cells; local row 0 is row `first_row` of the grid, modulo its height.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SimField {
    Width,
    Height,
    /// Grid row of the first row in the buffer: `0..height`, u32.
    FirstRow,
    /// Rows in the buffer.
    Rows,
    /// The step being made, from 0.
    Step,
    /// The poke of a poke in this step, `vec4<f32>`: x, y, and by how much; zero if there is none.
    Poke,
    /// `vec2<f32>`: radius (0 if there is no poke) and strength.
    Brush,
}

/// One buffer holds the state, two take turns in what comes of it.
pub(super) const TURNS: u64 = 3;

/// Cells of an audition: enough that a GPU is not only waited for, few enough for a phone.
const TRIAL_CELLS: u64 = 1 << 18;
/// Its steps that are timed, at most.
pub const TRIAL_STEPS: u64 = 12;

impl SimWork {
    /// Rows that an audition computes.
    pub fn trial_rows(&self) -> u64 {
        let rows = TRIAL_CELLS / u64::from(self.width.max(1));
        rows.max(self.halo.into()).clamp(1, u64::from(self.height).max(1))
    }

    pub fn row_bytes(&self) -> u64 {
        u64::from(self.width) * u64::from(self.cell_bytes)
    }

    pub fn halo_bytes(&self) -> u64 {
        self.row_bytes() * u64::from(self.halo)
    }
}
