//! Maps whose outputs are brought together: items of the job are blocks of the map's.

use alloc::borrow::ToOwned;
use alloc::vec::Vec;
use shoal_protocol::limit::MAX_UNIT_BYTES;
use shoal_protocol::{Dtype, Sizing};

use super::fold::FOLD_ITEMS;
use super::look::Looked;
use super::plan::{MAX_GROUPS, each_bytes, input_bytes, reach_bytes};
use super::{FoldPlan, How, MapError, MapPlan, MapWork, OpJson, ReduceJson, ReducedJson};
use crate::feed::{Feed, InputSplit};
use crate::kernel::ElementType;
use crate::kind::Kind;
use crate::plan::{Note, OutputJson, Part, PlanError};

/// Blocks in the first unit of a node: as many items as other maps begin with.
const GRAIN_BLOCKS: u64 = 4;
/// Invocations of a workgroup that folds: one for each block and column.
const FOLDERS: u64 = 64;

pub(super) fn how(reduce: &ReduceJson) -> How {
    match reduce {
        ReduceJson::Op(OpJson::Sum) => How::Sum,
        ReduceJson::Op(OpJson::Min) => How::Min,
        ReduceJson::Op(OpJson::Max) => How::Max,
        ReduceJson::Code { wgsl } => How::Combine(wgsl.clone()),
    }
}

/// A map as it was understood without its reduction.
pub(super) struct Mapped {
    pub(super) plan: MapPlan,
    pub(super) inputs: Vec<Feed>,
    pub(super) items: u64,
    pub(super) looked: Looked,
}

pub(super) fn reduced(
    mapped: Mapped,
    folding: FoldPlan,
    unit: Option<u64>,
) -> Result<Part, PlanError> {
    let Mapped { plan, mut inputs, items, looked } = mapped;
    for input in &mut inputs {
        blocked(input)?;
    }
    let FoldPlan { fold, made, output_bytes, combine, copy } = folding;
    let written = u64::from(fold.item_bytes) * FOLD_ITEMS;
    let widest = inputs.iter().filter_map(each_bytes).chain([written, output_bytes.into()]).max();
    let widest = widest.unwrap_or(1).max(1);
    let reach = inputs.iter().map(reach_bytes).max().unwrap_or(0);
    let workgroup = u64::from(plan.kernel.workgroup[0]).max(1);
    let step = if looked.whole_groups { workgroup / common(workgroup, FOLD_ITEMS) } else { 1 };
    let most = [
        MAX_UNIT_BYTES.saturating_sub(2 * reach) / widest,
        MAX_GROUPS * workgroup / FOLD_ITEMS,
        MAX_GROUPS * FOLDERS / u64::from(fold.columns.max(1)),
    ];
    let most = most.into_iter().min().unwrap_or(1) / step * step;
    if most == 0 {
        return Err(MapError::BlockTooLarge { bytes: widest, block: FOLD_ITEMS }.into());
    }
    let grain = GRAIN_BLOCKS.next_multiple_of(step).min(most);
    let most = most / grain * grain;
    let sizing = match unit.map(|unit| (unit / FOLD_ITEMS, unit)) {
        None => Sizing { grain, most, step },
        Some((blocks, unit)) if unit % FOLD_ITEMS != 0 || blocks % step != 0 => {
            return Err(MapError::UnitCutsBlocks { unit, block: FOLD_ITEMS * step }.into());
        }
        Some((blocks, unit)) if blocks > most => {
            return Err(PlanError::UnitTooLarge { unit, most: most * FOLD_ITEMS });
        }
        Some((blocks, _)) => Sizing { grain: blocks, most: blocks, step },
    };
    let whole = inputs.iter().filter(|input| each_bytes(input).is_none());
    let whole = whole.map(|input| input.blob.size).max().unwrap_or(0);
    let mut needs = plan.needs;
    needs.buffer_bytes = whole.max(sizing.grain.saturating_mul(widest).saturating_add(2 * reach));
    let mapped = inputs.iter().map(|input| input_bytes(input, sizing.most));
    let each = written.saturating_add(output_bytes.into());
    needs.takes.gpu_memory = mapped.fold(sizing.most.saturating_mul(each), u64::saturating_add);
    let output = output(&fold.how, &plan.output, fold.columns);
    let dtype = if output.scalar == "f32" { Dtype::F32 } else { Dtype::Bytes };
    let reduced = ReducedJson { items, element: made, columns: fold.columns, combine, copy };
    let note = Note {
        output: Some(output),
        looks: looked.notes,
        reduced: Some(reduced),
        ..Note::default()
    };
    let blocks = items.div_ceil(FOLD_ITEMS);
    let fold = Some(fold);
    let kind = Kind::Map(MapWork { kernel: plan.kernel, inputs, output_bytes, fold });
    Ok(Part { kind, items: blocks, sizing, needs, dtype, note })
}

/// An input of blocks instead of items.
fn blocked(input: &mut Feed) -> Result<(), PlanError> {
    let InputSplit::PerItem { bytes, reach } = input.split else { return Ok(()) };
    let block = u64::from(bytes) * FOLD_ITEMS;
    let fits = u32::try_from(block).ok().filter(|_| block <= MAX_UNIT_BYTES);
    let bytes = fits.ok_or(MapError::BlockTooLarge { bytes: block, block: FOLD_ITEMS })?;
    input.split = InputSplit::PerItem { bytes, reach };
    Ok(())
}

/// What comes out: sums of whole numbers have 64 bits.
fn output(how: &How, of: &ElementType, columns: u32) -> OutputJson {
    let (scalar, per_item) = match how {
        How::Sum if of.scalar == "u32" => ("u64".to_owned(), columns),
        How::Sum if of.scalar == "i32" => ("i64".to_owned(), columns),
        How::Sum | How::Min | How::Max => (of.scalar.clone(), columns),
        How::Combine(_) => (of.scalar.clone(), of.lanes.saturating_mul(columns)),
    };
    OutputJson { scalar, per_item }
}

/// The greatest common divisor.
fn common(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { common(b, a % b) }
}
