//! AVX2: eight rows in one register. With AVX-VNNI four products of each row are one instruction; without it they are
//! three, of which none may overflow.
//!
//! All here must run on a processor that has these; `Kernel` sees to it.

#![allow(unsafe_code)]

use std::arch::x86_64::*;

use super::tile::{Dots, four};
use crate::llm::lanes::{LANES, Lanes, Sixteen};
use crate::llm::math::BLOCK;

/// The lower eight and the upper eight.
#[derive(Clone, Copy)]
pub(crate) struct Avx2(__m256, __m256);

macro_rules! do_it {
    ($what:expr) => {
        // SAFETY: only code compiled for AVX2, which runs only where it is, comes here.
        unsafe { $what }
    };
}

macro_rules! both {
    ($function:ident, $a:expr, $b:expr) => {
        Avx2(do_it!($function($a.0, $b.0)), do_it!($function($a.1, $b.1)))
    };
}

impl Lanes for Avx2 {
    const ROOM: usize = 8;
    const ADDS_FROM_MEMORY: bool = true;

    #[inline(always)]
    fn splat(value: f32) -> Avx2 {
        let all = do_it!(_mm256_set1_ps(value));
        Avx2(all, all)
    }
    #[inline(always)]
    fn load(from: &Sixteen) -> Avx2 {
        // SAFETY: as above; the reference is to sixteen floats.
        unsafe { Avx2(_mm256_loadu_ps(from.as_ptr()), _mm256_loadu_ps(from[8..].as_ptr())) }
    }
    #[inline(always)]
    fn load_half(from: &[u16; LANES]) -> Avx2 {
        // SAFETY: as above; the reference is to sixteen halves.
        unsafe {
            let (low, high) = (from.as_ptr().cast(), from[8..].as_ptr().cast());
            Avx2(_mm256_cvtph_ps(_mm_loadu_si128(low)), _mm256_cvtph_ps(_mm_loadu_si128(high)))
        }
    }
    #[inline(always)]
    fn store(self, to: &mut Sixteen) {
        // SAFETY: as above; the reference is to sixteen floats.
        unsafe {
            _mm256_storeu_ps(to.as_mut_ptr(), self.0);
            _mm256_storeu_ps(to[8..].as_mut_ptr(), self.1);
        }
    }
    #[inline(always)]
    fn add(self, other: Avx2) -> Avx2 {
        both!(_mm256_add_ps, self, other)
    }
    #[inline(always)]
    fn sub(self, other: Avx2) -> Avx2 {
        both!(_mm256_sub_ps, self, other)
    }
    #[inline(always)]
    fn mul(self, other: Avx2) -> Avx2 {
        both!(_mm256_mul_ps, self, other)
    }
    #[inline(always)]
    fn div(self, other: Avx2) -> Avx2 {
        both!(_mm256_div_ps, self, other)
    }
    #[inline(always)]
    fn max(self, other: Avx2) -> Avx2 {
        both!(_mm256_max_ps, self, other)
    }
    #[inline(always)]
    fn min(self, other: Avx2) -> Avx2 {
        both!(_mm256_min_ps, self, other)
    }
    #[inline(always)]
    fn round(self) -> Avx2 {
        let magic = Avx2::splat(12_582_912.0);
        self.add(magic).sub(magic)
    }
    #[inline(always)]
    fn power_of_two(self) -> Avx2 {
        Avx2(power_of_two(self.0), power_of_two(self.1))
    }
    #[inline(always)]
    fn bytes(self, to: &mut [i8; LANES]) -> i32 {
        let (low, high) = (whole(self.0), whole(self.1));
        // SAFETY: as above; the reference is to sixteen bytes.
        unsafe {
            let sum = _mm256_add_epi32(low, high);
            // Packing goes by halves of a register: the middle quarters change places.
            let words = _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_packs_epi32(low, high));
            let (low, high) = (_mm256_castsi256_si128(words), _mm256_extracti128_si256::<1>(words));
            _mm_storeu_si128(to.as_mut_ptr().cast(), _mm_packs_epi16(low, high));
            let sum =
                _mm_add_epi32(_mm256_castsi256_si128(sum), _mm256_extracti128_si256::<1>(sum));
            let sum = _mm_add_epi32(sum, _mm_shuffle_epi32::<0b00_00_11_10>(sum));
            let sum = _mm_add_epi32(sum, _mm_shuffle_epi32::<0b00_00_00_01>(sum));
            _mm_cvtsi128_si32(sum)
        }
    }
    #[inline(always)]
    fn largest(self) -> f32 {
        do_it!({
            let all = _mm256_max_ps(self.0, self.1);
            let all = _mm_max_ps(_mm256_castps256_ps128(all), _mm256_extractf128_ps::<1>(all));
            let all = _mm_max_ps(all, _mm_movehl_ps(all, all));
            _mm_cvtss_f32(_mm_max_ss(all, _mm_shuffle_ps::<1>(all, all)))
        })
    }
}

