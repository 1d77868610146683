//! Sixteen numbers at a time. Every processor computes the same bits: each operation rounds once, nothing is fused,
//! and sums have a fixed order.

/// As many rows of a matrix, positions of a cache or elements of a head are computed side by side.
pub(crate) const LANES: usize = 16;

pub(crate) type Sixteen = [f32; LANES];

/// What a processor does with sixteen numbers.
pub(crate) trait Lanes: Copy {
    /// How many of these fit the registers.
    const ROOM: usize;
    /// Whether `load_half` takes many instructions.
    const WIDENS_SLOWLY: bool = false;
    /// Whether instructions that compute read memory themselves, so that it costs little if sums do not fit the registers.
    const ADDS_FROM_MEMORY: bool = false;

    fn splat(value: f32) -> Self;
    fn load(from: &Sixteen) -> Self;
    /// Half precision, exactly.
    fn load_half(from: &[u16; LANES]) -> Self;
    fn store(self, to: &mut Sixteen);
    fn add(self, other: Self) -> Self;
    fn sub(self, other: Self) -> Self;
    fn mul(self, other: Self) -> Self;
    fn div(self, other: Self) -> Self;
    /// The second where either is not a number.
    fn max(self, other: Self) -> Self;
    fn min(self, other: Self) -> Self;
    /// To the nearest whole number, halves to the even one.
    fn round(self) -> Self;
    /// Two to the power of whole numbers from -126 to 127.
    fn power_of_two(self) -> Self;

    /// Whole numbers as bytes, and what they add up to. What does not fit is the nearest that does; no number is 0.
    #[inline(always)]
    fn bytes(self, to: &mut [i8; LANES]) -> i32 {
        let mut all = [0.0; LANES];
        self.store(&mut all);
        *to = all.map(|number| number as i8);
        to.iter().map(|byte| i32::from(*byte)).sum()
    }

    /// In a fixed order: halves are added to each other.
    #[inline(always)]
    fn sum(self) -> f32 {
        let mut all = [0.0; LANES];
        self.store(&mut all);
        fold(all, |a, b| a + b)
    }

    #[inline(always)]
    fn largest(self) -> f32 {
        let mut all = [0.0; LANES];
        self.store(&mut all);
        fold(all, f32::max)
    }

    /// e to the power of each, to about one part in ten million.
    #[inline(always)]
    fn exp(self) -> Self {
        let x = self.max(Self::splat(-87.0)).min(Self::splat(88.0));
        let n = x.mul(Self::splat(core::f32::consts::LOG2_E)).round();
        // What is left, in two steps, so that nothing is lost.
        let r = x.sub(n.mul(Self::splat(0.693_359_4)));
        let r = r.sub(n.mul(Self::splat(-2.121_944_4e-4)));
        let mut p = Self::splat(1.987_569_1e-4);
        for factor in [1.398_2e-3, 8.333_452e-3, 4.166_579_6e-2, 1.666_666_5e-1, 0.5] {
            p = p.mul(r).add(Self::splat(factor));
        }
        let p = p.mul(r).mul(r).add(r).add(Self::splat(1.0));
        p.mul(n.power_of_two())
    }
}

#[inline(always)]
fn fold(mut all: Sixteen, both: impl Fn(f32, f32) -> f32) -> f32 {
    for half in [8, 4, 2, 1] {
        for at in 0..half {
            all[at] = both(all[at], all[at + half]);
        }
    }
    all[0]
}

/// Plain code, which compilers make fast where they can: the oracle of all others.
#[derive(Clone, Copy)]
pub(crate) struct Plain(Sixteen);

impl Plain {
    #[inline(always)]
    fn each(self, other: Plain, what: impl Fn(f32, f32) -> f32) -> Plain {
        let mut out = self.0;
        for (out, other) in out.iter_mut().zip(other.0) {
            *out = what(*out, other);
        }
        Plain(out)
    }
}

impl Lanes for Plain {
    const ROOM: usize = 4;

