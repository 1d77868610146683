//! What a model's file says that the model takes and gives.

use shoal_kinds::onnx::{Element, Port, Side};
use shoal_onnx::{DType, Dim, Model, ValueInfo};

/// Inputs and outputs, or why nobody can give or take them.
pub(crate) fn ports(model: &Model) -> Result<(Vec<Port>, Vec<Port>), String> {
    let inputs = model.inputs().map(port).collect::<Result<_, _>>()?;
    let outputs = model.outputs().iter().map(port).collect::<Result<_, _>>()?;
    Ok((inputs, outputs))
}

pub(crate) fn port(value: &ValueInfo) -> Result<Port, String> {
    let name = value.name();
    let declared = value.declared();
    let dtype = declared.and_then(|declared| declared.dtype);
    let element = dtype.and_then(element).ok_or_else(|| match dtype {
        Some(dtype) => format!("{name:?} is of the type {dtype}, which Shoal does not carry"),
        None => format!("{name:?} is no tensor, or the file does not say of what type it is"),
    })?;
    let side = |dim: &Dim| match dim {
        Dim::Known(number) => Side::Fixed(*number),
        Dim::Open(name) => Side::Open(name.clone()),
    };
    let dims = declared.and_then(|declared| declared.dims.as_ref());
    let dims = dims.map(|dims| dims.iter().map(side).collect());
    Ok(Port { name: name.into(), element, dims })
}

pub(crate) fn element(dtype: DType) -> Option<Element> {
    Element::ALL.iter().copied().find(|element| element.name() == dtype.name())
}
