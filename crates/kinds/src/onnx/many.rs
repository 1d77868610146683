//! Planning a model over many inputs: the arrays held against what the model takes, and what comes out of an item.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};
use shoal_protocol::limit::MAX_UNIT_BYTES;
use shoal_protocol::{BlobRef, Dtype, Engine, Footprint, Lane, Needs, Tolerance};

use super::batch::{Batch, Column};
use super::plan::{OnnxError, footprint};
use super::tensor::{Element, Head};
use super::{OnnxWork, Side};
use crate::feed::{Feed, InputSplit};
use crate::plan::{Note, OutputJson, Part, PlanError, Tools, blob, sizing};

/// Items of one unit: more would take longer than a quarter of a second with every model.
const MOST_ITEMS: u64 = 1 << 16;
/// A unit's inputs and its rows are in memory, and once more on their way into the engine and out of it.
const UNIT_BESIDE: u64 = 4 * MAX_UNIT_BYTES;

/// An array of items for an input of a model.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct OnnxInputRequest {
    /// The model's name for the input. May be left out if it has only one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(nullable = false))]
    pub name: Option<String>,
    /// Hash of the array's bytes: little-endian, the last axis first.
    pub blob: String,
    /// As NumPy calls it: `float32`, `uint8`, ...
    #[serde(rename = "type")]
    pub element: String,
    /// The first axis counts the items.
    pub shape: Vec<u64>,
}

/// A tensor that a row of a result holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct TensorJson {
    pub name: String,
    /// As NumPy calls it: `float32`, `int64`, ...
    #[serde(rename = "type")]
    pub element: String,
    /// Of one item.
    pub shape: Vec<u64>,
}

impl TensorJson {
    pub(super) fn of(column: &Column) -> TensorJson {
        let Column { name, element, dims, .. } = column;
        TensorJson { name: name.clone(), element: element.name().into(), shape: dims.clone() }
    }
}

/// What whoever reads models says of one that runs over many inputs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchPlan {
    /// What comes out of a run with one item, in the order of the model's outputs.
    pub outputs: Vec<Vec<u64>>,
    /// Items that one run may take; one if the model has no axis for more.
    pub at_once: u32,
    /// What the values of such a run take.
    pub peak: u64,
}

/// How much the answers of honest devices differ: thousands of products are added in other orders, layer after layer.
/// Natively and in a browser, the classifier in `examples/cifar10` differs by some hundred-thousandths.
pub(super) fn usual_tolerance(dtype: Dtype) -> Tolerance {
    match dtype {
        Dtype::F32 => Tolerance { dtype, abs: 1e-3, rel: 1e-3, ulps: 0 },
        Dtype::Bytes | Dtype::Unorm8 | Dtype::F16 => Tolerance::usual(dtype),
    }
}

/// How many items these arrays have, and what an item has of each. The model must take it.
pub fn columns(work: &OnnxWork, arrays: &[Head]) -> Result<(u64, Vec<Column>), OnnxError> {
    let mut items = None;
    let mut columns = Vec::with_capacity(arrays.len());
    for Head { name, element, dims } in arrays {
        let Some((first, rest)) = dims.split_first() else {
            return Err(OnnxError::NoAxis { name: name.clone() });
        };
        let (before, others) = *items.get_or_insert((name, *first));
        if others != *first {
            let (one, other) = (before.clone(), name.clone());
            return Err(OnnxError::ItemsDiffer { one, items: others, other, others: *first });
        }
        let port = work.inputs.iter().find(|port| port.name == *name);
        // A model without an axis for items gets a row as it is.
        let declared = port.and_then(|port| port.dims.as_ref()).map(Vec::len);
        let leads = declared != Some(rest.len());
        let (name, element, dims) = (name.clone(), *element, rest.to_vec());
        columns.push(Column { name, element, dims, leads });
    }
    let one: Vec<Head> = columns.iter().map(|column| column.head(1)).collect();
    work.takes(&one).map_err(|misfit| OnnxError::Misfit { misfit, arrays: told(arrays) })?;
    Ok((items.map_or(0, |(_, items)| items), columns))
}

