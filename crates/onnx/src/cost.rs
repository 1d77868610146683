//! What nodes cost: operations, bytes read and written, bytes of weights. An estimate; where a run was measured, that
//! counts instead.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::dtype::{TensorType, elements};
use crate::node::{Attr, Node};
use crate::shape::Shapes;

/// Moving a byte takes about as long as so many multiplications: a core of today multiplies and adds some thirty
/// billion times a second in a matrix product and reads some ten billion bytes.
const BYTE_WORK: u64 = 3;
/// Operations of a function like `exp`, beside one multiplication.
const FUNCTION: u64 = 10;

/// What one run of a node takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Multiplications and additions.
    pub flops: u64,
    /// Of what it reads beside weights.
    pub read_bytes: u64,
    /// Of what it makes.
    pub made_bytes: u64,
}

impl Cost {
    pub(crate) fn of(node: &Node, shapes: &Shapes, is_weight: impl Fn(&str) -> bool) -> Cost {
        let bytes = |name: &str| shapes.of(name).map_or(0, TensorType::bytes);
        let sum = |sum: u64, name: &str| sum.saturating_add(bytes(name));
        Cost {
            flops: flops(node, shapes),
            read_bytes: node.reads().filter(|name| !is_weight(name)).fold(0, sum),
            made_bytes: node.makes().fold(0, sum),
        }
    }

    /// One number to compare nodes by, in operations.
    pub fn work(&self) -> u64 {
        let moved = self.read_bytes.saturating_add(self.made_bytes);
        self.flops.saturating_add(moved.saturating_mul(BYTE_WORK))
    }
}

/// How long nodes took when the model ran, by their place in [`Model::nodes`](crate::Model::nodes).
#[derive(Clone, Debug, Default)]
pub struct Profile {
    nanos: BTreeMap<usize, u64>,
}

impl Profile {
    /// A node was seen to take so many nanoseconds; several times add up.
    pub fn add(&mut self, node: usize, nanos: u64) {
        let sum = self.nanos.entry(node).or_default();
        *sum = sum.saturating_add(nanos);
    }

    /// The work of nodes: what was measured, and for the others what they are estimated to take at the same speed.
    /// Without a measurement, what they are estimated to take.
    pub(crate) fn work(&self, estimates: &[(usize, u64)]) -> Vec<u64> {
        let sum =
            |sum: u128, (nanos, work): (u64, u64)| (sum + u128::from(nanos), u128::from(work));
        let measured =
            estimates.iter().filter_map(|(at, work)| Some((*self.nanos.get(at)?, *work)));
        let (nanos, work) = measured.fold((0u128, 0u128), |(nanos, all), one| {
            let (nanos, work) = sum(nanos, one);
            (nanos, all + work)
        });
        let each = estimates.iter().map(|(at, estimate)| match self.nanos.get(at) {
            Some(nanos) => *nanos,
            None if nanos == 0 || work == 0 => *estimate,
            None => u64::try_from(u128::from(*estimate) * nanos / work).unwrap_or(u64::MAX),
        });
        each.collect()
    }
}

fn flops(node: &Node, shapes: &Shapes) -> u64 {
    let dims = |names: &[alloc::string::String], at: usize| {
        names.get(at).and_then(|name| shapes.of(name)).map_or(&[][..], |ty| &ty.dims)
    };
    let input = |at: usize| dims(&node.inputs, at);
    let (made, read) = (count(dims(&node.outputs, 0)), count(input(0)));
    let times = |a: u64, b: u64| a.saturating_mul(b);
    match node.op.as_str() {
        "Conv" | "FusedConv" | "ConvInteger" | "DeformConv" => {
            times(2, times(made, count(input(1).get(1..).unwrap_or(&[]))))
        }
        "QLinearConv" => times(2, times(made, count(input(3).get(1..).unwrap_or(&[])))),
        "ConvTranspose" => times(2, times(read, count(input(1).get(1..).unwrap_or(&[])))),
        "MatMul" | "MatMulInteger" | "QLinearMatMul" => {
            times(2, times(made, input(0).last().copied().unwrap_or(1)))
        }
        "Gemm" => {
            let inner = if is_set(node, "transA") { input(0).first() } else { input(0).last() };
            times(2, times(made, inner.copied().unwrap_or(1)))
        }
        // Every element of one with every row of the other, as if nothing were shared.
        "Einsum" => times(2, times(read, input(1).last().copied().unwrap_or(1))),
        "Attention" => {
            let keys = input(1).iter().rev().nth(1).copied().unwrap_or(1);
            times(4, times(read, keys))
        }
        "RNN" | "GRU" | "LSTM" => {
            let steps = times(
                input(0).first().copied().unwrap_or(1),
                input(0).get(1).copied().unwrap_or(1),
            );
            times(2, times(steps, count(input(1)).saturating_add(count(input(2)))))
        }
        "MaxPool" | "AveragePool" | "LpPool" => times(made, window(node)),
        "Softmax"
        | "LogSoftmax"
        | "LayerNormalization"
        | "RMSNormalization"
        | "Gelu"
        | "Sigmoid"
        | "InstanceNormalization"
        | "GroupNormalization"
        | "Tanh"
        | "Exp"
        | "Log"
        | "Erf"
        | "Pow"
        | "Sqrt"
        | "Sin"
        | "Cos"
        | "HardSwish"
        | "Mish"
        | "Elu"
        | "Selu"
        | "Softplus"
        | "Resize" => times(FUNCTION, made),
        // They move, and moving is counted beside this.
        "Reshape" | "Identity" | "Squeeze" | "Unsqueeze" | "Flatten" | "Transpose" | "Concat"
        | "Split" | "Slice" | "Gather" | "Shape" | "Size" | "Constant" | "ConstantOfShape"
        | "Expand" | "Tile" | "Pad" | "Cast" => 0,
        _ => made.max(read),
    }
}

fn count(dims: &[u64]) -> u64 {
    elements(dims).unwrap_or(u64::MAX)
}

fn is_set(node: &Node, name: &str) -> bool {
    matches!(node.attribute(name), Some(Attr::Int(int)) if *int != 0)
}

fn window(node: &Node) -> u64 {
    match node.attribute("kernel_shape") {
        Some(Attr::Ints(kernel)) => {
            kernel.iter().fold(1u64, |all, size| all.saturating_mul(size.unsigned_abs()))
        }
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    #[test]
    fn what_was_measured_counts_and_the_rest_follows() {
        let estimates = [(3, 100), (5, 300), (8, 50)];
        assert_eq!(Profile::default().work(&estimates), vec![100, 300, 50]);
        let mut profile = Profile::default();
        profile.add(3, 1_500);
        profile.add(3, 500);
        profile.add(5, 6_000);
        assert_eq!(profile.work(&estimates), vec![2_000, 6_000, 1_000]);
    }
}
