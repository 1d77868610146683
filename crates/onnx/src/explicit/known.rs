//! What is sure of a model's values before anybody says which shapes its inputs have. What the file notes of values in
//! between is no more than a hint: an input may have been opened after the note was made.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::narrow;
use crate::dtype::{DType, Dim};
use crate::model::{Made, Model};
use crate::node::Node;
use crate::shape::Shapes;

/// Operators whose first output is of the type of their first input, beside those of [`narrow`].
const KEEP: [&str; 16] = [
    "Concat",
    "DepthToSpace",
    "Expand",
    "Flatten",
    "Gather",
    "GatherElements",
    "GatherND",
    "Identity",
    "Pad",
    "Reshape",
    "Slice",
    "SpaceToDepth",
    "Squeeze",
    "Tile",
    "Transpose",
    "Unsqueeze",
];

pub(super) struct Known<'a> {
    pub(super) model: &'a Model,
    /// Where the inputs' shapes are declared in full.
    shapes: Option<Shapes>,
    types: BTreeMap<&'a str, DType>,
}

impl<'a> Known<'a> {
    pub(super) fn of(model: &'a Model) -> Known<'a> {
        Known { model, shapes: model.shapes(&[]).ok(), types: types(model) }
    }

    pub(super) fn opset(&self) -> u64 {
        self.model.opset("").unwrap_or(0)
    }

    pub(super) fn dtype(&self, name: &str) -> Option<DType> {
        let shaped = self.shapes.as_ref().and_then(|shapes| shapes.of(name));
        shaped.map(|ty| ty.dtype).or_else(|| self.types.get(name).copied())
    }

    /// The sides of a value, none for those that are open.
    pub(super) fn sides(&self, name: &str) -> Option<Vec<Option<u64>>> {
        let all = |dims: &[u64]| dims.iter().copied().map(Some).collect();
        let graph = &self.model.graph;
        match self.model.made.get(name)? {
            Made::Weight(at) => return Some(all(&graph.weights[*at].ty().dims)),
            Made::Input(_) | Made::Node(_) | Made::Sparse(_) => {}
        }
        if let Some(ty) = self.shapes.as_ref().and_then(|shapes| shapes.of(name)) {
            return Some(all(&ty.dims));
        }
        let side = |dim: &Dim| match dim {
            Dim::Known(side) => Some(*side),
            Dim::Open(_) => None,
        };
        // Requests are held to what is declared of inputs.
        let input = self.model.inputs().find(|input| input.name == name)?;
        Some(input.declared.as_ref()?.dims.as_ref()?.iter().map(side).collect())
    }

    pub(super) fn rank(&self, name: &str) -> Option<usize> {
        self.sides(name).map(|sides| sides.len())
    }

    /// The sides from a dimension on, if all of them are known.
    pub(super) fn sides_from(&self, name: &str, from: usize) -> Option<Vec<i64>> {
        let sides = self.sides(name)?;
        sides.get(from..)?.iter().map(|side| i64::try_from((*side)?).ok()).collect()
    }
}

/// The types of values, as far as they follow from the inputs, the weights and plain operators, whatever the shapes.
fn types(model: &Model) -> BTreeMap<&str, DType> {
    let inputs = model.inputs();
    let inputs =
        inputs.filter_map(|input| Some((input.name.as_str(), input.declared.as_ref()?.dtype?)));
    let weights = model.graph.weights.iter().map(|weight| (weight.name.as_str(), weight.ty.dtype));
    let mut types: BTreeMap<&str, DType> = inputs.chain(weights).collect();
    for node in &model.graph.nodes {
        let made = node.outputs.first().filter(|output| !output.is_empty());
        if let Some((made, dtype)) = made.zip(made_of(node, &types)) {
            types.insert(made, dtype);
        }
    }
    types
}

fn made_of(node: &Node, types: &BTreeMap<&str, DType>) -> Option<DType> {
    let of = |at: usize| types.get(node.inputs.get(at)?.as_str()).copied();
    match node.op.as_str() {
        _ if !node.domain.is_empty() => None,
        "Cast" => DType::of(u64::try_from(node.int("to")?).ok()?),
        "Where" => of(1),
        "QuantizeLinear" => of(2),
        op if narrow::COMPARE.contains(&op) => Some(DType::Bool),
        op if narrow::OPERATORS.contains(&op) || KEEP.contains(&op) => of(0),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Build, With};
    use alloc::vec;

    /// Behind an input that was opened after the file noted what comes of it.
    fn stale(dims: &[i64]) -> Build {
        Build::new().input("x", &[-1, -1, -1, -1]).node("Relu", &["x"], &["r"]).info("r", dims)
    }

    #[test]
    fn notes_of_values_in_between_are_not_believed() {
        let by_two = || With::Ints("strides", &[2, 2]);
        let kernel = || With::Ints("kernel_shape", &[3, 3]);
        let below = vec![With::Text("auto_pad", "SAME_LOWER"), kernel(), by_two()];
        let window = || stale(&[1, 1, 224, 224]).weight("w", &[1, 1, 3, 3]);
        let conv = window().node_with("Conv", &["r", "w"], &["y"], below).output("y").model();
        assert!(conv.explicit().is_none(), "225 sides would be padded otherwise than 224");
        let grown = vec![With::Ints("output_shape", &[448, 448]), kernel(), by_two()];
        let grow = window().node_with("ConvTranspose", &["r", "w"], &["y"], grown).output("y");
        assert!(grow.model().explicit().is_none());
        let product = Build::new().info("r", &[2, 3, 4]).input("x", &[]).weight("v", &[4]);
        let product = product.node("Relu", &["x"], &["r"]).node("MatMul", &["r", "v"], &["y"]);
        assert!(product.output("y").model().explicit().is_none(), "nobody knows how many sides");
        let sum = Build::new().input("x", &[-1]).info_of("r", DType::Uint8);
        let sum = sum.node("Relu", &["x"], &["r"]).node("Add", &["r", "r"], &["y"]);
        assert!(sum.output("y").model().explicit().is_none(), "they are floats");
    }

    #[test]
    fn types_follow_from_inputs_and_plain_operators_whatever_the_shapes() {
        let model = Build::new()
            .input("x", &[-1])
            .input_of("b", DType::Uint8, &[-1])
            .node_with("Cast", &["x"], &["c"], vec![With::Int("to", 3)])
            .node("Identity", &["c"], &["d"])
            .node("Less", &["b", "b"], &["e"])
            .node("Where", &["e", "b", "b"], &["f"])
            .node("Relu", &["x"], &["g"])
            .output("g")
            .model();
        let known = Known::of(&model);
        let types = ["c", "d", "e", "f", "g"].map(|name| known.dtype(name));
        let (signed, bytes) = (Some(DType::Int8), Some(DType::Uint8));
        assert_eq!(types, [signed, signed, Some(DType::Bool), bytes, None]);
    }
}
