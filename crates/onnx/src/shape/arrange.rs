//! Operators that keep elements and change where they are: shapes computed by models go through most of them.

use alloc::format;
use alloc::vec::Vec;

use super::Fact;
use super::call::{Call, Fault, Told, broadcast, one, whole_dims, wrong};
use super::fold::{indices, spread};
use crate::dtype::{Dims, elements};
use crate::limit::{MOST_FOLDED, MOST_RANK};
use crate::tensor::Value;

pub(super) fn reshape(call: &Call<'_>) -> Told {
    let fact = call.fact(0)?;
    let dims = &fact.ty.dims;
    let Some(wanted) = call.listed("shape", 1)? else { return wrong("it has no shape") };
    if wanted.len() > MOST_RANK {
        return wrong(format!("its output would have {} dimensions", wanted.len()));
    }
    let keeps_zero = call.flag("allowzero")?;
    let mut made: Vec<u64> = Vec::new();
    let mut open = None;
    for (at, dim) in wanted.iter().enumerate() {
        made.push(match (*dim, dims.get(at)) {
            (-1, _) if open.is_none() => {
                open = Some(at);
                1
            }
            (0, Some(dim)) if !keeps_zero => *dim,
            (0, None) if !keeps_zero => return wrong(format!("its input has no dimension {at}")),
            (dim, _) => match u64::try_from(dim) {
                Ok(dim) => dim,
                Err(_) => return wrong(format!("the shape {wanted:?} is none")),
            },
        });
    }
    let count = fact.ty.elements();
    let others = elements(&made);
    if let Some(open) = open {
        let rest = others.filter(|others| *others > 0 && count.is_multiple_of(*others));
        match rest {
            Some(others) => made[open] = count / others,
            // None of nothing.
            None if count == 0 => made[open] = 0,
            None => {
                return wrong(format!("[{}] cannot be shaped like {wanted:?}", Dims(dims)));
            }
        }
    } else if others != Some(count) {
        return wrong(format!("[{}] cannot be shaped like {wanted:?}", Dims(dims)));
    }
    one(Fact::new(fact.ty.dtype, made).with(fact.value.clone()))
}

pub(super) fn flatten(call: &Call<'_>) -> Told {
    let ty = call.ty(0)?;
    let rank = ty.dims.len();
    let axis = call.int_or("axis", 1)?;
    let at = if axis == rank as i64 { rank } else { call.axis(axis, rank.max(1))? };
    let product = |dims: &[u64]| elements(dims).unwrap_or(u64::MAX);
    let (before, behind) = ty.dims.split_at(at.min(rank));
    one(Fact::new(ty.dtype, [product(before), product(behind)]).with(call.fact(0)?.value.clone()))
}

pub(super) fn squeeze(call: &Call<'_>) -> Told {
    let fact = call.fact(0)?;
    let dims = &fact.ty.dims;
    let axes = match call.listed("axes", 1)? {
        Some(axes) => call.axes(axes, dims.len())?,
        None => (0..dims.len()).filter(|at| dims[*at] == 1).collect(),
    };
    if let Some(at) = axes.iter().find(|at| dims[**at] != 1) {
        return wrong(format!("the dimension {at} of [{}] is not 1", Dims(dims)));
    }
    let rest = dims.iter().enumerate().filter(|(at, _)| !axes.contains(at));
    let rest: Vec<u64> = rest.map(|(_, dim)| *dim).collect();
    one(Fact::new(fact.ty.dtype, rest).with(fact.value.clone()))
}

pub(super) fn unsqueeze(call: &Call<'_>) -> Told {
    let fact = call.fact(0)?;
    let Some(axes) = call.listed("axes", 1)? else { return wrong("it has no axes") };
    let rank = fact.ty.dims.len() + axes.len();
    if rank > MOST_RANK {
        return wrong(format!("its output would have {rank} dimensions"));
    }
    let axes = call.axes(axes, rank)?;
    let mut rest = fact.ty.dims.iter();
    let dims = (0..rank).map(|at| match axes.contains(&at) {
        true => 1,
        false => rest.next().copied().unwrap_or(1),
    });
    one(Fact::new(fact.ty.dtype, dims.collect::<Vec<_>>()).with(fact.value.clone()))
}

pub(super) fn transpose(call: &Call<'_>) -> Told {
    let fact = call.fact(0)?;
    let rank = fact.ty.dims.len();
    let order = match call.list("perm")? {
        Some(order) => call.axes(order, rank)?,
        None => (0..rank).rev().collect(),
    };
    if order.len() != rank {
        return wrong(format!("it orders {} dimensions of [{}]", order.len(), Dims(&fact.ty.dims)));
    }
    let dims: Vec<u64> = order.iter().map(|at| fact.ty.dims[*at]).collect();
    let value = moved(fact, &dims, |place| {
        let mut from = Vec::from(place);
        order.iter().zip(place).for_each(|(to, at)| from[*to] = *at);
        Some(from)
    });
    one(Fact::new(fact.ty.dtype, dims).with(value))
}

