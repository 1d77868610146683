//! Weights: their type and shape are read, their bytes stay where they are.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use bytes::Bytes;

use crate::dtype::{DType, Family, TensorType, elements};
use crate::error::ReadError;
use crate::limit::{MOST_FOLDED, MOST_RANK};
use crate::read::Budget;
use crate::wire::{Chunk, Held, packed};

/// Numbers of ONNX's `TensorProto`.
mod field {
    pub(super) const DIMS: u32 = 1;
    pub(super) const DATA_TYPE: u32 = 2;
    pub(super) const FLOAT_DATA: u32 = 4;
    pub(super) const INT32_DATA: u32 = 5;
    pub(super) const INT64_DATA: u32 = 7;
    pub(super) const NAME: u32 = 8;
    pub(super) const RAW_DATA: u32 = 9;
    pub(super) const DOUBLE_DATA: u32 = 10;
    pub(super) const UINT64_DATA: u32 = 11;
    pub(super) const EXTERNAL_DATA: u32 = 13;
    pub(super) const DATA_LOCATION: u32 = 14;
}
const EXTERNAL: u64 = 1;

/// A tensor whose elements are in the file, or in a file beside it.
#[derive(Clone, Debug)]
pub struct Tensor {
    pub(crate) name: String,
    pub(crate) ty: TensorType,
    /// Where its elements are if they are not in this file: the other file's name.
    pub(crate) external: Option<String>,
    /// All of it, as it stands in the file.
    pub(crate) chunk: Chunk,
}

impl Tensor {
    pub(crate) fn read(chunk: Chunk, budget: &mut Budget) -> Result<Tensor, ReadError> {
        budget.take::<Tensor>(chunk.bytes.len().min(64))?;
        let (mut name, mut dims, mut dtype) = (String::new(), Vec::new(), 0);
        let (mut raw, mut external, mut location) = (None, false, String::new());
        for field in chunk.fields() {
            let field = field?;
            match field.number {
                field::NAME => name = budget.text(&field.chunk()?)?,
                field::DATA_TYPE => dtype = field.varint()?,
                field::DIMS => match &field.held {
                    Held::Bytes(list) => {
                        for dim in packed(list) {
                            dims.push(dim?);
                            bounded(&dims, &name)?;
                        }
                    }
                    Held::Varint(_) | Held::Fixed32(_) | Held::Fixed64 => {
                        dims.push(field.varint()?);
                        bounded(&dims, &name)?;
                    }
                },
                field::RAW_DATA => raw = Some(field.chunk()?.bytes),
                field::DATA_LOCATION => external = field.varint()? == EXTERNAL,
                field::EXTERNAL_DATA => {
                    let (key, value) = read_pair(&field.chunk()?, budget)?;
                    if key == "location" {
                        location = value;
                    }
                }
                _ => {}
            }
        }
        let fault = |what: String| ReadError::Tensor { name: name.clone(), what };
        let Some(dtype) = DType::of(dtype) else {
            return Err(fault(format!("its type {dtype} is none that Shoal knows")));
        };
        if elements(&dims).is_none() {
            return Err(fault("its shape is impossible".to_string()));
        }
        let ty = TensorType { dtype, dims };
        if let Some(raw) = raw.filter(|_| !external && dtype != DType::Text)
            && raw.len() as u64 != ty.bytes()
        {
            return Err(fault(format!(
                "it has {} bytes where {ty} takes {}",
                raw.len(),
                ty.bytes()
            )));
        }
        Ok(Tensor { name, ty, external: external.then_some(location), chunk })
    }

