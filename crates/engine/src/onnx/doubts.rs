//! What rten computes otherwise than ONNX says, or could not be ended at: such models are refused, since a wrong answer
//! is worse than none. `ArgMax` alone is not: of equal numbers it takes the last one.

use bytes::Bytes;
use shoal_onnx::{LONGEST_ROW, Model, Node, Tensor, Value};

/// Nodes of a graph inside a node. The engine walks them on the stack of a thread that it makes itself.
const MOST_INSIDE: usize = 1_000;

/// The graph if there is nothing to doubt; otherwise the first node that is doubted, and why.
pub(super) fn none(file: Bytes) -> Result<Model, String> {
    let model = Model::read(file).map_err(|error| error.to_string())?;
    let row = model.longest_row();
    if row > LONGEST_ROW {
        return Err(format!("{row} operators in a row are too many; at most {LONGEST_ROW} may be"));
    }
    for (place, node) in model.places() {
        if let Some(why) = doubt(node, &model) {
            return Err(format!("{place}: the built-in engine {why}"));
        }
    }
    Ok(model)
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
