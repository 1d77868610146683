//! How a map's arrays are cut, given where its items look: parts, parts with some more on either side, or all
//! of an array for every unit.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::{
    InputAsk, MOST_WHOLE_BYTES, MapAsk, MapError, MapPlan, MapReading, MapRequest, Reading, TooFar,
};
use crate::feed::Feed;
use crate::kernel::Slot;
use crate::plan::{Intake, PlanError};

/// Kernels that look beyond their own items count elements with 31 bits, and places before the start.
const MOST_ELEMENTS: u64 = (1 << 31) - 1;

/// What was found out about a map.
pub(super) struct Looked {
    pub(super) whole_groups: bool,
    /// Sentences for whoever submits it.
    pub(super) notes: Vec<String>,
}

/// Sees where items look, and gives each unit what its items see.
pub(super) fn look(
    request: &MapRequest,
    plan: &mut MapPlan,
    inputs: &mut [Feed],
    items: u64,
    intake: &dyn Intake,
) -> Result<Looked, PlanError> {
    let ask = ask(request);
    let entry = request.entry.as_deref();
    let MapReading { windows, inputs: readings, whole_groups } =
        intake.map_reading(&request.wgsl, entry, &request.params, &ask)?;
    let name = |at: usize| {
        let windows = windows.iter().flat_map(|it| &it.arrays);
        let mut found = windows.into_iter().filter(|window| window.slot == Slot::Input(at as u32));
        found.next().map_or_else(|| format!("input {at}"), |window| format!("`{}`", window.name))
    };
    let mut notes = Vec::new();
    for (at, (input, reading)) in inputs.iter_mut().zip(readings).enumerate() {
        let (stride, size) = (plan.inputs[at].stride, input.blob.size);
        let split =
            reading.split(input.split, ask.edge, stride, size).map_err(
                |too_far| match too_far {
                    TooFar::Overlap { bytes } => MapError::Overlap { name: name(at), bytes },
                    TooFar::Ring => MapError::Ring { name: name(at), size, most: MOST_WHOLE_BYTES },
                    TooFar::Anywhere { line } => {
                        MapError::Anywhere { name: name(at), line, size, most: MOST_WHOLE_BYTES }
                    }
                },
            )?;
        if let (Reading::Anywhere { line }, false) = (reading, split == input.split) {
            notes.push(format!(
                "items read {} anywhere (line {line} of the kernel), so every device gets all of it",
                name(at)
            ));
        }
        input.split = split;
    }
    if let Some(windows) = windows {
        let sizes = inputs.iter().zip(&plan.inputs);
        let elements = sizes.map(|(input, element)| input.blob.size / u64::from(element.stride));
        let outputs = items.saturating_mul(ask.out_per_item.into());
        let most = elements.chain([items, outputs]).max().unwrap_or(0);
        if most > MOST_ELEMENTS {
            return Err(MapError::TooManyElements { elements: most, most: MOST_ELEMENTS }.into());
        }
        plan.kernel.look_through(windows);
        plan.needs.storage_buffers += 1;
    }
    Ok(Looked { whole_groups, notes })
}

fn ask(request: &MapRequest) -> MapAsk {
    let inputs = request.inputs.iter().map(|input| InputAsk {
        whole: input.whole,
        per_item: if input.whole { 1 } else { input.per_item.unwrap_or(1) },
        overlap: input.overlap.filter(|_| !input.whole),
    });
    MapAsk {
        inputs: inputs.collect(),
        out_per_item: request.out_per_item.unwrap_or(1),
        edge: request.edge.unwrap_or_default().into(),
    }
}
