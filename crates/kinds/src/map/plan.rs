//! Planning a map: how its arrays are cut.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::vec::Vec;
use shoal_protocol::limit::MAX_UNIT_BYTES;
use shoal_protocol::{Dtype, Hash, Sizing, hash};

use super::look::look;
use super::reduce::{self, Mapped};
use super::types;
use super::{MapError, MapInputRequest, MapPlan, MapRequest, MapWork, ReduceJson, map_code};
use crate::feed::{Feed, InputSplit};
use crate::kernel::{ElementType, Field, Kernel};
use crate::kind::Kind;
use crate::plan::{
    Ask, Common, Note, OutputJson, Part, PlanError, Store, Tools, blob, check_kernel_size, sizing,
};

/// Workgroups one dispatch may have in x: WebGPU promises no more.
pub(super) const MAX_GROUPS: u64 = 65_535;
/// Items in the first unit of a node: a heavy kernel ends even these soon on a slow device, and a light
/// one grows out of them in a few steps.
const GRAIN_ITEMS: u64 = 1024;

impl Ask for MapRequest {
    fn kind(&self) -> &'static str {
        "map"
    }

    fn code(&self) -> Result<Option<Hash>, PlanError> {
        Ok(Some(match &self.reduce {
            Some(ReduceJson::Code { wgsl }) => hash(map_code(&self.wgsl, wgsl).as_bytes()),
            Some(ReduceJson::Op(_)) | None => hash(self.wgsl.as_bytes()),
        }))
    }

    fn plan(&self, common: &Common<'_>, tools: &Tools<'_>) -> Result<Part, PlanError> {
        map(self, common.unit, tools)
    }
}

fn map(request: &MapRequest, unit: Option<u64>, tools: &Tools<'_>) -> Result<Part, PlanError> {
    check_kernel_size(&request.wgsl)?;
    let mut plan =
        tools.intake.map_kernel(&request.wgsl, request.entry.as_deref(), &request.params)?;
    let out_per_item = request.out_per_item.unwrap_or(1);
    if out_per_item == 0 {
        return Err(PlanError::Zero { what: "\"outPerItem\"" });
    }
    let mut inputs = inputs(&request.inputs, &plan, tools.store)?;
    let items = count_items(&inputs, request.items)?;
    if items == 0 {
        return Err(PlanError::Empty);
    }
    check_count(&plan.kernel, items)?;
    let looked = look(request, &mut plan, &mut inputs, items, tools.intake)?;
    // Nodes check the signature of exactly what was submitted.
    plan.kernel.source.clone_from(&request.wgsl);
    let output_bytes = times(plan.output.stride, out_per_item)?;
    if let Some(reduce) = &request.reduce {
        let folding = tools.intake.fold(&reduce::how(reduce), &plan.output, out_per_item, items)?;
        return reduce::reduced(Mapped { plan, inputs, items, looked }, folding, unit);
    }
    let widest = inputs.iter().filter_map(each_bytes).chain([u64::from(output_bytes)]).max();
    let widest = widest.unwrap_or(1).max(1);
    let reach = inputs.iter().map(reach_bytes).max().unwrap_or(0);
    let workgroup = plan.kernel.workgroup[0].into();
    let sizing = map_sizing((widest, reach), workgroup, unit, looked.whole_groups)?;
    let whole = inputs.iter().filter(|input| each_bytes(input).is_none());
    let whole = whole.map(|input| input.blob.size).max().unwrap_or(0);
    let mut needs = plan.needs;
    needs.buffer_bytes =
        whole.max(sizing.grain.min(items).saturating_mul(widest).saturating_add(2 * reach));
    let mapped = inputs.iter().map(|input| input_bytes(input, sizing.most.min(items)));
    let written = sizing.most.min(items).saturating_mul(output_bytes.into());
    needs.takes.gpu_memory = mapped.fold(written, u64::saturating_add);
    let dtype = match plan.output.scalar.as_str() {
        "f32" => Dtype::F32,
        "f16" => Dtype::F16,
        _ => Dtype::Bytes,
    };
    let output = OutputJson {
        scalar: plan.output.scalar,
        per_item: plan.output.lanes.saturating_mul(out_per_item),
    };
    let note = Note { output: Some(output), looks: looked.notes, ..Note::default() };
    let kind = Kind::Map(MapWork { kernel: plan.kernel, inputs, output_bytes, fold: None });
    Ok(Part { kind, items, sizing, needs, dtype, note })
}

