//! Cuts a model into a row of parts, each a file of its own, before anything is stored. Cuts are only where a tensor of
//! known shape crosses whose type every engine carries, so that no part can come out that its neighbour cannot take.

use bytes::Bytes;
use shoal_kinds::IntakeError;
use shoal_kinds::onnx::{CutAsk, CutPart, CutPlan, Element, Port, Side};
use shoal_onnx::{Crossing, Cuts, Dim, Given, Model, ShapeError, Shapes, TensorType};
use shoal_onnx::{DType, ValueInfo};

use super::model::{bad, element, port};

/// The model in parts of about equal work, or why it has none.
pub fn parts(file: &[u8], ask: &CutAsk<'_>) -> Result<CutPlan, IntakeError> {
    let model = Model::read(Bytes::copy_from_slice(file)).map_err(bad)?;
    let given = given(&model, ask)?;
    let shapes = model.shapes(&given).map_err(|error| open(&model, &error))?;
    let cuts = model.cuts(&shapes);
    let row = cuts.parts_where(ask.most, |one| carried(one).is_some());
    let mut parts = Vec::with_capacity(row.parts.len());
    for part in &row.parts {
        let slice = cuts.slice(part.from, part.to).map_err(bad)?;
        let file = slice.file.to_bytes();
        // As whoever gets it reads it.
        let read = Model::read(file.clone()).map_err(bad)?;
        let weights = read.weights().iter().filter(|weight| !weight.ty().dims.is_empty());
        parts.push(CutPart {
            file: file.into(),
            inputs: ports(&cuts, part.from, &slice.takes, &model)?,
            outputs: ports(&cuts, part.to, &slice.gives, &model)?,
            operators: u32::try_from(part.to - part.from).unwrap_or(u32::MAX),
            parameters: weights.map(|weight| weight.ty().elements()).sum(),
            work: part.work,
            peak_bytes: part.peak_bytes,
            out_bytes: part.out_bytes,
        });
    }
    let inputs = model.inputs().map(|value| fixed(value, &shapes)).collect::<Result<_, _>>()?;
    let outputs = model.outputs().iter();
    let outputs = outputs.map(|value| fixed(value, &shapes)).collect::<Result<_, _>>()?;
    Ok(CutPlan { inputs, outputs, parts })
}

/// Shapes as they were asked for, with the types that the model declares.
fn given(model: &Model, ask: &CutAsk<'_>) -> Result<Vec<Given>, IntakeError> {
    let given = ask.shapes.iter().map(|(name, dims)| {
        let input = model.inputs().find(|input| input.name() == name);
        let Some(input) = input else {
            let known: Vec<&str> = model.inputs().map(ValueInfo::name).collect();
            let known = known.join(", ");
            return Err(bad(format!(
                "a shape is given for {name:?}, but the model has only {known}"
            )));
        };
        let dtype = input.declared().and_then(|declared| declared.dtype);
        let dtype = dtype.unwrap_or(DType::Float32);
        Ok(Given::new(name.as_str(), TensorType::new(dtype, dims.clone())))
    });
    given.collect()
}

/// What must be given, for all inputs at once.
fn open(model: &Model, error: &ShapeError) -> IntakeError {
    if !matches!(error, ShapeError::NotGiven { .. }) {
        return bad(error);
    }
    let mut wanted = Vec::new();
    for input in model.inputs() {
        let Ok(port) = port(input) else { continue };
        let Some(dims) = input.declared().and_then(|declared| declared.dims.as_ref()) else {
            wanted.push(format!("all dimensions of {:?}", port.name));
            continue;
        };
        let is_open = |(_, dim): &(usize, &Dim)| matches!(dim, Dim::Open(_));
        let open: Vec<String> = dims.iter().enumerate().filter(is_open).map(dimension).collect();
        if !open.is_empty() {
            wanted.push(format!("{} of {:?}, which is {port}", open.join(", "), port.name));
        }
    }
    let first = model.inputs().next().map_or("NAME", ValueInfo::name);
    bad(format!(
        "to split the model, its shapes must be known, and it leaves open: {}. Give every shape in full, as in \
         --shape {first}=1x3x224x224",
        wanted.join("; ")
    ))
}

fn dimension((at, dim): (usize, &Dim)) -> String {
    match dim {
        Dim::Open(name) if !name.is_empty() => format!("dimension {at} ({dim})"),
        Dim::Open(_) | Dim::Known(_) => format!("dimension {at}"),
    }
}

/// What an engine can take and give between two parts.
fn carried(one: &Crossing<'_>) -> Option<Element> {
    let found = element(one.ty?.dtype)?;
    match found {
        Element::F32 | Element::I32 | Element::U8 | Element::I8 | Element::Bool | Element::I64 => {
            Some(found)
        }
        Element::F16 | Element::F64 | Element::U16 | Element::I16 | Element::U32 | Element::U64 => {
            None
        }
    }
}

/// The ports of these values, of which all but the model's own ends cross a cut.
fn ports(
    cuts: &Cuts<'_>,
    at: usize,
    names: &[String],
    model: &Model,
) -> Result<Vec<Port>, IntakeError> {
    let crossing = cuts.crossing(at);
    let find = |name: &String| {
        let one = crossing.iter().find(|one| one.name == name);
        match one.and_then(|one| Some((one.ty?, element(one.ty?.dtype)?))) {
            Some((ty, element)) => Ok(Port { name: name.clone(), element, dims: sides(ty) }),
            None => {
                let declared = model.inputs().chain(model.outputs()).find(|it| it.name() == name);
                port(declared.ok_or_else(|| bad(format!("nobody knows what {name:?} is")))?)
            }
        }
    };
    names.iter().map(find).collect()
}

/// As the file declares it, with the shape that follows from the inputs'.
fn fixed(value: &ValueInfo, shapes: &Shapes) -> Result<Port, IntakeError> {
    let declared = port(value)?;
    let dims = shapes.of(value.name()).and_then(sides);
    Ok(Port { dims: dims.or(declared.dims), ..declared })
}

fn sides(ty: &TensorType) -> Option<Vec<Side>> {
    Some(ty.dims.iter().map(|dim| Side::Fixed(*dim)).collect())
}
