//! Weights as the kernels read them: sixteen rows side by side, four columns of each row next to each other. Made once
//! when a model is loaded. Nothing is lost by it: every type of a file is one of these forms exactly.
//!
//! A record is what sixteen rows have for 32 columns: scales, then minimums if the form has them, then quants.
//!
//! | form | of | scales | quants |
//! |---|---|---|---|
//! | nibbles | Q4_0 | halves | 4 bits, less 8 |
//! | nibbles, minimums | Q4_1; Q4_K | halves; floats | 4 bits |
//! | bytes | Q8_0, Q5_0 | halves | 8 bits, less 128 or 16 |
//! | bytes, minimums | Q5_1; Q5_K | halves; floats | 8 bits |
//! | bytes, two scales | Q6_K | floats, for 16 columns each | 8 bits, less 32 |
//! | numbers | F32, F16, BF16 | | a column of sixteen rows as the file has it |
//!
//! In WebAssembly all scales and minimums are floats.

use std::ops::Range;

use shoal_gguf::{TensorInfo, Type};

use super::error::LoadError;
use super::lanes::{LANES, narrow, widen};
use super::math::BLOCK;

/// A matrix of weights.
pub(crate) struct Matrix {
    pub(crate) form: Form,
    /// Outputs.
    pub(crate) rows: usize,
    /// Inputs.
    pub(crate) columns: usize,
    /// The records of sixteen rows, one group of rows after another.
    pub(crate) data: Data,
}

/// Aligned to what a processor reads at once.
pub(crate) struct Data {
    lines: Vec<Line>,
}

#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([u8; 64]);

impl Data {
    fn new(bytes: usize) -> Data {
        Data { lines: vec![Line([0; 64]); bytes.div_ceil(64)] }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: a `Line` is 64 bytes without padding, so the list is that many bytes in a row.
        #[allow(unsafe_code)]
        unsafe {
            std::slice::from_raw_parts(self.lines.as_ptr().cast(), self.lines.len() * 64)
        }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and nobody else has the list.
        #[allow(unsafe_code)]
        unsafe {
            std::slice::from_raw_parts_mut(self.lines.as_mut_ptr().cast(), self.lines.len() * 64)
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Quants(Quants),
    F32,
    F16,
    BF16,
}

/// How quants and their scales are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Quants {
    /// Four bits each, or eight.
    pub(crate) nibbles: bool,
    /// Scales and minimums are floats, or halves.
    pub(crate) wide: bool,
    /// A minimum is added to each.
    pub(crate) minimums: bool,
    /// A scale for 16 columns, or for 32.
    pub(crate) twice: bool,
    /// What each quant is too large by.
    pub(crate) zero: i32,
}

impl Quants {
    pub(crate) const fn scale_bytes(self) -> usize {
        LANES * if self.wide { 4 } else { 2 }
    }

    /// Where a record's quants begin.
    pub(crate) const fn quants_at(self) -> usize {
        self.scale_bytes() * (1 + (self.minimums || self.twice) as usize)
    }

    pub(crate) const fn record(self) -> usize {
        self.quants_at() + LANES * BLOCK / if self.nibbles { 2 } else { 1 }
    }

    const fn new(nibbles: bool, wide: bool, minimums: bool, zero: i32) -> Quants {
        // WebAssembly has no instruction for halves, and memory is not what holds it up.
        let wide = wide || cfg!(target_arch = "wasm32");
        Quants { nibbles, wide, minimums, twice: false, zero }
    }