pub(super) fn plan(
    asked: &[OnnxInputRequest],
    (file, work): (&[u8], OnnxWork),
    unit: Option<u64>,
    tools: &Tools<'_>,
) -> Result<Part, PlanError> {
    let (blobs, arrays): (Vec<_>, Vec<_>) = arrays(asked, &work, tools)?.into_iter().unzip();
    let (items, columns) = columns(&work, &arrays)?;
    if items == 0 {
        return Err(PlanError::Empty);
    }
    let (inputs, feeds) = ordered(&work, columns, &blobs)?;
    let grows = work.inputs.iter().zip(&inputs).all(|(port, column)| {
        let first = port.dims.as_ref().and_then(|dims| dims.first());
        column.leads && matches!(first, Some(Side::Open(_)))
    });
    let one: Vec<Head> = inputs.iter().map(|column| column.head(1)).collect();
    let BatchPlan { outputs, at_once, peak } = tools.intake.batch(file, &one, grows)?;
    let leads = inputs.iter().any(|column| column.leads);
    let outputs: Vec<Column> =
        work.outputs.iter().zip(outputs).map(|(port, dims)| given(port, dims, leads)).collect();
    let batch = Batch { feeds, inputs, outputs, at_once };
    let (taken, row) = (bytes(&batch.inputs)?, bytes(&batch.outputs)?);
    if row == 0 {
        return Err(OnnxError::NoOutput.into());
    }
    let most = (MAX_UNIT_BYTES / taken.max(row)).min(MOST_ITEMS);
    if most == 0 {
        return Err(PlanError::ItemTooLarge { bytes: taken.max(row) });
    }
    let grain = u64::from(at_once).clamp(1, most);
    let sizing = sizing(grain, most / grain * grain, unit)?;
    let takes = footprint(work.model, peak);
    let takes = Footprint { memory: takes.memory + UNIT_BESIDE, threads: 1, ..takes };
    let needs = Needs::lane(Lane::Cpu).takes(takes).engine(Engine::ONNX);
    let dtype = if batch.is_rounded() { Dtype::F32 } else { Dtype::Bytes };
    let note = Note { output: output(&batch), ..Note::default() };
    let kind = OnnxWork { batch: Some(batch), ..work }.into();
    Ok(Part { kind, items, sizing, needs, dtype, note })
}

/// The arrays that are asked for, and what they are said to be.
fn arrays(
    asked: &[OnnxInputRequest],
    work: &OnnxWork,
    tools: &Tools<'_>,
) -> Result<Vec<(BlobRef, Head)>, PlanError> {
    let array = |asked: &OnnxInputRequest| {
        let OnnxInputRequest { name, blob: hash, element: found, shape } = asked;
        let name = match (name, work.inputs.as_slice()) {
            (Some(name), _) => name.clone(),
            (None, [only]) => only.name.clone(),
            (None, _) => return Err(OnnxError::NoName.into()),
        };
        let element = Element::ALL.iter().copied().find(|known| known.name() == found);
        let Some(element) = element else {
            let expected: Vec<_> = Element::ALL.iter().map(|element| element.name()).collect();
            let (found, expected) = (found.clone(), expected.join(", "));
            return Err(OnnxError::Type { name, found, expected }.into());
        };
        let blob = blob(tools.store, &format!("input {name:?}"), hash)?;
        let head = Head { name, element, dims: shape.clone() };
        match head.bytes().map(|bytes| bytes as u64) {
            Some(expected) if expected == blob.size => Ok((blob, head)),
            Some(expected) => {
                let Head { name, dims: shape, .. } = head;
                Err(OnnxError::Bytes { name, shape, expected, found: blob.size }.into())
            }
            None => Err(OnnxError::Shape { name: head.name, shape: head.dims }.into()),
        }
    };
    asked.iter().map(array).collect()
}

