//! Operators that work element by element, or keep their input's shape.

use alloc::format;
use alloc::vec;

use super::Fact;
use super::call::{Call, Told, broadcast, one, wrong};
use super::fold;
use crate::dtype::DType;
use crate::tensor::Value;

/// Versions before this one say by an attribute how the second input is spread over the first.
const BROADCASTS: u64 = 7;

pub(super) fn same(call: &Call<'_>) -> Told {
    let fact = call.fact(0)?;
    let value =
        fact.value.as_ref().and_then(|value| fold::unary(&call.node.op, fact.ty.dtype, value));
    one(Fact::from(fact.ty.clone()).with(value))
}

pub(super) fn truth(call: &Call<'_>) -> Told {
    one(Fact::new(DType::Bool, call.dims(0)?))
}

pub(super) fn binary(call: &Call<'_>) -> Told {
    let (a, b) = (call.fact(0)?, call.fact(1)?);
    if call.opset < BROADCASTS {
        return one(a.ty.clone());
    }
    if a.ty.dtype != b.ty.dtype && !matches!(call.node.op.as_str(), "Pow" | "BitShift") {
        return wrong(format!("its inputs are {} and {}", a.ty.dtype, b.ty.dtype));
    }
    let dims = broadcast(&a.ty.dims, &b.ty.dims)?;
    let is_other = call.flag("fmod")?;
    let value = if is_other { None } else { fold::binary(&call.node.op, a, b, &dims) };
    one(Fact::new(a.ty.dtype, dims).with(value))
}

pub(super) fn compare(call: &Call<'_>) -> Told {
    let (a, b) = (call.fact(0)?, call.fact(1)?);
    if call.opset < BROADCASTS {
        return one(Fact::new(DType::Bool, a.ty.dims.clone()));
    }
    let dims = broadcast(&a.ty.dims, &b.ty.dims)?;
    let value = fold::binary(&call.node.op, a, b, &dims);
    one(Fact::new(DType::Bool, dims).with(value))
}

pub(super) fn variadic(call: &Call<'_>) -> Told {
    let mut all = call.fact(0)?.clone();
    for at in 1..call.inputs.len() {
        let next = call.fact(at)?;
        let dims = broadcast(&all.ty.dims, &next.ty.dims)?;
        let value = fold::binary(&call.node.op, &all, next, &dims);
        all = Fact::new(all.ty.dtype, dims).with(value);
    }
    one(all)
}

pub(super) fn choose(call: &Call<'_>) -> Told {
    let (which, a, b) = (call.fact(0)?, call.fact(1)?, call.fact(2)?);
    let dims = broadcast(&broadcast(&which.ty.dims, &a.ty.dims)?, &b.ty.dims)?;
    let value = fold::choose(which, a, b, &dims);
    one(Fact::new(a.ty.dtype, dims).with(value))
}

pub(super) fn cast(call: &Call<'_>) -> Told {
    let fact = call.fact(0)?;
    match call.dtype_of("to")? {
        Some(to) => one(converted(fact, to)),
        None => wrong("it does not say which type to cast to"),
    }
}

pub(super) fn cast_like(call: &Call<'_>) -> Told {
    one(converted(call.fact(0)?, call.dtype(1)?))
}

fn converted(fact: &Fact, to: DType) -> Fact {
    let value = fact.value.as_ref().and_then(|value| fold::converted(value, to));
    Fact::new(to, fact.ty.dims.clone()).with(value)
}

pub(super) fn dropout(call: &Call<'_>) -> Told {
    let fact = call.fact(0)?;
    // Before version 10 the mask was of the input's type.
    let mask = if call.opset < 10 { fact.ty.dtype } else { DType::Bool };
    let kept = Fact::from(fact.ty.clone());
    Ok(vec![Some(kept), Some(Fact::new(mask, fact.ty.dims.clone()))])
}

pub(super) fn batch_normalization(call: &Call<'_>) -> Told {
    call.ranked(0, 1)?;
    let channels = Fact::from(call.ty(3)?.clone());
    let mut made = vec![Some(call.ty(0)?.clone().into())];
    made.resize(5, Some(channels));
    Ok(made)
}

/// With mean and inverse deviation, which have one number for all that was normalised together.
pub(super) fn layer_normalization(call: &Call<'_>) -> Told {
    let ty = call.ty(0)?;
    let axis = call.axis(call.int_or("axis", -1)?, ty.dims.len())?;
    let mut dims = ty.dims.clone();
    dims[axis..].fill(1);
    let statistics = Fact::new(call.dtype_of("stash_type")?.unwrap_or(DType::Float32), dims);
    Ok(vec![Some(ty.clone().into()), Some(statistics.clone()), Some(statistics)])
}

pub(super) fn quantize(call: &Call<'_>) -> Told {
    let zero = if call.has(2) { Some(call.dtype(2)?) } else { None };
    let dtype = zero.or(call.dtype_of("output_dtype")?).unwrap_or(DType::Uint8);
    one(Fact::new(dtype, call.dims(0)?))
}

pub(super) fn dequantize(call: &Call<'_>) -> Told {
    let dtype = call.dtype_of("output_dtype")?;
    one(Fact::new(dtype.map_or_else(|| call.dtype(1), Ok)?, call.dims(0)?))
}

pub(super) fn dynamic_quantize(call: &Call<'_>) -> Told {
    let numbers = Fact::new(DType::Uint8, call.dims(0)?);
    let (scale, zero) = (Fact::new(DType::Float32, []), Fact::new(DType::Uint8, []));
    Ok(vec![Some(numbers), Some(scale), Some(zero)])
}

/// A value of one element, as `Range` and `TopK` take it.
pub(super) fn single(fact: &Fact) -> Option<i64> {
    match &fact.value {
        Some(Value::Ints(ints)) => ints.first().copied().filter(|_| ints.len() == 1),
        Some(Value::Floats(_)) | None => None,
    }
}
