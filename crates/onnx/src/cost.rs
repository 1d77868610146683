//! What nodes cost: operations, bytes read and written, bytes of weights. An estimate, by which a model is cut; devices are
//! measured with the parts that come of it.

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