/// In the order of the model's inputs, each with the bytes that units read.
fn ordered(
    work: &OnnxWork,
    columns: Vec<Column>,
    blobs: &[BlobRef],
) -> Result<(Vec<Column>, Vec<Feed>), PlanError> {
    let feed = |column: &Column, blob: BlobRef| -> Result<Feed, PlanError> {
        let bytes = column.bytes().unwrap_or(u64::MAX);
        let fits = u32::try_from(bytes).ok().filter(|_| bytes <= MAX_UNIT_BYTES);
        let bytes = fits.ok_or(PlanError::ItemTooLarge { bytes })?;
        Ok(Feed { blob, split: InputSplit::PerItem { bytes, reach: 0 } })
    };
    let place = |column: &Column| work.inputs.iter().position(|port| port.name == column.name);
    let mut all: Vec<(Column, BlobRef)> = columns.into_iter().zip(blobs.iter().copied()).collect();
    all.sort_by_key(|(column, _)| place(column));
    let feeds = all.iter().map(|(column, blob)| feed(column, *blob)).collect::<Result<_, _>>()?;
    Ok((all.into_iter().map(|(column, _)| column).collect(), feeds))
}

/// What an item has of an output that came out of a run with one item.
fn given(port: &super::Port, mut dims: Vec<u64>, leads: bool) -> Column {
    let leads = leads && dims.first() == Some(&1);
    if leads {
        dims.remove(0);
    }
    Column { name: port.name.clone(), element: port.element, dims, leads }
}

/// Of one item, in all columns.
fn bytes(columns: &[Column]) -> Result<u64, PlanError> {
    let large = || PlanError::ItemTooLarge { bytes: u64::MAX };
    let all = columns.iter().try_fold(0_u64, |all, column| all.checked_add(column.bytes()?));
    all.ok_or_else(large)
}

/// The result as an array, if it is one.
fn output(batch: &Batch) -> Option<OutputJson> {
    let [output] = batch.outputs.as_slice() else { return None };
    let scalar = match output.element {
        Element::F32 => "f32",
        Element::I32 => "i32",
        Element::I64 => "i64",
        Element::U8 => "u8",
        Element::I8 => "i8",
        Element::Bool => "bool",
        Element::F16 | Element::F64 | Element::U16 | Element::I16 | Element::U32 | Element::U64 => {
            return None;
        }
    };
    let count = output.bytes()? / output.element.bytes() as u64;
    Some(OutputJson { scalar: scalar.to_string(), per_item: u32::try_from(count).ok()? })
}

