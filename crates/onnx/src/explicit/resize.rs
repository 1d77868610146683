//! Pictures that are resized along some axes: all axes are named, those that stay with a scale of 1.

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use super::draft::{Draft, Names, Set};
use super::known::Known;

pub(super) const OPERATORS: &[&str] = &["Resize"];
/// Inputs of `Resize`.
const SCALES: usize = 2;
const SIZES: usize = 3;

pub(super) fn all_axes(draft: &mut Draft<'_>, known: &Known<'_>, names: &mut Names<'_>) {
    let node = draft.node;
    let stretches = matches!(node.text("keep_aspect_ratio_policy"), None | Some("stretch"));
    let crops = node.text("coordinate_transformation_mode") == Some("tf_crop_and_resize");
    let Some(axes) = node.ints("axes").filter(|_| node.op() == "Resize" && stretches && !crops)
    else {
        return;
    };
    let Some(input) = draft.input(0).map(String::from) else { return };
    let Some(places) = known.rank(&input).and_then(|rank| places(axes, rank)) else { return };
    let rank = places.len();
    // All sides as they are, then the new ones; each axis takes its own of these.
    let (at, stays) = match (draft.input(SCALES), draft.input(SIZES)) {
        (Some(_), None) => (SCALES, names.floats(&vec![1.0; rank])),
        (None, Some(_)) => {
            let stays = names.fresh();
            draft.before("Shape", (&[&input], &stays), &[]);
            (SIZES, stays)
        }
        _ => return,
    };
    let some = draft.inputs[at].clone();
    let (both, all) = (names.fresh(), names.fresh());
    let chosen = names.ints(&[rank as u64], &places);
    draft.before("Concat", (&[&stays, &some], &both), &[("axis", Set::Int(0))]);
    draft.before("Gather", (&[&both, &chosen], &all), &[("axis", Set::Int(0))]);
    draft.inputs[at] = all;
    draft.drop_attribute("axes");
}

/// Where each axis finds its number; none if the axes are none of such a value.
fn places(axes: &[i64], rank: usize) -> Option<Vec<i64>> {
    let mut places: Vec<i64> = (0..rank as i64).collect();
    for (place, axis) in axes.iter().enumerate() {
        let axis = if *axis < 0 { axis + rank as i64 } else { *axis };
        *places.get_mut(usize::try_from(axis).ok()?)? = (rank + place) as i64;
    }
    Some(places)
}

#[cfg(test)]
mod tests {
    use super::super::tests::told;
    use super::*;
    use crate::model::Model;
    use crate::testing::{Build, With};

    fn resized(inputs: &[&str]) -> Model {
        let axes = vec![With::Ints("axes", &[3, -2])];
        let build =
            Build::new().input("x", &[1, 1, -1, 4]).weight("two", &[2]).ints("size", &[8, 6]);
        build.node_with("Resize", inputs, &["y"], axes).output("y").model()
    }

    #[test]
    fn every_axis_has_its_own_scale_or_size() {
        assert_eq!(places(&[3, -2], 4), Some(vec![0, 1, 5, 4]));
        assert_eq!((places(&[4], 4), places(&[-5], 4)), (None, None));
        for (inputs, expected) in [
            (&["x", "", "two"][..], &["Concat", "Gather", "Resize"][..]),
            (&["x", "", "", "size"], &["Shape", "Concat", "Gather", "Resize"]),
        ] {
            let nodes = told(&resized(inputs));
            let ops: Vec<&str> = nodes.iter().map(|node| node.op()).collect();
            assert_eq!(ops, expected);
            let last = nodes.last().expect("a node");
            assert_eq!(last.ints("axes"), None);
            assert_eq!(last.inputs().last(), Some(&nodes[nodes.len() - 2].outputs()[0]));
        }
    }
}
