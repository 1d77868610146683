//! Which rule an operator has.

use alloc::format;

use super::call::{Call, Fault, Told};
use super::{arrange, control, generate, matrix, pick, plain, recurrent, window};
use crate::error::Shown;
use crate::model::Model;
use crate::node::Node;

pub(crate) type Rule = fn(&Call<'_>) -> Told;

/// The rule of a node's operator. An operator without one names itself.
pub(crate) fn rule(node: &Node, model: &Model) -> Result<Rule, Fault> {
    let (domain, op) = (node.domain.as_str(), node.op.as_str());
    let found = match domain {
        "" => own(op),
        "com.microsoft" => onnxruntime(op),
        _ => None,
    };
    if let Some(rule) = found {
        return Ok(rule);
    }
    let is_own = model.functions.iter().any(|(d, name)| d == domain && name == op);
    let dot = if domain.is_empty() { "" } else { "." };
    let name = format!("{}{dot}{}", Shown(domain), Shown(op));
    Err(Fault::Unknown(match is_own {
        true => {
            format!("the model defines the operator {name} itself, and Shoal does not look inside")
        }
        false => format!("Shoal knows no shape rule for the operator {name}"),
    }))
}

/// Operators of ONNX whose first output is as their first input.
const SAME: [&str; 60] = [
    "Abs",
    "Acos",
    "Acosh",
    "Asin",
    "Asinh",
    "Atan",
    "Atanh",
    "BitwiseNot",
    "Ceil",
    "Celu",
    "Clip",
    "Cos",
    "Cosh",
    "CumProd",
    "CumSum",
    "Elu",
    "Erf",
    "Exp",
    "Floor",
    "Gelu",
    "GroupNormalization",
    "HardSigmoid",
    "HardSwish",
    "Hardmax",
    "Identity",
    "InstanceNormalization",
    "LRN",
    "LeakyRelu",
    "Log",
    "LogSoftmax",
    "LpNormalization",
    "MeanVarianceNormalization",
    "Mish",
    "Neg",
    "Not",
    "PRelu",
    "RMSNormalization",
    "Reciprocal",
    "Relu",
    "Round",
    "RotaryEmbedding",
    "Selu",
    "Shrink",
    "Sigmoid",
    "Sign",
    "Sin",
    "Sinh",
    "Softmax",
    "Softplus",
    "Softsign",
    "Sqrt",
    "Swish",
    "Tan",
    "Tanh",
    "ThresholdedRelu",
    "Trilu",
    "ReverseSequence",
    "Scatter",
    "ScatterElements",
    "ScatterND",
];

/// ONNX's own operators.
fn own(op: &str) -> Option<Rule> {
    if SAME.contains(&op) {
        return Some(plain::same);
    }
    by_element(op).or_else(|| by_place(op))
}

/// Those that look at elements one by one, and those that make tensors.
fn by_element(op: &str) -> Option<Rule> {
    let rule: Rule = match op {
        "Add" | "BitShift" | "BitwiseAnd" | "BitwiseOr" | "BitwiseXor" | "Div" | "Mod" | "Mul"
        | "Pow" | "Sub" => plain::binary,
        "And" | "Equal" | "Greater" | "GreaterOrEqual" | "Less" | "LessOrEqual" | "Or" | "Xor" => {
            plain::compare
        }
        "Max" | "Mean" | "Min" | "Sum" => plain::variadic,
        "IsInf" | "IsNaN" => plain::truth,
        "Where" => plain::choose,
        "Cast" => plain::cast,
        "CastLike" => plain::cast_like,
        "Dropout" => plain::dropout,
        "BatchNormalization" => plain::batch_normalization,
        "LayerNormalization" => plain::layer_normalization,
        "QuantizeLinear" => plain::quantize,
        "DequantizeLinear" => plain::dequantize,
        "DynamicQuantizeLinear" => plain::dynamic_quantize,
        "Constant" => generate::constant,
        "ConstantOfShape" => generate::constant_of_shape,
        "Shape" => generate::shape,
        "Size" => generate::size,
        "Range" => generate::range,
        "EyeLike" | "RandomNormalLike" | "RandomUniformLike" | "Bernoulli" => generate::like,
        "RandomNormal" | "RandomUniform" => generate::random,
        _ => return None,
    };
    Some(rule)
}

/// Those that depend on where elements stand.
fn by_place(op: &str) -> Option<Rule> {
    let rule: Rule = match op {
        "Reshape" => arrange::reshape,
        "Flatten" => arrange::flatten,
        "Squeeze" => arrange::squeeze,
        "Unsqueeze" => arrange::unsqueeze,
        "Transpose" => arrange::transpose,
        "Expand" => arrange::expand,
        "Tile" => arrange::tile,
        "Concat" => arrange::concat,
        "Split" => arrange::split,
        "Slice" => arrange::slice,
        "Pad" => arrange::pad,
        "DepthToSpace" => arrange::depth_to_space,
        "SpaceToDepth" => arrange::space_to_depth,
        "Gather" => pick::gather,
        "GatherElements" => pick::gather_elements,
        "GatherND" => pick::gather_nd,
        "ArgMax" | "ArgMin" => pick::arg,
        "TopK" => pick::top_k,
        "OneHot" => pick::one_hot,
        "ReduceL1" | "ReduceL2" | "ReduceLogSum" | "ReduceLogSumExp" | "ReduceMax"
        | "ReduceMean" | "ReduceMin" | "ReduceProd" | "ReduceSum" | "ReduceSumSquare" => {
            pick::reduce
        }
        "NonZero" | "Compress" | "Unique" | "NonMaxSuppression" => pick::by_content,
        "MatMul" => matrix::matmul,
        "MatMulInteger" => matrix::matmul_integer,
        "QLinearMatMul" => matrix::quantized_matmul,
        "Gemm" => matrix::gemm,
        "Einsum" => matrix::einsum,
        "Attention" => matrix::attention,
        "Conv" => window::conv,
        "ConvInteger" => window::conv_integer,
        "QLinearConv" => window::quantized_conv,
        "DeformConv" => window::conv,
        "ConvTranspose" => window::conv_transpose,
        "MaxPool" | "AveragePool" | "LpPool" => window::pool,
        "GlobalAveragePool" | "GlobalMaxPool" | "GlobalLpPool" => window::global_pool,
        "Resize" => window::resize,
        "Upsample" => window::upsample,
        "GridSample" => window::grid_sample,
        "RoiAlign" => window::roi_align,
        "RNN" | "GRU" | "LSTM" => recurrent::recurrent,
        "If" => control::branch,
        _ => return None,
    };
    Some(rule)
}

/// Operators that ONNX Runtime's optimiser puts into models of transformers.
fn onnxruntime(op: &str) -> Option<Rule> {
    let rule: Rule = match op {
        "BiasGelu" | "FastGelu" | "Gelu" | "QuickGelu" | "SimplifiedLayerNormalization" => {
            plain::same
        }
        "FusedConv" => window::conv,
        _ => return None,
    };
    Some(rule)
}
