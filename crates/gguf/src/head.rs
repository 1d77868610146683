//! The head of a file: metadata, and where each tensor lies. Everything is checked against the file's size before
//! anybody allocates or reads by it.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use bytes::Bytes;
use core::ops::Range;

use crate::error::ReadError;
use crate::limit::{
    MOST_ALIGNMENT, MOST_DIMS, MOST_ELEMENTS, MOST_KEYS, MOST_NAME_BYTES, MOST_TENSORS,
};
use crate::types::Type;
use crate::value::{List, Value};
use crate::wire::Wire;

const MAGIC: &[u8] = b"GGUF";
const DEFAULT_ALIGNMENT: u64 = 32;

#[derive(Clone, Debug, PartialEq)]
pub struct Head {
    version: u32,
    bytes: Bytes,
    data_start: u64,
    metadata: BTreeMap<String, Value>,
    tensors: Vec<TensorInfo>,
    by_name: BTreeMap<String, usize>,
}

/// A tensor, and where its bytes are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorInfo {
    pub name: String,
    /// The first is the length of a row, the second how many rows there are.
    pub dims: Vec<u64>,
    pub ty: Type,
    /// In the file.
    pub at: Range<u64>,
}

impl TensorInfo {
    pub fn elements(&self) -> u64 {
        self.dims.iter().product()
    }

    /// Bytes of a row.
    pub fn row_bytes(&self) -> u64 {
        self.dims
            .first()
            .map_or(0, |row| row / self.ty.block() as u64 * self.ty.block_bytes() as u64)
    }
}

impl Head {
    /// From a file's first bytes; `size` is the whole file's.
    pub fn read(bytes: impl Into<Bytes>, size: u64) -> Result<Head, ReadError> {
        let bytes: Bytes = bytes.into();
        if !bytes.starts_with(&MAGIC[..bytes.len().min(4)]) || size < 4 {
            return Err(ReadError::NotGguf);
        }
        let mut wire = Wire::new(bytes, size);
        wire.take(4, || "the magic number".into())?;
        let version = wire.u32("the version")?;
        match version {
            2 | 3 => {}
            _ if version.swap_bytes() < 16 => return Err(ReadError::BigEndian),
            _ => return Err(ReadError::Version { version }),
        }
        let tensors = bounded(wire.u64("the count of tensors")?, "tensors", MOST_TENSORS)?;
        let keys = bounded(wire.u64("the count of keys")?, "keys of metadata", MOST_KEYS)?;
        let metadata = metadata(&mut wire, keys)?;
        let mut head = Head {
            version,
            bytes: Bytes::new(),
            data_start: 0,
            metadata,
            tensors: Vec::new(),
            by_name: BTreeMap::new(),
        };
        head.read_tensors(&mut wire, tensors)?;
        Ok(head)
    }

    fn read_tensors(&mut self, wire: &mut Wire, count: u64) -> Result<(), ReadError> {
        let alignment = self.count("general.alignment")?.unwrap_or(DEFAULT_ALIGNMENT);
        if !alignment.is_power_of_two() || alignment > MOST_ALIGNMENT {
            let words =
                format!("is {alignment}: a power of two up to {MOST_ALIGNMENT} is expected");
            return Err(ReadError::key("general.alignment", words));
        }
        for _ in 0..count {
            let tensor = tensor(wire, alignment)?;
            let index = self.tensors.len();
            if self.by_name.insert(tensor.name.clone(), index).is_some() {
                return Err(ReadError::tensor(&tensor.name, "is in the file twice"));
            }
            self.tensors.push(tensor);
        }
        let start = wire.at().next_multiple_of(alignment);
        let (at, size) = (wire.at(), wire.size());
        if start <= size {
            // What fills up to the weights belongs to the head, so that a kept head is read the same way.
            wire.take(start - at, || "the head".into())?;
        }
        (self.bytes, self.data_start) = (wire.read_so_far(), start);
        for tensor in &mut self.tensors {
            let at = &mut tensor.at;
            *at = at.start.saturating_add(start)..at.end.saturating_add(start);
            if at.end > size {
                let what = format!("tensor `{}`", tensor.name);
                return Err(ReadError::CutOff { what, end: at.end, size });
            }
        }
        self.check_overlap()
    }

    /// Tensors that share bytes would let a small file ask for any amount of memory.
    fn check_overlap(&self) -> Result<(), ReadError> {
        let mut order: Vec<&TensorInfo> = self.tensors.iter().collect();
        order.sort_by_key(|tensor| tensor.at.start);
        for pair in order.windows(2) {
            if pair[0].at.end > pair[1].at.start {
                let words = format!("lies over the bytes of `{}`", pair[0].name);
                return Err(ReadError::tensor(&pair[1].name, words));
            }
        }
        Ok(())
    }

    pub fn version(&self) -> u32 {
        self.version
    }

    /// The head itself: reading it again gives the same.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Where the weights begin.
    pub fn data_start(&self) -> u64 {
        self.data_start
    }