    /// A tensor that is alone in a file (`.pb`).
    pub fn read_alone(bytes: impl Into<Bytes>) -> Result<Tensor, ReadError> {
        Tensor::read(Chunk { bytes: bytes.into(), at: 0 }, &mut Budget::default())
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn ty(&self) -> &TensorType {
        &self.ty
    }

    /// The file beside this one that has the elements, if they are not in it.
    pub fn external(&self) -> Option<&str> {
        self.external.as_deref()
    }

    /// All elements as little-endian bytes, in whichever form the file has them. `None` if they are elsewhere, are no
    /// numbers of whole bytes, or are not as many as the shape says.
    pub fn bytes(&self) -> Option<Bytes> {
        let bits = self.ty.dtype.bits();
        if self.external.is_some() || self.ty.dtype == DType::Text || !bits.is_multiple_of(8) {
            return None;
        }
        let size = usize::try_from(bits / 8).ok()?;
        let mut all = Vec::new();
        for field in self.chunk.fields() {
            let field = field.ok()?;
            match (field.number, &field.held) {
                (field::RAW_DATA, Held::Bytes(raw)) => return Some(raw.bytes.clone()),
                (field::FLOAT_DATA | field::DOUBLE_DATA, Held::Bytes(list)) => {
                    all.extend_from_slice(&list.bytes);
                }
                (field::FLOAT_DATA, Held::Fixed32(bytes)) => all.extend_from_slice(bytes),
                (field::INT32_DATA | field::INT64_DATA | field::UINT64_DATA, held) => match held {
                    Held::Bytes(list) => {
                        for number in packed(list) {
                            all.extend_from_slice(&number.ok()?.to_le_bytes()[..size]);
                        }
                    }
                    Held::Varint(number) => all.extend_from_slice(&number.to_le_bytes()[..size]),
                    Held::Fixed32(_) | Held::Fixed64 => return None,
                },
                _ => {}
            }
        }
        (all.len() as u64 == self.ty.bytes()).then(|| all.into())
    }

    /// The elements of a small tensor of whole numbers or floats.
    pub fn value(&self) -> Option<Value> {
        let count = self.ty.elements();
        if count > MOST_FOLDED as u64 || self.external.is_some() {
            return None;
        }
        let mut value = match self.ty.dtype.family() {
            Family::Float => Value::Floats(Vec::new()),
            Family::Bool | Family::Signed | Family::Unsigned => Value::Ints(Vec::new()),
            Family::Other => return None,
        };
        for field in self.chunk.fields() {
            let field = field.ok()?;
            match (field.number, &field.held) {
                (field::RAW_DATA, Held::Bytes(raw)) => {
                    value = Value::from_raw(self.ty.dtype, &raw.bytes)?;
                }
                (field::INT32_DATA | field::INT64_DATA | field::UINT64_DATA, held) => {
                    let Value::Ints(ints) = &mut value else { return None };
                    match held {
                        Held::Bytes(list) => {
                            for number in packed(list).take(MOST_FOLDED + 1) {
                                ints.push(number.ok()? as i64);
                            }
                        }
                        Held::Varint(number) => ints.push(*number as i64),
                        Held::Fixed32(_) | Held::Fixed64 => return None,
                    }
                }
                (field::FLOAT_DATA, held) => {
                    let Value::Floats(floats) = &mut value else { return None };
                    match held {
                        Held::Bytes(list) => floats.extend(singles(&list.bytes)),
                        Held::Fixed32(bytes) => floats.push(f32::from_le_bytes(*bytes)),
                        Held::Varint(_) | Held::Fixed64 => return None,
                    }
                }
                _ => {}
            }
            if value.len() > MOST_FOLDED {
                return None;
            }
        }
        (value.len() as u64 == count).then_some(value)
    }
}

/// Elements that are known before anything runs.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Ints(Vec<i64>),
    Floats(Vec<f32>),
}

impl Value {
    pub fn len(&self) -> usize {
        match self {
            Value::Ints(ints) => ints.len(),
            Value::Floats(floats) => floats.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// From little-endian bytes. `None` for types that shapes are not computed with.
    pub fn from_raw(dtype: DType, raw: &[u8]) -> Option<Value> {
        let size = usize::try_from(dtype.bits() / 8).ok()?;
        let int = |bytes: &[u8], fill: u8| {
            let mut all = [fill; 8];
            all[..bytes.len()].copy_from_slice(bytes);
            i64::from_le_bytes(all)
        };
        let is_negative = |bytes: &[u8]| bytes.last().is_some_and(|last| last & 0x80 != 0);
        let value = match dtype.family() {
            Family::Float => Value::Floats(singles(raw).collect()),
            Family::Bool | Family::Unsigned => {
                Value::Ints(raw.chunks_exact(size).map(|bytes| int(bytes, 0)).collect())
            }
            Family::Signed => {
                let signed = |bytes| int(bytes, if is_negative(bytes) { 0xff } else { 0 });
                Value::Ints(raw.chunks_exact(size).map(signed).collect())
            }
            Family::Other => return None,
        };
        Some(value)
    }
}

fn singles(raw: &[u8]) -> impl Iterator<Item = f32> {
    raw.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes))
}

