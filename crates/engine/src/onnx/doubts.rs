//! What rten computes otherwise than ONNX says, or could not be ended at: such models are refused, since a wrong answer
//! is worse than none. What [`shoal_onnx::Model::explicit`] says in other words is no longer there to be doubted; it does
//! so in the outer graph only, so graphs inside nodes are refused for more. Only before opset 10, where ONNX does not say
//! which of equal numbers `ArgMax` takes, it is left to rten, which takes the last one.

use std::collections::BTreeSet;

use shoal_onnx::{DType, Model, Node, Place, Shapes, Tensor, Value};

/// Nodes of a graph inside a node. The engine walks them on the stack of a thread that it makes itself.
const MOST_INSIDE: usize = 1_000;

/// Since then `ArgMax` takes the first of equal numbers.
const FIRST_OF_EQUALS: u64 = 10;

/// Whole numbers that rten keeps in 32 bits with a sign, and does not wrap round as their own type does.
const KEPT_WIDE: [DType; 4] = [DType::Uint16, DType::Int16, DType::Uint32, DType::Uint64];
/// Operators that hand such numbers on, or choose among them.
const HAND_ON: [&str; 28] = [
    "Clip",
    "Concat",
    "DepthToSpace",
    "Expand",
    "Flatten",
    "Gather",
    "GatherElements",
    "GatherND",
    "Identity",
    "If",
    "Max",
    "Min",
    "Mod",
    "Pad",
    "ReduceMax",
    "ReduceMin",
    "Reshape",
    "ScatterElements",
    "ScatterND",
    "Slice",
    "SpaceToDepth",
    "Split",
    "Squeeze",
    "Tile",
    "TopK",
    "Transpose",
    "Unsqueeze",
    "Where",
];
/// Operators that look at such numbers and make others of them.
const LOOK_AT: [&str; 11] = [
    "ArgMax",
    "ArgMin",
    "Cast",
    "Equal",
    "Greater",
    "GreaterOrEqual",
    "Less",
    "LessOrEqual",
    "NonZero",
    "Shape",
    "Size",
];

/// Names the first node that is doubted, and why.
pub(super) fn none(model: &Model) -> Result<(), String> {
    let mut wide = Wide::of(model);
    for (place, node) in model.places() {
        let why = doubt(node, model).or_else(|| inside(&place, node, model));
        if let Some(why) = why.or_else(|| wide.doubt(node)) {
            return Err(format!("{place}: the built-in engine {why}"));
        }
    }
    Ok(())
}

/// Values that may have numbers of types that rten keeps wider than they are. Only inputs bring them: rten neither loads
/// weights of these types nor makes them of others.
struct Wide<'a>(BTreeSet<&'a str>);