#[inline(always)]
fn power_of_two(n: __m256) -> __m256 {
    do_it!({
        let biased = _mm256_add_epi32(_mm256_cvttps_epi32(n), _mm256_set1_epi32(127));
        _mm256_castsi256_ps(_mm256_slli_epi32::<23>(biased))
    })
}

/// Whole numbers that fit a byte; what is no number is 0.
#[inline(always)]
fn whole(x: __m256) -> __m256i {
    do_it!({
        let is_number = _mm256_cmp_ps::<_CMP_ORD_Q>(x, x);
        let fits = _mm256_max_ps(_mm256_min_ps(x, _mm256_set1_ps(127.0)), _mm256_set1_ps(-128.0));
        _mm256_cvttps_epi32(_mm256_and_ps(fits, is_number))
    })
}

/// With AVX-VNNI or without.
pub(crate) struct Avx2Dots<const VNNI: bool>;

impl<const VNNI: bool> Dots for Avx2Dots<VNNI> {
    const WIDTH: usize = 8;
    const AT_ONCE: usize = 4;
    const TAKEN: i32 = if VNNI { 0 } else { 128 };
    type Many = Avx2Dots<VNNI>;
    type Bytes = __m256i;
    type Ints = __m256i;
    type Floats = __m256;

    #[inline(always)]
    fn bytes(from: &[u8]) -> __m256i {
        let from = &from[..32];
        // SAFETY: as above; these are 32 bytes.
        unsafe { _mm256_loadu_si256(from.as_ptr().cast()) }
    }
    #[inline(always)]
    fn low(bytes: __m256i) -> __m256i {
        do_it!(_mm256_and_si256(bytes, _mm256_set1_epi8(15)))
    }
    #[inline(always)]
    fn high(bytes: __m256i) -> __m256i {
        do_it!(_mm256_and_si256(_mm256_srli_epi16::<4>(bytes), _mm256_set1_epi8(15)))
    }
    #[inline(always)]
    fn ints(value: i32) -> __m256i {
        do_it!(_mm256_set1_epi32(value))
    }
    #[inline(always)]
    fn dot<const FULL: bool, const STEP: usize>(
        sum: __m256i,
        bytes: __m256i,
        quants: &[i8; BLOCK],
    ) -> __m256i {
        do_it!({
            let quants = _mm256_set1_epi32(four(quants, STEP));
            if VNNI {
                return _mm256_dpbusd_avx_epi32(sum, bytes, quants);
            }
            // Two products of a byte and a quant are added in sixteen bits: below 64 * 127 * 2 they fit, and so do they
            // of bytes less 128, without their sign, which the quants get instead.
            let pairs = if FULL {
                let signed = _mm256_xor_si256(bytes, _mm256_set1_epi8(-128));
                _mm256_maddubs_epi16(_mm256_abs_epi8(signed), _mm256_sign_epi8(quants, signed))
            } else {
                _mm256_maddubs_epi16(bytes, quants)
            };
            _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)))
        })
    }
    #[inline(always)]
    fn to_floats<const FULL: bool>(ints: __m256i) -> __m256 {
        do_it!(_mm256_cvtepi32_ps(ints))
    }
    #[inline(always)]
    fn splat(value: f32) -> __m256 {
        do_it!(_mm256_set1_ps(value))
    }
    #[inline(always)]
    fn floats(from: &[u8]) -> __m256 {
        let from = &from[..32];
        // SAFETY: as above; these are 32 bytes.
        unsafe { _mm256_loadu_ps(from.as_ptr().cast()) }
    }
    #[inline(always)]
    fn halves(from: &[u8]) -> __m256 {
        let from = &from[..16];
        // SAFETY: as above; these are 16 bytes.
        unsafe { _mm256_cvtph_ps(_mm_loadu_si128(from.as_ptr().cast())) }
    }
    #[inline(always)]
    fn add(a: __m256, b: __m256) -> __m256 {
        do_it!(_mm256_add_ps(a, b))
    }
    #[inline(always)]
    fn mul(a: __m256, b: __m256) -> __m256 {
        do_it!(_mm256_mul_ps(a, b))
    }
    #[inline(always)]
    fn store(floats: __m256, to: &mut [f32]) {
        let to = &mut to[..8];
        // SAFETY: as above; these are eight floats.
        unsafe { _mm256_storeu_ps(to.as_mut_ptr(), floats) }
    }
}
