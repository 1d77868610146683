//! Simulations: a grid whose rows a crew shares out.

use shoal_protocol::limit::{MAX_MEMBERS, MAX_UNIT_BYTES};
use shoal_protocol::{BlobRef, Dtype, SimWork, Sizing, Work};

use super::error::PlanError;
use super::kernel::check_size;
use super::{Part, blob};
use crate::intake::{Intake, SimAsked, SimPlan};
use crate::json::{CommonRequest, OutputJson, SimRequest};
use crate::store::blobs::Blobs;
use crate::store::facts::Note;

/// The longest side of a grid: a dispatch over it stays below what WebGPU promises, also with small workgroups.
const MAX_SIDE: u32 = 32_768;
/// All of the state, which every checkpoint writes to the coordinator's disk.
const MAX_GRID_BYTES: u64 = 4 << 30;
/// Kernels count steps with u32.
const MAX_STEPS: u64 = u32::MAX as u64;

pub(super) fn sim(
    request: &SimRequest,
    common: &CommonRequest,
    intake: &dyn Intake,
    blobs: &Blobs,
) -> Result<Part, PlanError> {
    check_common(common)?;
    check_size(&request.source)?;
    let SimRequest { width, height, steps, .. } = *request;
    if !(1..=MAX_SIDE).contains(&width) || !(1..=MAX_SIDE).contains(&height) {
        return Err(PlanError::Grid { width, height, most: MAX_SIDE });
    }
    if !(1..=MAX_STEPS).contains(&steps) {
        return Err(PlanError::Steps { steps, most: MAX_STEPS });
    }
    let SimPlan { mut work, mut needs } = intake.sim(&SimAsked {
        source: &request.source,
        width,
        height,
        steps,
        halo: request.halo,
        passes: request.passes.as_deref(),
        params: &request.params,
    })?;
    // Nodes check the signature of exactly what was submitted.
    work.source.clone_from(&request.source);
    check_halo(&work)?;
    work.members = members(request.members, &work)?;
    work.first = request.first.as_deref().map(|hash| first(hash, &work, blobs)).transpose()?;
    work.keep_every = request.keep_every;
    work.speculate = request.speculate;
    // The lowest band there can be, with both its halos: less is of no use to anybody.
    needs.buffer_bytes = work.row_bytes() * (2 * u64::from(work.halo) + lowest_band(&work));
    let per_item = width.saturating_mul(work.lanes);
    let output = OutputJson { scalar: work.scalar.clone(), per_item };
    let note = Note { output: Some(output), ..Note::default() };
    let items = u64::from(height);
    // Nothing is compared: the bits of a crew are its own.
    let dtype = Dtype::Bytes;
    Ok(Part { work: Work::Sim(work), items, sizing: Sizing::fixed(items), needs, dtype, note })
}

fn check_common(common: &CommonRequest) -> Result<(), PlanError> {
    let refused = |field, why| Err(PlanError::NotForCrews { field, why });
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
        return Err(PlanError::GridTooLarge { bytes, most: MAX_GRID_BYTES });
    }
    if halo > height {
        return Err(PlanError::Halo { halo, height });
    }
    if work.halo_bytes() > MAX_UNIT_BYTES {
        let (bytes, most) = (work.halo_bytes(), MAX_UNIT_BYTES);
        return Err(PlanError::HaloTooLarge { halo, bytes, most });
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
    let count = count.ok_or(PlanError::Members { members, most: MAX_MEMBERS })?;
    let SimWork { halo, height, .. } = *work;
    if u64::from(members) * lowest_band(work) > u64::from(height) {
        return Err(PlanError::TooManyMembers { members, halo: halo.max(1), height });
    }
    Ok(count)
}

fn first(hash: &str, work: &SimWork, blobs: &Blobs) -> Result<BlobRef, PlanError> {
    let found = blob(blobs, "\"first\"", hash)?;
    let SimWork { width, height, cell_bytes: cell, .. } = *work;
    let expected = work.row_bytes() * u64::from(height);
    if found.size != expected {
        return Err(PlanError::FirstSize { size: found.size, expected, width, height, cell });
    }
    Ok(found)
}
