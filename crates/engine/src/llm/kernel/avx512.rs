//! AVX-512 with VNNI: sixteen rows in one register, four products of each row in one instruction.
//!
//! All here must run on a processor that has these; `Kernel` sees to it.

#![allow(unsafe_code)]

use std::arch::x86_64::*;

use super::tile::{Dots, four};
use crate::llm::lanes::{LANES, Lanes, Sixteen};
use crate::llm::math::BLOCK;

#[derive(Clone, Copy)]
pub(crate) struct Avx512(__m512);

/// What both traits do with sixteen floats.
macro_rules! do_it {
    ($what:expr) => {
        // SAFETY: only code compiled for AVX-512, which runs only where it is, comes here.
        unsafe { $what }
    };
}

impl Lanes for Avx512 {
    const ROOM: usize = 32;
    const ADDS_FROM_MEMORY: bool = true;

    #[inline(always)]
    fn splat(value: f32) -> Avx512 {
        Avx512(do_it!(_mm512_set1_ps(value)))
    }
    #[inline(always)]
    fn load(from: &Sixteen) -> Avx512 {
        // SAFETY: as above; the reference is to sixteen floats.
        Avx512(unsafe { _mm512_loadu_ps(from.as_ptr()) })
    }
    #[inline(always)]
    fn load_half(from: &[u16; LANES]) -> Avx512 {
        // SAFETY: as above; the reference is to sixteen halves.
        Avx512(unsafe { _mm512_cvtph_ps(_mm256_loadu_si256(from.as_ptr().cast())) })
    }
    #[inline(always)]
    fn store(self, to: &mut Sixteen) {
        // SAFETY: as above; the reference is to sixteen floats.
        unsafe { _mm512_storeu_ps(to.as_mut_ptr(), self.0) }
    }
    #[inline(always)]
    fn add(self, other: Avx512) -> Avx512 {
        Avx512(do_it!(_mm512_add_ps(self.0, other.0)))
    }
    #[inline(always)]
    fn sub(self, other: Avx512) -> Avx512 {
        Avx512(do_it!(_mm512_sub_ps(self.0, other.0)))
    }
    #[inline(always)]
    fn mul(self, other: Avx512) -> Avx512 {
        Avx512(do_it!(_mm512_mul_ps(self.0, other.0)))
    }
    #[inline(always)]
    fn div(self, other: Avx512) -> Avx512 {
        Avx512(do_it!(_mm512_div_ps(self.0, other.0)))
    }
    #[inline(always)]
    fn max(self, other: Avx512) -> Avx512 {
        Avx512(do_it!(_mm512_max_ps(self.0, other.0)))
    }
    #[inline(always)]
    fn min(self, other: Avx512) -> Avx512 {
        Avx512(do_it!(_mm512_min_ps(self.0, other.0)))
    }
    #[inline(always)]
    fn round(self) -> Avx512 {
        let magic = Avx512::splat(12_582_912.0);
        self.add(magic).sub(magic)
    }
    #[inline(always)]
    fn power_of_two(self) -> Avx512 {
        Avx512(do_it!({
            let biased = _mm512_add_epi32(_mm512_cvttps_epi32(self.0), _mm512_set1_epi32(127));
            _mm512_castsi512_ps(_mm512_slli_epi32::<23>(biased))
        }))
    }
    #[inline(always)]
    fn bytes(self, to: &mut [i8; LANES]) -> i32 {
        // SAFETY: as above; the reference is to sixteen bytes.
        unsafe {
            let is_number = _mm512_cmp_ps_mask::<_CMP_ORD_Q>(self.0, self.0);
            let most = _mm512_min_ps(self.0, _mm512_set1_ps(127.0));
            let bytes = _mm512_cvtsepi32_epi8(_mm512_maskz_cvttps_epi32(is_number, most));
            _mm_storeu_si128(to.as_mut_ptr().cast(), bytes);
            _mm512_reduce_add_epi32(_mm512_cvtepi8_epi32(bytes))
        }
    }
    #[inline(always)]
    fn largest(self) -> f32 {
        do_it!(_mm512_reduce_max_ps(self.0))
    }
}

pub(crate) struct Avx512Dots;

impl Dots for Avx512Dots {
    const WIDTH: usize = LANES;
    const AT_ONCE: usize = 8;
    type Many = Avx512Dots;
    type Bytes = __m512i;
    type Ints = __m512i;
    type Floats = __m512;

    #[inline(always)]
    fn bytes(from: &[u8]) -> __m512i {
        let from = &from[..64];
        // SAFETY: as above; these are 64 bytes.
        unsafe { _mm512_loadu_si512(from.as_ptr().cast()) }
    }
    #[inline(always)]
    fn low(bytes: __m512i) -> __m512i {
        do_it!(_mm512_and_si512(bytes, _mm512_set1_epi8(15)))
    }
    #[inline(always)]
    fn high(bytes: __m512i) -> __m512i {
        do_it!(_mm512_and_si512(_mm512_srli_epi16::<4>(bytes), _mm512_set1_epi8(15)))
    }
    #[inline(always)]
    fn ints(value: i32) -> __m512i {
        do_it!(_mm512_set1_epi32(value))
    }
    #[inline(always)]
    fn dot<const FULL: bool, const STEP: usize>(
        sum: __m512i,
        bytes: __m512i,
        quants: &[i8; BLOCK],
    ) -> __m512i {
        do_it!(_mm512_dpbusd_epi32(sum, bytes, _mm512_set1_epi32(four(quants, STEP))))
    }
    #[inline(always)]
    fn to_floats<const FULL: bool>(ints: __m512i) -> __m512 {
        do_it!(_mm512_cvtepi32_ps(ints))
    }
    #[inline(always)]
    fn splat(value: f32) -> __m512 {
        do_it!(_mm512_set1_ps(value))
    }
    #[inline(always)]
    fn floats(from: &[u8]) -> __m512 {
        let from = &from[..64];
        // SAFETY: as above; these are 64 bytes.
        unsafe { _mm512_loadu_ps(from.as_ptr().cast()) }
    }
    #[inline(always)]
    fn halves(from: &[u8]) -> __m512 {
        let from = &from[..32];
        // SAFETY: as above; these are 32 bytes.
        unsafe { _mm512_cvtph_ps(_mm256_loadu_si256(from.as_ptr().cast())) }
    }
    #[inline(always)]
    fn add(a: __m512, b: __m512) -> __m512 {
        do_it!(_mm512_add_ps(a, b))
    }
    #[inline(always)]
    fn mul(a: __m512, b: __m512) -> __m512 {
        do_it!(_mm512_mul_ps(a, b))
    }
    #[inline(always)]
    fn store(floats: __m512, to: &mut [f32]) {
        let to = &mut to[..LANES];
        // SAFETY: as above; these are sixteen floats.
        unsafe { _mm512_storeu_ps(to.as_mut_ptr(), floats) }
    }
}