fn bounded(dims: &[u64], name: &str) -> Result<(), ReadError> {
    if dims.len() <= MOST_RANK {
        return Ok(());
    }
    let what = format!("it has more than {MOST_RANK} dimensions");
    Err(ReadError::Tensor { name: name.to_string(), what })
}

/// ONNX's `StringStringEntryProto`.
pub(crate) fn read_pair(chunk: &Chunk, budget: &mut Budget) -> Result<(String, String), ReadError> {
    let (mut key, mut value) = (String::new(), String::new());
    for field in chunk.fields() {
        let field = field?;
        match field.number {
            1 => key = budget.text(&field.chunk()?)?,
            2 => value = budget.text(&field.chunk()?)?,
            _ => {}
        }
    }
    Ok((key, value))
}

/// A sparse tensor or an annotation: only whose it is matters here.
#[derive(Clone, Debug)]
pub(crate) struct Named {
    pub(crate) name: String,
    pub(crate) bytes: Bytes,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Writer;
    use alloc::vec;

    fn read(write: impl FnOnce(&mut Writer)) -> Result<Tensor, ReadError> {
        let mut writer = Writer::default();
        write(&mut writer);
        let chunk = Chunk { bytes: writer.finish().to_bytes(), at: 0 };
        Tensor::read(chunk, &mut Budget::default())
    }

    #[test]
    fn elements_are_read_in_every_form() {
        let raw = read(|w| {
            w.varint(1, 2);
            w.varint(2, 7);
            w.text(8, "shape");
            let numbers: Vec<u8> = [-1i64, 5].iter().flat_map(|n| n.to_le_bytes()).collect();
            w.bytes(9, &numbers.into());
        });
        let raw = raw.expect("a tensor");
        assert_eq!(raw.value(), Some(Value::Ints(vec![-1, 5])));
        assert_eq!(raw.bytes().map(|bytes| bytes[7..9].to_vec()), Some(vec![255, 5]));
        let packed = read(|w| {
            w.bytes(1, &Bytes::from_static(&[3]));
            w.varint(2, 7);
            w.bytes(7, &Bytes::from_static(&[1, 2, 0xac, 2]));
        });
        let packed = packed.expect("a tensor");
        assert_eq!(packed.value(), Some(Value::Ints(vec![1, 2, 300])));
        let bytes: Vec<u8> = [1i64, 2, 300].iter().flat_map(|n| n.to_le_bytes()).collect();
        assert_eq!(packed.bytes(), Some(bytes.into()));
        let single = read(|w| {
            w.varint(2, 1);
            w.bytes(4, &Bytes::copy_from_slice(&2.5f32.to_le_bytes()));
        });
        let single = single.expect("a tensor");
        assert_eq!(single.value(), Some(Value::Floats(vec![2.5])));
        assert_eq!(single.bytes().as_deref(), Some(&2.5f32.to_le_bytes()[..]));
    }

    #[test]
    fn what_cannot_be_is_refused_by_name() {
        let short = read(|w| {
            w.varint(1, 4);
            w.varint(2, 1);
            w.text(8, "w");
            w.bytes(9, &Bytes::from_static(&[0; 15]));
        });
        let said = short.expect_err("15 bytes").to_string();
        assert_eq!(said, "tensor `w`: it has 15 bytes where float32[4] takes 16");
        let negative = read(|w| {
            w.varint(1, -4i64 as u64);
            w.varint(2, 1);
            w.text(8, "w");
        });
        assert_eq!(
            negative.expect_err("a shape").to_string(),
            "tensor `w`: its shape is impossible"
        );
        let typeless = read(|w| w.text(8, "w"));
        assert!(typeless.expect_err("a type").to_string().contains("type 0"));
    }

    #[test]
    fn elements_elsewhere_are_named() {
        let mut pair = Writer::default();
        pair.text(1, "location");
        pair.text(2, "big.bin");
        let tensor = read(|w| {
            w.varint(1, 2);
            w.varint(2, 7);
            w.message(13, pair);
            w.varint(14, 1);
        });
        let tensor = tensor.expect("a tensor");
        assert_eq!((tensor.external(), tensor.value()), (Some("big.bin"), None));
    }
}
