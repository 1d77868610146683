//! How numbers travel between devices that compute together: as they are, as halves, or as bytes with a scale for each
//! few of them.

use alloc::vec::Vec;
use core::fmt;
use half::f16;
use serde::{Deserialize, Serialize};

/// Numbers that share a scale. More spoil each other's precision, fewer cost more bytes.
const BLOCK: usize = 64;
/// A block's least number and its step.
const SCALE_BYTES: usize = 8;
/// Steps of a byte.
const STEPS: f32 = 255.0;

/// How numbers of 32 bits travel. Others always travel as they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Wire {
    #[default]
    F32,
    F16,
    Int8,
}

impl Wire {
    pub const ALL: [Wire; 3] = [Wire::F32, Wire::F16, Wire::Int8];

    pub fn name(self) -> &'static str {
        match self {
            Wire::F32 => "f32",
            Wire::F16 => "f16",
            Wire::Int8 => "int8",
        }
    }

    pub fn of(name: &str) -> Option<Wire> {
        Wire::ALL.into_iter().find(|wire| wire.name() == name)
    }

    /// What so many bytes of numbers of 32 bits become.
    pub fn bytes(self, bytes: u64) -> u64 {
        match self {
            Wire::F32 => bytes,
            Wire::F16 => bytes / 2,
            Wire::Int8 => {
                bytes / 4 + (bytes / 4).div_ceil(BLOCK as u64).saturating_mul(SCALE_BYTES as u64)
            }
        }
    }

    /// Numbers as they travel; none where the form has no room for one of them.
    pub fn narrow(self, numbers: &[[u8; 4]]) -> Option<Vec<u8>> {
        match self {
            Wire::F32 => Some(numbers.as_flattened().into()),
            Wire::F16 => halves(numbers),
            Wire::Int8 => blocks(numbers),
        }
    }

    /// What was narrowed, as numbers of 32 bits; none where the bytes are none of this form.
    pub fn widen(self, bytes: &[u8]) -> Option<Vec<u8>> {
        match self {
            Wire::F32 => bytes.len().is_multiple_of(4).then(|| bytes.into()),
            Wire::F16 => {
                let (halves, []) = bytes.as_chunks::<2>() else { return None };
                let wide = |half: &[u8; 2]| f16::from_le_bytes(*half).to_f32().to_le_bytes();
                Some(halves.iter().flat_map(wide).collect())
            }
            Wire::Int8 => unblocked(bytes),
        }
    }
}

impl fmt::Display for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

fn halves(numbers: &[[u8; 4]]) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(numbers.len() * 2);
    for number in numbers {
        let half = f16::from_f32(f32::from_le_bytes(*number));
        bytes.extend_from_slice(&half.is_finite().then_some(half)?.to_le_bytes());
    }
    Some(bytes)
}

fn blocks(numbers: &[[u8; 4]]) -> Option<Vec<u8>> {
    let scales = numbers.len().div_ceil(BLOCK) * SCALE_BYTES;
    let mut bytes = Vec::with_capacity(numbers.len() + scales);
    for block in numbers.chunks(BLOCK) {
        let values = block.iter().map(|number| f32::from_le_bytes(*number));
        let (mut low, mut high) = (f32::INFINITY, f32::NEG_INFINITY);
        for value in values.clone() {
            if !value.is_finite() {
                return None;
            }
            (low, high) = (low.min(value), high.max(value));
        }
        let step = (high - low) / STEPS;
        if !step.is_finite() {
            return None;
        }
        bytes.extend_from_slice(&low.to_le_bytes());
        bytes.extend_from_slice(&step.to_le_bytes());
        // Numbers that are all the same are that number; half a step is added so that the nearest is taken.
        let per = if step > 0.0 { 1.0 / step } else { 0.0 };
        let per = if per.is_finite() { per } else { 0.0 };
        bytes.extend(values.map(|value| ((value - low) * per + 0.5) as u8));
    }
    Some(bytes)
}

fn unblocked(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut numbers = Vec::with_capacity(bytes.len().saturating_mul(4));
    for block in bytes.chunks(SCALE_BYTES + BLOCK) {
        let (low, rest) = block.split_first_chunk::<4>()?;
        let (step, steps) = rest.split_first_chunk::<4>()?;
        let (low, step) = (f32::from_le_bytes(*low), f32::from_le_bytes(*step));
        numbers.extend(steps.iter().flat_map(|at| (low + step * f32::from(*at)).to_le_bytes()));
    }
    Some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(numbers: &[f32]) -> Vec<[u8; 4]> {
        numbers.iter().map(|number| number.to_le_bytes()).collect()
    }

    #[test]
    fn numbers_come_back_in_the_bytes_that_were_told() {
        let numbers: Vec<f32> = (0..576u32).map(|n| (n * 37 % 100) as f32 / 10.0 - 5.0).collect();
        for (wire, most) in [(Wire::F32, 0.0), (Wire::F16, 0.003), (Wire::Int8, 0.02)] {
            let narrow = wire.narrow(&bytes(&numbers)).expect("room");
            assert_eq!(narrow.len() as u64, wire.bytes(576 * 4), "{wire}");
            let wide = wire.widen(&narrow).expect("numbers");
            let (wide, _) = wide.as_chunks::<4>();
            let off = numbers.iter().zip(wide).map(|(a, b)| (a - f32::from_le_bytes(*b)).abs());
            let off = off.fold(0.0, f32::max);
            assert!(off <= most && (off > 0.0) == (wire != Wire::F32), "{wire}: {off}");
        }
    }

    #[test]
    fn what_a_form_has_no_room_for_is_said() {
        for (numbers, wire) in [(1e6, Wire::F16), (f32::NAN, Wire::F16), (f32::NAN, Wire::Int8)] {
            assert_eq!(wire.narrow(&bytes(&[1.0, numbers])), None, "{numbers} {wire}");
        }
        assert_eq!(Wire::F16.widen(&[1, 2, 3]), None);
        assert_eq!(Wire::F32.widen(&[1, 2, 3]), None);
        assert_eq!(Wire::Int8.widen(&[1, 2, 3]), None);
    }
}