impl<'a> Wide<'a> {
    fn of(model: &'a Model) -> Wide<'a> {
        let is_wide = |dtype: DType| KEPT_WIDE.contains(&dtype);
        let inputs = model.inputs().filter(|input| {
            input.declared().and_then(|declared| declared.dtype).is_some_and(is_wide)
        });
        Wide(inputs.map(|input| input.name()).collect())
    }

    fn doubt(&mut self, node: &'a Node) -> Option<&'static str> {
        if !node.reads().any(|name| self.0.contains(name)) {
            return None;
        }
        let op = if node.domain().is_empty() { node.op() } else { "" };
        // Some scatterers add to what is there.
        if HAND_ON.contains(&op) && matches!(node.text("reduction"), None | Some("none")) {
            self.0.extend(node.makes());
            return None;
        }
        let counts = "does not compute with whole numbers of 16 bits, or without a sign, of more than 8 bits";
        (!LOOK_AT.contains(&op)).then_some(counts)
    }
}

/// What is doubted of nodes that are not rewritten because they are in a graph of another one.
fn inside(place: &Place, node: &Node, model: &Model) -> Option<&'static str> {
    place.within.as_ref()?;
    let input = |at: usize| node.inputs().get(at).map(String::as_str).unwrap_or_default();
    match node.op() {
        "ArgMax" | "ArgMin" if model.opset("").is_some_and(|opset| opset >= FIRST_OF_EQUALS) => {
            Some("takes the last of equal numbers in a branch")
        }
        "MaxPool" | "AveragePool" if !node.has("strides") => {
            Some("needs the strides of windows in a branch")
        }
        "MatMul" if weight(model, input(1)).is_none_or(|right| right.ty().dims.len() < 2) => {
            Some("multiplies only by matrices of the file in a branch")
        }
        _ => None,
    }
}

/// What is doubted of values with these shapes.
pub(super) fn of_shapes(model: &Model, shapes: &Shapes) -> Option<String> {
    for (place, node) in model.places() {
        let rank = |at: usize| shapes.of(node.inputs().get(at)?).map(|ty| ty.dims.len());
        // rten forgets to take away the dimension that it added.
        if node.op() == "MatMul" && rank(1) == Some(1) && rank(0).is_none_or(|rank| rank > 2) {
            return Some(format!(
                "{place}: the built-in engine multiplies many matrices by a vector only if it is a matrix of one column"
            ));
        }
    }
    None
}

fn doubt(node: &Node, model: &Model) -> Option<&'static str> {
    let text = |name| node.text(name).unwrap_or_default();
    let input = |at: usize| node.inputs().get(at).map(String::as_str).unwrap_or_default();
    match node.op() {
        "Resize" if text("mode") == "cubic" => Some("has no cubic resizing"),
        "Resize" if text("coordinate_transformation_mode") == "align_corners" => {
            let scales = weight(model, input(2)).and_then(Tensor::value);
            let whole = |scale: &f32| scale.fract() == 0.0;
            let fine = input(2).is_empty()
                || matches!(&scales, Some(Value::Floats(scales)) if scales.iter().all(whole));
            (!fine).then_some("aligns corners only to whole scales, or to sizes")
        }
        // It pads with 0, not with the number that stands for 0.
        "ConvInteger" => {
            let none = |pads: &[i64]| pads.iter().all(|pad| *pad == 0);
            let fine = matches!(text("auto_pad"), "" | "NOTSET" | "VALID")
                && node.ints("pads").is_none_or(none);
            (!fine).then_some("pads convolutions of whole numbers wrongly")
        }
        // It pads as if they said the opposite.
        _ if text("auto_pad") == "SAME_LOWER" => Some(
            "pads below only where the shapes follow from what the file declares of its inputs",
        ),
        // It pads them as if they were none.
        "ConvTranspose" if text("auto_pad").starts_with("SAME") => {
            Some("transposes convolutions only by a kernel of known size")
        }
        // Nobody could end a run that goes round for ever.
        "Loop" | "Scan" => Some("runs no loops"),
        _ if node.inside() > MOST_INSIDE => Some("runs no more than 1,000 operators in a branch"),
        "NonMaxSuppression" => Some("chooses other boxes than ONNX does, for more than one class"),
        _ => None,
    }
}

fn weight<'a>(model: &'a Model, name: &str) -> Option<&'a Tensor> {
    model.weights().iter().find(|weight| weight.name() == name)
}

#[cfg(test)]
mod tests {
    use super::super::made::{Graph, With, asked, int16s, load, uint32s};
    use super::*;

    fn refusal(graph: Graph) -> String {
        let refused = load(graph.file()).map(drop).expect_err("it computes otherwise");
        refused.to_string()
    }

    #[test]
    fn numbers_that_would_wrap_round_are_not_computed_with() {
        // 30,000 and 30,000 make -5,536 in 16 bits.
        let sum = Graph::new("x", DType::Int16, &[2])
            .node("Add", &["x", "x"], "s", &[])
            .node("Cast", &["s"], "y", &[With::Int("to", 1)])
            .output("y", DType::Float32);
        assert!(refusal(sum).contains("node 0 (Add): the built-in engine does not compute with"));
        let less = Graph::new("x", DType::Uint32, &[2])
            .node("Reshape", &["x", "shape"], "r", &[])
            .ints("shape", &[2])
            .node("Sum", &["r", "x"], "s", &[])
            .node("Less", &["x", "s"], "y", &[])
            .output("y", DType::Bool);
        assert!(refusal(less).contains("node 1 (Sum)"), "handed on by another node");
        for (dtype, op) in [(DType::Uint16, "Mul"), (DType::Uint64, "Sub"), (DType::Int16, "Neg")] {
            let inputs: &[&str] = if op == "Neg" { &["x"] } else { &["x", "x"] };
            let graph = Graph::new("x", dtype, &[2]).node(op, inputs, "y", &[]);
            assert!(refusal(graph.output("y", dtype)).contains(op));
        }
    }

