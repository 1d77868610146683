//! NEON, which every 64-bit ARM processor has: four rows in one register. With the dot-product extension four products
//! of each row are one instruction; without it they are added up in sixteen bits, as many as fit.

#![allow(unsafe_code)]

use std::arch::{aarch64::*, asm};

use super::tile::Dots;
use crate::llm::lanes::{LANES, Lanes, Sixteen};
use crate::llm::math::BLOCK;

/// Registers for sixteen numbers.
const QUARTERS: usize = 4;

macro_rules! do_it {
    ($what:expr) => {
        // SAFETY: NEON is part of every processor that this is compiled for.
        unsafe { $what }
    };
}

#[derive(Clone, Copy)]
pub(crate) struct Neon([float32x4_t; QUARTERS]);

impl Neon {
    #[inline(always)]
    fn each(self, other: Neon, what: impl Fn(float32x4_t, float32x4_t) -> float32x4_t) -> Neon {
        let ([a, b, c, d], [e, f, g, h]) = (self.0, other.0);
        Neon([what(a, e), what(b, f), what(c, g), what(d, h)])
    }
}

/// Four floats, wherever they lie.
#[inline(always)]
fn load<T>(from: &[T]) -> float32x4_t {
    assert!(size_of_val(from) >= 16);
    // SAFETY: as above; so many bytes are there, by the line above, and any bits are floats.
    unsafe { vld1q_f32(from.as_ptr().cast()) }
}

/// Four halves as floats.
#[inline(always)]
fn load_half<T>(from: &[T]) -> float32x4_t {
    assert!(size_of_val(from) >= 8);
    // SAFETY: as above; so many bytes are there, by the line above, and any bits are halves.
    unsafe { vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(from.as_ptr().cast()))) }
}

#[inline(always)]
fn store(to: &mut [f32], value: float32x4_t) {
    let to = &mut to[..4];
    // SAFETY: as above; these are four floats.
    unsafe { vst1q_f32(to.as_mut_ptr(), value) }
}

impl Lanes for Neon {
    const ROOM: usize = 8;

    #[inline(always)]
    fn splat(value: f32) -> Neon {
        Neon([do_it!(vdupq_n_f32(value)); QUARTERS])
    }
    #[inline(always)]
    fn load(from: &Sixteen) -> Neon {
        Neon([load(&from[..4]), load(&from[4..8]), load(&from[8..12]), load(&from[12..])])
    }
    #[inline(always)]
    fn load_half(from: &[u16; LANES]) -> Neon {
        let (low, high) = from.split_at(8);
        Neon([
            load_half(&low[..4]),
            load_half(&low[4..]),
            load_half(&high[..4]),
            load_half(&high[4..]),
        ])
    }
    #[inline(always)]
    fn store(self, to: &mut Sixteen) {
        for (at, quarter) in self.0.into_iter().enumerate() {
            store(&mut to[at * 4..], quarter);
        }
    }
    #[inline(always)]
    fn add(self, other: Neon) -> Neon {
        self.each(other, |a, b| do_it!(vaddq_f32(a, b)))
    }
    #[inline(always)]
    fn sub(self, other: Neon) -> Neon {
        self.each(other, |a, b| do_it!(vsubq_f32(a, b)))
    }
    #[inline(always)]
    fn mul(self, other: Neon) -> Neon {
        self.each(other, |a, b| do_it!(vmulq_f32(a, b)))
    }
    #[inline(always)]
    fn div(self, other: Neon) -> Neon {
        self.each(other, |a, b| do_it!(vdivq_f32(a, b)))
    }
    #[inline(always)]
    fn max(self, other: Neon) -> Neon {
        // The instruction for it gives what is not a number, whichever of the two that is.
        self.each(other, |a, b| do_it!(vbslq_f32(vcgtq_f32(a, b), a, b)))
    }
    #[inline(always)]
    fn min(self, other: Neon) -> Neon {
        self.each(other, |a, b| do_it!(vbslq_f32(vcltq_f32(a, b), a, b)))
    }
    #[inline(always)]
    fn round(self) -> Neon {
        let magic = Neon::splat(12_582_912.0);
        self.add(magic).sub(magic)
    }
    #[inline(always)]
    fn power_of_two(self) -> Neon {
        self.each(self, |n, _| {
            do_it!({
                let biased = vaddq_s32(vcvtq_s32_f32(n), vdupq_n_s32(127));
                vreinterpretq_f32_s32(vshlq_n_s32::<23>(biased))
            })
        })
    }
    #[inline(always)]
    fn bytes(self, to: &mut [i8; LANES]) -> i32 {
        let [a, b, c, d] = self.0;
        // SAFETY: as above; the reference is to sixteen bytes.
        unsafe {
            // No number becomes 0, and each step gives the nearest that fits.
            let pair =
                |a, b| vcombine_s16(vqmovn_s32(vcvtq_s32_f32(a)), vqmovn_s32(vcvtq_s32_f32(b)));
            let bytes = vcombine_s8(vqmovn_s16(pair(a, b)), vqmovn_s16(pair(c, d)));
            vst1q_s8(to.as_mut_ptr(), bytes);
            i32::from(vaddlvq_s8(bytes))
        }
    }
    #[inline(always)]
    fn largest(self) -> f32 {
        let [a, b, c, d] = self.0;
        // Passes over what is not a number.
        do_it!(vmaxnmvq_f32(vmaxnmq_f32(vmaxnmq_f32(a, b), vmaxnmq_f32(c, d))))
    }
}

