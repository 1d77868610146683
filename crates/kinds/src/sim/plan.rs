//! Planning a simulation: a grid whose rows a crew shares out.

use alloc::string::String;
use serde_json::{Map, Value};
use shoal_protocol::limit::{MAX_MEMBERS, MAX_UNIT_BYTES};
use shoal_protocol::{BlobRef, Dtype, Hash, Needs, Sizing, Span, Verify, hash};

use super::{MAX_REDUCED, Reduce, SimRequest, SimWork};
use crate::kind::{About, Kind};
use crate::plan::{
    Ask, Common, CommonRequest, Note, OutputJson, Part, PlanError, Refusal, Store, Tools, blob,
    check_kernel_size,
};

/// The longest side of a grid: a dispatch over it stays below what WebGPU promises, also with small workgroups.
const MAX_SIDE: u32 = 32_768;
/// All of the state, which every checkpoint writes to the coordinator's disk.
const MAX_GRID_BYTES: u64 = 4 << 30;
/// Kernels count steps with u32.
const MAX_STEPS: u64 = u32::MAX as u64;

impl Ask for SimRequest {
    fn kind(&self) -> &'static str {
        "sim"
    }

    fn code(&self) -> Result<Option<Hash>, PlanError> {
        Ok(Some(hash(self.source.as_bytes())))
    }

    fn unchecked(&self, verify: Verify) -> Option<PlanError> {
        match verify {
            Verify::None | Verify::Adaptive => None,
            Verify::Spot { .. } | Verify::Quorum { .. } => Some(SimError::CrewChecked.into()),
        }
    }

    fn plan(&self, common: &Common<'_>, tools: &Tools<'_>) -> Result<Part, PlanError> {
        check_common(common.asked)?;
        check_kernel_size(&self.source)?;
        let SimRequest { width, height, steps, .. } = *self;
        if !(1..=MAX_SIDE).contains(&width) || !(1..=MAX_SIDE).contains(&height) {
            return Err(SimError::Grid { width, height, most: MAX_SIDE }.into());
        }
        if !(1..=MAX_STEPS).contains(&steps) {
            return Err(SimError::Steps { steps, most: MAX_STEPS }.into());
        }
        let SimPlan { mut work, mut needs } = tools.intake.sim(&SimAsked {
            source: &self.source,
            width,
            height,
            steps,
            halo: self.halo,
            passes: self.passes.as_deref(),
            params: &self.params,
        })?;
        // Nodes check the signature of exactly what was submitted.
        work.source.clone_from(&self.source);
        check_halo(&work)?;
        work.members = members(self.members, &work)?;
        let first_state = self.first.as_deref();
        work.first = first_state.map(|hash| first(hash, &work, tools.store)).transpose()?;
        work.keep_every = self.keep_every;
        work.speculate = self.speculate;
        work.reduce = reduce(self.reduce, &work)?;
        // The lowest band there can be, with both its halos: less is of no use to anybody.
        needs.buffer_bytes = work.row_bytes() * (2 * u64::from(work.halo) + lowest_band(&work));
        let lowest = Span::new(0, lowest_band(&work));
        needs.takes.gpu_memory = work.crew().map_or(0, |crew| crew.problem.held_bytes(lowest));
        let per_item = width.saturating_mul(work.lanes);
        let output = OutputJson { scalar: work.scalar.clone(), per_item };
        let note = Note { output: Some(output), ..Note::default() };
        let items = u64::from(height);
        // Nothing is compared: the bits of a crew are its own.
        let dtype = Dtype::Bytes;
        let (kind, sizing) = (Kind::Sim(work), Sizing::fixed(items));
        Ok(Part { kind, items, sizing, needs, dtype, note })
    }
}

fn check_common(common: &CommonRequest) -> Result<(), PlanError> {
    let refused = |field, why| Err(SimError::NotForCrews { field, why }.into());
    if common.unit.is_some() {
        return refused(
            "unit",
            "each member gets rows by its speed; \"members\" says how many there are",
        );
    }
    if common.strategy.is_some() {
        return refused("strategy", "each member gets rows by its speed");
    }
    if common.tolerance.is_some() {
        return refused("tolerance", "no answers are compared");
    }
    Ok(())
}

fn check_halo(work: &SimWork) -> Result<(), PlanError> {
    let SimWork { halo, height, .. } = *work;
    let bytes = work.row_bytes().saturating_mul(height.into());
    if bytes > MAX_GRID_BYTES {
        return Err(SimError::GridTooLarge { bytes, most: MAX_GRID_BYTES }.into());
    }
    if halo > height {
        return Err(SimError::Halo { halo, height }.into());
    }
    if work.halo_bytes() > MAX_UNIT_BYTES {
        let (bytes, most) = (work.halo_bytes(), MAX_UNIT_BYTES);
        return Err(SimError::HaloTooLarge { halo, bytes, most }.into());
    }
    Ok(())
}