    pub fn get(&self, key: &str) -> Option<&Value> {
        self.metadata.get(key)
    }

    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.metadata.keys().map(String::as_str)
    }

    pub fn text(&self, key: &str) -> Result<Option<&str>, ReadError> {
        self.typed(key, "a text", |value| {
            if let Value::Text(text) = value { Some(text.as_str()) } else { None }
        })
    }

    pub fn flag(&self, key: &str) -> Result<Option<bool>, ReadError> {
        self.typed(
            key,
            "a flag",
            |value| {
                if let Value::Bool(flag) = value { Some(*flag) } else { None }
            },
        )
    }

    /// A whole number that is not negative, however it is written.
    pub fn count(&self, key: &str) -> Result<Option<u64>, ReadError> {
        self.typed(key, "a count", Value::count)
    }

    /// A number, however it is written.
    pub fn real(&self, key: &str) -> Result<Option<f64>, ReadError> {
        self.typed(key, "a number", Value::real)
    }

    pub fn list(&self, key: &str) -> Result<Option<&List>, ReadError> {
        self.typed(
            key,
            "a list",
            |value| {
                if let Value::List(list) = value { Some(list) } else { None }
            },
        )
    }

    fn typed<'a, T>(
        &'a self,
        key: &str,
        expected: &str,
        read: impl Fn(&'a Value) -> Option<T>,
    ) -> Result<Option<T>, ReadError> {
        let Some(value) = self.metadata.get(key) else { return Ok(None) };
        let wrong = || ReadError::key(key, format!("is {}, not {expected}", value.kind()));
        read(value).map(Some).ok_or_else(wrong)
    }

    pub fn tensors(&self) -> &[TensorInfo] {
        &self.tensors
    }

    pub fn tensor(&self, name: &str) -> Option<&TensorInfo> {
        self.index(name).map(|index| &self.tensors[index])
    }

    pub(crate) fn index(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }
}

fn bounded(found: u64, what: &'static str, most: u64) -> Result<u64, ReadError> {
    if found > most { Err(ReadError::TooMany { what, found, most }) } else { Ok(found) }
}

fn metadata(wire: &mut Wire, count: u64) -> Result<BTreeMap<String, Value>, ReadError> {
    let mut metadata = BTreeMap::new();
    for _ in 0..count {
        let key = wire.text("a key of metadata", MOST_NAME_BYTES)?;
        let key = String::from_utf8_lossy(&key).to_string();
        let value = Value::read(wire).map_err(|error| in_key(&key, error))?;
        if metadata.contains_key(&key) {
            return Err(ReadError::key(&key, "is in the metadata twice"));
        }
        metadata.insert(key, value);
    }
    Ok(metadata)
}

/// Says which key it was; what else is asked for stays as it is.
fn in_key(key: &str, error: ReadError) -> ReadError {
    if let ReadError::Wire { at, what } = error {
        return ReadError::key(key, format!("is broken at byte {at}: {what}"));
    }
    if let ReadError::CutOff { end, size, .. } = error {
        let what = format!("the value of `{}`", crate::error::Shown(key));
        return ReadError::CutOff { what, end, size };
    }
    error
}

/// A tensor with its place counted from the begin of the weights.
fn tensor(wire: &mut Wire, alignment: u64) -> Result<TensorInfo, ReadError> {
    let name = wire.text("a tensor's name", MOST_NAME_BYTES)?;
    let name = String::from_utf8_lossy(&name).to_string();
    let refuse = |what: String| ReadError::tensor(&name, what);
    let rank = wire.u32("a tensor's dimensions")?;
    if rank == 0 || rank > MOST_DIMS {
        return Err(refuse(format!("has {rank} dimensions, 1 to {MOST_DIMS} are supported")));
    }
    let mut dims = Vec::new();
    for _ in 0..rank {
        dims.push(wire.u64("a tensor's dimension")?);
    }
    let elements = dims.iter().try_fold(1u64, |all, dim| all.checked_mul(*dim));
    let elements = elements.filter(|all| (1..=MOST_ELEMENTS).contains(all));
    let elements = elements.ok_or_else(|| refuse(format!("has the dimensions {dims:?}")))?;
    let ty = Type::of(wire.u32("a tensor's type")?).map_err(refuse)?;
    let block = ty.block() as u64;
    if !dims[0].is_multiple_of(block) {
        let words = format!("has rows of {}: {} has blocks of {block}", dims[0], ty.name());
        return Err(refuse(words));
    }
    let offset = wire.u64("a tensor's place")?;
    if !offset.is_multiple_of(alignment) {
        return Err(refuse(format!("lies at {offset}, which is no multiple of {alignment}")));
    }
    let bytes = elements / block * ty.block_bytes() as u64;
    let end = offset.checked_add(bytes).ok_or_else(|| refuse(format!("lies at {offset}")))?;
    Ok(TensorInfo { name, dims, ty, at: offset..end })
}
