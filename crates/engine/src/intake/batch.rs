//! Reads what a model gives for one of many inputs, before any is run.

use shoal_kinds::IntakeError;
use shoal_kinds::onnx::{BatchPlan, Head};
use shoal_onnx::{DType, Given, Model, ShapeError, Shapes, TensorType};

/// What the values of one run may take together: they stay in a processor's caches, or nearly.
const RUN_BYTES: u64 = 16 << 20;
/// Items of one run. More gain nothing, and who asks something meanwhile waits for all of them.
const MOST_AT_ONCE: u64 = 16;
/// Kinds of numbers, as ONNX counts them.
const DTYPES: std::ops::Range<u64> = 1..64;

/// What comes out for inputs of an item, and how many items one run may take.
pub fn batch(file: &[u8], item: &[Head], grows: bool) -> Result<BatchPlan, IntakeError> {
    // As engines read it: rewriting adds values, which take memory too.
    let model = Model::read(file.to_vec()).map_err(bad)?.spelled_out();
    let one = shapes(&model, item, 1).map_err(bad)?;
    let mut outputs = Vec::new();
    for output in model.outputs() {
        let name = output.name();
        let known = one.of(name).ok_or_else(|| {
            let why = one.missing().first();
            let why = why.map(|missing| format!(" ({}: {})", missing.place, missing.why));
            bad(format!(
                "the shape of the output {name:?} is known only after a run{}: such a model answers requests, but \
                 does not run over many inputs",
                why.unwrap_or_default()
            ))
        })?;
        outputs.push(known.dims.clone());
    }
    let at_once = if grows && gives_rows(&model, item, &one) {
        (RUN_BYTES / model.peak(&one).max(1)).clamp(1, MOST_AT_ONCE)
    } else {
        1
    };
    Ok(BatchPlan {
        outputs,
        at_once: at_once as u32,
        peak: at_once.saturating_mul(model.peak(&one)),
    })
}

/// Whether two items give what each gives alone, one after the other, as far as shapes tell.
fn gives_rows(model: &Model, item: &[Head], one: &Shapes) -> bool {
    let Ok(two) = shapes(model, item, 2) else { return false };
    model.outputs().iter().all(|output| {
        let dims = |shapes: &Shapes| shapes.of(output.name()).map(|ty| ty.dims.clone());
        match (dims(one).as_deref(), dims(&two).as_deref()) {
            (Some([1, rest @ ..]), Some([2, others @ ..])) => rest == others,
            _ => false,
        }
    })
}

/// Of all values, where each input has so many items for one.
fn shapes(model: &Model, item: &[Head], items: u64) -> Result<Shapes, ShapeError> {
    let given = item.iter().filter_map(|head| {
        let dtype =
            DTYPES.filter_map(DType::of).find(|dtype| dtype.name() == head.element.name())?;
        let mut dims = head.dims.clone();
        if items > 1 {
            *dims.first_mut()? = items;
        }
        Some(Given::new(head.name.as_str(), TensorType::new(dtype, dims)))
    });
    model.shapes(&given.collect::<Vec<_>>())
}

fn bad(words: impl ToString) -> IntakeError {
    IntakeError::plain("bad_model", words.to_string())
}
