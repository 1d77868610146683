//! WebAssembly with 128 bits: four rows in one register. With relaxed SIMD four products of each row are one
//! instruction; without it they are products of pairs.
//!
//! Which of the two is chosen when the module is built (`-C target-feature=+simd128`, and `+relaxed-simd`), since a
//! module with an instruction that a browser does not know does not load at all. Both give the same bits on every host:
//! the relaxed product is only free to differ where its second operand needs more than seven bits or a pair of products
//! more than sixteen, and neither ever does here.

#![allow(unsafe_code)]

use core::arch::wasm32::*;

use super::tile::{Dots, four};
use crate::llm::lanes::{LANES, Lanes, Sixteen};
use crate::llm::math::BLOCK;

/// Registers for sixteen numbers.
const QUARTERS: usize = 4;

#[derive(Clone, Copy)]
pub(crate) struct Wasm([v128; QUARTERS]);

impl Wasm {
    #[inline(always)]
    fn each(self, other: Wasm, what: impl Fn(v128, v128) -> v128) -> Wasm {
        let ([a, b, c, d], [e, f, g, h]) = (self.0, other.0);
        Wasm([what(a, e), what(b, f), what(c, g), what(d, h)])
    }
}

/// Four floats or 16 bytes.
#[inline(always)]
fn load<T>(from: &[T]) -> v128 {
    assert!(size_of_val(from) >= 16);
    // SAFETY: so many bytes are there, by the line above, and any bits are a `v128`.
    unsafe { v128_load(from.as_ptr().cast()) }
}

#[inline(always)]
fn store(to: &mut [f32], value: v128) {
    let to = &mut to[..4];
    // SAFETY: these are four floats, and any bits are floats.
    unsafe { v128_store(to.as_mut_ptr().cast(), value) }
}

/// Four halves, each in the lower part of a word, as floats: what `widen` does.
#[inline(always)]
fn widen(halves: v128) -> v128 {
    let rest = v128_and(halves, u32x4_splat(0x7fff));
    let sign = u32x4_shl(v128_xor(halves, rest), 16);
    let value = f32x4_mul(u32x4_shl(rest, 13), u32x4_splat(0x7780_0000));
    let special = v128_and(i32x4_gt(rest, i32x4_splat(0x7bff)), u32x4_splat(0x7f80_0000));
    v128_or(v128_or(value, sign), special)
}

impl Lanes for Wasm {
    const ROOM: usize = 4;
    const WIDENS_SLOWLY: bool = true;

    #[inline(always)]
    fn splat(value: f32) -> Wasm {
        Wasm([f32x4_splat(value); QUARTERS])
    }
    #[inline(always)]
    fn load(from: &Sixteen) -> Wasm {
        Wasm([load(&from[..4]), load(&from[4..8]), load(&from[8..12]), load(&from[12..])])
    }
    #[inline(always)]
    fn load_half(from: &[u16; LANES]) -> Wasm {
        let (low, high) = (load(&from[..8]), load(&from[8..]));
        Wasm([
            widen(u32x4_extend_low_u16x8(low)),
            widen(u32x4_extend_high_u16x8(low)),
            widen(u32x4_extend_low_u16x8(high)),
            widen(u32x4_extend_high_u16x8(high)),
        ])
    }
    #[inline(always)]
    fn store(self, to: &mut Sixteen) {
        for (at, quarter) in self.0.into_iter().enumerate() {
            store(&mut to[at * 4..], quarter);
        }
    }
    #[inline(always)]
    fn add(self, other: Wasm) -> Wasm {
        self.each(other, |a, b| f32x4_add(a, b))
    }
    #[inline(always)]
    fn sub(self, other: Wasm) -> Wasm {
        self.each(other, |a, b| f32x4_sub(a, b))
    }
    #[inline(always)]
    fn mul(self, other: Wasm) -> Wasm {
        self.each(other, |a, b| f32x4_mul(a, b))
    }
    #[inline(always)]
    fn div(self, other: Wasm) -> Wasm {
        self.each(other, |a, b| f32x4_div(a, b))
    }
    #[inline(always)]
    fn max(self, other: Wasm) -> Wasm {
        // The pseudo-maximum takes its first unless it is less than its second.
        self.each(other, |a, b| f32x4_pmax(b, a))
    }
    #[inline(always)]
    fn min(self, other: Wasm) -> Wasm {
        self.each(other, |a, b| f32x4_pmin(b, a))
    }
    #[inline(always)]
    fn round(self) -> Wasm {
        let magic = Wasm::splat(12_582_912.0);
        self.add(magic).sub(magic)
    }
    #[inline(always)]
    fn power_of_two(self) -> Wasm {
        let power = |n: v128| {
            let biased = i32x4_add(i32x4_trunc_sat_f32x4(n), i32x4_splat(127));
            i32x4_shl(biased, 23)
        };
        self.each(self, |n, _| power(n))
    }
    #[inline(always)]
    fn bytes(self, to: &mut [i8; LANES]) -> i32 {
        let [a, b, c, d] = self.0.map(|quarter| i32x4_trunc_sat_f32x4(quarter));
        let bytes = i8x16_narrow_i16x8(i16x8_narrow_i32x4(a, b), i16x8_narrow_i32x4(c, d));
        // SAFETY: the reference is to sixteen bytes.
        unsafe { v128_store(to.as_mut_ptr().cast(), bytes) };
        let sums = i32x4_extadd_pairwise_i16x8(i16x8_extadd_pairwise_i8x16(bytes));
        let [a, b] = [i32x4_extract_lane::<0>(sums), i32x4_extract_lane::<1>(sums)];
        a + b + i32x4_extract_lane::<2>(sums) + i32x4_extract_lane::<3>(sums)
    }
}

