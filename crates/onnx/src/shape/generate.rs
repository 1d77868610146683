//! Operators that make something of nothing, or of a shape.

use alloc::format;
use alloc::vec;
use alloc::vec::Vec;

use super::Fact;
use super::call::{Call, Fault, Told, one, whole_dims, wrong};
use super::fold::floor;
use super::plain::single;
use crate::dtype::{DType, elements};
use crate::limit::MOST_FOLDED;
use crate::node::Attr;
use crate::tensor::Value;

pub(super) fn constant(call: &Call<'_>) -> Told {
    let ints = |ints: &[i64], dims: &[u64]| {
        one(Fact::new(DType::Int64, dims).with(Some(Value::Ints(ints.into()))))
    };
    let floats = |floats: &[f32], dims: &[u64]| {
        one(Fact::new(DType::Float32, dims).with(Some(Value::Floats(floats.into()))))
    };
    for (name, attr) in &call.node.attributes {
        match (name.as_str(), attr) {
            ("value", Attr::Tensor(tensor)) => {
                return one(Fact::from(tensor.ty.clone()).with(tensor.value()));
            }
            ("value_int", Attr::Int(int)) => return ints(&[*int], &[]),
            ("value_ints", Attr::Ints(list)) => return ints(list, &[list.len() as u64]),
            ("value_float", Attr::Float(float)) => return floats(&[*float], &[]),
            ("value_floats", Attr::Floats(list)) => return floats(list, &[list.len() as u64]),
            ("value_string", Attr::Text(_)) => return one(Fact::new(DType::Text, [])),
            ("value_strings", Attr::Texts(list)) => {
                return one(Fact::new(DType::Text, [list.len() as u64]));
            }
            ("sparse_value", _) => {
                return Err(Fault::Unknown("Shoal does not look into sparse constants".into()));
            }
            _ => {}
        }
    }
    wrong("it has no value")
}

pub(super) fn constant_of_shape(call: &Call<'_>) -> Told {
    let dims = whole_dims(call.ints(0)?)?;
    let tensor = call.tensor("value")?;
    let dtype = tensor.map_or(DType::Float32, |tensor| tensor.ty.dtype);
    let element = match tensor {
        Some(tensor) => tensor.value(),
        None => Some(Value::Floats(vec![0.0])),
    };
    let count = elements(&dims).filter(|count| *count <= MOST_FOLDED as u64);
    let value =
        element.zip(count).and_then(|(element, count)| element.at(&vec![0; count as usize]));
    one(Fact::new(dtype, dims).with(value))
}

pub(super) fn shape(call: &Call<'_>) -> Told {
    let dims = call.dims(0)?;
    let rank = dims.len() as i64;
    let bound =
        |at: i64| (if at < 0 { at.saturating_add(rank) } else { at }).clamp(0, rank) as usize;
    let (start, end) = (bound(call.int_or("start", 0)?), bound(call.int_or("end", rank)?));
    let ints: Vec<i64> =
        dims.get(start..end).unwrap_or(&[]).iter().map(|dim| *dim as i64).collect();
    one(Fact::new(DType::Int64, [ints.len() as u64]).with(Some(Value::Ints(ints))))
}

pub(super) fn size(call: &Call<'_>) -> Told {
    let count = call.ty(0)?.elements() as i64;
    one(Fact::new(DType::Int64, []).with(Some(Value::Ints(vec![count]))))
}

pub(super) fn range(call: &Call<'_>) -> Told {
    let dtype = call.dtype(0)?;
    let whole = [0, 1, 2].map(|at| call.fact(at).ok().and_then(single));
    if let [Some(start), Some(end), Some(step)] = whole {
        if step == 0 {
            return wrong("its step is 0");
        }
        let span = (i128::from(end) - i128::from(start)) * i128::from(step.signum());
        let count = span.max(0).unsigned_abs().div_ceil(u128::from(step.unsigned_abs()));
        let count = u64::try_from(count).unwrap_or(u64::MAX);
        let ints = (0..count.min(MOST_FOLDED as u64 + 1) as i64)
            .map(|at| start.wrapping_add(at.wrapping_mul(step)));
        return one(Fact::new(dtype, [count]).with(Some(Value::Ints(ints.collect()))));
    }
    let (start, end, step) = (call.floats(0)?, call.floats(1)?, call.floats(2)?);
    let ([start], [end], [step]) = (start, end, step) else {
        return wrong("its inputs are not one number each");
    };
    let count = -floor((start - end) / step);
    if count.is_nan() || count > MOST_COUNTED {
        return wrong(format!("it would go from {start} to {end} in steps of {step}"));
    }
    one(Fact::new(dtype, [count.max(0.0) as u64]))
}

/// Beyond this a float is no exact count.
const MOST_COUNTED: f32 = 16_777_216.0;

pub(super) fn like(call: &Call<'_>) -> Told {
    let ty = call.ty(0)?;
    one(Fact::new(call.dtype_of("dtype")?.unwrap_or(ty.dtype), ty.dims.clone()))
}

pub(super) fn random(call: &Call<'_>) -> Told {
    let dims = whole_dims(call.list("shape")?.unwrap_or(&[]))?;
    one(Fact::new(call.dtype_of("dtype")?.unwrap_or(DType::Float32), dims))
}
