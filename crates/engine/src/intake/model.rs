//! Reads what a model takes and gives, before it is stored.

use shoal_kinds::IntakeError;
use shoal_kinds::onnx::{Element, ModelPlan, Port, Side};
use shoal_onnx::{DType, Dim, LONGEST_ROW, Model, ValueInfo};

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
    let row = model.longest_row();
    if row > LONGEST_ROW {
        return Err(bad(format!(
            "the model has {row} operators in a row; at most {LONGEST_ROW} are allowed"
        )));
    }
    let inputs = model.inputs().map(port).collect::<Result<_, _>>()?;
    let outputs = model.outputs().iter().map(port).collect::<Result<_, _>>()?;
    Ok(ModelPlan { inputs, outputs })
}

fn port(value: &ValueInfo) -> Result<Port, IntakeError> {
    let name = value.name();
    let declared = value.declared();
    let dtype = declared.and_then(|declared| declared.dtype);
    let element = dtype.and_then(element).ok_or_else(|| match dtype {
        Some(dtype) => bad(format!("{name:?} is of the type {dtype}, which Shoal does not carry")),
        None => bad(format!("{name:?} is no tensor, or the file does not say of what type it is")),
    })?;
    let side = |dim: &Dim| match dim {
        Dim::Known(number) => Side::Fixed(*number),
        Dim::Open(name) => Side::Open(name.clone()),
    };
    let dims = declared.and_then(|declared| declared.dims.as_ref());
    let dims = dims.map(|dims| dims.iter().map(side).collect());
    Ok(Port { name: name.into(), element, dims })
}

fn element(dtype: DType) -> Option<Element> {
    Element::ALL.iter().copied().find(|element| element.name() == dtype.name())
}

fn bad(words: impl ToString) -> IntakeError {
    IntakeError::plain("bad_model", words.to_string())
}