pub(crate) struct WasmDots;

impl WasmDots {
    /// Whether products here are what the standard says. Hosts had relaxed SIMD before its standard was written, and
    /// took the operands the other way round.
    pub(crate) fn are_right() -> bool {
        let bytes = core::hint::black_box(u8x16_splat(63));
        let mut quants = [0; BLOCK];
        quants[..4].copy_from_slice(&[-127, -1, 127, -126]);
        let quants = core::hint::black_box(quants);
        let sum = sums::whole(WasmDots::dot::<false, 0>(WasmDots::ints(5), bytes, &quants));
        i32x4_extract_lane::<3>(sum) == 5 + 63 * (-127 - 1 + 127 - 126)
    }
}

impl Dots for WasmDots {
    const WIDTH: usize = 4;
    const AT_ONCE: usize = 4;
    type Many = WasmDots;
    type Bytes = v128;
    type Ints = [v128; 2];
    type Floats = v128;

    #[inline(always)]
    fn bytes(from: &[u8]) -> v128 {
        load(from)
    }
    #[inline(always)]
    fn low(bytes: v128) -> v128 {
        v128_and(bytes, u8x16_splat(15))
    }
    #[inline(always)]
    fn high(bytes: v128) -> v128 {
        u8x16_shr(bytes, 4)
    }
    #[inline(always)]
    fn ints(value: i32) -> [v128; 2] {
        sums::ints(value)
    }
    #[inline(always)]
    fn dot<const FULL: bool, const STEP: usize>(
        sum: [v128; 2],
        bytes: v128,
        quants: &[i8; BLOCK],
    ) -> [v128; 2] {
        sums::dot::<FULL>(sum, bytes, i32x4_splat(four(quants, STEP)))
    }
    #[inline(always)]
    fn to_floats<const FULL: bool>(ints: [v128; 2]) -> v128 {
        f32x4_convert_i32x4(sums::whole(ints))
    }
    #[inline(always)]
    fn splat(value: f32) -> v128 {
        f32x4_splat(value)
    }
    #[inline(always)]
    fn floats(from: &[u8]) -> v128 {
        load(from)
    }
    #[inline(always)]
    fn halves(from: &[u8]) -> v128 {
        let from = &from[..8];
        // SAFETY: these are eight bytes.
        widen(unsafe { u32x4_load_extend_u16x4(from.as_ptr().cast()) })
    }
    #[inline(always)]
    fn add(a: v128, b: v128) -> v128 {
        f32x4_add(a, b)
    }
    #[inline(always)]
    fn mul(a: v128, b: v128) -> v128 {
        f32x4_mul(a, b)
    }
    #[inline(always)]
    fn store(floats: v128, to: &mut [f32]) {
        store(to, floats);
    }
}

/// A row's sum, and what is to be added to it 128 times.
#[cfg(target_feature = "relaxed-simd")]
mod sums {
    use super::*;

    #[inline(always)]
    pub(super) fn ints(value: i32) -> [v128; 2] {
        [i32x4_splat(value), i32x4_splat(0)]
    }

    #[inline(always)]
    pub(super) fn dot<const FULL: bool>(
        [sum, tops]: [v128; 2],
        bytes: v128,
        quants: v128,
    ) -> [v128; 2] {
        if !FULL {
            return [i32x4_relaxed_dot_i8x16_i7x16_add(quants, bytes, sum), tops];
        }
        // Eight bits are seven and one.
        let seven = v128_and(bytes, u8x16_splat(127));
        let sum = i32x4_relaxed_dot_i8x16_i7x16_add(quants, seven, sum);
        let tops = i32x4_relaxed_dot_i8x16_i7x16_add(quants, u8x16_shr(bytes, 7), tops);
        [sum, tops]
    }

    #[inline(always)]
    pub(super) fn whole([sum, tops]: [v128; 2]) -> v128 {
        i32x4_add(sum, i32x4_shl(tops, 7))
    }
}

/// Two rows' sums, each in two parts, and two more.
#[cfg(not(target_feature = "relaxed-simd"))]
mod sums {
    use super::*;

    #[inline(always)]
    pub(super) fn ints(value: i32) -> [v128; 2] {
        [i32x4(value, 0, value, 0); 2]
    }

    #[inline(always)]
    pub(super) fn dot<const FULL: bool>(
        [low, high]: [v128; 2],
        bytes: v128,
        quants: v128,
    ) -> [v128; 2] {
        let quants = i16x8_extend_low_i8x16(quants);
        let pairs = |bytes: v128| i32x4_dot_i16x8(bytes, quants);
        [
            i32x4_add(low, pairs(u16x8_extend_low_u8x16(bytes))),
            i32x4_add(high, pairs(u16x8_extend_high_u8x16(bytes))),
        ]
    }

    #[inline(always)]
    pub(super) fn whole([low, high]: [v128; 2]) -> v128 {
        let even = i32x4_shuffle::<0, 2, 4, 6>(low, high);
        i32x4_add(even, i32x4_shuffle::<1, 3, 5, 7>(low, high))
    }
}