pub(super) fn expand(call: &Call<'_>) -> Told {
    let fact = call.fact(0)?;
    let dims = broadcast(&fact.ty.dims, &whole_dims(call.ints(1)?)?)?;
    let value = moved(fact, &dims, |place| Some(place.into()));
    one(Fact::new(fact.ty.dtype, dims).with(value))
}

pub(super) fn tile(call: &Call<'_>) -> Told {
    let fact = call.fact(0)?;
    let repeats = whole_dims(call.ints(1)?)?;
    let dims = &fact.ty.dims;
    if repeats.len() != dims.len() {
        return wrong(format!("it repeats {} dimensions of [{}]", repeats.len(), Dims(dims)));
    }
    let made: Vec<u64> = dims.iter().zip(&repeats).map(|(dim, n)| dim.saturating_mul(*n)).collect();
    let value = moved(fact, &made, |place| {
        Some(place.iter().zip(dims).map(|(at, dim)| at % dim.max(&1)).collect())
    });
    one(Fact::new(fact.ty.dtype, made).with(value))
}

pub(super) fn concat(call: &Call<'_>) -> Told {
    let first = call.fact(0)?;
    let rank = first.ty.dims.len();
    // Versions before 4 join along the second dimension unless told.
    let axis = call.axis(call.int_or("axis", 1)?, rank)?;
    let mut dims = first.ty.dims.clone();
    for at in 1..call.inputs.len() {
        let next = call.ty(at)?;
        let fits =
            next.dims.len() == rank && (0..rank).all(|at| at == axis || next.dims[at] == dims[at]);
        if !fits {
            return wrong(format!(
                "its inputs [{}] and [{}] cannot be joined along dimension {axis}",
                Dims(&first.ty.dims),
                Dims(&next.dims)
            ));
        }
        if next.dtype != first.ty.dtype {
            return wrong(format!("its inputs are {} and {}", first.ty.dtype, next.dtype));
        }
        dims[axis] = dims[axis].saturating_add(next.dims[axis]);
    }
    let value = joined(call, &dims, axis);
    one(Fact::new(first.ty.dtype, dims).with(value))
}

fn joined(call: &Call<'_>, dims: &[u64], axis: usize) -> Option<Value> {
    // Only rows: shapes are joined, tables are not.
    if dims.len() != 1 || axis != 0 || *dims.first()? > MOST_FOLDED as u64 {
        return None;
    }
    let (mut ints, mut floats) = (Vec::new(), Vec::new());
    for fact in call.inputs.iter().flatten() {
        match fact.value.as_ref()? {
            Value::Ints(more) => ints.extend(more),
            Value::Floats(more) => floats.extend(more),
        }
    }
    match (ints.is_empty(), floats.is_empty()) {
        (_, true) => Some(Value::Ints(ints)),
        (true, false) => Some(Value::Floats(floats)),
        (false, false) => None,
    }
}

pub(super) fn split(call: &Call<'_>) -> Told {
    let fact = call.fact(0)?;
    let dims = &fact.ty.dims;
    let axis = call.axis(call.int_or("axis", 0)?, dims.len())?;
    let count = call.node.outputs.len() as u64;
    let lengths = match call.listed("split", 1)? {
        Some(lengths) => whole_lengths(lengths)?,
        None => {
            // The last one has what is left.
            let each = dims[axis].div_ceil(count.max(1));
            let length = |at: u64| each.min(dims[axis].saturating_sub(at.saturating_mul(each)));
            (0..count).map(length).collect()
        }
    };
    let all = lengths.iter().try_fold(0u64, |all, length| all.checked_add(*length));
    if all != Some(dims[axis]) || lengths.len() as u64 != count {
        return wrong(format!(
            "it splits dimension {axis} of [{}] into {count} outputs of {lengths:?}",
            Dims(dims)
        ));
    }
    let mut start = 0;
    let parts = lengths.iter().map(|length| {
        let mut made = dims.clone();
        made[axis] = *length;
        let begin = start;
        start += length;
        let value = moved(fact, &made, |place| {
            let mut from = Vec::from(place);
            from[axis] += begin;
            Some(from)
        });
        Some(Fact::new(fact.ty.dtype, made).with(value))
    });
    Ok(parts.collect())
}

fn whole_lengths(lengths: &[i64]) -> Result<Vec<u64>, Fault> {
    let lengths = lengths.iter().map(|length| u64::try_from(*length).ok());
    lengths.collect::<Option<_>>().ok_or_else(|| Fault::Wrong("a length is negative".into()))
}

