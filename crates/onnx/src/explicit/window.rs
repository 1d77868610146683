//! Windows that go over pictures: how large they are, how far they step, and what stands around the picture, where a node
//! leaves that to the reader.

use alloc::vec;
use alloc::vec::Vec;

use super::draft::{Draft, Names};
use super::known::Known;
use crate::node::Node;

pub(super) const OPERATORS: &[&str] = &["Conv", "ConvTranspose", "MaxPool", "AveragePool"];

pub(super) fn fill_in(draft: &mut Draft<'_>, known: &Known<'_>, _: &mut Names<'_>) {
    let node = draft.node;
    if !OPERATORS.contains(&node.op()) {
        return;
    }
    let is_pool = node.op().ends_with("Pool");
    let weights = draft.input(1).filter(|_| !is_pool);
    let kernel = match node.ints("kernel_shape") {
        Some(kernel) => kernel.to_vec(),
        None => match weights.and_then(|weights| known.sides_from(weights, 2)) {
            Some(kernel) if !kernel.is_empty() => {
                draft.set("kernel_shape", kernel.clone());
                kernel
            }
            _ => return,
        },
    };
    if is_pool && node.ints("strides").is_none() {
        draft.set("strides", vec![1; kernel.len()]);
    }
    let inside = draft.input(0).and_then(|input| known.sides_from(input, 2));
    let Some(window) = Window::of(node, kernel, inside) else { return };
    if node.op() == "ConvTranspose" {
        window.grown(draft);
    } else {
        window.padded_below(draft);
    }
}

/// A window's measures, one for each axis.
struct Window {
    /// With the gaps between its places.
    reach: Vec<i64>,
    strides: Vec<i64>,
    /// What it goes over, if that is known.
    inside: Option<Vec<i64>>,
}

impl Window {
    /// None if the node contradicts itself, which is not for us to say.
    fn of(node: &Node, kernel: Vec<i64>, inside: Option<Vec<i64>>) -> Option<Window> {
        let axes = kernel.len();
        let list = |name| node.ints(name).map_or_else(|| vec![1; axes], <[i64]>::to_vec);
        let (strides, gaps) = (list("strides"), list("dilations"));
        // Numbers of honest models are far below.
        let fits =
            |list: &[i64]| list.len() == axes && list.iter().all(|n| (1..1 << 20).contains(n));
        if !fits(&kernel) || !fits(&strides) || !fits(&gaps) {
            return None;
        }
        let reach = kernel.iter().zip(&gaps).map(|(side, gap)| (side - 1) * gap + 1).collect();
        let inside = inside.filter(|sides| fits(sides));
        Some(Window { reach, strides, inside })
    }

    /// `SAME_LOWER`: an odd one more stands before the picture.
    fn padded_below(&self, draft: &mut Draft<'_>) {
        if draft.node.text("auto_pad") != Some("SAME_LOWER") {
            return;
        }
        let is_dense = self.strides.iter().all(|stride| *stride == 1);
        let totals: Vec<i64> = match &self.inside {
            Some(inside) => {
                let axes = self.reach.iter().zip(&self.strides).zip(inside);
                let total = |((reach, stride), side): ((&i64, &i64), &i64)| {
                    let steps = (side + stride - 1) / stride - 1;
                    (steps * stride + reach - side).max(0)
                };
                axes.map(total).collect()
            }
            None if is_dense => self.reach.iter().map(|reach| reach - 1).collect(),
            None => return,
        };
        pad(draft, &totals, false);
    }

    /// A transposed convolution says by how much it grows in three ways: by `pads`, by `auto_pad`, by the shape that it
    /// makes. Everything becomes `pads`, and what is missing is made behind (`output_padding`).
    fn grown(&self, draft: &mut Draft<'_>) {
        let node = draft.node;
        let axes = self.reach.len();
        let auto = node.text("auto_pad").unwrap_or_default();
        let is_same = matches!(auto, "SAME_UPPER" | "SAME_LOWER");
        // Numbers of honest models are far below.
        let fits =
            |list: &&[i64]| list.len() == axes && list.iter().all(|n| (0..1 << 40).contains(n));
        let shape = node.ints("output_shape").filter(fits);
        let mut behind = node.ints("output_padding").map_or_else(|| vec![0; axes], <[i64]>::to_vec);
        if !fits(&behind.as_slice()) || (!is_same && shape.is_none()) {
            return;
        }
        let mut totals = Vec::with_capacity(axes);
        for at in 0..axes {
            let (reach, stride) = (self.reach[at], self.strides[at]);
            let total = match (shape, &self.inside) {
                (Some(shape), Some(inside)) => {
                    stride * (inside[at] - 1) + behind[at] + reach - shape[at]
                }
                (Some(_), None) => return,
                // As large as what goes in times the stride.
                (None, _) => behind[at] + reach - stride,
            };
            behind[at] += (-total).max(0);
            totals.push(total.max(0));
        }
        if behind.iter().any(|more| *more > 0) {
            draft.set("output_padding", behind);
        }
        draft.drop_attribute("output_shape");
        pad(draft, &totals, auto == "SAME_UPPER");
    }
}

