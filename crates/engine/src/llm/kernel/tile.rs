//! A matrix by a few rows of activations at once, written once for all processors. The order of every sum is fixed, so
//! that all of them, and any number of rows at once, give the same bits.

#![allow(unsafe_code)]

use crate::llm::lanes::{LANES, Lanes, Sixteen};
use crate::llm::math::{BLOCK, Quantised};
use crate::llm::matrix::Quants;
use crate::llm::pool::Apart;

/// Weights that stay in the nearest cache while rows of activations pass by, at most.
const BUNCH: usize = 24 << 10;

/// Some groups of sixteen rows of a matrix, and where their products go.
pub(crate) struct Work<'a> {
    /// One group after another.
    pub(crate) data: &'a [u8],
    pub(crate) group_bytes: usize,
    /// The first of them in the matrix.
    pub(crate) first: usize,
    /// Outputs of the whole matrix: the last group may have less than sixteen.
    pub(crate) outputs: usize,
    /// Rows of activations.
    pub(crate) rows: usize,
    /// `[row][output]`; nobody else writes the outputs of these groups.
    pub(crate) to: &'a Apart<'a>,
}

/// One group and the rows of activations that it is computed with.
#[derive(Clone, Copy)]
struct Tile<'a> {
    work: &'a Work<'a>,
    group: usize,
    row: usize,
}

impl Tile<'_> {
    /// Writes some outputs of a row: those from the given one of the group's sixteen on.
    #[inline(always)]
    fn put(&self, t: usize, from: usize, found: &[f32]) {
        let Work { outputs, to, .. } = self.work;
        let first = (self.work.first + self.group) * LANES + from;
        let count = found.len().min(outputs.saturating_sub(first));
        if count == 0 {
            return;
        }
        // SAFETY: by what `Work` promises.
        unsafe { to.slice((self.row + t) * outputs + first, count) }
            .copy_from_slice(&found[..count]);
    }
}

/// What a processor does with bytes of some rows of weights side by side.
pub(crate) trait Dots {
    /// Rows at a time: a divisor of sixteen.
    const WIDTH: usize;
    /// Rows of activations whose sums fit the registers.
    const AT_ONCE: usize;
    /// What `dot` takes from bytes that are `FULL` before it multiplies them.
    const TAKEN: i32 = 0;
    /// What computes four rows of activations and more at once: fewer rows of weights may fit the registers then.
    type Many: Dots;
    /// Four bytes for each row.
    type Bytes: Copy;
    type Ints: Copy;
    type Floats: Copy;

    fn bytes(from: &[u8]) -> Self::Bytes;
    /// The lower four bits of each.
    fn low(bytes: Self::Bytes) -> Self::Bytes;
    fn high(bytes: Self::Bytes) -> Self::Bytes;
    fn ints(value: i32) -> Self::Ints;
    /// Adds the products of each row's four bytes with the four quants of this step. A sum's steps come in order. Bytes
    /// that are not `FULL` are below 64 where a sum has four steps, and below 32 where it has eight.
    fn dot<const FULL: bool, const STEP: usize>(
        sum: Self::Ints,
        bytes: Self::Bytes,
        quants: &[i8; BLOCK],
    ) -> Self::Ints;
    fn to_floats<const FULL: bool>(ints: Self::Ints) -> Self::Floats;
    fn splat(value: f32) -> Self::Floats;
    fn floats(from: &[u8]) -> Self::Floats;
    fn halves(from: &[u8]) -> Self::Floats;
    fn add(a: Self::Floats, b: Self::Floats) -> Self::Floats;
    fn mul(a: Self::Floats, b: Self::Floats) -> Self::Floats;
    fn store(floats: Self::Floats, to: &mut [f32]);
}

/// A form that is known when this is compiled, so that each has code of its own.
trait Known {
    const NIBBLES: bool;
    const WIDE: bool = false;
    const MINIMUMS: bool = false;
    const TWICE: bool = false;

    const FORM: Quants = Quants {
        nibbles: Self::NIBBLES,
        wide: Self::WIDE,
        minimums: Self::MINIMUMS,
        twice: Self::TWICE,
        zero: 0,
    };
    /// Bytes may be anything and not only below 64.
    const FULL: bool = !Self::NIBBLES && !Self::MINIMUMS && !Self::TWICE;
}

macro_rules! known {
    ($($name:ident: $($yes:ident)* $(, not $no:ident)*;)*) => {
        $(struct $name;
        impl Known for $name {
            $(const $yes: bool = true;)*
            $(const $no: bool = false;)*
        })*
    };
}

