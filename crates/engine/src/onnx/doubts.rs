//! What rten computes otherwise than ONNX says, or could not be ended at: such models are refused, since a wrong answer
//! is worse than none. What [`shoal_onnx::Model::explicit`] says in other words is no longer
//! there to be doubted. `ArgMax` in files of before opset 10 alone is not refused: of equal numbers it takes the last one.

use shoal_onnx::{Model, Node, Shapes, Tensor, Value};

/// Nodes of a graph inside a node. The engine walks them on the stack of a thread that it makes itself.
const MOST_INSIDE: usize = 1_000;

/// Names the first node that is doubted, and why.
pub(super) fn none(model: &Model) -> Result<(), String> {
    for (place, node) in model.places() {
        if let Some(why) = doubt(node, model) {
            return Err(format!("{place}: the built-in engine {why}"));
        }
    }
    Ok(())
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
        _ if text("auto_pad") == "SAME_LOWER" => {
            Some("pads below only where the file declares the shapes of its inputs")
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
