//! Reads what a model takes and gives, before it is stored.

use shoal_kinds::IntakeError;
use shoal_kinds::onnx::{ModelPlan, Port, Side};
use shoal_onnx::{LONGEST_ROW, Model, ValueInfo};

pub(super) use crate::ports::element;
use crate::ports::{self, ports};

/// What a model takes and gives, or why nobody can run it.
pub fn model(file: &[u8]) -> Result<ModelPlan, IntakeError> {
    let model = Model::read(file.to_vec()).map_err(bad)?;
    if let Some(missing) = model.external().first() {
        let words = format!(
            "the model's weights are in another file, {missing:?}: save them in the model itself \
             (onnx.save with save_as_external_data=False)"
        );
        return Err(bad(words));
    }
    // As engines read it: rewriting adds values, which take memory too.
    let model = model.spelled_out();
    let row = model.longest_row();
    if row > LONGEST_ROW {
        return Err(bad(format!(
            "the model has {row} operators in a row; at most {LONGEST_ROW} are allowed"
        )));
    }
    let (inputs, outputs) = ports(&model).map_err(bad)?;
    let is_fixed = |port: &Port| {
        port.dims.as_ref().is_some_and(|dims| dims.iter().all(|dim| matches!(dim, Side::Fixed(_))))
    };
    let shapes = inputs.iter().all(is_fixed).then(|| model.shapes(&[]).ok()).flatten();
    // What only a run can tell is not in the sum, so a model that has such values is booked as one of open shapes.
    let shapes = shapes.filter(|shapes| shapes.missing().is_empty());
    let peak = shapes.map(|shapes| model.peak(&shapes));
    Ok(ModelPlan { inputs, outputs, peak })
}

pub(super) fn port(value: &ValueInfo) -> Result<Port, IntakeError> {
    ports::port(value).map_err(bad)
}

pub(super) fn bad(words: impl ToString) -> IntakeError {
    IntakeError::plain("bad_model", words.to_string())
}
