//! Weights by activations in plain code: the oracle of all kernels, and what runs where there is no other.

use super::tile::{Dots, floats_of, four, halves_of};
use crate::llm::lanes::{LANES, Sixteen, widen};
use crate::llm::math::BLOCK;

pub(crate) struct PlainDots;

impl Dots for PlainDots {
    const WIDTH: usize = LANES;
    const AT_ONCE: usize = 1;
    type Many = PlainDots;
    type Bytes = [u8; 64];
    type Ints = [i32; LANES];
    type Floats = Sixteen;

    #[inline(always)]
    fn bytes(from: &[u8]) -> [u8; 64] {
        let mut bytes = [0; 64];
        bytes.copy_from_slice(&from[..64]);
        bytes
    }
    #[inline(always)]
    fn low(bytes: [u8; 64]) -> [u8; 64] {
        bytes.map(|byte| byte & 15)
    }
    #[inline(always)]
    fn high(bytes: [u8; 64]) -> [u8; 64] {
        bytes.map(|byte| byte >> 4)
    }
    #[inline(always)]
    fn ints(value: i32) -> [i32; LANES] {
        [value; LANES]
    }
    // All steps in a row are more than a compiler keeps in registers: as a part of its caller this would be more code.
    #[inline(never)]
    fn dot<const FULL: bool, const STEP: usize>(
        mut sum: [i32; LANES],
        bytes: [u8; 64],
        quants: &[i8; BLOCK],
    ) -> [i32; LANES] {
        let quants = four(quants, STEP).to_le_bytes().map(|quant| i32::from(quant.cast_signed()));
        for (lane, sum) in sum.iter_mut().enumerate() {
            for (at, quant) in quants.iter().enumerate() {
                *sum += i32::from(bytes[lane * 4 + at]) * quant;
            }
        }
        sum
    }
    #[inline(always)]
    fn to_floats<const FULL: bool>(ints: [i32; LANES]) -> Sixteen {
        ints.map(|int| int as f32)
    }
    #[inline(always)]
    fn splat(value: f32) -> Sixteen {
        [value; LANES]
    }
    #[inline(always)]
    fn floats(from: &[u8]) -> Sixteen {
        floats_of(&from[..LANES * 4])
    }
    #[inline(always)]
    fn halves(from: &[u8]) -> Sixteen {
        halves_of(&from[..LANES * 2]).map(widen)
    }
    #[inline(always)]
    fn add(a: Sixteen, b: Sixteen) -> Sixteen {
        std::array::from_fn(|at| a[at] + b[at])
    }
    #[inline(always)]
    fn mul(a: Sixteen, b: Sixteen) -> Sixteen {
        std::array::from_fn(|at| a[at] * b[at])
    }
    #[inline(always)]
    fn store(floats: Sixteen, to: &mut [f32]) {
        to.copy_from_slice(&floats);
    }
}