    fn of(ty: Type) -> Option<Quants> {
        match ty {
            Type::F32 | Type::F16 | Type::BF16 => None,
            Type::Q4_0 => Some(Quants::new(true, false, false, 8)),
            Type::Q4_1 => Some(Quants::new(true, false, true, 0)),
            Type::Q4K => Some(Quants::new(true, true, true, 0)),
            Type::Q8_0 => Some(Quants::new(false, false, false, 128)),
            Type::Q5_0 => Some(Quants::new(false, false, false, 16)),
            Type::Q5_1 => Some(Quants::new(false, false, true, 0)),
            Type::Q5K => Some(Quants::new(false, true, true, 0)),
            Type::Q6K => Some(Quants { twice: true, ..Quants::new(false, true, false, 32) }),
        }
    }
}

/// Thirty-two columns of one row of a file.
pub(crate) struct Block {
    scales: [f32; 2],
    minimum: f32,
    pub(crate) quants: [u8; BLOCK],
}

impl Matrix {
    /// From a tensor's bytes as they are in the file.
    pub(crate) fn pack(tensor: &TensorInfo, bytes: &[u8]) -> Result<Matrix, LoadError> {
        let columns = tensor.dims[0] as usize;
        let rows = tensor.dims[1..].iter().product::<u64>() as usize;
        let expected = tensor.at.end - tensor.at.start;
        if bytes.len() as u64 != expected {
            let (name, found) = (tensor.name.clone(), bytes.len() as u64);
            return Err(LoadError::Length { name, expected, found });
        }
        let row_bytes = tensor.row_bytes() as usize;
        let file_rows: Vec<&[u8]> = bytes.chunks_exact(row_bytes).collect();
        let matrix = match Quants::of(tensor.ty) {
            Some(quants) => pack_quants(tensor.ty, quants, columns, &file_rows),
            None => pack_numbers(tensor.ty, columns, &file_rows),
        };
        debug_assert_eq!(matrix.rows, rows);
        Ok(matrix)
    }

    /// Bytes of sixteen rows.
    pub(crate) fn group_bytes(&self) -> usize {
        match self.form {
            Form::Quants(quants) => self.columns / BLOCK * quants.record(),
            Form::F32 => self.columns * LANES * 4,
            Form::F16 | Form::BF16 => self.columns * LANES * 2,
        }
    }

    pub(crate) fn groups(&self) -> usize {
        self.rows.div_ceil(LANES)
    }

    /// Some groups of sixteen rows.
    pub(crate) fn groups_at(&self, groups: Range<usize>) -> &[u8] {
        &self.data.bytes()[groups.start * self.group_bytes()..groups.end * self.group_bytes()]
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.data.bytes().len() as u64
    }

