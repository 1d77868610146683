//! Convolutions, pools, and pictures made larger or smaller.

use alloc::format;
use alloc::vec;
use alloc::vec::Vec;

use super::Fact;
use super::call::{Call, Fault, Told, one, whole_dims, wrong};
use super::fold::floor;
use crate::dtype::{DType, Dims};
use crate::limit::MOST_ELEMENTS;

pub(super) fn conv(call: &Call<'_>) -> Told {
    one(Fact::new(call.dtype(0)?, convolved(call, 0, 1)?))
}

pub(super) fn conv_integer(call: &Call<'_>) -> Told {
    one(Fact::new(DType::Int32, convolved(call, 0, 1)?))
}

pub(super) fn quantized_conv(call: &Call<'_>) -> Told {
    one(Fact::new(call.dtype(7)?, convolved(call, 0, 3)?))
}

fn convolved(call: &Call<'_>, input: usize, weights: usize) -> Result<Vec<u64>, Fault> {
    let (dims, weights) = (call.ranked(input, 3)?, call.dims(weights)?);
    let unfit = || wrong(format!("its weights [{}] do not fit [{}]", Dims(weights), Dims(dims)));
    if weights.len() != dims.len() {
        return unfit();
    }
    let groups = u64::try_from(call.int_or("group", 1)?).unwrap_or(0);
    if groups == 0 || weights[1].checked_mul(groups) != Some(dims[1]) {
        return unfit();
    }
    let windows = Windows::of(call, dims, Some(&weights[2..]))?;
    Ok([&[dims[0], weights[0]], windows.slide(&dims[2..], false)?.as_slice()].concat())
}

pub(super) fn pool(call: &Call<'_>) -> Told {
    let dims = call.ranked(0, 3)?;
    let windows = Windows::of(call, dims, None)?;
    let ceils = call.flag("ceil_mode")?;
    let made = [&dims[..2], windows.slide(&dims[2..], ceils)?.as_slice()].concat();
    let indices = Fact::new(DType::Int64, made.clone());
    let pooled = Fact::new(call.dtype(0)?, made);
    // Only the largest element has a place.
    let has_places = call.node.op == "MaxPool";
    Ok(vec![Some(pooled), has_places.then_some(indices)])
}

pub(super) fn global_pool(call: &Call<'_>) -> Told {
    let mut dims = call.ranked(0, 2)?.to_vec();
    dims[2..].fill(1);
    one(Fact::new(call.dtype(0)?, dims))
}

/// Windows that slide over a picture, one entry for each of its dimensions.
struct Windows {
    kernel: Vec<u64>,
    strides: Vec<u64>,
    dilations: Vec<u64>,
    pads: Pads,
}

enum Pads {
    /// At the begin and at the end.
    Given(Vec<(u64, u64)>),
    /// As much as it takes for one window at every stride.
    Same,
}

impl Windows {
    fn of(call: &Call<'_>, dims: &[u64], weights: Option<&[u64]>) -> Result<Windows, Fault> {
        let count = dims.len() - 2;
        let list = |name: &str| -> Result<Vec<u64>, Fault> {
            match call.list(name)? {
                Some(list) => sizes(name, list, count),
                None => Ok(vec![1; count]),
            }
        };
        let kernel = match (call.list("kernel_shape")?, weights) {
            (Some(kernel), _) => sizes("kernel_shape", kernel, count)?,
            (None, Some(weights)) => weights.to_vec(),
            (None, None) => return wrong("it does not say how large its windows are"),
        };
        let (strides, dilations) = (list("strides")?, list("dilations")?);
        let pads = match call.text("auto_pad")?.unwrap_or("NOTSET") {
            "VALID" => Pads::Given(vec![(0, 0); count]),
            "SAME_UPPER" | "SAME_LOWER" => Pads::Same,
            _ => Pads::Given(given_pads(call, count)?),
        };
        Ok(Windows { kernel, strides, dilations, pads })
    }

