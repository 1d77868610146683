//! What tensors are made of.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use serde::{Deserialize, Serialize};

use crate::limit::{MOST_ELEMENTS, MOST_RANK};

macro_rules! dtypes {
    ($($name:ident = $number:literal, $bits:literal, $text:literal;)*) => {
        /// The type of a tensor's elements.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(rename_all = "lowercase")]
        pub enum DType { $($name,)* }

        impl DType {
            /// By ONNX's number; `None` for those this crate does not know.
            pub fn of(number: u64) -> Option<DType> {
                match number {
                    $($number => Some(DType::$name),)*
                    _ => None,
                }
            }

            /// ONNX's number.
            pub fn number(self) -> u64 {
                match self { $(DType::$name => $number,)* }
            }

            /// Of one element in memory. Texts count as a pointer and a length.
            pub fn bits(self) -> u64 {
                match self { $(DType::$name => $bits,)* }
            }

            pub fn name(self) -> &'static str {
                match self { $(DType::$name => $text,)* }
            }
        }
    };
}

dtypes! {
    Float32 = 1, 32, "float32";
    Uint8 = 2, 8, "uint8";
    Int8 = 3, 8, "int8";
    Uint16 = 4, 16, "uint16";
    Int16 = 5, 16, "int16";
    Int32 = 6, 32, "int32";
    Int64 = 7, 64, "int64";
    Text = 8, 128, "string";
    Bool = 9, 8, "bool";
    Float16 = 10, 16, "float16";
    Float64 = 11, 64, "float64";
    Uint32 = 12, 32, "uint32";
    Uint64 = 13, 64, "uint64";
    Complex64 = 14, 64, "complex64";
    Complex128 = 15, 128, "complex128";
    Bfloat16 = 16, 16, "bfloat16";
    Float8E4M3FN = 17, 8, "float8e4m3fn";
    Float8E4M3FNUZ = 18, 8, "float8e4m3fnuz";
    Float8E5M2 = 19, 8, "float8e5m2";
    Float8E5M2FNUZ = 20, 8, "float8e5m2fnuz";
    Uint4 = 21, 4, "uint4";
    Int4 = 22, 4, "int4";
    Float4E2M1 = 23, 4, "float4e2m1";
    Float8E8M0 = 24, 8, "float8e8m0";
    Uint2 = 25, 2, "uint2";
    Int2 = 26, 2, "int2";
}

impl DType {
    /// Whole numbers and truth values, which shapes are computed with.
    pub(crate) fn is_whole(self) -> bool {
        use DType::{Bool, Int8, Int16, Int32, Int64, Uint8, Uint16, Uint32, Uint64};
        [Bool, Int8, Int16, Int32, Int64, Uint8, Uint16, Uint32, Uint64].contains(&self)
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A tensor's type and shape.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TensorType {
    pub dtype: DType,
    pub dims: Vec<u64>,
}

impl TensorType {
    pub fn new(dtype: DType, dims: impl Into<Vec<u64>>) -> TensorType {
        TensorType { dtype, dims: dims.into() }
    }

    pub fn elements(&self) -> u64 {
        elements(&self.dims).unwrap_or(u64::MAX)
    }

    pub fn bytes(&self) -> u64 {
        let bits = u128::from(self.elements()) * u128::from(self.dtype.bits());
        u64::try_from(bits.div_ceil(8)).unwrap_or(u64::MAX)
    }
}

impl fmt::Display for TensorType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}[{}]", self.dtype, Dims(&self.dims))
    }
}

/// `1x3x640x640`.
pub(crate) struct Dims<'a>(pub(crate) &'a [u64]);

impl fmt::Display for Dims<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, dim) in self.0.iter().enumerate() {
            write!(f, "{}{dim}", if at == 0 { "" } else { "x" })?;
        }
        Ok(())
    }
}

/// How many, if no machine's memory is too small for it.
pub(crate) fn elements(dims: &[u64]) -> Option<u64> {
    if dims.len() > MOST_RANK {
        return None;
    }
    if dims.contains(&0) {
        return Some(0);
    }
    let all = dims.iter().try_fold(1u64, |all, dim| all.checked_mul(*dim))?;
    (all <= MOST_ELEMENTS).then_some(all)
}

/// A dimension as a file declares it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Dim {
    Known(u64),
    /// Given with each input, under this name if it has one.
    Open(String),
}

impl fmt::Display for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Dim::Known(number) => write!(f, "{number}"),
            Dim::Open(name) if name.is_empty() => f.write_str("?"),
            Dim::Open(name) => write!(f, "{}", crate::error::Shown(name)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_onnxs() {
        for number in 1..=26 {
            assert_eq!(DType::of(number).map(DType::number), Some(number));
        }
        assert_eq!((DType::of(0), DType::of(27)), (None, None));
    }

    #[test]
    fn sizes_are_bounded() {
        assert_eq!(TensorType::new(DType::Float32, [2, 3]).bytes(), 24);
        assert_eq!(TensorType::new(DType::Int4, [3]).bytes(), 2);
        assert_eq!(TensorType::new(DType::Bool, []).bytes(), 1);
        assert_eq!(elements(&[0, u64::MAX, u64::MAX]), Some(0));
        assert_eq!(elements(&[u64::MAX, 2]), None);
        assert_eq!(elements(&[1; 65]), None);
    }
}