/// `widest` is the most bytes an item has in one array, `reach` what a unit gets beyond on either side.
fn map_sizing(
    (widest, reach): (u64, u64),
    workgroup: u64,
    unit: Option<u64>,
    whole_groups: bool,
) -> Result<Sizing, PlanError> {
    let workgroup = workgroup.max(1);
    let most = (MAX_UNIT_BYTES.saturating_sub(2 * reach) / widest).min(MAX_GROUPS * workgroup);
    if most == 0 {
        return Err(PlanError::ItemTooLarge { bytes: widest });
    }
    // Whole workgroups, where at least one fits.
    let most = if most > workgroup { most / workgroup * workgroup } else { most };
    let grain = GRAIN_ITEMS.next_multiple_of(workgroup).min(most);
    // `most` is what units grow to: it has to be a multiple of what they grow by.
    let sized = sizing(grain, most / grain * grain, unit)?;
    if !whole_groups {
        return Ok(sized);
    }
    match unit {
        Some(unit) if !unit.is_multiple_of(workgroup) => {
            Err(MapError::UnitCutsGroups { unit, workgroup }.into())
        }
        _ if most < workgroup => Err(MapError::GroupTooLarge { workgroup, most }.into()),
        _ => Ok(Sizing { step: workgroup, ..sized }),
    }
}

fn inputs(
    given: &[MapInputRequest],
    plan: &MapPlan,
    store: &dyn Store,
) -> Result<Vec<Feed>, PlanError> {
    if given.len() != plan.inputs.len() {
        let types: Vec<&str> = plan.inputs.iter().map(|element| element.name.as_str()).collect();
        let (expected, given) = (plan.inputs.len(), given.len());
        return Err(MapError::InputCount { expected, given, types: types.join(", ") }.into());
    }
    let pairs = given.iter().zip(&plan.inputs).enumerate();
    pairs.map(|(at, (given, element))| input(at, given, element, store)).collect()
}

fn input(
    at: usize,
    given: &MapInputRequest,
    element: &ElementType,
    store: &dyn Store,
) -> Result<Feed, PlanError> {
    types::check(at, given.element.as_deref(), element)?;
    let blob = blob(store, &format!("input {at}"), &given.blob)?;
    if blob.size == 0 {
        return Err(PlanError::EmptyInput { what: format!("input {at}") });
    }
    let per_item = if given.whole { 1 } else { given.per_item.unwrap_or(1) };
    if per_item == 0 {
        return Err(PlanError::Zero { what: "\"perItem\"" });
    }
    let each = times(element.stride, per_item)?;
    let over = blob.size % u64::from(each);
    if over != 0 {
        return Err(MapError::NotDivisible {
            input: at,
            size: blob.size,
            each: each.into(),
            per_item,
            element: element.name.clone(),
            stride: element.stride,
            over,
        }
        .into());
    }
    let split =
        if given.whole { InputSplit::Whole } else { InputSplit::PerItem { bytes: each, reach: 0 } };
    Ok(Feed { blob, split })
}

pub(super) fn each_bytes(input: &Feed) -> Option<u64> {
    match input.split {
        InputSplit::PerItem { bytes, .. } => Some(bytes.into()),
        InputSplit::Whole => None,
    }
}