pub(super) fn slice(call: &Call<'_>) -> Told {
    let fact = call.fact(0)?;
    let dims = &fact.ty.dims;
    let (Some(starts), Some(ends)) = (call.listed("starts", 1)?, call.listed("ends", 2)?) else {
        return wrong("it does not say where it starts and ends");
    };
    let count = starts.len();
    let axes = match call.listed("axes", 3)? {
        Some(axes) => call.axes(axes, dims.len())?,
        None => (0..count.min(dims.len())).collect(),
    };
    let steps =
        if call.has(4) { call.ints(4)?.to_vec() } else { Vec::from_iter(starts.iter().map(|_| 1)) };
    if ends.len() != count || axes.len() != count || steps.len() != count {
        return wrong("its starts, ends, axes and steps are not equally many");
    }
    let mut made = dims.clone();
    let mut from: Vec<(i64, i64)> = dims.iter().map(|_| (0, 1)).collect();
    for (at, axis) in axes.iter().enumerate() {
        let step = steps[at];
        if step == 0 {
            return wrong("its step is 0");
        }
        let (start, length) = cut(dims[*axis] as i64, starts[at], ends[at], step);
        made[*axis] = length;
        from[*axis] = (start, step);
    }
    let value = moved(fact, &made, |place| {
        let each = place
            .iter()
            .zip(&from)
            .map(|(at, (start, step))| u64::try_from(start + *at as i64 * step).ok());
        each.collect()
    });
    one(Fact::new(fact.ty.dtype, made).with(value))
}

/// The first element and how many there are, as Python slices.
fn cut(dim: i64, start: i64, end: i64, step: i64) -> (i64, u64) {
    let place = |at: i64| if at < 0 { at.saturating_add(dim) } else { at };
    let (least, most) = if step > 0 { (0, dim) } else { (-1, dim - 1) };
    let (start, end) = (place(start).clamp(least, most), place(end).clamp(least, most));
    let span = if step > 0 { end - start } else { start - end };
    (start, span.max(0).unsigned_abs().div_ceil(step.unsigned_abs()))
}

pub(super) fn pad(call: &Call<'_>) -> Told {
    let ty = call.ty(0)?;
    let rank = ty.dims.len();
    let Some(pads) = call.listed(if call.opset < 2 { "paddings" } else { "pads" }, 1)? else {
        return wrong("it does not say how much to pad");
    };
    let axes = match call.has(3) {
        true => call.axes(call.ints(3)?, rank)?,
        false => (0..rank).collect(),
    };
    if pads.len() != 2 * axes.len() {
        return wrong(format!("it has {} paddings for {} dimensions", pads.len(), axes.len()));
    }
    let mut dims = ty.dims.clone();
    for (at, axis) in axes.iter().enumerate() {
        let all =
            i128::from(dims[*axis]) + i128::from(pads[at]) + i128::from(pads[at + axes.len()]);
        match u64::try_from(all) {
            Ok(dim) => dims[*axis] = dim,
            Err(_) => return wrong(format!("it takes more away than [{}] has", Dims(&ty.dims))),
        }
    }
    one(Fact::new(ty.dtype, dims))
}

pub(super) fn depth_to_space(call: &Call<'_>) -> Told {
    let dims = call.ranked(0, 4)?;
    let block = block(call)?;
    let Some(depth) = dims[1].checked_div(block.saturating_mul(block)).filter(|_| dims.len() == 4)
    else {
        return wrong(format!("[{}] has no blocks of {block}", Dims(dims)));
    };
    let grown = |dim: u64| dim.saturating_mul(block);
    one(Fact::new(call.dtype(0)?, [dims[0], depth, grown(dims[2]), grown(dims[3])]))
}

pub(super) fn space_to_depth(call: &Call<'_>) -> Told {
    let dims = call.ranked(0, 4)?;
    let block = block(call)?;
    let depth = dims[1].saturating_mul(block.saturating_mul(block));
    one(Fact::new(call.dtype(0)?, [dims[0], depth, dims[2] / block, dims[3] / block]))
}

fn block(call: &Call<'_>) -> Result<u64, Fault> {
    let block = call.int_or("blocksize", 0)?;
    u64::try_from(block)
        .ok()
        .filter(|block| *block > 0)
        .map_or_else(|| wrong("its blocks have no size"), Ok)
}

/// The elements of a small tensor, each from a place of another.
fn moved(fact: &Fact, dims: &[u64], from: impl Fn(&[u64]) -> Option<Vec<u64>>) -> Option<Value> {
    let value = fact.value.as_ref()?;
    let places = indices(dims)?;
    let places = places.iter().map(|place| Some(spread(&fact.ty.dims, &from(place)?)));
    value.at(&places.collect::<Option<Vec<_>>>()?)
}
