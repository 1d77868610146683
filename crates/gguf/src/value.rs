//! Values of metadata. Lists stay as they are in the file and are read on demand: a tokenizer has some hundred
//! thousand pieces.

use alloc::format;
use bytes::Bytes;

use crate::error::ReadError;
use crate::limit::{MOST_HEAD_BYTES, MOST_NESTED};
use crate::wire::{Wire, u64_of};

#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    U8(u8),
    I8(i8),
    U16(u16),
    I16(i16),
    U32(u32),
    I32(i32),
    F32(f32),
    Bool(bool),
    Text(Text),
    List(List),
    U64(u64),
    I64(i64),
    F64(f64),
}

/// A string of the file, checked to be UTF-8.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text(Bytes);

impl Text {
    pub fn as_str(&self) -> &str {
        text(&self.0)
    }
}

/// Values of one type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct List {
    of: Of,
    count: usize,
    bytes: Bytes,
}

/// What may stand in metadata, by its number in files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Of {
    U8,
    I8,
    U16,
    I16,
    U32,
    I32,
    F32,
    Bool,
    Text,
    List,
    U64,
    I64,
    F64,
}

const IN_ORDER: [Of; 13] = [
    Of::U8,
    Of::I8,
    Of::U16,
    Of::I16,
    Of::U32,
    Of::I32,
    Of::F32,
    Of::Bool,
    Of::Text,
    Of::List,
    Of::U64,
    Of::I64,
    Of::F64,
];

impl Of {
    fn read(wire: &mut Wire) -> Result<Of, ReadError> {
        let at = wire.at();
        let id = wire.u32("the type of a value")?;
        let of = usize::try_from(id).ok().and_then(|id| IN_ORDER.get(id));
        of.copied().ok_or_else(|| ReadError::wire(at, format!("{id} is no type of metadata")))
    }

    /// Bytes of one, where all have the same.
    fn width(self) -> Option<u64> {
        match self {
            Of::U8 | Of::I8 | Of::Bool => Some(1),
            Of::U16 | Of::I16 => Some(2),
            Of::U32 | Of::I32 | Of::F32 => Some(4),
            Of::U64 | Of::I64 | Of::F64 => Some(8),
            Of::Text | Of::List => None,
        }
    }
}

impl Value {
    pub(crate) fn read(wire: &mut Wire) -> Result<Value, ReadError> {
        let of = Of::read(wire)?;
        let at = wire.at();
        Ok(match of {
            Of::Text => Value::Text(Text(wire.text("a value", MOST_HEAD_BYTES)?)),
            Of::List => Value::List(List::read(wire, 0)?),
            Of::U8 | Of::I8 | Of::Bool | Of::U16 | Of::I16 | Of::U32 | Of::I32 | Of::F32 => {
                let bytes = wire.take(of.width().unwrap_or(0), || "a value".into())?;
                small(of, &bytes).ok_or_else(|| ReadError::wire(at, "a flag is 0 or 1"))?
            }
            Of::U64 => Value::U64(wire.u64("a value")?),
            Of::I64 => Value::I64(wire.u64("a value")?.cast_signed()),
            Of::F64 => Value::F64(f64::from_bits(wire.u64("a value")?)),
        })
    }

    /// What it is, for messages.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Value::Text(_) => "a text",
            Value::List(_) => "a list",
            Value::Bool(_) => "a flag",
            Value::F32(_) | Value::F64(_) => "a number with a fraction",
            Value::U8(_) | Value::U16(_) | Value::U32(_) | Value::U64(_) => "a count",
            Value::I8(_) | Value::I16(_) | Value::I32(_) | Value::I64(_) => "a whole number",
        }
    }

    /// A whole number that is not negative.
    pub(crate) fn count(&self) -> Option<u64> {
        match self {
            Value::U8(value) => Some((*value).into()),
            Value::U16(value) => Some((*value).into()),
            Value::U32(value) => Some((*value).into()),
            Value::U64(value) => Some(*value),
            Value::I8(value) => u64::try_from(*value).ok(),
            Value::I16(value) => u64::try_from(*value).ok(),
            Value::I32(value) => u64::try_from(*value).ok(),
            Value::I64(value) => u64::try_from(*value).ok(),
            Value::F32(_) | Value::F64(_) | Value::Bool(_) | Value::Text(_) | Value::List(_) => {
                None
            }
        }
    }

    pub(crate) fn real(&self) -> Option<f64> {
        match self {
            Value::F32(value) => Some((*value).into()),
            Value::F64(value) => Some(*value),
            Value::I8(value) => Some((*value).into()),
            Value::I16(value) => Some((*value).into()),
            Value::I32(value) => Some((*value).into()),
            Value::I64(value) => Some(*value as f64),
            Value::U8(_) | Value::U16(_) | Value::U32(_) | Value::U64(_) => {
                self.count().map(|value| value as f64)
            }
            Value::Bool(_) | Value::Text(_) | Value::List(_) => None,
        }
    }
}