/// What a unit of so many items has of an input.
pub(super) fn input_bytes(input: &Feed, items: u64) -> u64 {
    match each_bytes(input) {
        None => input.blob.size,
        Some(each) => items.saturating_mul(each).saturating_add(2 * reach_bytes(input)),
    }
}

pub(super) fn reach_bytes(input: &Feed) -> u64 {
    match input.split {
        InputSplit::PerItem { reach, .. } => reach.into(),
        InputSplit::Whole => 0,
    }
}

/// How many items the inputs have, all of them as many.
fn count_items(inputs: &[Feed], said: Option<u64>) -> Result<u64, PlanError> {
    let split = inputs.iter().enumerate().filter_map(|(at, input)| {
        each_bytes(input).map(|each| (format!("input {at}"), input.blob.size / each.max(1)))
    });
    let mut counts = split.chain(said.map(|items| ("\"items\"".to_owned(), items)));
    let (first, items) = counts.next().ok_or(MapError::ItemsMissing)?;
    match counts.find(|(_, others)| *others != items) {
        Some((other, others)) => {
            Err(MapError::ItemsDiffer { one: first, items, other, others }.into())
        }
        None => Ok(items),
    }
}

fn check_count(kernel: &Kernel, items: u64) -> Result<(), PlanError> {
    let places = kernel.params.iter().flat_map(|params| &params.places);
    let counts = places.into_iter().any(|(field, _)| matches!(field, Field::Offset | Field::Total));
    if counts && items > u64::from(u32::MAX) {
        return Err(MapError::TooManyItems { items }.into());
    }
    Ok(())
}

fn times(stride: u32, count: u32) -> Result<u32, PlanError> {
    let bytes = u64::from(stride) * u64::from(count);
    let fits = u32::try_from(bytes).ok().filter(|_| bytes <= MAX_UNIT_BYTES);
    fits.ok_or(PlanError::ItemTooLarge { bytes })
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use shoal_protocol::BlobRef;

    fn split(size: u64, bytes: u32) -> Feed {
        let blob = BlobRef { hash: Hash([0; 32]), size };
        Feed { blob, split: InputSplit::PerItem { bytes, reach: 0 } }
    }

    #[test]
    fn units_are_whole_workgroups_and_fit_a_dispatch() {
        let sizing = map_sizing((4, 0), 64, None, false).expect("planned");
        assert_eq!(sizing.grain, 1024);
        assert_eq!(sizing.most % sizing.grain, 0);
        assert!(sizing.most <= MAX_GROUPS * 64 && sizing.most * 4 <= MAX_UNIT_BYTES);
        let sizing = map_sizing((1 << 20, 0), 64, None, false).expect("planned");
        assert_eq!((sizing.grain, sizing.most), (16, 16));
        assert!(map_sizing((4, 0), 1, Some(1 << 20), false).is_err());
        assert_eq!(map_sizing((4, 0), 64, Some(7), false).expect("planned"), Sizing::fixed(7));
    }

    #[test]
    fn workgroups_that_belong_together_are_not_cut() {
        assert_eq!(map_sizing((4, 0), 64, None, true).expect("planned").step, 64);
        assert!(map_sizing((4, 0), 64, Some(7), true).is_err());
        assert!(map_sizing((1 << 20, 0), 64, None, true).is_err(), "16 items fill a unit");
    }

    #[test]
    fn inputs_must_have_as_many_items() {
        assert_eq!(count_items(&[split(40, 4), split(80, 8)], None).expect("planned"), 10);
        let error = count_items(&[split(40, 4), split(40, 8)], None).expect_err("refused");
        assert_eq!(
            error.to_string(),
            "input 0 has 10 items, but input 1 has 5: all split inputs must have the same number of items"
        );
        assert!(count_items(&[split(40, 4)], Some(9)).is_err());
        assert_eq!(count_items(&[], None).expect_err("refused").code(), "items_missing");
        assert_eq!(count_items(&[], Some(9)).expect("planned"), 9);
    }
}