    /// What one window covers.
    fn extent(&self, at: usize) -> u64 {
        (self.kernel[at].saturating_sub(1)).saturating_mul(self.dilations[at]).saturating_add(1)
    }

    /// How many windows there are along each dimension.
    fn slide(&self, dims: &[u64], ceils: bool) -> Result<Vec<u64>, Fault> {
        let each = dims.iter().enumerate().map(|(at, dim)| {
            let stride = self.strides[at];
            let (before, behind) = match &self.pads {
                Pads::Same => return Ok(dim.div_ceil(stride)),
                Pads::Given(pads) => pads[at],
            };
            let padded = dim.saturating_add(before).saturating_add(behind);
            let Some(room) = padded.checked_sub(self.extent(at)) else {
                return wrong(format!("its window of {} is larger than {padded}", self.extent(at)));
            };
            let count = if ceils { room.div_ceil(stride) } else { room / stride };
            // None begins in the padding behind the picture.
            let is_outside = ceils && count.saturating_mul(stride) >= dim.saturating_add(before);
            Ok(if is_outside { count } else { count + 1 })
        });
        each.collect()
    }
}

fn given_pads(call: &Call<'_>, count: usize) -> Result<Vec<(u64, u64)>, Fault> {
    let Some(pads) = call.list("pads")? else { return Ok(vec![(0, 0); count]) };
    if pads.len() != 2 * count {
        return wrong(format!("it has {} paddings for {count} dimensions", pads.len()));
    }
    let pad = |at: usize| u64::try_from(pads[at]).ok().filter(|pad| *pad <= MOST_ELEMENTS);
    let each = (0..count).map(|at| Some((pad(at)?, pad(at + count)?)));
    each.collect::<Option<_>>().map_or_else(|| wrong(format!("its paddings are {pads:?}")), Ok)
}

fn sizes(name: &str, list: &[i64], count: usize) -> Result<Vec<u64>, Fault> {
    let size =
        |size: &i64| u64::try_from(*size).ok().filter(|size| (1..=MOST_ELEMENTS).contains(size));
    let sizes: Option<Vec<u64>> = list.iter().map(size).collect();
    match sizes.filter(|sizes| sizes.len() == count) {
        Some(sizes) => Ok(sizes),
        None => wrong(format!("its `{name}` is {list:?} for {count} dimensions")),
    }
}

pub(super) fn conv_transpose(call: &Call<'_>) -> Told {
    let (dims, weights) = (call.ranked(0, 3)?, call.dims(1)?);
    if weights.len() != dims.len() || weights[0] != dims[1] {
        return wrong(format!("its weights [{}] do not fit [{}]", Dims(weights), Dims(dims)));
    }
    let groups = u64::try_from(call.int_or("group", 1)?).unwrap_or(0);
    let count = dims.len() - 2;
    let windows = Windows::of(call, dims, Some(&weights[2..]))?;
    let mut made = vec![dims[0], weights[1].saturating_mul(groups)];
    if let Some(shape) = call.list("output_shape")? {
        let shape = sizes("output_shape", shape, count)?;
        made.extend(shape);
        return one(Fact::new(call.dtype(0)?, made));
    }
    let more = match call.list("output_padding")? {
        Some(more) if more.len() == count => more.to_vec(),
        Some(more) => return wrong(format!("its `output_padding` is {more:?}")),
        None => vec![0; count],
    };
    for (at, dim) in dims[2..].iter().enumerate() {
        let grown = i128::from(dim.saturating_sub(1)) * i128::from(windows.strides[at]);
        let taken = match &windows.pads {
            Pads::Given(pads) => {
                grown + i128::from(windows.extent(at)) + i128::from(more[at])
                    - i128::from(pads[at].0)
                    - i128::from(pads[at].1)
            }
            Pads::Same => i128::from(*dim) * i128::from(windows.strides[at]),
        };
        match u64::try_from(taken) {
            Ok(dim) => made.push(dim),
            Err(_) => return wrong("its output would have a negative dimension"),
        }
    }
    one(Fact::new(call.dtype(0)?, made))
}