    #[test]
    fn numbers_are_handed_on_and_compared_as_they_are() {
        let largest = Graph::new("x", DType::Int16, &[3])
            .node("ReduceMax", &["x"], "m", &[With::Int("keepdims", 1)])
            .node("Max", &["x", "m"], "y", &[])
            .output("y", DType::Int16);
        let answer = asked(largest.file(), &int16s(&[-7, 30_000, 2]));
        assert_eq!(answer, [30_000i16.to_le_bytes(); 3].concat());
        let less = Graph::new("x", DType::Uint32, &[2])
            .node("Transpose", &["x"], "t", &[])
            .node("Cast", &["t"], "y", &[With::Int("to", 1)])
            .output("y", DType::Float32);
        let answer = asked(less.file(), &uint32s(&[3, 1 << 30]));
        assert_eq!(answer, [3f32.to_le_bytes(), ((1u32 << 30) as f32).to_le_bytes()].concat());
    }

    #[test]
    fn what_is_rewritten_only_outside_is_refused_in_a_branch() {
        let branch = |node: fn(Graph) -> Graph| {
            let graph = |inner: Graph| {
                Graph::new("x", DType::Float32, &[1, 1, 4, 4])
                    .ints("c", &[1])
                    .node("Cast", &["c"], "b", &[With::Int("to", 9)])
                    .branches("b", inner, "y")
            };
            graph(node(Graph::inner()))
        };
        let largest = branch(|inner| {
            inner.node("ArgMax", &["x"], "a", &[With::Int("axis", 3)]).output("a", DType::Int64)
        });
        let why = refusal(largest.output("y", DType::Int64));
        assert!(
            why.contains("(ArgMax) in a graph of node 1 (If): the built-in engine takes the last"),
            "{why}"
        );
        let pool = branch(|inner| {
            let kernel = [With::Ints("kernel_shape", &[2, 2])];
            inner.node("MaxPool", &["x"], "a", &kernel).output("a", DType::Float32)
        });
        assert!(refusal(pool.output("y", DType::Float32)).contains("needs the strides"));
        let product =
            branch(|inner| inner.node("MatMul", &["x", "x"], "a", &[]).output("a", DType::Float32));
        assert!(refusal(product.output("y", DType::Float32)).contains("matrices of the file"));
        let fine = branch(|inner| inner.node("Relu", &["x"], "a", &[]).output("a", DType::Float32));
        load(fine.output("y", DType::Float32).file()).map(drop).expect("nothing to be said");
    }

    #[test]
    fn stale_notes_of_a_file_change_no_window() {
        let window = |op: &str, with: &[With<'_>]| {
            Graph::new("x", DType::Float32, &[1, 1, -1, -1])
                .node("Relu", &["x"], "r", &[])
                .info("r", DType::Float32, &[1, 1, 224, 224])
                .floats("w", &[1, 1, 3, 3])
                .node(op, &["r", "w"], "y", with)
                .output("y", DType::Float32)
        };
        let (kernel, two) = (With::Ints("kernel_shape", &[3, 3]), With::Ints("strides", &[2, 2]));
        let below = window("Conv", &[With::Text("auto_pad", "SAME_LOWER"), kernel, two]);
        assert!(refusal(below).contains("pads below only where"));
        let grown =
            window("ConvTranspose", &[With::Ints("output_shape", &[448, 448]), kernel, two]);
        refusal(grown);
    }
}
