//! A matrix by a few rows of activations at once, written once for all processors. The order of every sum is fixed, so
//! that all of them, and any number of rows at once, give the same bits.

use crate::llm::lanes::{LANES, Lanes, Sixteen};
use crate::llm::math::{BLOCK, Quantised};
use crate::llm::matrix::Quants;

/// Rows of activations that are computed at once, at most.
pub(crate) const MOST_AT_ONCE: usize = 8;

/// What a processor does with bytes of some rows of weights side by side.
pub(crate) trait Dots {
    /// Rows at a time: a divisor of sixteen.
    const WIDTH: usize;
    /// Rows of activations whose sums fit the registers.
    const AT_ONCE: usize;
    /// Four bytes for each row.
    type Bytes: Copy;
    type Ints: Copy;
    type Floats: Copy;

    fn bytes(from: &[u8]) -> Self::Bytes;
    /// The lower four bits of each.
    fn low(bytes: Self::Bytes) -> Self::Bytes;
    fn high(bytes: Self::Bytes) -> Self::Bytes;
    fn ints(value: i32) -> Self::Ints;
    /// Adds the products of each row's four bytes with four quants. Bytes are below 64 unless they are `FULL`.
    fn dot<const FULL: bool>(sum: Self::Ints, bytes: Self::Bytes, quants: i32) -> Self::Ints;
    fn to_floats(ints: Self::Ints) -> Self::Floats;
    fn splat(value: f32) -> Self::Floats;
    fn floats(from: &[u8]) -> Self::Floats;
    fn halves(from: &[u8]) -> Self::Floats;
    fn add(a: Self::Floats, b: Self::Floats) -> Self::Floats;
    fn mul(a: Self::Floats, b: Self::Floats) -> Self::Floats;
    fn store(floats: Self::Floats, to: &mut [f32]);
}

/// Sixteen rows of weights by rows of activations from `row` on, as many as `out` holds.
#[inline(always)]
pub(crate) fn quants<D: Dots>(
    group: &[u8],
    form: Quants,
    x: &Quantised,
    mut row: usize,
    mut out: &mut [Sixteen],
) {
    while !out.is_empty() {
        let count = match out.len().min(D::AT_ONCE) {
            8.. => 8,
            4.. => 4,
            2.. => 2,
            _ => 1,
        };
        let (now, later) = out.split_at_mut(count);
        match count {
            8 => formed::<D, 8>(group, form, x, row, now),
            4 => formed::<D, 4>(group, form, x, row, now),
            2 => formed::<D, 2>(group, form, x, row, now),
            _ => formed::<D, 1>(group, form, x, row, now),
        }
        row += count;
        out = later;
    }
}

#[inline(always)]
fn formed<D: Dots, const T: usize>(
    group: &[u8],
    form: Quants,
    x: &Quantised,
    row: usize,
    out: &mut [Sixteen],
) {
    let zero = form.zero;
    // Calls and not a pointer to one of them: only what is inlined gets the kernel's instructions.
    for part in 0..LANES / D::WIDTH {
        match (form.nibbles, form.wide, form.minimums, form.twice) {
            (true, false, true, _) => {
                one::<D, T, true, false, true, false>(group, zero, x, row, part, out);
            }
            (true, false, false, _) => {
                one::<D, T, true, false, false, false>(group, zero, x, row, part, out);
            }
            (true, true, _, _) => {
                one::<D, T, true, true, true, false>(group, zero, x, row, part, out);
            }
            (false, false, false, _) => {
                one::<D, T, false, false, false, false>(group, zero, x, row, part, out);
            }
            (false, false, true, _) => {
                one::<D, T, false, false, true, false>(group, zero, x, row, part, out);
            }
            (false, true, _, false) => {
                one::<D, T, false, true, true, false>(group, zero, x, row, part, out);
            }
            (false, true, _, true) => {
                one::<D, T, false, true, false, true>(group, zero, x, row, part, out);
            }
        }
    }
}

/// Some of the sixteen rows, for one form and number of rows of activations.
#[inline(always)]
fn one<
    D: Dots,
    const T: usize,
    const NIBBLES: bool,
    const WIDE: bool,
    const MINIMUMS: bool,
    const TWICE: bool,
