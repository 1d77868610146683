//! Numbers narrower than f32, as bits: f16, bf16 and blocks of q8. Rounding is to the nearest, ties to
//! even, so that every device makes the same bits of the same number.

/// Numbers in one block of q8: they share one scale.
pub(super) const Q8_NUMBERS: usize = 32;
/// Bytes of one block: the scale as f32, then the numbers as i8.
pub(super) const Q8_BYTES: usize = 4 + Q8_NUMBERS;

/// Added to an exponent of f16 to make it one of f32: 127 - 15.
const EXPONENT_SHIFT: u32 = 112;
/// The least normal f16, as bits of f32.
const LEAST_NORMAL: u32 = 0x3880_0000;
/// 2^16, which no f16 reaches, as bits of f32.
const BEYOND_F16: u32 = 0x4780_0000;
const INFINITE: u32 = 0x7f80_0000;
/// Numbers below the least normal f16 are multiples of 2^-24.
const STEPS: f32 = 16_777_216.0;
/// From here on, f32 has no fractions: adding it rounds.
const NO_FRACTIONS: f32 = 8_388_608.0;

pub(super) fn to_f16(number: f32) -> u16 {
    let sign = (number.to_bits() >> 16) as u16 & 0x8000;
    let bits = number.to_bits() & 0x7fff_ffff;
    if bits > INFINITE {
        return sign | 0x7e00;
    }
    if bits >= BEYOND_F16 {
        return sign | 0x7c00;
    }
    if bits < LEAST_NORMAL {
        let steps = f32::from_bits(bits) * STEPS + NO_FRACTIONS - NO_FRACTIONS;
        return sign | steps as u16;
    }
    // The carry of rounding up may go into the exponent, up to infinity. That is right.
    let rounded = bits + 0x0fff + (bits >> 13 & 1);
    sign | ((rounded >> 13) - (EXPONENT_SHIFT << 10)) as u16
}

pub(super) fn from_f16(half: u16) -> f32 {
    let sign = u32::from(half & 0x8000) << 16;
    let (exponent, fraction) = (half >> 10 & 31, u32::from(half & 0x3ff));
    let size = match exponent {
        0 => (fraction as f32 / STEPS).to_bits(),
        31 => INFINITE | fraction << 13,
        _ => (u32::from(half & 0x7fff) << 13) + (EXPONENT_SHIFT << 23),
    };
    f32::from_bits(sign | size)
}

pub(super) fn to_bf16(number: f32) -> u16 {
    let bits = number.to_bits();
    if number.is_nan() {
        return (bits >> 16) as u16 | 0x40;
    }
    ((bits + 0x7fff + (bits >> 16 & 1)) >> 16) as u16
}

pub(super) fn from_bf16(half: u16) -> f32 {
    f32::from_bits(u32::from(half) << 16)
}

/// One block. Where a number is not finite, none of its block is any more.
pub(super) fn to_q8(numbers: &[f32; Q8_NUMBERS]) -> [u8; Q8_BYTES] {
    let most = numbers.iter().fold(0.0, |most: f32, number| {
        // Not `max`, which forgets what is not a number.
        if number.abs() > most || number.is_nan() { number.abs() } else { most }
    });
    let scale = most / 127.0;
    let mut bytes = [0; Q8_BYTES];
    bytes[..4].copy_from_slice(&scale.to_le_bytes());
    for (byte, number) in bytes[4..].iter_mut().zip(numbers) {
        let steps = if scale > 0.0 { number / scale } else { 0.0 };
        let away = if steps < 0.0 { -0.5 } else { 0.5 };
        // A cast cuts off what is beyond the range.
        *byte = ((steps + away) as i32).clamp(-127, 127) as i8 as u8;
    }
    bytes
}

pub(super) fn from_q8(block: &[u8; Q8_BYTES]) -> [f32; Q8_NUMBERS] {
    let scale = f32::from_le_bytes([block[0], block[1], block[2], block[3]]);
    core::array::from_fn(|at| f32::from(block[4 + at] as i8) * scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_f16_survives_the_trip() {
        for half in 0..=u16::MAX {
            let back = to_f16(from_f16(half));
            assert!(back == half || from_f16(half).is_nan() && from_f16(back).is_nan(), "{half:x}");
        }
    }

    #[test]
    fn every_f32_goes_to_the_nearest_f16_and_ties_go_to_even() {
        for half in 0..0x7c00u16 {
            let (low, high) = (from_f16(half), from_f16(half + 1));
            let middle = if high.is_finite() { low / 2.0 + high / 2.0 } else { 65520.0 };
            let even = if half % 2 == 0 { half } else { half + 1 };
            assert_eq!(to_f16(middle), even, "half way after {half:x}");
            assert_eq!(to_f16(middle.next_down()), half);
            assert_eq!(to_f16(middle.next_up()), half + 1);
            assert_eq!(to_f16(-middle), even | 0x8000);
        }
    }

    #[test]
    fn what_f16_does_not_have_becomes_infinite() {
        assert_eq!((to_f16(1e9), to_f16(f32::NEG_INFINITY)), (0x7c00, 0xfc00));
        assert!(from_f16(to_f16(f32::NAN)).is_nan());
        assert_eq!(to_f16(1.0), 0x3c00);
    }

    #[test]
    fn every_f32_goes_to_the_nearest_bf16() {
        for half in (0..0x7f80u16).step_by(7) {
            let middle = f32::from_bits(u32::from(half) << 16 | 0x8000);
            let even = if half % 2 == 0 { half } else { half + 1 };
            assert_eq!(to_bf16(middle), even);
            assert_eq!(to_bf16(middle.next_down()), half);
            assert_eq!(to_bf16(middle.next_up()), half + 1);
            assert_eq!(to_bf16(from_bf16(half)), half);
        }
        assert!(from_bf16(to_bf16(f32::NAN)).is_nan());
    }

    #[test]
    fn q8_is_right_to_half_a_step() {
        let numbers: [f32; Q8_NUMBERS] = core::array::from_fn(|at| (at as f32 - 11.0) * 0.37);
        let back = from_q8(&to_q8(&numbers));
        let step = 20.0 * 0.37 / 127.0;
        for (number, back) in numbers.iter().zip(back) {
            assert!((number - back).abs() <= step * 0.501, "{number} became {back}");
        }
        assert_eq!(from_q8(&to_q8(&[0.0; Q8_NUMBERS])), [0.0; Q8_NUMBERS]);
        let mut hole = numbers;
        hole[3] = f32::NAN;
        assert!(from_q8(&to_q8(&hole)).iter().all(|number| number.is_nan()));
    }

    #[test]
    fn q8_made_again_is_the_same() {
        let numbers: [f32; Q8_NUMBERS] = core::array::from_fn(|at| (at * at) as f32 / 3.0 - 100.0);
        let once = from_q8(&to_q8(&numbers));
        assert_eq!(from_q8(&to_q8(&once)), once);
    }
}
