//! Weights as the kernels of a GPU read them: what a file has, in words of four bytes. Quants of all rows stand first, four
//! bits or eight each; then the upper bits of those that have five or six; then the scales. Nothing is lost, and nothing
//! takes more room than in the file but for K-quants, whose scales of six bits become bytes: 32 words become 33.

use shoal_gguf::Type;

use crate::llm::matrix::{block, k_scales};

/// Columns that the kernels take together.
pub(super) const BLOCK: usize = 32;

/// How one type is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Form {
    bits: u32,
    scales: Scales,
    zero: u32,
}

/// In the order of the kernels' own names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scales {
    /// One half.
    Half,
    /// A scale and a minimum.
    Halves,
    /// For eight blocks two halves, and a byte each for scale and minimum of every block.
    Sixes,
    /// For eight blocks a half, and a signed byte for every half block.
    Signed,
    None,
}

/// Some rows of a matrix.
pub(super) struct Packed {
    pub(super) words: Vec<u32>,
    /// Words at which they begin.
    pub(super) upper: u32,
    pub(super) scales: u32,
}

impl Form {
    pub(super) fn of(ty: Type) -> Form {
        let (bits, scales, zero) = match ty {
            Type::F32 => (32, Scales::None, 0),
            Type::F16 => (16, Scales::None, 0),
            Type::BF16 => (17, Scales::None, 0),
            Type::Q4_0 => (4, Scales::Half, 8),
            Type::Q4_1 => (4, Scales::Halves, 0),
            Type::Q5_0 => (5, Scales::Half, 16),
            Type::Q5_1 => (5, Scales::Halves, 0),
            Type::Q8_0 => (8, Scales::Half, 0),
            Type::Q4K => (4, Scales::Sixes, 0),
            Type::Q5K => (5, Scales::Sixes, 0),
            Type::Q6K => (6, Scales::Signed, 32),
        };
        Form { bits, scales, zero }
    }

    /// What stands before the kernels that read weights of this type.
    pub(super) fn text(self) -> String {
        let Form { bits, scales, zero } = self;
        let scales = scales as u32;
        format!("const BITS = {bits}u;\nconst SCALES = {scales}u;\nconst ZERO = {zero}.0;\n")
    }

    /// Words of the quants of a block.
    fn quants(self) -> usize {
        match self.bits {
            32 => 32,
            16 | 17 => 16,
            8 => 8,
            _ => 4,
        }
    }

    /// Words of their upper bits.
    fn upper(self) -> usize {
        match self.bits {
            5 => 1,
            6 => 2,
            _ => 0,
        }
    }

    /// Bytes of a row of so many columns, about.
    pub(super) fn row_bytes(self, columns: usize) -> u64 {
        let eighths = match self.scales {
            Scales::None => 0,
            Scales::Half => 4,
            Scales::Halves => 8,
            Scales::Sixes | Scales::Signed => 5,
        };
        let words = 8 * (self.quants() + self.upper()) + eighths;
        (columns.div_ceil(BLOCK) * words / 8 * 4 + 4) as u64
    }
}

/// Rows as a file has them; `columns` are whole blocks.
pub(super) fn pack(ty: Type, columns: usize, rows: &[&[u8]]) -> Packed {
    let form = Form::of(ty);
    let blocks = columns / BLOCK;
    let count = rows.len() * blocks;
    let (mut quants, mut upper) = (Vec::with_capacity(count * form.quants()), Vec::new());
    let mut scales = Halves::default();
    for row in rows {
        match form.bits {
            16 | 17 | 32 => {
                let end = quants.len() + blocks * form.quants();
                quants.extend(row.chunks(4).map(word));
                // A row's last block is filled up.
                quants.resize(end, 0);
            }
            _ => (0..blocks).for_each(|at| {
                let block = block(ty, row, at).quants;
                put_quants(form, ty, &block, &mut quants);
                put_upper(form, &block, &mut upper);
                put_scales(form, ty, row, at, &mut scales);
            }),
        }
    }
    let (first, second) = (quants.len(), quants.len() + upper.len());
    quants.append(&mut upper);
    quants.extend(scales.words());
    Packed { words: quants, upper: first as u32, scales: second as u32 }
}

fn word(bytes: &[u8]) -> u32 {
    bytes.iter().rev().fold(0, |word, byte| word << 8 | u32::from(*byte))
}

fn put_quants(form: Form, ty: Type, block: &[u8; BLOCK], into: &mut Vec<u32>) {
    if form.bits == 8 {
        // The kernels take them signed.
        let zero = if ty == Type::Q8_0 { 128 } else { 0 };
        let signed = block.map(|quant| quant.wrapping_sub(zero));
        into.extend(signed.chunks_exact(4).map(word));
        return;
    }
    let (low, high) = block.split_at(BLOCK / 2);
    for (low, high) in low.chunks_exact(4).zip(high.chunks_exact(4)) {
        into.push(word(low) & 0x0f0f_0f0f | (word(high) & 0x0f0f_0f0f) << 4);
    }
}

fn put_upper(form: Form, block: &[u8; BLOCK], into: &mut Vec<u32>) {
    let gather = |part: &[u8], width: usize| {
        let bits = part.iter().enumerate();
        bits.fold(0, |word, (at, quant)| word | u32::from(quant >> 4) << (at * width))
    };
    match form.bits {
        5 => into.push(gather(block, 1)),
        6 => into.extend(block.chunks_exact(BLOCK / 2).map(|half| gather(half, 2))),
        _ => {}
    }
}

fn put_scales(form: Form, ty: Type, row: &[u8], at: usize, into: &mut Halves) {
    let (own, size) = (ty.block() / BLOCK, ty.block_bytes());
    let (bytes, part) = (&row[at / own * size..][..size], at % own);
    let half = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
    match form.scales {
        Scales::None => {}
        Scales::Half => into.0.push(half(0)),
        Scales::Halves => into.0.extend([half(0), half(2)]),
        Scales::Sixes => {
            if part == 0 {
                into.0.extend([half(0), half(2)]);
            }
            let (scale, minimum) = k_scales(&bytes[4..16], part);
            into.0.push(u16::from_le_bytes([scale, minimum]));
        }
        Scales::Signed => {
            if part == 0 {
                into.0.extend([half(208), 0]);
            }
            into.0.push(half(192 + part * 2));
        }
    }
}

/// Two of them are a word.
#[derive(Default)]
struct Halves(Vec<u16>);

impl Halves {
    fn words(&self) -> impl Iterator<Item = u32> + '_ {
        let second = |two: &[u16]| two.get(1).copied().unwrap_or(0);
        self.0.chunks(2).map(move |two| u32::from(two[0]) | u32::from(second(two)) << 16)
    }
}