    #[inline(always)]
    fn splat(value: f32) -> Plain {
        Plain([value; LANES])
    }
    #[inline(always)]
    fn load(from: &Sixteen) -> Plain {
        Plain(*from)
    }
    #[inline(always)]
    fn load_half(from: &[u16; LANES]) -> Plain {
        Plain(from.map(widen))
    }
    #[inline(always)]
    fn store(self, to: &mut Sixteen) {
        *to = self.0;
    }
    #[inline(always)]
    fn add(self, other: Plain) -> Plain {
        self.each(other, |a, b| a + b)
    }
    #[inline(always)]
    fn sub(self, other: Plain) -> Plain {
        self.each(other, |a, b| a - b)
    }
    #[inline(always)]
    fn mul(self, other: Plain) -> Plain {
        self.each(other, |a, b| a * b)
    }
    #[inline(always)]
    fn div(self, other: Plain) -> Plain {
        self.each(other, |a, b| a / b)
    }
    #[inline(always)]
    fn max(self, other: Plain) -> Plain {
        self.each(other, |a, b| if a > b { a } else { b })
    }
    #[inline(always)]
    fn min(self, other: Plain) -> Plain {
        self.each(other, |a, b| if a < b { a } else { b })
    }
    #[inline(always)]
    fn round(self) -> Plain {
        // Adding and taking away 1.5 * 2^23 rounds as the processor does, for all that fits it.
        let magic = Plain::splat(12_582_912.0);
        self.add(magic).sub(magic)
    }
    #[inline(always)]
    fn power_of_two(self) -> Plain {
        Plain(self.0.map(|n| f32::from_bits(((n as i32 + 127) << 23).cast_unsigned())))
    }
}

/// Half precision, exactly, without branches.
#[inline(always)]
pub(crate) fn widen(half: u16) -> f32 {
    let (sign, rest) = (u32::from(half & 0x8000) << 16, u32::from(half & 0x7fff) << 13);
    // 2^112 puts the exponent right, also of numbers too small to be normal.
    let value = f32::from_bits(rest) * f32::from_bits(0x7780_0000);
    let special = u32::from(half & 0x7fff >= 0x7c00) * 0x7f80_0000;
    f32::from_bits(value.to_bits() | sign | special)
}

/// To the nearest half, ties to the even one, as processors do.
#[inline(always)]
pub(crate) fn narrow(value: f32) -> u16 {
    let bits = value.to_bits();
    let (sign, rest) = ((bits >> 16 & 0x8000) as u16, bits & 0x7fff_ffff);
    if rest > 0x7f80_0000 {
        return sign | 0x7e00;
    }
    // 65,520 and more is nearest to what a half does not hold.
    if rest >= 0x477f_f000 {
        return sign | 0x7c00;
    }
    if rest < 0x3880_0000 {
        // Too small to be normal: adding a half puts the bits where they belong, rounded.
        let shifted = f32::from_bits(rest) + 0.5;
        return sign | (shifted.to_bits() - 0x3f00_0000) as u16;
    }
    let odd = rest >> 13 & 1;
    sign | ((rest + 0xfff + odd - 0x3800_0000) >> 13) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_go_there_and_back() {
        for half in 0..=u16::MAX {
            let wide = widen(half);
            assert_eq!(wide.is_nan(), shoal_gguf::from_half(half).is_nan());
            if !wide.is_nan() {
                assert_eq!(wide.to_bits(), shoal_gguf::from_half(half).to_bits(), "{half:#x}");
                assert_eq!(narrow(wide), half, "{half:#x}");
            }
        }
        // Between two halves: to the nearer, ties to the even one.
        assert_eq!(narrow(1.0 + 1.0 / 2048.0), 0x3c00);
        assert_eq!(narrow(1.0 + 3.0 / 2048.0), 0x3c02);
        assert_eq!(narrow(1.0 + 1.1 / 2048.0), 0x3c01);
        assert_eq!(narrow(65_519.9), 0x7bff);
        assert_eq!(narrow(65_520.0), 0x7c00);
        assert_eq!(narrow(2.0f32.powi(-25)), 0);
        assert_eq!(narrow(3.0 * 2.0f32.powi(-26)), 1);
    }

    #[test]
    fn powers_of_e_are_near() {
        for at in -800..800 {
            let x = at as f32 / 10.0;
            let mut found = [0.0; LANES];
            Plain::splat(x).exp().store(&mut found);
            let wanted = f64::from(x).exp();
            let off = (f64::from(found[0]) - wanted).abs() / wanted;
            assert!(off < 3e-7, "{x}: {off}");
        }
    }
}