    /// One row as numbers: a token's embedding.
    pub(crate) fn row(&self, row: usize, out: &mut [f32]) {
        let (at, lane) = (row / LANES, row % LANES);
        let group = self.groups_at(at..at + 1);
        let quants = match self.form {
            Form::Quants(quants) => quants,
            Form::F32 => {
                for (column, out) in out.iter_mut().enumerate() {
                    *out = float_at(group, column * LANES + lane);
                }
                return;
            }
            Form::F16 | Form::BF16 => {
                for (column, out) in out.iter_mut().enumerate() {
                    let bits = half_at(group, column * LANES + lane);
                    let bfloat = f32::from_bits(u32::from(bits) << 16);
                    *out = if self.form == Form::F16 { widen(bits) } else { bfloat };
                }
                return;
            }
        };
        for (record, out) in group.chunks_exact(quants.record()).zip(out.chunks_exact_mut(BLOCK)) {
            let (scale, second) = scales(record, quants, lane);
            for (column, out) in out.iter_mut().enumerate() {
                let quant = i32::from(quant(record, quants, lane, column)) - quants.zero;
                let by = if quants.twice && column >= LANES { second } else { scale };
                *out = by * quant as f32 + if quants.minimums { second } else { 0.0 };
            }
        }
    }
}

/// A row's scale in a record, and what follows it: a minimum or another scale.
pub(crate) fn scales(record: &[u8], quants: Quants, lane: usize) -> (f32, f32) {
    let has_second = quants.minimums || quants.twice;
    let at = |index: usize| match quants.wide {
        true => float_at(record, index),
        false => widen(half_at(record, index)),
    };
    (at(lane), if has_second { at(LANES + lane) } else { 0.0 })
}

/// A row's quant in a record, without what it is too large by.
pub(crate) fn quant(record: &[u8], quants: Quants, lane: usize, column: usize) -> u8 {
    let within = |column: usize| column / 4 * 64 + lane * 4 + column % 4;
    let data = &record[quants.quants_at()..];
    match (quants.nibbles, column < LANES) {
        (false, _) => data[within(column)],
        (true, true) => data[within(column)] & 15,
        (true, false) => data[within(column - LANES)] >> 4,
    }
}

fn float_at(bytes: &[u8], index: usize) -> f32 {
    let at = &bytes[index * 4..];
    f32::from_le_bytes([at[0], at[1], at[2], at[3]])
}

fn half_at(bytes: &[u8], index: usize) -> u16 {
    u16::from_le_bytes([bytes[index * 2], bytes[index * 2 + 1]])
}

fn pack_numbers(ty: Type, columns: usize, rows: &[&[u8]]) -> Matrix {
    let form = match ty.block_bytes() {
        2 if ty == Type::BF16 => Form::BF16,
        2 => Form::F16,
        _ => Form::F32,
    };
    let size = ty.block_bytes();
    let group = columns * LANES * size;
    let mut data = Data::new(rows.len().div_ceil(LANES) * group);
    for (row, bytes) in rows.iter().enumerate() {
        let into = &mut data.bytes_mut()[row / LANES * group..][..group];
        for (column, bytes) in bytes.chunks_exact(size).enumerate() {
            into[(column * LANES + row % LANES) * size..][..size].copy_from_slice(bytes);
        }
    }
    Matrix { form, rows: rows.len(), columns, data }
}

fn pack_quants(ty: Type, quants: Quants, columns: usize, rows: &[&[u8]]) -> Matrix {
    let (record, blocks) = (quants.record(), columns / BLOCK);
    let mut data = Data::new(rows.len().div_ceil(LANES) * blocks * record);
    for (row, bytes) in rows.iter().enumerate() {
        let records = &mut data.bytes_mut()[row / LANES * blocks * record..][..blocks * record];
        for (at, record) in records.chunks_exact_mut(record).enumerate() {
            put(record, quants, row % LANES, &block(ty, bytes, at));
        }
    }
    Matrix { form: Form::Quants(quants), rows: rows.len(), columns, data }
}

/// Writes a row's part of a record.
fn put(record: &mut [u8], quants: Quants, lane: usize, block: &Block) {
    let second = if quants.twice { block.scales[1] } else { block.minimum };
    let seconds = quants.minimums || quants.twice;
    for (index, value) in [block.scales[0], second].into_iter().enumerate() {
        if index == 1 && !seconds {
            continue;
        }
        let at = index * LANES + lane;
        match quants.wide {
            true => record[at * 4..][..4].copy_from_slice(&value.to_le_bytes()),
            false => record[at * 2..][..2].copy_from_slice(&narrow(value).to_le_bytes()),
        }
    }
    let data = &mut record[quants.quants_at()..];
    if quants.nibbles {
        for step in 0..4 {
            for column in 0..4 {
                let (low, high) = (step * 4 + column, LANES + step * 4 + column);
                let both = block.quants[low] | block.quants[high] << 4;
                data[step * 64 + lane * 4 + column] = both;
            }
        }
        return;
    }
    for (step, four) in block.quants.chunks_exact(4).enumerate() {
        data[step * 64 + lane * 4..][..4].copy_from_slice(four);
    }
}

/// The block of 32 columns at this place of a row, whatever the type's own blocks are.
pub(crate) fn block(ty: Type, row: &[u8], at: usize) -> Block {
    let (own, size) = (ty.block() / BLOCK, ty.block_bytes());
    let (bytes, part) = (&row[at / own.max(1) * size..][..size], at % own.max(1));
    let mut block = Block { scales: [widen(half_at(bytes, 0)); 2], minimum: 0.0, quants: [0; 32] };
    let nibbles = |from: &[u8], into: &mut [u8; BLOCK]| {
        for (at, byte) in from.iter().take(LANES).enumerate() {
            (into[at], into[at + LANES]) = (byte & 15, byte >> 4);
        }
    };
    let fifth = |from: &[u8], into: &mut [u8; BLOCK]| {
        for (at, quant) in into.iter_mut().enumerate() {
            *quant |= (from[at / 8] >> (at % 8) & 1) << 4;
        }
    };
    match ty {
        Type::F32 | Type::F16 | Type::BF16 => {}
        Type::Q4_0 => nibbles(&bytes[2..], &mut block.quants),
        Type::Q4_1 => {
            block.minimum = widen(half_at(bytes, 1));
            nibbles(&bytes[4..], &mut block.quants);
        }
        Type::Q5_0 => {
            nibbles(&bytes[6..], &mut block.quants);
            fifth(&bytes[2..], &mut block.quants);
        }
        Type::Q5_1 => {
            block.minimum = widen(half_at(bytes, 1));
            nibbles(&bytes[8..], &mut block.quants);
            fifth(&bytes[4..], &mut block.quants);
        }
        Type::Q8_0 => {
            for (quant, byte) in block.quants.iter_mut().zip(&bytes[2..]) {
                *quant = byte.wrapping_add(128);
            }
        }
        Type::Q4K | Type::Q5K => k_block(ty, bytes, part, &mut block),
        Type::Q6K => six_block(bytes, part, &mut block),
    }
    block
}

/// Scale and minimum of a part of Q4_K or Q5_K, six bits each.
pub(crate) fn k_scales(packed: &[u8], part: usize) -> (u8, u8) {
    if part < 4 {
        return (packed[part] & 63, packed[part + 4] & 63);
    }
    let low = packed[part + 4];
    (low & 15 | packed[part - 4] >> 6 << 4, low >> 4 | packed[part] >> 6 << 4)
}

/// A part of Q4_K or Q5_K: its scale and minimum are multiples of the whole block's.
fn k_block(ty: Type, bytes: &[u8], part: usize, block: &mut Block) {
    let (scale, min) = k_scales(&bytes[4..16], part);
    block.scales = [block.scales[0] * f32::from(scale); 2];
    block.minimum = -(widen(half_at(bytes, 1)) * f32::from(min));
    let from = if ty == Type::Q4K { 16 } else { 48 };
    for (at, quant) in block.quants.iter_mut().enumerate() {
        let byte = bytes[from + part / 2 * BLOCK + at];
        *quant = if part.is_multiple_of(2) { byte & 15 } else { byte >> 4 };
        if ty == Type::Q5K {
            *quant |= (bytes[16 + at] >> part & 1) << 4;
        }
    }
}

fn six_block(bytes: &[u8], part: usize, block: &mut Block) {
    let whole = widen(half_at(bytes, 104));
    let scale = |at: usize| whole * f32::from(bytes[192 + part * 2 + at].cast_signed());
    block.scales = [scale(0), scale(1)];
    let (half, quarter) = (part / 4, part % 4);
    for (at, quant) in block.quants.iter_mut().enumerate() {
        let low = bytes[half * 64 + quarter % 2 * BLOCK + at];
        let low = if quarter < 2 { low & 15 } else { low >> 4 };
        *quant = low | (bytes[128 + half * BLOCK + at] >> (quarter * 2) & 3) << 4;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::llm::testing::{Draw, tensor};

    #[test]
    fn packed_rows_are_what_the_file_says() {
        let mut draw = Draw::new(3);
        for ty in Type::ALL {
            let (info, bytes) = tensor(&mut draw, ty, 512, 21);
            let matrix = Matrix::pack(&info, &bytes).expect("packs");
            assert_eq!((matrix.rows, matrix.columns, matrix.groups()), (21, 512, 2));
            let numbers = ty.numbers(&bytes).expect("numbers");
            for (row, wanted) in numbers.chunks_exact(512).enumerate() {
                let mut found = vec![0.0; 512];
                matrix.row(row, &mut found);
                for (at, (found, wanted)) in found.iter().zip(wanted).enumerate() {
                    let name = ty.name();
                    assert!(found == wanted, "{name} {row} {at}: {found}, not {wanted}");
                }
            }
        }
    }
}