fn lowest_band(work: &SimWork) -> u64 {
    u64::from(work.halo).max(1)
}

/// 0 where nobody asked for a number.
fn members(asked: Option<u32>, work: &SimWork) -> Result<u8, PlanError> {
    let Some(members) = asked else { return Ok(0) };
    let count =
        u8::try_from(members).ok().filter(|count| (1..=MAX_MEMBERS).contains(&(*count).into()));
    let count = count.ok_or(SimError::Members { members, most: MAX_MEMBERS })?;
    let SimWork { halo, height, .. } = *work;
    if u64::from(members) * lowest_band(work) > u64::from(height) {
        return Err(SimError::TooManyMembers { members, halo: halo.max(1), height }.into());
    }
    Ok(count)
}

fn reduce(asked: Option<Reduce>, work: &SimWork) -> Result<Option<Reduce>, PlanError> {
    if asked.is_some() && work.lanes > MAX_REDUCED {
        return Err(SimError::Reduced { lanes: work.lanes }.into());
    }
    Ok(asked)
}

fn first(hash: &str, work: &SimWork, store: &dyn Store) -> Result<BlobRef, PlanError> {
    let found = blob(store, "\"first\"", hash)?;
    let SimWork { width, height, cell_bytes: cell, .. } = *work;
    let expected = work.row_bytes() * u64::from(height);
    if found.size != expected {
        return Err(SimError::FirstSize { size: found.size, expected, width, height, cell }.into());
    }
    Ok(found)
}

/// A simulation as it was asked for.
#[derive(Clone, Copy, Debug)]
pub struct SimAsked<'a> {
    pub source: &'a str,
    pub width: u32,
    pub height: u32,
    pub steps: u64,
    /// Rows of the neighbours that a step needs; as the file says if left out.
    pub halo: Option<u32>,
    /// One step, as `advect,jacobi*10,project`; as the file says if left out.
    pub passes: Option<&'a str>,
    /// The user's values for its parameter block.
    pub params: &'a Map<String, Value>,
}

/// A checked simulation.
#[derive(Clone, Debug, PartialEq)]
pub struct SimPlan {
    /// Without what the kernel does not say: who computes it, where it starts, how it is kept.
    pub work: SimWork,
    /// What a node must have; `buffer_bytes` is 0, because the sizes come with the bands.
    pub needs: Needs,
}

/// Why a simulation is refused.
#[derive(Debug, thiserror::Error)]
pub enum SimError {
    #[error("the grid is {width} x {height}; each side must be from 1 to {most} cells")]
    Grid { width: u32, height: u32, most: u32 },
    #[error("the grid has {bytes} bytes; at most {most} are allowed")]
    GridTooLarge { bytes: u64, most: u64 },
    #[error("\"steps\" is {steps}; it must be from 1 to {most}")]
    Steps { steps: u64, most: u64 },
    #[error(
        "the halo is {halo} rows, but the grid has only {height}: a band must be at least as high as the halo"
    )]
    Halo { halo: u32, height: u32 },
    #[error(
        "{halo} rows of halo are {bytes} bytes, sent with every step; at most {most} are allowed"
    )]
    HaloTooLarge { halo: u32, bytes: u64, most: u64 },
    #[error("\"members\" is {members}; it must be from 1 to {most}")]
    Members { members: u32, most: usize },
    #[error(
        "{members} members need at least {halo} rows each, as many as the halo has; the grid has only {height}"
    )]
    TooManyMembers { members: u32, halo: u32, height: u32 },
    #[error(
        "\"first\" has {size} bytes, but {height} rows of {width} cells of {cell} bytes are {expected}"
    )]
    FirstSize { size: u64, expected: u64, width: u32, height: u32, cell: u32 },
    #[error("a cell has {lanes} numbers; \"reduce\" takes at most {MAX_REDUCED}")]
    Reduced { lanes: u32 },
    #[error("\"{field}\" is not for simulations: {why}")]
    NotForCrews { field: &'static str, why: &'static str },
    #[error(
        "the members of a crew depend on each other at every step, so no part of their work is computed by several at once; leave \"verify\" out, or say adaptive or none"
    )]
    CrewChecked,
}

impl Refusal for SimError {
    fn code(&self) -> &'static str {
        match self {
            SimError::Grid { .. }
            | SimError::Steps { .. }
            | SimError::Halo { .. }
            | SimError::Members { .. }
            | SimError::TooManyMembers { .. }
            | SimError::NotForCrews { .. }
            | SimError::Reduced { .. }
            | SimError::CrewChecked => "bad_request",
            SimError::GridTooLarge { .. } | SimError::HaloTooLarge { .. } => "too_large",
            SimError::FirstSize { .. } => "wrong_size",
        }
    }
}