known! {
    Nibbles: NIBBLES;
    NibblesMinimums: NIBBLES MINIMUMS;
    NibblesWide: NIBBLES WIDE;
    NibblesWideMinimums: NIBBLES WIDE MINIMUMS;
    Bytes: , not NIBBLES;
    BytesWide: WIDE, not NIBBLES;
    BytesMinimums: MINIMUMS, not NIBBLES;
    BytesWideMinimums: WIDE MINIMUMS, not NIBBLES;
    BytesWideTwice: WIDE TWICE, not NIBBLES;
}

/// Quantised weights by rows of activations.
#[inline(always)]
pub(crate) fn quants<D: Dots>(work: &Work<'_>, form: Quants, x: &[Quantised]) {
    // Calls and not a pointer to one of them: only what is inlined gets the kernel's instructions.
    match (form.nibbles, form.wide, form.minimums, form.twice) {
        (true, false, true, _) => formed::<D, NibblesMinimums>(work, form.zero, x),
        (true, false, false, _) => formed::<D, Nibbles>(work, form.zero, x),
        (true, true, true, _) => formed::<D, NibblesWideMinimums>(work, form.zero, x),
        (true, true, false, _) => formed::<D, NibblesWide>(work, form.zero, x),
        (false, false, false, _) => formed::<D, Bytes>(work, form.zero, x),
        (false, false, true, _) => formed::<D, BytesMinimums>(work, form.zero, x),
        (false, true, true, _) => formed::<D, BytesWideMinimums>(work, form.zero, x),
        (false, true, false, false) => formed::<D, BytesWide>(work, form.zero, x),
        (false, true, false, true) => formed::<D, BytesWideTwice>(work, form.zero, x),
    }
}

#[inline(always)]
fn formed<D: Dots, K: Known>(work: &Work<'_>, zero: i32, x: &[Quantised]) {
    let groups = work.data.len() / work.group_bytes;
    let at_once = (BUNCH / work.group_bytes).max(1);
    for first in (0..groups).step_by(at_once) {
        let bunch = first..(first + at_once).min(groups);
        let mut row = 0;
        while row < work.rows {
            let count = match (work.rows - row).min(D::AT_ONCE) {
                8.. => 8,
                4.. => 4,
                2.. => 2,
                _ => 1,
            };
            for group in bunch.clone() {
                let tile = Tile { work, group, row };
                match count {
                    8 => one::<D::Many, K, 8>(tile, zero, x),
                    4 => one::<D::Many, K, 4>(tile, zero, x),
                    2 => one::<D, K, 2>(tile, zero, x),
                    _ => one::<D, K, 1>(tile, zero, x),
                }
            }
            row += count;
        }
    }
}

/// One group of weights by some rows of activations.
#[inline(always)]
fn one<D: Dots, K: Known, const T: usize>(tile: Tile<'_>, zero: i32, x: &[Quantised]) {
    let Work { data, group_bytes, .. } = tile.work;
    let group = &data[tile.group * group_bytes..][..*group_bytes];
    let blocks = x.len() / tile.work.rows.max(1);
    let zero = if K::FULL { zero - D::TAKEN } else { zero };
    // All of one length, which the compiler sees.
    let rows: [&[Quantised]; T] = std::array::from_fn(|t| &x[(tile.row + t) * blocks..][..blocks]);
    for from in (0..LANES).step_by(D::WIDTH) {
        let mut sums = [D::splat(0.0); T];
        for (block, record) in (0..blocks).zip(group.chunks_exact(K::FORM.record())) {
            let x: [&Quantised; T] = std::array::from_fn(|t| &rows[t][block]);
            let (mut first, mut second) = ([D::ints(0); T], [D::ints(0); T]);
            for t in 0..T {
                let [low, high] = x[t].sums;
                if K::TWICE {
                    (first[t], second[t]) = (D::ints(-zero * low), D::ints(-zero * high));
                } else if !K::MINIMUMS {
                    first[t] = D::ints(-zero * (low + high));
                }
            }
            let data = &record[K::FORM.quants_at() + from * 4..];
            steps::<D, K, T>(data, &x, (&mut first, &mut second));
            let scale = scales::<D, K>(record, from, 0);
            let other =
                if K::MINIMUMS || K::TWICE { scales::<D, K>(record, from, 1) } else { scale };
            for t in 0..T {
                let by = D::splat(x[t].scale);
                let whole = D::mul(D::mul(floats::<D, K>(first[t]), by), scale);
                sums[t] = D::add(sums[t], whole);
                if K::TWICE {
                    let whole = D::mul(D::mul(floats::<D, K>(second[t]), by), other);
                    sums[t] = D::add(sums[t], whole);
                }
                if K::MINIMUMS {
                    sums[t] = D::add(sums[t], D::mul(other, D::splat(x[t].weighted)));
                }
            }
        }
        for (t, sum) in sums.into_iter().enumerate() {
            let mut found = [0.0; LANES];
            D::store(sum, &mut found[..D::WIDTH]);
            tile.put(t, from, &found[..D::WIDTH]);
        }
    }
}

