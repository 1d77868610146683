//! Of equal numbers the first one, and products with a vector.

use super::draft::{Draft, Names, Set};
use super::known::Known;

pub(super) const OPERATORS: &[&str] = &["ArgMax", "ArgMin", "MatMul"];

/// An engine that takes the last of equal numbers takes the first one if it looks from the other end.
pub(super) fn first_of_equals(draft: &mut Draft<'_>, known: &Known<'_>, names: &mut Names<'_>) {
    let node = draft.node;
    if !node.op().starts_with("Arg") || known.opset() < 10 {
        return;
    }
    if node.int("select_last_index").unwrap_or(0) != 0 {
        draft.drop_attribute("select_last_index");
        return;
    }
    let Some(input) = draft.input(0).map(alloc::string::String::from) else { return };
    let axis = node.int("axis").unwrap_or(0);
    let (reversed, found) = (names.fresh(), names.fresh());
    let [back, end, along] = [-1, i64::from(i32::MIN), axis].map(|int| names.ints(&[1], &[int]));
    draft.before("Slice", (&[&input, &back, &end, &along, &back], &reversed), &[]);
    let (shape, long, last) = (names.fresh(), names.fresh(), names.fresh());
    let (at, one) = (names.ints(&[], &[axis]), names.ints(&[], &[1]));
    draft.before("Shape", (&[&input], &shape), &[]);
    draft.before("Gather", (&[&shape, &at], &long), &[("axis", Set::Int(0))]);
    draft.before("Sub", (&[&long, &one], &last), &[]);
    draft.inputs[0] = reversed;
    draft.behind("Sub", &found, &[&last, &found], &[]);
}

/// Many matrices times a vector are many matrices times a matrix of one column.
pub(super) fn by_a_column(draft: &mut Draft<'_>, known: &Known<'_>, names: &mut Names<'_>) {
    let (left, right) = (draft.input(0), draft.input(1));
    let rank = |name: Option<&str>| name.and_then(|name| known.rank(name));
    let is_vector = rank(right) == Some(1) && rank(left).is_some_and(|rank| rank > 2);
    let Some(vector) = right.filter(|_| draft.node.op() == "MatMul" && is_vector) else { return };
    if known.opset() < 11 {
        return;
    }
    let vector = alloc::string::String::from(vector);
    let (column, product) = (names.fresh(), names.fresh());
    let shape = names.ints(&[2], &[-1, 1]);
    draft.before("Reshape", (&[&vector, &shape], &column), &[]);
    draft.inputs[1] = column;
    if known.opset() < 13 {
        let axes = [("axes", Set::Ints(alloc::vec![-1]))];
        draft.behind("Squeeze", &product, &[&product], &axes);
    } else {
        let axes = names.ints(&[1], &[-1]);
        draft.behind("Squeeze", &product, &[&product, &axes], &[]);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::told;
    use crate::model::Model;
    use crate::testing::{Build, With};
    use alloc::vec;
    use alloc::vec::Vec;

    fn operators(model: &Model) -> Vec<alloc::string::String> {
        told(model).iter().map(|node| node.op().into()).collect()
    }

    fn largest(with: Vec<With<'_>>) -> Model {
        let build = Build::new().input("x", &[-1, 3, 4]);
        build.node_with("ArgMax", &["x"], &["y"], with).output("y").model()
    }

    #[test]
    fn the_first_of_equals_is_the_last_from_the_other_end() {
        let model = largest(vec![With::Int("axis", -1)]);
        let expected = ["Slice", "Shape", "Gather", "Sub", "ArgMax", "Sub"];
        assert_eq!(operators(&model), expected);
        let nodes = told(&model);
        assert_eq!(nodes[4].inputs()[0], nodes[0].outputs()[0]);
        assert_eq!(nodes[5].outputs(), ["y"]);
        let last = largest(vec![With::Int("select_last_index", 1)]);
        assert_eq!(told(&last)[0].int("select_last_index"), None);
        assert_eq!(operators(&last), ["ArgMax"]);
    }

    #[test]
    fn many_matrices_are_multiplied_by_a_column() {
        let model = Build::new()
            .input("x", &[-1, 3, 4])
            .weight("v", &[4])
            .node("MatMul", &["x", "v"], &["y"])
            .output("y")
            .model();
        assert_eq!(operators(&model), ["Reshape", "MatMul", "Squeeze"]);
        let plain = Build::new()
            .input("x", &[3, 4])
            .weight("v", &[4])
            .node("MatMul", &["x", "v"], &["y"])
            .output("y")
            .model();
        assert!(plain.explicit().is_none(), "one matrix is no trouble");
    }
}
