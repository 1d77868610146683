//! Operators that pick elements by index, or make one of many.

use alloc::format;
use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;

use super::Fact;
use super::call::{Call, Fault, Told, one, wrong};
use super::fold::indices;
use super::plain::single;
use crate::dtype::{DType, Dims};
use crate::tensor::Value;

pub(super) fn gather(call: &Call<'_>) -> Told {
    let (data, which) = (call.fact(0)?, call.fact(1)?);
    let rank = data.ty.dims.len();
    let axis = call.axis(call.int_or("axis", 0)?, rank)?;
    let (before, behind) = (&data.ty.dims[..axis], &data.ty.dims[axis + 1..]);
    let dims = [before, &which.ty.dims, behind].concat();
    let value = if rank == 1 { gathered(data, which) } else { None };
    one(Fact::new(data.ty.dtype, dims).with(value))
}

/// Of a row.
fn gathered(data: &Fact, which: &Fact) -> Option<Value> {
    let Some(Value::Ints(which)) = &which.value else { return None };
    let len = *data.ty.dims.first()? as i64;
    let place = |at: &i64| usize::try_from(if *at < 0 { at.checked_add(len)? } else { *at }).ok();
    data.value.as_ref()?.at(&which.iter().map(place).collect::<Option<Vec<_>>>()?)
}

pub(super) fn gather_elements(call: &Call<'_>) -> Told {
    one(Fact::new(call.dtype(0)?, call.dims(1)?))
}

pub(super) fn gather_nd(call: &Call<'_>) -> Told {
    let (data, which) = (call.dims(0)?, call.ranked(1, 1)?);
    let batch = usize::try_from(call.int_or("batch_dims", 0)?).unwrap_or(usize::MAX);
    let (last, before) = match which.split_last() {
        Some((last, before)) => (usize::try_from(*last).unwrap_or(usize::MAX), before),
        None => return wrong("its indices have no dimensions"),
    };
    let Some(behind) = batch.checked_add(last).and_then(|at| data.get(at..)) else {
        return wrong(format!("its indices have {last} numbers for [{}]", Dims(data)));
    };
    one(Fact::new(call.dtype(0)?, [before, behind].concat()))
}

pub(super) fn arg(call: &Call<'_>) -> Told {
    let dims = call.ranked(0, 1)?;
    let axis = call.axis(call.int_or("axis", 0)?, dims.len())?;
    let keeps = call.int_or("keepdims", 1)? != 0;
    one(Fact::new(DType::Int64, reduced(dims, &[axis], keeps)))
}

pub(super) fn top_k(call: &Call<'_>) -> Told {
    let ty = call.ty(0)?;
    let axis = call.axis(call.int_or("axis", -1)?, ty.dims.len())?;
    let count = match call.has(1) {
        true => single(call.fact(1)?).map_or_else(|| Err(call.depends(1)), Ok)?,
        false => call.int_or("k", -1)?,
    };
    let mut dims = ty.dims.clone();
    match u64::try_from(count).ok().filter(|count| *count <= dims[axis]) {
        Some(count) => dims[axis] = count,
        None => return wrong(format!("there are no {count} of [{}]", Dims(&dims))),
    }
    Ok(vec![Some(Fact::new(ty.dtype, dims.clone())), Some(Fact::new(DType::Int64, dims))])
}

pub(super) fn one_hot(call: &Call<'_>) -> Told {
    let dims = call.dims(0)?;
    let depth = match &call.fact(1)?.value {
        Some(Value::Ints(ints)) => ints.first().copied(),
        Some(Value::Floats(floats)) => floats.first().map(|depth| *depth as i64),
        None => return Err(call.depends(1)),
    };
    let Some(depth) = depth.and_then(|depth| u64::try_from(depth).ok()) else {
        return wrong("its depth is negative");
    };
    let axis = call.axis(call.int_or("axis", -1)?, dims.len() + 1)?;
    let mut made = dims.to_vec();
    made.insert(axis, depth);
    one(Fact::new(call.dtype(2)?, made))
}

pub(super) fn reduce(call: &Call<'_>) -> Told {
    let fact = call.fact(0)?;
    let dims = &fact.ty.dims;
    let keeps = call.int_or("keepdims", 1)? != 0;
    let axes = match call.listed("axes", 1)? {
        Some(axes) if !axes.is_empty() => call.axes(axes, dims.len())?,
        // Nothing named is everything, unless it says that it is nothing.
        _ if call.flag("noop_with_empty_axes")? => return one(fact.ty.clone()),
        _ => (0..dims.len()).collect(),
    };
    let value = if axes.len() == dims.len() { folded(&call.node.op, fact) } else { None };
    one(Fact::new(fact.ty.dtype, reduced(dims, &axes, keeps)).with(value))
}

fn reduced(dims: &[u64], axes: &[usize], keeps: bool) -> Vec<u64> {
    let each = dims.iter().enumerate().filter_map(|(at, dim)| match axes.contains(&at) {
        true => keeps.then_some(1),
        false => Some(*dim),
    });
    each.collect()
}

/// All elements to one: how many elements there are is asked so.
fn folded(op: &str, fact: &Fact) -> Option<Value> {
    let Some(Value::Ints(ints)) = &fact.value else { return None };
    indices(&fact.ty.dims)?;
    let made = match op {
        "ReduceProd" => ints.iter().try_fold(1i64, |all, int| all.checked_mul(*int))?,
        "ReduceSum" => ints.iter().try_fold(0i64, |all, int| all.checked_add(*int))?,
        "ReduceMax" => ints.iter().copied().max()?,
        "ReduceMin" => ints.iter().copied().min()?,
        _ => return None,
    };
    Some(Value::Ints(vec![made]))
}

/// How many there are depends on what they are.
pub(super) fn by_content(_call: &Call<'_>) -> Told {
    Err(Fault::Unknown(
        "how much it makes depends on what its input holds when it runs".to_string(),
    ))
}
