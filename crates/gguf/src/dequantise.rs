//! What quantised bytes mean, element by element. Plain code: engines have faster ways and are held against this one.

use alloc::vec::Vec;
use thiserror::Error;

use crate::types::Type;

/// Bytes and elements that do not belong to each other.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{elements} elements of {ty} take {expected} bytes, not {found}", ty = .ty.name())]
pub struct WrongLength {
    pub ty: Type,
    pub elements: usize,
    pub expected: usize,
    pub found: usize,
}

impl Type {
    /// The numbers that these bytes stand for.
    pub fn dequantise(self, bytes: &[u8], out: &mut [f32]) -> Result<(), WrongLength> {
        let (block, size) = (self.block(), self.block_bytes());
        let expected = out.len().div_ceil(block) * size;
        if bytes.len() != expected || !out.len().is_multiple_of(block) {
            let (elements, found) = (out.len(), bytes.len());
            return Err(WrongLength { ty: self, elements, expected, found });
        }
        let blocks = bytes.chunks_exact(size).zip(out.chunks_exact_mut(block));
        let each: fn(&[u8], &mut [f32]) = match self {
            Type::F32 => |b, y| y[0] = f32::from_le_bytes([b[0], b[1], b[2], b[3]]),
            Type::F16 => |b, y| y[0] = half(b, 0),
            Type::BF16 => |b, y| y[0] = f32::from_bits(u32::from(u16_at(b, 0)) << 16),
            Type::Q4_0 => q4_0,
            Type::Q4_1 => q4_1,
            Type::Q5_0 => q5_0,
            Type::Q5_1 => q5_1,
            Type::Q8_0 => q8_0,
            Type::Q4K => q4_k,
            Type::Q5K => q5_k,
            Type::Q6K => q6_k,
        };
        blocks.for_each(|(bytes, out)| each(bytes, out));
        Ok(())
    }

    /// The same into a list of its own; `None` if the bytes are no whole blocks.
    pub fn numbers(self, bytes: &[u8]) -> Option<Vec<f32>> {
        let mut out = alloc::vec![0.0; bytes.len() / self.block_bytes() * self.block()];
        self.dequantise(bytes, &mut out).ok().map(|()| out)
    }
}

