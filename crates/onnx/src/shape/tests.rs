//! Rules that ONNX's own cases do not reach: what is wrong, what is open, shapes that models compute.

use super::*;
use crate::dtype::DType;
use crate::testing::{Build, With};
use alloc::vec;

fn float(dims: &[u64]) -> TensorType {
    TensorType::new(DType::Float32, dims)
}

#[test]
fn a_shape_that_is_computed_is_known() {
    // What exporters write for `x.reshape(x.shape[0], -1)`.
    let model = Build::new()
        .input("x", &[-1, 3, 4])
        .ints("zero", &[0])
        .ints("minus_one", &[-1])
        .node("Shape", &["x"], &["shape"])
        .node("Gather", &["shape", "zero"], &["batch"])
        .node_with("Concat", &["batch", "minus_one"], &["wanted"], vec![With::Int("axis", 0)])
        .node("Reshape", &["x", "wanted"], &["y"])
        .output("y")
        .model();
    let shapes = model.shapes(&[Given::new("x", float(&[5, 3, 4]))]).expect("shapes");
    assert_eq!(shapes.of("y"), Some(&float(&[5, 12])));
    assert_eq!(shapes.value("wanted"), Some(&Value::Ints(vec![5, -1])));
}

#[test]
fn inputs_are_held_against_what_is_declared() {
    let model =
        || Build::new().input("x", &[-1, 3]).node("Relu", &["x"], &["y"]).output("y").model();
    let said = |given: &[Given]| model().shapes(given).expect_err("unfit").to_string();
    let expected = "the model expects float32[n x 3]";
    assert_eq!(said(&[]), format!("input `x` is not given: {expected}"));
    let rank = said(&[Given::new("x", float(&[3]))]);
    assert_eq!(rank, format!("input `x` is float32[3]: {expected}"));
    let dtype = said(&[Given::new("x", TensorType::new(DType::Int8, [1, 3]))]);
    assert_eq!(dtype, format!("input `x` is int8[1x3]: {expected}"));
    let name = said(&[Given::new("z", float(&[1, 3]))]);
    assert_eq!(name, "the model has no input `z`: its inputs are `x`");
    assert!(model().shapes(&[Given::new("x", float(&[1 << 60, 3]))]).is_err());
}

#[test]
fn a_contradiction_names_node_and_operator() {
    let model = Build::new()
        .input("x", &[2, 3])
        .weight("w", &[4, 5])
        .node("Relu", &["x"], &["r"])
        .node("MatMul", &["r", "w"], &["y"])
        .output("y")
        .model();
    let said = model.shapes(&[]).expect_err("unfit").to_string();
    assert_eq!(said, "node 1 `make_y` (MatMul): [2x3] cannot be multiplied by [4x5]");
}

#[test]
fn an_operator_without_a_rule_names_itself_and_the_rest_is_known() {
    let model = Build::new()
        .input("x", &[2, 3])
        .node("Relu", &["x"], &["r"])
        .node("Frobnicate", &["r"], &["f"])
        .node("Abs", &["f"], &["y"])
        .node("Abs", &["r"], &["z"])
        .output("y")
        .output("z")
        .model();
    let shapes = model.shapes(&[]).expect("shapes");
    let [missing] = shapes.missing() else { panic!("{:?}", shapes.missing()) };
    assert_eq!(missing.place.to_string(), "node 1 `make_f` (Frobnicate)");
    assert_eq!(missing.why, "Shoal knows no shape rule for the operator Frobnicate");
    assert_eq!((shapes.of("f"), shapes.of("y")), (None, None));
    assert_eq!(shapes.of("z"), Some(&float(&[2, 3])));
}

#[test]
fn of_two_branches_the_one_that_runs_counts() {
    let branch = |dims: &'static [i64]| {
        let with = vec![With::Ints("axes", dims)];
        Build::new().node_with("ReduceSum", &["x"], &["s"], with).output("s")
    };
    let branches =
        || vec![With::Graph("then_branch", branch(&[0])), With::Graph("else_branch", branch(&[1]))];
    let known = Build::new()
        .input("x", &[2, 3])
        .ints("c", &[1])
        .node_with("If", &["c"], &["y"], branches())
        .output("y")
        .model();
    assert_eq!(known.shapes(&[]).expect("shapes").of("y"), Some(&float(&[1, 3])));
    let open = Build::new()
        .input("x", &[2, 3])
        .input("c", &[1])
        .node_with("If", &["c"], &["y"], branches())
        .output("y")
        .model();
    let shapes = open.shapes(&[]).expect("shapes");
    assert!(shapes.missing()[0].why.starts_with("its branches make different shapes"));
}

#[test]
fn no_tensor_is_larger_than_a_machine() {
    let model = Build::new()
        .input("x", &[1])
        .ints("huge", &[1 << 40, 1 << 40])
        .node("Expand", &["x", "huge"], &["y"])
        .output("y")
        .model();
    let said = model.shapes(&[]).expect_err("too large").to_string();
    assert!(said.contains("(Expand): its output has more than"), "{said}");
}

#[test]
fn windows_are_counted_as_others_count_them() {
    let pooled = |with: Vec<With<'_>>| {
        let model = Build::new()
            .input("x", &[1, 1, 7, 7])
            .node_with("MaxPool", &["x"], &["y"], with)
            .output("y")
            .model();
        model.shapes(&[]).expect("shapes").of("y").expect("told").dims[2]
    };
    let (kernel, strides) = (With::Ints("kernel_shape", &[2, 2]), With::Ints("strides", &[3, 3]));
    assert_eq!(pooled(vec![kernel, strides]), 2);
    let kernel = || With::Ints("kernel_shape", &[2, 2]);
    let strides = || With::Ints("strides", &[3, 3]);
    assert_eq!(pooled(vec![kernel(), strides(), With::Int("ceil_mode", 1)]), 3);
    assert_eq!(pooled(vec![kernel(), strides(), With::Text("auto_pad", "SAME_UPPER")]), 3);
}