fn pad(draft: &mut Draft<'_>, totals: &[i64], is_upper: bool) {
    let half = |total: &i64| if is_upper { total / 2 } else { total - total / 2 };
    let before = totals.iter().map(half);
    let behind = totals.iter().map(|total| total - half(total));
    let pads = before.chain(behind).collect();
    draft.drop_attribute("auto_pad");
    draft.set("pads", pads);
}

#[cfg(test)]
mod tests {
    use super::super::tests::told;
    use crate::testing::{Build, With};
    use alloc::vec;
    use alloc::vec::Vec;

    fn pads(op: &str, input: &[i64], with: Vec<With<'_>>) -> (Vec<i64>, Vec<i64>) {
        let model = Build::new()
            .input("x", input)
            .weight("w", &[1, 1, 3, 2])
            .node_with(op, if op == "MaxPool" { &["x"] } else { &["x", "w"] }, &["y"], with)
            .output("y")
            .model();
        let node = &told(&model)[0];
        assert_eq!((node.text("auto_pad"), node.ints("output_shape")), (None, None));
        let list = |name| node.ints(name).map(<[i64]>::to_vec).unwrap_or_default();
        (list("pads"), list("output_padding"))
    }

    #[test]
    fn windows_step_by_one_unless_they_say_otherwise() {
        let model = Build::new()
            .input("x", &[-1, 1, 8, 8])
            .node_with("MaxPool", &["x"], &["y"], vec![With::Ints("kernel_shape", &[3, 3])])
            .output("y")
            .model();
        assert_eq!(told(&model)[0].ints("strides"), Some(&[1, 1][..]));
    }

    #[test]
    fn what_stands_around_a_picture_is_more_before_it_by_same_lower() {
        let auto = || With::Text("auto_pad", "SAME_LOWER");
        // 3 wide needs 2 more, 2 wide needs 1.
        let dense = pads("Conv", &[1, 1, -1, -1], vec![auto()]);
        assert_eq!(dense.0, [1, 1, 1, 0]);
        let stepping = vec![auto(), With::Ints("strides", &[2, 2])];
        assert_eq!(pads("Conv", &[1, 1, 6, 7], stepping).0, [1, 1, 0, 0]);
        let wide = vec![auto(), With::Ints("kernel_shape", &[4, 4])];
        assert_eq!(pads("MaxPool", &[1, 1, 9, 9], wide).0, [2, 2, 1, 1]);
    }

    #[test]
    fn a_picture_that_grows_is_as_large_as_it_says() {
        let by_two = || With::Ints("strides", &[2, 2]);
        let upper = vec![With::Text("auto_pad", "SAME_UPPER"), by_two()];
        assert_eq!(pads("ConvTranspose", &[1, 1, 5, 5], upper), (vec![0, 0, 1, 0], vec![]));
        let lower = vec![With::Text("auto_pad", "SAME_LOWER"), by_two()];
        assert_eq!(pads("ConvTranspose", &[1, 1, -1, 5], lower).0, [1, 0, 0, 0]);
        // By itself it would be 11 by 10.
        let smaller = vec![With::Ints("output_shape", &[10, 8]), by_two()];
        assert_eq!(pads("ConvTranspose", &[1, 1, 5, 5], smaller), (vec![1, 1, 0, 1], vec![]));
        let larger = vec![With::Ints("output_shape", &[12, 10]), by_two()];
        assert_eq!(pads("ConvTranspose", &[1, 1, 5, 5], larger), (vec![0; 4], vec![1, 0]));
    }
}