pub(super) fn resize(call: &Call<'_>) -> Told {
    let ty = call.ty(0)?;
    // In version 10 the factors were the second input; a region of interest came between them later.
    let (scales, sizes) = if call.opset < 11 { (1, 3) } else { (2, 3) };
    let axes = match call.list("axes")? {
        Some(axes) => call.axes(axes, ty.dims.len())?,
        None => (0..ty.dims.len()).collect(),
    };
    let mut dims = ty.dims.clone();
    let is_given = |at: usize| call.has(at) && call.dims(at).is_ok_and(|dims| *dims != [0]);
    if is_given(sizes) {
        let wanted = whole_dims(call.ints(sizes)?)?;
        if wanted.len() != axes.len() {
            return wrong(format!("it has {} sizes for {} dimensions", wanted.len(), axes.len()));
        }
        let policy = call.text("keep_aspect_ratio_policy")?.unwrap_or("stretch");
        let ratios = axes.iter().zip(&wanted).map(|(at, size)| *size as f32 / ty.dims[*at] as f32);
        let kept = match policy {
            "not_larger" => ratios.fold(f32::INFINITY, f32::min),
            "not_smaller" => ratios.fold(0.0, f32::max),
            _ => f32::NAN,
        };
        for (at, size) in axes.iter().zip(&wanted) {
            let scaled = floor(kept * ty.dims[*at] as f32 + 0.5);
            dims[*at] = if kept.is_nan() { *size } else { scaled as u64 };
        }
        return one(Fact::new(ty.dtype, dims));
    }
    if !is_given(scales) {
        return wrong("it has neither sizes nor scales");
    }
    scaled(&mut dims, &axes, call.floats(scales)?)?;
    one(Fact::new(ty.dtype, dims))
}

pub(super) fn upsample(call: &Call<'_>) -> Told {
    let ty = call.ty(0)?;
    let scales = match call.node.attribute("scales") {
        Some(crate::node::Attr::Floats(scales)) => scales,
        _ => call.floats(1)?,
    };
    let mut dims = ty.dims.clone();
    scaled(&mut dims, &(0..ty.dims.len()).collect::<Vec<_>>(), scales)?;
    one(Fact::new(ty.dtype, dims))
}

fn scaled(dims: &mut [u64], axes: &[usize], scales: &[f32]) -> Result<(), Fault> {
    if scales.len() != axes.len() {
        return wrong(format!("it has {} scales for {} dimensions", scales.len(), axes.len()));
    }
    for (at, scale) in axes.iter().zip(scales) {
        let size = floor(dims[*at] as f32 * scale);
        if !(0.0..MOST_ELEMENTS as f32).contains(&size) {
            return wrong(format!("it scales {} by {scale}", dims[*at]));
        }
        dims[*at] = size as u64;
    }
    Ok(())
}

pub(super) fn grid_sample(call: &Call<'_>) -> Told {
    let (dims, grid) = (call.ranked(0, 3)?, call.ranked(1, 3)?);
    let made = [&dims[..2], &grid[1..grid.len() - 1]].concat();
    one(Fact::new(call.dtype(0)?, made))
}

pub(super) fn roi_align(call: &Call<'_>) -> Told {
    let (dims, rois) = (call.ranked(0, 4)?, call.ranked(1, 1)?);
    let size = |name: &str| -> Result<u64, Fault> {
        let size = call.int_or(name, 1)?;
        u64::try_from(size).map_or_else(|_| wrong(format!("its `{name}` is {size}")), Ok)
    };
    one(Fact::new(
        call.dtype(0)?,
        [rois[0], dims[1], size("output_height")?, size("output_width")?],
    ))
}
