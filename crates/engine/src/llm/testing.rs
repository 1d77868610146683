//! Numbers and weights that look drawn.

use shoal_gguf::{TensorInfo, Type};

use super::lanes::narrow;

/// xorshift, from a seed.
pub(crate) struct Draw(u64);

impl Draw {
    pub(crate) fn new(seed: u64) -> Draw {
        Draw(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 >> 16
    }

    /// From -1 to 1.
    pub(crate) fn number(&mut self) -> f32 {
        (self.next() & 0xffff) as f32 / 32_768.0 - 1.0
    }

    pub(crate) fn numbers(&mut self, count: usize) -> Vec<f32> {
        (0..count).map(|_| self.number()).collect()
    }
}

/// A tensor of weights: any quants, scales of a usual size.
pub(crate) fn tensor(
    draw: &mut Draw,
    ty: Type,
    columns: usize,
    rows: usize,
) -> (TensorInfo, Vec<u8>) {
    let size = ty.block_bytes();
    let blocks = columns / ty.block() * rows;
    let mut bytes: Vec<u8> = (0..blocks * size).map(|_| draw.next() as u8).collect();
    let halves: &[usize] = match ty {
        Type::F32 | Type::BF16 => &[],
        Type::F16 | Type::Q4_0 | Type::Q5_0 | Type::Q8_0 => &[0],
        Type::Q4_1 | Type::Q5_1 | Type::Q4K | Type::Q5K => &[0, 2],
        Type::Q6K => &[208],
    };
    for block in bytes.chunks_exact_mut(size) {
        for at in halves {
            let half = narrow(draw.number() * 0.01);
            block[*at..at + 2].copy_from_slice(&half.to_le_bytes());
        }
        if halves.is_empty() {
            // Of a number in two bytes, the upper ones.
            block.copy_from_slice(&draw.number().to_le_bytes()[4 - size..]);
        }
    }
    let dims = vec![columns as u64, rows as u64];
    (TensorInfo { name: "drawn".into(), dims, ty, at: 0..bytes.len() as u64 }, bytes)
}
