//! Whole numbers of 8 bits, which a simple engine adds and compares only with more bits: they are widened before, and
//! narrowed behind as ONNX does it, without a look at what is lost above.

use alloc::string::String;

use super::draft::{Draft, Names, Set};
use super::known::Known;
use crate::dtype::DType;

pub(super) const OPERATORS: &[&str] = &[
    "Add",
    "Sub",
    "Mul",
    "Div",
    "Mod",
    "Max",
    "Min",
    "Clip",
    "Where",
    "ReduceMax",
    "ReduceMin",
    "Equal",
    "Less",
    "LessOrEqual",
    "Greater",
    "GreaterOrEqual",
    "MaxPool",
];
/// Of these the output is true or false, whatever goes in.
pub(super) const COMPARE: &[&str] = &["Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"];

pub(super) fn widen(draft: &mut Draft<'_>, known: &Known<'_>, names: &mut Names<'_>) {
    let op = draft.node.op();
    if !OPERATORS.contains(&op) {
        return;
    }
    let is_narrow =
        |name: &str| known.dtype(name).filter(|dtype| matches!(dtype, DType::Int8 | DType::Uint8));
    // What `Where` chooses from comes behind its condition.
    let first = usize::from(op == "Where");
    let Some(narrow) = draft.input(first).and_then(is_narrow) else { return };
    // All numbers of 8 bits are floats; windows are looked at in floats.
    let wide = if op == "MaxPool" { DType::Float32 } else { DType::Int32 };
    let to = |dtype: DType| [("to", Set::Int(dtype.number() as i64))];
    for at in first..draft.inputs.len() {
        if draft.input(at).and_then(is_narrow) != Some(narrow) {
            continue;
        }
        let widened = names.fresh();
        let from: String = core::mem::replace(&mut draft.inputs[at], widened.clone());
        draft.before("Cast", (&[&from], &widened), &to(wide));
    }
    if !COMPARE.contains(&op) {
        let made = names.fresh();
        draft.behind("Cast", &made, &[&made], &to(narrow));
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::told;
    use crate::dtype::DType;
    use crate::testing::{Build, With};
    use alloc::vec;
    use alloc::vec::Vec;

    #[test]
    fn narrow_numbers_are_added_as_wide_ones_and_narrowed_again() {
        let model = Build::new()
            .input_of("x", DType::Uint8, &[-1])
            .input_of("y", DType::Uint8, &[-1])
            .node("Add", &["x", "y"], &["z"])
            .node("Less", &["z", "x"], &["w"])
            .output("w")
            .model();
        let nodes = told(&model);
        let ops: Vec<&str> = nodes.iter().map(|node| node.op()).collect();
        assert_eq!(ops, ["Cast", "Cast", "Add", "Cast", "Cast", "Cast", "Less"]);
        let to: Vec<_> = nodes.iter().filter_map(|node| node.int("to")).collect();
        assert_eq!(to, [6, 6, 2, 6, 6]);
        assert_eq!(nodes[3].outputs(), ["z"]);
    }

    #[test]
    fn what_is_no_narrow_number_stays_and_windows_are_looked_at_in_floats() {
        let floats = Build::new().input("x", &[2]).node("Add", &["x", "x"], &["y"]).output("y");
        assert!(floats.model().explicit().is_none());
        let pool = Build::new()
            .input_of("x", DType::Int8, &[1, 1, 4, 4])
            .node_with("MaxPool", &["x"], &["y"], vec![With::Ints("kernel_shape", &[2, 2])])
            .output("y")
            .model();
        let nodes = told(&pool);
        let to: Vec<_> = nodes.iter().map(|node| (node.op(), node.int("to"))).collect();
        assert_eq!(to, [("Cast", Some(1)), ("MaxPool", None), ("Cast", Some(3))]);
        assert_eq!(nodes[1].ints("strides"), Some(&[1, 1][..]));
    }
}