/// `None` for a flag that is neither true nor false.
fn small(of: Of, b: &[u8]) -> Option<Value> {
    let four = |b: &[u8]| [b[0], b[1], b[2], b[3]];
    Some(match of {
        Of::U8 => Value::U8(b[0]),
        Of::I8 => Value::I8(b[0].cast_signed()),
        Of::Bool if b[0] < 2 => Value::Bool(b[0] == 1),
        Of::U16 => Value::U16(u16::from_le_bytes([b[0], b[1]])),
        Of::I16 => Value::I16(i16::from_le_bytes([b[0], b[1]])),
        Of::U32 => Value::U32(u32::from_le_bytes(four(b))),
        Of::I32 => Value::I32(i32::from_le_bytes(four(b))),
        Of::F32 => Value::F32(f32::from_le_bytes(four(b))),
        Of::U64 => Value::U64(u64_of(b)),
        Of::I64 => Value::I64(u64_of(b).cast_signed()),
        Of::F64 => Value::F64(f64::from_bits(u64_of(b))),
        Of::Bool | Of::Text | Of::List => return None,
    })
}

impl List {
    fn read(wire: &mut Wire, depth: u32) -> Result<List, ReadError> {
        let at = wire.at();
        if depth >= MOST_NESTED {
            let words = format!("lists are nested deeper than {MOST_NESTED}");
            return Err(ReadError::wire(at, words));
        }
        let of = Of::read(wire)?;
        let count = wire.u64("the length of a list")?;
        let begin = wire.at();
        if let Some(width) = of.width() {
            let bytes = wire.take(count.saturating_mul(width), || format!("a list of {count}"))?;
            if of == Of::Bool && bytes.iter().any(|byte| *byte > 1) {
                return Err(ReadError::wire(at, "a flag is 0 or 1"));
            }
            return Ok(List { of, count: (bytes.len() as u64 / width) as usize, bytes });
        }
        // Each takes at least eight bytes, so that an absurd count ends with the file.
        for _ in 0..count {
            if of == Of::Text {
                wire.text("an entry of a list", MOST_HEAD_BYTES)?;
            } else {
                List::read(wire, depth + 1)?;
            }
        }
        let bytes = wire.read_so_far().slice(begin as usize..);
        Ok(List { of, count: count as usize, bytes })
    }

    pub fn len(&self) -> usize {
        self.count
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// If these are texts.
    pub fn texts(&self) -> Option<impl Iterator<Item = &str>> {
        let mut rest = &self.bytes[..];
        let next = move || {
            let (length, after) = rest.split_at_checked(8)?;
            let (one, after) = after.split_at_checked(u64_of(length) as usize)?;
            rest = after;
            Some(text(one))
        };
        (self.of == Of::Text).then(|| core::iter::from_fn(next))
    }

    /// If these are whole numbers or flags; a count that no signed number holds is the largest one.
    pub fn ints(&self) -> Option<impl Iterator<Item = i64>> {
        let is_whole = !matches!(self.of, Of::F32 | Of::F64 | Of::Text | Of::List);
        is_whole.then(|| {
            self.values().map(|value| match (&value, value.count()) {
                (_, Some(count)) => i64::try_from(count).unwrap_or(i64::MAX),
                (Value::Bool(flag), _) => (*flag).into(),
                // Small ones are exact as floats, large ones are themselves.
                (Value::I64(value), _) => *value,
                _ => value.real().unwrap_or(0.0) as i64,
            })
        })
    }

    /// If these are numbers.
    pub fn reals(&self) -> Option<impl Iterator<Item = f32>> {
        let is_number = !matches!(self.of, Of::Bool | Of::Text | Of::List);
        is_number.then(|| self.values().map(|value| value.real().unwrap_or(0.0) as f32))
    }

    fn values(&self) -> impl Iterator<Item = Value> {
        let width = self.of.width().unwrap_or(1) as usize;
        self.bytes.chunks_exact(width).filter_map(|bytes| small(self.of, bytes))
    }
}

/// Checked when the file was read.
fn text(bytes: &[u8]) -> &str {
    core::str::from_utf8(bytes).unwrap_or_default()
}
