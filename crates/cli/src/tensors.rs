//! Tensors of models: from .npy files, to .npy files, and in a few words.

use std::path::Path;

use serde_json::{Value, json};
use shoal_kinds::npy;
use shoal_kinds::onnx::{Element, Head, Tensor};

use crate::client::Sink;
use crate::fail::Fail;

/// Numbers that a summary shows.
const FIRST: usize = 6;

/// A tensor and its bytes, little-endian.
pub(crate) struct Array {
    pub(crate) head: Head,
    pub(crate) bytes: Vec<u8>,
}

impl Array {
    /// Reads a file as the input of this name.
    pub(crate) fn open(name: &str, path: &Path) -> Result<Array, Fail> {
        let file = std::fs::read(path).map_err(|error| Fail::reading(path, &error))?;
        let (element, dims, bytes) = crate::npy::tensor(&file)
            .map_err(|error| Fail::input(format!("{} {error}", path.display())))?;
        Ok(Array { head: Head { name: name.into(), element, dims }, bytes: bytes.to_vec() })
    }

    pub(crate) fn tensor(&self) -> Tensor<'_> {
        Tensor { head: self.head.clone(), bytes: &self.bytes }
    }

    /// Writes it as an .npy file.
    pub(crate) fn save(&self, path: &Path) -> Result<(), Fail> {
        let mut sink = Sink::create(path)?;
        sink.write(&npy::head(self.head.element.numpy(), &self.head.dims))?;
        sink.write(&self.bytes)?;
        sink.finish()
    }

    /// All numbers. Those that a `f64` cannot hold exactly are rounded.
    pub(crate) fn numbers(&self) -> Vec<f64> {
        fn all<const N: usize>(bytes: &[u8], read: fn([u8; N]) -> f64) -> Vec<f64> {
            let (numbers, _) = bytes.as_chunks::<N>();
            numbers.iter().map(|number| read(*number)).collect()
        }
        let bytes = &self.bytes;
        match self.head.element {
            Element::F32 => all(bytes, |n| f64::from(f32::from_le_bytes(n))),
            Element::F16 => all(bytes, |n| half(u16::from_le_bytes(n))),
            Element::F64 => all(bytes, f64::from_le_bytes),
            Element::U8 | Element::Bool => all(bytes, |n: [u8; 1]| f64::from(n[0])),
            Element::I8 => all(bytes, |n| f64::from(i8::from_le_bytes(n))),
            Element::U16 => all(bytes, |n| f64::from(u16::from_le_bytes(n))),
            Element::I16 => all(bytes, |n| f64::from(i16::from_le_bytes(n))),
            Element::U32 => all(bytes, |n| f64::from(u32::from_le_bytes(n))),
            Element::I32 => all(bytes, |n| f64::from(i32::from_le_bytes(n))),
            Element::U64 => all(bytes, |n| u64::from_le_bytes(n) as f64),
            Element::I64 => all(bytes, |n| i64::from_le_bytes(n) as f64),
        }
    }

    /// In a line.
    pub(crate) fn summary(&self) -> String {
        let Head { name, element, dims } = &self.head;
        let dims: Vec<_> = dims.iter().map(u64::to_string).collect();
        let mut text = format!("{name}: {element}[{}]", dims.join("x"));
        let numbers = self.numbers();
        let fine: Vec<f64> = numbers.iter().copied().filter(|number| !number.is_nan()).collect();
        let none = numbers.len() - fine.len();
        if !fine.is_empty() {
            let least = fine.iter().copied().fold(f64::INFINITY, f64::min);
            let most = fine.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let mean = fine.iter().sum::<f64>() / fine.len() as f64;
            let first: Vec<_> = numbers.iter().take(FIRST).map(|n| short(*n)).collect();
            let rest = if numbers.len() > FIRST { ", …" } else { "" };
            text += &format!(
                "; least {}, mean {}, most {}; {}{rest}",
                short(least),
                short(mean),
                short(most),
                first.join(", ")
            );
        }
        if none > 0 {
            text += &format!("; {none} are not numbers (NaN)");
        }
        text
    }

    /// Head and numbers; what is not a number is null.
    pub(crate) fn json(&self) -> Value {
        let Head { name, element, dims } = &self.head;
        json!({"name": name, "type": element.name(), "shape": dims, "data": self.numbers()})
    }
}

/// Six digits say enough.
fn short(number: f64) -> String {
    let text = format!("{number:.5e}");
    let exact: f64 = text.parse().unwrap_or(number);
    if number == 0.0 || (1e-4..1e9).contains(&number.abs()) { exact.to_string() } else { text }
}

/// A half as IEEE 754 has it.
fn half(bits: u16) -> f64 {
    let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
    let (exponent, part) = (i32::from(bits >> 10 & 31), f64::from(bits & 1023));
    match exponent {
        0 => sign * part * 2f64.powi(-24),
        31 if part == 0.0 => sign * f64::INFINITY,
        31 => f64::NAN,
        _ => sign * (1.0 + part / 1024.0) * 2f64.powi(exponent - 15),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn array(element: Element, dims: &[u64], bytes: Vec<u8>) -> Array {
        Array { head: Head { name: "y".into(), element, dims: dims.into() }, bytes }
    }

    #[test]
    fn a_summary_says_what_is_inside() {
        let bytes = [1f32, -2.5, 4.0].iter().flat_map(|n| n.to_le_bytes()).collect();
        let text = array(Element::F32, &[1, 3], bytes).summary();
        assert_eq!(text, "y: float32[1x3]; least -2.5, mean 0.833333, most 4; 1, -2.5, 4");
        let text = array(Element::F32, &[1], f32::NAN.to_le_bytes().into()).summary();
        assert_eq!(text, "y: float32[1]; 1 are not numbers (NaN)");
        assert_eq!(array(Element::U8, &[0], Vec::new()).summary(), "y: uint8[0]");
    }

    #[test]
    fn halves_are_read() {
        let bits: [u16; 6] = [0x3c00, 0xc000, 0x0001, 0x7bff, 0x7c00, 0x3555];
        let bytes = bits.iter().flat_map(|n| n.to_le_bytes()).collect();
        let numbers = array(Element::F16, &[6], bytes).numbers();
        let third = 0.333_251_953_125;
        assert_eq!(numbers, [1.0, -2.0, 5.960_464_477_539_063e-8, 65504.0, f64::INFINITY, third]);
    }

    #[test]
    fn every_type_is_written_and_read_again() {
        let folder = std::env::temp_dir();
        for element in Element::ALL {
            let path = folder.join(format!("shoal-{element}-{}.npy", std::process::id()));
            let bytes: Vec<u8> = (0..element.bytes() as u8 * 6).collect();
            array(*element, &[2, 3], bytes.clone()).save(&path).expect("written");
            let again = Array::open("y", &path).expect("read");
            assert_eq!((again.head.element, again.head.dims), (*element, vec![2, 3]));
            assert_eq!(again.bytes, bytes);
            std::fs::remove_file(&path).expect("removed");
        }
    }
}