fn told(arrays: &[Head]) -> String {
    let told =
        |head: &Head| format!("the array for {:?} is {}{:?}", head.name, head.element, head.dims);
    arrays.iter().map(told).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::super::{ModelPlan, Port};
    use super::*;
    use crate::intake::IntakeError;
    use crate::plan::{Intake, Planned, Store, StoreError, plan, read};
    use alloc::vec;
    use serde_json::{Value, json};
    use shoal_protocol::{Hash, Span};

    const BYTES: u64 = 4;

    /// A model of two inputs, of which the second has an axis for items only if `open`.
    struct Model {
        open: bool,
    }

    impl Intake for Model {
        fn model(&self, _: &[u8]) -> Result<ModelPlan, IntakeError> {
            let n = || Side::Open("n".into());
            let port = |name: &str, dims| Port {
                name: name.into(),
                element: Element::F32,
                dims: Some(dims),
            };
            let second = if self.open { vec![n()] } else { vec![Side::Fixed(1), Side::Fixed(2)] };
            Ok(ModelPlan {
                inputs: vec![port("a", vec![n(), Side::Fixed(3)]), port("b", second)],
                outputs: vec![port("y", vec![n(), Side::Fixed(5)]), port("z", vec![])],
                peak: None,
            })
        }

        fn batch(&self, _: &[u8], one: &[Head], grows: bool) -> Result<BatchPlan, IntakeError> {
            assert_eq!(grows, self.open);
            assert_eq!(one[0].dims, [1, 3]);
            Ok(BatchPlan {
                outputs: vec![vec![1, 5], vec![]],
                at_once: if grows { 8 } else { 1 },
                peak: 0,
            })
        }
    }

    /// A blob has as many bytes as the first byte of its hash says.
    struct Sizes;
    impl Store for Sizes {
        fn find(&self, hash: Hash) -> Result<Option<BlobRef>, StoreError> {
            Ok(Some(BlobRef { hash, size: hash.0[0].into() }))
        }
        fn read(&self, _: Hash, _: &mut dyn FnMut(&[u8]) -> bool) -> Result<bool, StoreError> {
            Ok(true)
        }
        fn put(&self, _: &[u8]) -> Result<BlobRef, StoreError> {
            Err("nothing is put here".into())
        }
        fn drop_torn(&self, _: Hash) {}
    }

    fn array(name: &str, shape: &[u64]) -> Value {
        let bytes = shape.iter().product::<u64>() * BYTES;
        let blob = Hash([bytes as u8; 32]).to_string();
        json!({"name": name, "blob": blob, "type": "float32", "shape": shape})
    }

    fn planned(open: bool, inputs: &[Value]) -> Result<Planned, PlanError> {
        let model = Hash([9; 32]).to_string();
        let request = json!({"kind": "onnx", "model": model, "inputs": inputs}).to_string();
        let tools = Tools { intake: &Model { open }, store: &Sizes };
        plan(&read(request.as_bytes())?, None, &tools)
    }

    #[test]
    fn rows_become_items_in_the_order_of_the_models_inputs() {
        let spec = planned(true, &[array("b", &[7]), array("a", &[7, 3])]).expect("planned").spec;
        assert_eq!((spec.items, spec.sizing.grain, spec.needs.takes.threads), (7, 8, 1));
        assert_eq!(spec.work.feeds()[0].range(Span::new(2, 3)), (24, 60));
        assert_eq!(spec.work.feeds()[1].range(Span::new(2, 3)), (8, 20));
        // Five floats of `y`, and `z`, which is one and has no axis for items.
        assert_eq!(spec.work.form().item_bytes(), Some(24));
        assert_eq!(crate::Kind::read(&spec.work.work()), Some(spec.work.clone()));
        assert_eq!(spec.policy.tolerance, usual_tolerance(Dtype::F32));
        let tensors = spec.work.shown().tensors.expect("two tensors");
        assert_eq!((tensors[0].shape.as_slice(), tensors[1].shape.len()), (&[5][..], 0));
    }

    #[test]
    fn a_model_for_one_item_runs_one_at_a_time() {
        let spec = planned(false, &[array("a", &[4, 3]), array("b", &[4, 2])]).expect("planned");
        assert_eq!(spec.spec.sizing.grain, 1);
    }

    #[test]
    fn what_does_not_fit_is_said_with_what_was_expected() {
        let says = |inputs: &[Value], words: &str| {
            let said = planned(true, inputs).expect_err("refused").to_string();
            assert!(said.contains(words), "{said}");
        };
        let (a, b) = (|| array("a", &[4, 3]), || array("b", &[4]));
        says(&[], "give one for each input in \"inputs\"");
        says(&[a(), array("b", &[5])], "the input \"a\" has 4 items, but \"b\" has 5");
        says(&[a()], "the input \"b\" is missing: expected float32[n]");
        says(&[a(), b(), array("c", &[4])], "the model has no input \"c\", only a, b");
        says(&[a(), a(), b()], "the input \"a\" is given twice");
        says(
            &[array("a", &[4, 2]), b()],
            "the input \"a\" has the shape [1, 2]: expected float32[nx3] (each row of an array is an item; the array \
             for \"a\" is float32[4, 2]",
        );
        says(&[array("a", &[]), b()], "the input \"a\" is a single number");
        says(&[array("a", &[0, 3]), array("b", &[0])], "nothing to compute");
        let mut other = a();
        other["type"] = "float8".into();
        says(&[other, b()], "the type \"float8\": expected one of float32, ");
        let mut other = a();
        other["type"] = "int32".into();
        says(&[other, b()], "the input \"a\" is int32: expected float32");
        let mut short = a();
        short["shape"] = json!([5, 3]);
        says(&[short, b()], "[5, 3], which takes 60 bytes: found 48");
        let mut huge = a();
        huge["shape"] = json!([u64::MAX, 3]);
        says(&[huge, b()], "no memory can hold");
        let mut unnamed = a();
        unnamed["name"] = Value::Null;
        says(&[unnamed, b()], "say in \"name\" which one");
    }
}