/// With the dot-product extension or without, some registers of rows at a time, and fewer (`MANY`) for many activations.
pub(crate) struct NeonDots<const DOTPROD: bool, const REGISTERS: usize, const MANY: usize>;

pub(crate) type WithDotprod = NeonDots<true, 4, 2>;
pub(crate) type WithoutDotprod = NeonDots<false, 4, 1>;

/// The sums of some registers of rows. The first of the `long` ones is enough with dot products. Without them a row's
/// sum is what it `starts` with and two neighbours: of long ones for bytes that may be anything, else of `short` ones,
/// four of them.
#[derive(Clone, Copy)]
pub(crate) struct Sums<const REGISTERS: usize> {
    starts: int32x4_t,
    short: [[int16x8_t; 2]; REGISTERS],
    long: [[int32x4_t; 2]; REGISTERS],
}

impl<const DOTPROD: bool, const REGISTERS: usize, const MANY: usize> Dots
    for NeonDots<DOTPROD, REGISTERS, MANY>
{
    const WIDTH: usize = REGISTERS * 4;
    const AT_ONCE: usize = 4;
    const TAKEN: i32 = 128;
    type Many = NeonDots<DOTPROD, MANY, MANY>;
    type Bytes = [uint8x16_t; REGISTERS];
    type Ints = Sums<REGISTERS>;
    type Floats = [float32x4_t; REGISTERS];

    #[inline(always)]
    fn bytes(from: &[u8]) -> Self::Bytes {
        let from = &from[..REGISTERS * 16];
        let mut all = [do_it!(vdupq_n_u8(0)); REGISTERS];
        for (at, bytes) in all.iter_mut().enumerate() {
            // SAFETY: as above; there are sixteen bytes for each register.
            *bytes = unsafe { vld1q_u8(from[at * 16..].as_ptr()) };
        }
        all
    }
    #[inline(always)]
    fn low(mut bytes: Self::Bytes) -> Self::Bytes {
        for bytes in &mut bytes {
            *bytes = do_it!(vandq_u8(*bytes, vdupq_n_u8(15)));
        }
        bytes
    }
    #[inline(always)]
    fn high(mut bytes: Self::Bytes) -> Self::Bytes {
        for bytes in &mut bytes {
            *bytes = do_it!(vshrq_n_u8::<4>(*bytes));
        }
        bytes
    }
    #[inline(always)]
    fn ints(value: i32) -> Self::Ints {
        do_it!({
            let (zero, starts) = (vdupq_n_s32(0), vdupq_n_s32(value));
            Sums {
                starts,
                short: [[vdupq_n_s16(0); 2]; REGISTERS],
                long: [[if DOTPROD { starts } else { zero }, zero]; REGISTERS],
            }
        })
    }
    #[inline(always)]
    fn dot<const FULL: bool, const STEP: usize>(
        mut sums: Self::Ints,
        bytes: Self::Bytes,
        quants: &[i8; BLOCK],
    ) -> Self::Ints {
        // SAFETY: as above; these are sixteen bytes.
        let sixteen = unsafe { vld1q_s8(quants[STEP / 4 * 16..][..16].as_ptr()) };
        for at in 0..REGISTERS {
            let bytes = signed::<FULL>(bytes[at]);
            let (short, long) = (&mut sums.short[at], &mut sums.long[at]);
            if DOTPROD {
                long[0] = dot_of_four::<STEP>(long[0], bytes, sixteen);
            } else {
                products::<FULL, STEP>(short, long, bytes, four_again::<STEP>(sixteen));
            }
        }
        sums
    }
    #[inline(always)]
    fn to_floats<const FULL: bool>(sums: Self::Ints) -> Self::Floats {
        let mut all = [do_it!(vdupq_n_f32(0.0)); REGISTERS];
        for (at, floats) in all.iter_mut().enumerate() {
            let ([low, high], [short_low, short_high]) = (sums.long[at], sums.short[at]);
            *floats = do_it!(vcvtq_f32_s32(if DOTPROD {
                low
            } else if FULL {
                vaddq_s32(sums.starts, vpaddq_s32(low, high))
            } else {
                let (low, high) = (vpaddlq_s16(short_low), vpaddlq_s16(short_high));
                vaddq_s32(sums.starts, vpaddq_s32(low, high))
            }));
        }
        all
    }
    #[inline(always)]
    fn splat(value: f32) -> Self::Floats {
        [do_it!(vdupq_n_f32(value)); REGISTERS]
    }
    #[inline(always)]
    fn floats(from: &[u8]) -> Self::Floats {
        let mut all = Self::splat(0.0);
        for (at, floats) in all.iter_mut().enumerate() {
            *floats = load(&from[at * 16..][..16]);
        }
        all
    }
    #[inline(always)]
    fn halves(from: &[u8]) -> Self::Floats {
        let mut all = Self::splat(0.0);
        for (at, floats) in all.iter_mut().enumerate() {
            *floats = load_half(&from[at * 8..][..8]);
        }
        all
    }
    #[inline(always)]
    fn add(mut a: Self::Floats, b: Self::Floats) -> Self::Floats {
        for (a, b) in a.iter_mut().zip(b) {
            *a = do_it!(vaddq_f32(*a, b));
        }
        a
    }
    #[inline(always)]
    fn mul(mut a: Self::Floats, b: Self::Floats) -> Self::Floats {
        for (a, b) in a.iter_mut().zip(b) {
            *a = do_it!(vmulq_f32(*a, b));
        }
        a
    }
    #[inline(always)]
    fn store(floats: Self::Floats, to: &mut [f32]) {
        for (at, floats) in floats.into_iter().enumerate() {
            store(&mut to[at * 4..], floats);
        }
    }
}