/// A record's scales, or what follows them.
#[inline(always)]
fn scales<D: Dots, K: Known>(record: &[u8], from: usize, which: usize) -> D::Floats {
    let begin = which * K::FORM.scale_bytes();
    match K::WIDE {
        true => D::floats(&record[begin + from * 4..]),
        false => D::halves(&record[begin + from * 2..]),
    }
}

/// Does something for each of some steps: the step is known when this is compiled, since some instructions contain it.
macro_rules! for_steps {
    ($step:ident in [$($at:literal)*] $body:block) => {
        $({
            const $step: usize = $at;
            $body
        })*
    };
}

/// The products of one block.
#[inline(always)]
fn steps<D: Dots, K: Known, const T: usize>(
    data: &[u8],
    x: &[&Quantised; T],
    (first, second): (&mut [D::Ints; T], &mut [D::Ints; T]),
) {
    if K::NIBBLES {
        for_steps!(STEP in [0 1 2 3] {
            let both = D::bytes(&data[STEP * 64..]);
            let (low, high) = (D::low(both), D::high(both));
            for (t, sum) in first.iter_mut().enumerate() {
                *sum = D::dot::<false, STEP>(*sum, low, &x[t].quants);
                *sum = D::dot::<false, { STEP + 4 }>(*sum, high, &x[t].quants);
            }
        });
        return;
    }
    for_steps!(STEP in [0 1 2 3] { bytes_step::<D, K, T, STEP>(data, x, first) });
    let rest = if K::TWICE { second } else { first };
    for_steps!(STEP in [4 5 6 7] { bytes_step::<D, K, T, STEP>(data, x, rest) });
}

#[inline(always)]
fn bytes_step<D: Dots, K: Known, const T: usize, const STEP: usize>(
    data: &[u8],
    x: &[&Quantised; T],
    sums: &mut [D::Ints; T],
) {
    let bytes = D::bytes(&data[STEP * 64..]);
    for (sum, x) in sums.iter_mut().zip(x) {
        *sum = match K::FULL {
            true => D::dot::<true, STEP>(*sum, bytes, &x.quants),
            false => D::dot::<false, STEP>(*sum, bytes, &x.quants),
        };
    }
}

#[inline(always)]
fn floats<D: Dots, K: Known>(ints: D::Ints) -> D::Floats {
    match K::FULL {
        true => D::to_floats::<true>(ints),
        false => D::to_floats::<false>(ints),
    }
}

/// The quants of one step, as the bytes of a number.
#[inline(always)]
pub(super) fn four(quants: &[i8; BLOCK], step: usize) -> i32 {
    let at = &quants[step * 4..step * 4 + 4];
    i32::from_le_bytes([at[0], at[1], at[2], at[3]].map(i8::cast_unsigned))
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
pub(crate) fn numbers<L: Lanes>(work: &Work<'_>, form: Number, x: &[f32]) {
    let (groups, columns) = (work.data.len() / work.group_bytes, x.len() / work.rows.max(1));
    for group in 0..groups {
        let data = &work.data[group * work.group_bytes..][..work.group_bytes];
        let mut row = 0;
        while row < work.rows {
            let (tile, count) =
                (Tile { work, group, row }, if work.rows - row >= 4 { 4 } else { 1 });
            let (x, bfloat) = (&x[row * columns..(row + count) * columns], form == Number::BF16);
            match (count, form) {
                (4, Number::F32) => some_numbers::<L, 4, 4>(data, bfloat, x, tile),
                (4, _) => some_numbers::<L, 4, 2>(data, bfloat, x, tile),
                (_, Number::F32) => some_numbers::<L, 1, 4>(data, bfloat, x, tile),
                (..) => some_numbers::<L, 1, 2>(data, bfloat, x, tile),
            }
            row += count;
        }
    }
}

#[inline(always)]
fn some_numbers<L: Lanes, const T: usize, const SIZE: usize>(
    group: &[u8],
    bfloat: bool,
    x: &[f32],
    tile: Tile<'_>,
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
    for (t, sum) in sums.into_iter().enumerate() {
        let mut found = [0.0; LANES];
        sum.store(&mut found);
        tile.put(t, 0, &found);
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