/// A number of IEEE's half precision, exactly.
pub fn from_half(bits: u16) -> f32 {
    let sign = u32::from(bits & 0x8000) << 16;
    let (exponent, fraction) = (u32::from(bits >> 10) & 0x1f, u32::from(bits) & 0x3ff);
    match (exponent, fraction) {
        (0, _) => {
            // 2^-24 for each; exact, and the product has the right sign of zero.
            let magnitude = fraction as f32 * f32::from_bits(0x3380_0000);
            f32::from_bits(magnitude.to_bits() | sign)
        }
        (31, _) => f32::from_bits(sign | 0x7f80_0000 | (fraction << 13)),
        _ => f32::from_bits(sign | ((exponent + 112) << 23) | (fraction << 13)),
    }
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn half(bytes: &[u8], at: usize) -> f32 {
    from_half(u16_at(bytes, at))
}

/// Low nibbles are the first half of a block, high nibbles the second.
fn nibble(quants: &[u8], at: usize) -> u8 {
    if at < 16 { quants[at] & 15 } else { quants[at - 16] >> 4 }
}

fn q4_0(b: &[u8], y: &mut [f32]) {
    let d = half(b, 0);
    for (at, y) in y.iter_mut().enumerate() {
        *y = d * (f32::from(nibble(&b[2..], at)) - 8.0);
    }
}

fn q4_1(b: &[u8], y: &mut [f32]) {
    let (d, m) = (half(b, 0), half(b, 2));
    for (at, y) in y.iter_mut().enumerate() {
        *y = d * f32::from(nibble(&b[4..], at)) + m;
    }
}

/// Nibbles with a fifth bit, which all 32 have in a word of their own.
fn five(high: &[u8], quants: &[u8], at: usize) -> u8 {
    let bit = high[at / 8] >> (at % 8) & 1;
    nibble(quants, at) | bit << 4
}

fn q5_0(b: &[u8], y: &mut [f32]) {
    let d = half(b, 0);
    for (at, y) in y.iter_mut().enumerate() {
        *y = d * (f32::from(five(&b[2..6], &b[6..], at)) - 16.0);
    }
}

fn q5_1(b: &[u8], y: &mut [f32]) {
    let (d, m) = (half(b, 0), half(b, 2));
    for (at, y) in y.iter_mut().enumerate() {
        *y = d * f32::from(five(&b[4..8], &b[8..], at)) + m;
    }
}

fn q8_0(b: &[u8], y: &mut [f32]) {
    let d = half(b, 0);
    for (at, y) in y.iter_mut().enumerate() {
        *y = d * f32::from(b[2 + at].cast_signed());
    }
}

/// Eight scales and eight minimums of six bits each, in twelve bytes.
fn scale_and_min(packed: &[u8], at: usize) -> (u8, u8) {
    if at < 4 {
        return (packed[at] & 63, packed[at + 4] & 63);
    }
    let (scale, min) = (packed[at - 4] >> 6, packed[at] >> 6);
    (packed[at + 4] & 15 | scale << 4, packed[at + 4] >> 4 | min << 4)
}

fn q4_k(b: &[u8], y: &mut [f32]) {
    let (d, least) = (half(b, 0), half(b, 2));
    for (part, y) in y.chunks_exact_mut(32).enumerate() {
        let (scale, min) = scale_and_min(&b[4..16], part);
        let (d, m) = (d * f32::from(scale), least * f32::from(min));
        let quants = &b[16 + part / 2 * 32..];
        for (at, y) in y.iter_mut().enumerate() {
            let quant = if part % 2 == 0 { quants[at] & 15 } else { quants[at] >> 4 };
            *y = d * f32::from(quant) - m;
        }
    }
}

fn q5_k(b: &[u8], y: &mut [f32]) {
    let (d, least) = (half(b, 0), half(b, 2));
    for (part, y) in y.chunks_exact_mut(32).enumerate() {
        let (scale, min) = scale_and_min(&b[4..16], part);
        let (d, m) = (d * f32::from(scale), least * f32::from(min));
        let quants = &b[48 + part / 2 * 32..];
        for (at, y) in y.iter_mut().enumerate() {
            let low = if part % 2 == 0 { quants[at] & 15 } else { quants[at] >> 4 };
            let high = b[16 + at] >> part & 1;
            *y = d * f32::from(low | high << 4) - m;
        }
    }
}

/// Two halves of 128: low nibbles in 64 bytes, high pairs of bits in 32, and a scale for each 16 elements.
fn q6_k(b: &[u8], y: &mut [f32]) {
    let d = half(b, 208);
    for (at, y) in y.iter_mut().enumerate() {
        let (part, within) = (at / 128, at % 128);
        let (quarter, column) = (within / 32, within % 32);
        let low = b[part * 64 + quarter % 2 * 32 + column];
        let low = if quarter < 2 { low & 15 } else { low >> 4 };
        let high = b[128 + part * 32 + column] >> (quarter * 2) & 3;
        let scale = f32::from(b[192 + at / 16].cast_signed());
        *y = d * scale * (f32::from(low | high << 4) - 32.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Draw;
    use alloc::string::ToString;

    #[test]
    fn halves_are_exact() {
        assert_eq!(from_half(0x3c00), 1.0);
        assert_eq!(from_half(0xc000), -2.0);
        assert_eq!(from_half(0x7bff), 65504.0);
        assert_eq!(from_half(0x0001), 5.960_464_5e-8);
        assert_eq!(from_half(0x8000).to_bits(), (-0.0f32).to_bits());
        assert_eq!(from_half(0x7c00), f32::INFINITY);
        assert!(from_half(0x7e01).is_nan());
    }

    #[test]
    fn bytes_that_are_no_blocks_are_refused() {
        let error = Type::Q4_0.dequantise(&[0; 17], &mut [0.0; 32]).expect_err("17 bytes");
        assert_eq!(error.to_string(), "32 elements of Q4_0 take 18 bytes, not 17");
        assert!(Type::Q4K.dequantise(&[0; 144], &mut [0.0; 255]).is_err());
    }

    /// Vectors of the reference implementation; `testdata/vectors.py` made them.
    #[test]
    fn all_types_mean_what_the_reference_says() {
        let vectors = include_bytes!("../testdata/vectors.bin");
        let mut rest = &vectors[..];
        let mut seen = 0;
        while !rest.is_empty() {
            let id = u32::from_le_bytes([rest[0], rest[1], rest[2], rest[3]]);
            let ty = Type::of(id).expect("a type");
            let bytes = 256 / ty.block() * ty.block_bytes();
            let (data, after) = rest[4..].split_at(bytes);
            let (wanted, after) = after.split_at(256 * 4);
            rest = after;
            let found = ty.numbers(data).expect("whole blocks");
            for (at, (found, wanted)) in found.iter().zip(wanted.chunks_exact(4)).enumerate() {
                let wanted = f32::from_le_bytes([wanted[0], wanted[1], wanted[2], wanted[3]]);
                assert_eq!(found.to_bits(), wanted.to_bits(), "{} at {at}", ty.name());
            }
            seen += 1;
        }
        assert_eq!(seen, 2 * Type::ALL.len());
    }

    #[test]
    fn any_bytes_mean_something() {
        let mut draw = Draw::new(7);
        for ty in Type::ALL {
            let bytes: Vec<u8> = (0..ty.block_bytes() * 4).map(|_| draw.byte()).collect();
            assert_eq!(ty.numbers(&bytes).map(|list| list.len()), Some(4 * ty.block()));
        }
    }
}