/// Bytes that may be anything, less 128.
#[inline(always)]
fn signed<const FULL: bool>(bytes: uint8x16_t) -> int8x16_t {
    do_it!(vreinterpretq_s8_u8(if FULL { veorq_u8(bytes, vdupq_n_u8(128)) } else { bytes }))
}

/// Four of sixteen quants, for each row.
#[inline(always)]
fn four_again<const STEP: usize>(sixteen: int8x16_t) -> int8x16_t {
    do_it!({
        let fours = vreinterpretq_s32_s8(sixteen);
        vreinterpretq_s8_s32(match STEP % 4 {
            0 => vdupq_laneq_s32::<0>(fours),
            1 => vdupq_laneq_s32::<1>(fours),
            2 => vdupq_laneq_s32::<2>(fours),
            _ => vdupq_laneq_s32::<3>(fours),
        })
    })
}

/// Sixteen bits hold the products of eight bytes below 32, of four below 64, or of two of any: no quant is -128.
#[inline(always)]
fn products<const FULL: bool, const STEP: usize>(
    [short_low, short_high]: &mut [int16x8_t; 2],
    [low, high]: &mut [int32x4_t; 2],
    bytes: int8x16_t,
    quants: int8x16_t,
) {
    do_it!({
        let (first, four) = (vget_low_s8(bytes), vget_low_s8(quants));
        if FULL && STEP.is_multiple_of(2) {
            *short_low = vmull_s8(first, four);
            *short_high = vmull_high_s8(bytes, quants);
            return;
        }
        *short_low = vmlal_s8(*short_low, first, four);
        *short_high = vmlal_high_s8(*short_high, bytes, quants);
        if FULL {
            *low = vpadalq_s16(*low, *short_low);
            *high = vpadalq_s16(*high, *short_high);
        }
    });
}

#[inline(always)]
fn dot_of_four<const STEP: usize>(
    sum: int32x4_t,
    bytes: int8x16_t,
    sixteen: int8x16_t,
) -> int32x4_t {
    // SAFETY: only code compiled for the extension, which runs only where it is, comes here.
    unsafe {
        match STEP % 4 {
            0 => sdot::<0>(sum, bytes, sixteen),
            1 => sdot::<1>(sum, bytes, sixteen),
            2 => sdot::<2>(sum, bytes, sixteen),
            _ => sdot::<3>(sum, bytes, sixteen),
        }
    }
}

/// Adds the products of each four bytes with four of sixteen quants. The standard library has no stable name for it.
#[inline]
#[target_feature(enable = "dotprod")]
fn sdot<const FOUR: i32>(mut sum: int32x4_t, bytes: int8x16_t, quants: int8x16_t) -> int32x4_t {
    // SAFETY: it changes one register and nothing else.
    unsafe {
        asm!(
            "sdot {sum:v}.4s, {bytes:v}.16b, {quants:v}.4b[{four}]",
            sum = inlateout(vreg) sum,
            bytes = in(vreg) bytes,
            quants = in(vreg) quants,
            four = const FOUR,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    sum
}