>(
    group: &[u8],
    zero: i32,
    x: &Quantised,
    row: usize,
    part: usize,
    out: &mut [Sixteen],
) {
    let form = Quants { nibbles: NIBBLES, wide: WIDE, minimums: MINIMUMS, twice: TWICE, zero: 0 };
    let (scale_bytes, quants_at) = (form.scale_bytes(), form.quants_at());
    let (blocks, from) = (x.width / BLOCK, part * D::WIDTH);
    let scales = |record: &[u8], which: usize| match WIDE {
        true => D::floats(&record[which * scale_bytes + from * 4..]),
        false => D::halves(&record[which * scale_bytes + from * 2..]),
    };
    let mut sums = [D::splat(0.0); T];
    for (block, record) in group.chunks_exact(form.record()).enumerate() {
        let (mut first, mut second) = ([D::ints(0); T], [D::ints(0); T]);
        let quants: [&[i8; BLOCK]; T] = std::array::from_fn(|t| {
            let at = (row + t) * x.width + block * BLOCK;
            x.quants[at..at + BLOCK].try_into().unwrap_or(&[0; BLOCK])
        });
        for t in 0..T {
            let [low, high] = x.sums[(row + t) * blocks + block];
            if TWICE {
                (first[t], second[t]) = (D::ints(-zero * low), D::ints(-zero * high));
            } else if !MINIMUMS {
                first[t] = D::ints(-zero * (low + high));
            }
        }
        steps::<D, T, NIBBLES, TWICE>(
            &record[quants_at + from * 4..],
            &quants,
            (&mut first, &mut second),
            !NIBBLES && !WIDE && !MINIMUMS,
        );
        let scale = scales(record, 0);
        let other = if MINIMUMS || TWICE { scales(record, 1) } else { scale };
        for t in 0..T {
            let at = (row + t) * blocks + block;
            let by = D::splat(x.scales[at]);
            let whole = D::mul(D::mul(D::to_floats(first[t]), by), scale);
            sums[t] = D::add(sums[t], whole);
            if TWICE {
                let whole = D::mul(D::mul(D::to_floats(second[t]), by), other);
                sums[t] = D::add(sums[t], whole);
            }
            if MINIMUMS {
                sums[t] = D::add(sums[t], D::mul(other, D::splat(x.weighted[at])));
            }
        }
    }
    for (sum, out) in sums.into_iter().zip(out) {
        D::store(sum, &mut out[from..from + D::WIDTH]);
    }
}

/// The products of one block.
#[inline(always)]
fn steps<D: Dots, const T: usize, const NIBBLES: bool, const TWICE: bool>(
    data: &[u8],
    quants: &[&[i8; BLOCK]; T],
    (first, second): (&mut [D::Ints; T], &mut [D::Ints; T]),
    full: bool,
) {
    let four = |t: usize, step: usize| {
        let at = &quants[t][step * 4..step * 4 + 4];
        i32::from_le_bytes([at[0], at[1], at[2], at[3]].map(i8::cast_unsigned))
    };
    if NIBBLES {
        for step in 0..4 {
            let both = D::bytes(&data[step * 64..]);
            let (low, high) = (D::low(both), D::high(both));
            for (t, sum) in first.iter_mut().enumerate() {
                *sum = D::dot::<false>(*sum, low, four(t, step));
                *sum = D::dot::<false>(*sum, high, four(t, 4 + step));
            }
        }
        return;
    }
    for step in 0..8 {
        let bytes = D::bytes(&data[step * 64..]);
        for t in 0..T {
            let sum = if TWICE && step >= 4 { &mut second[t] } else { &mut first[t] };
            let quants = four(t, step);
            *sum = match full {
                true => D::dot::<true>(*sum, bytes, quants),
                false => D::dot::<false>(*sum, bytes, quants),
            };
        }
    }
}

/// How a matrix of numbers is written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Number {
    F32,
    F16,
    BF16,
}

/// The same for weights that are numbers; activations are not quantised for them.
#[inline(always)]
pub(crate) fn numbers<L: Lanes>(
    group: &[u8],
    form: Number,
    x: &[f32],
    columns: usize,
    mut row: usize,
    mut out: &mut [Sixteen],
) {
    while !out.is_empty() {
        let count = if out.len() >= 4 { 4 } else { 1 };
        let (now, later) = out.split_at_mut(count);
        let (x, bfloat) = (&x[row * columns..(row + count) * columns], form == Number::BF16);
        match (count, form) {
            (4, Number::F32) => some_numbers::<L, 4, 4>(group, bfloat, x, now),
            (4, _) => some_numbers::<L, 4, 2>(group, bfloat, x, now),
            (_, Number::F32) => some_numbers::<L, 1, 4>(group, bfloat, x, now),
            (..) => some_numbers::<L, 1, 2>(group, bfloat, x, now),
        }
        row += count;
        out = later;
    }
}

#[inline(always)]
fn some_numbers<L: Lanes, const T: usize, const SIZE: usize>(
    group: &[u8],
    bfloat: bool,
    x: &[f32],
    out: &mut [Sixteen],
) {
    let columns = x.len() / T;
    let mut sums = [L::splat(0.0); T];
    for (column, bytes) in group.chunks_exact(LANES * SIZE).take(columns).enumerate() {
        let weights = if SIZE == 4 {
            L::load(&floats_of(bytes))
        } else if bfloat {
            L::load(&halves_of(bytes).map(|bits| f32::from_bits(u32::from(bits) << 16)))
        } else {
            L::load_half(&halves_of(bytes))
        };
        for (t, sum) in sums.iter_mut().enumerate() {
            *sum = sum.add(weights.mul(L::splat(x[t * columns + column])));
        }
    }
    for (sum, out) in sums.into_iter().zip(out) {
        sum.store(out);
    }
}

#[inline(always)]
pub(crate) fn floats_of(bytes: &[u8]) -> Sixteen {
    let (words, _) = bytes.as_chunks::<4>();
    std::array::from_fn(|at| f32::from_le_bytes(words[at]))
}

#[inline(always)]
pub(crate) fn halves_of(bytes: &[u8]) -> [u16; LANES] {
    let (words, _) = bytes.as_chunks::<2>();
    std::array::from_fn(|at| u16::from_le_bytes(words[at]))
}
