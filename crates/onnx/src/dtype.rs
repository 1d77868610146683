//! What tensors are made of.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use serde::{Deserialize, Serialize};

use crate::limit::{MOST_ELEMENTS, MOST_RANK};

macro_rules! dtypes {
    ($($name:ident = $number:literal, $bits:literal, $family:ident, $text:literal;)*) => {
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

            pub(crate) fn family(self) -> Family {
                match self { $(DType::$name => Family::$family,)* }
            }

            pub fn name(self) -> &'static str {
                match self { $(DType::$name => $text,)* }
            }
        }
    };
}

dtypes! {
    Float32 = 1, 32, Float, "float32";
    Uint8 = 2, 8, Unsigned, "uint8";
    Int8 = 3, 8, Signed, "int8";
    Uint16 = 4, 16, Unsigned, "uint16";
    Int16 = 5, 16, Signed, "int16";
    Int32 = 6, 32, Signed, "int32";
    Int64 = 7, 64, Signed, "int64";
    Text = 8, 128, Other, "string";
    Bool = 9, 8, Bool, "bool";
    Float16 = 10, 16, Other, "float16";
    Float64 = 11, 64, Other, "float64";
    Uint32 = 12, 32, Unsigned, "uint32";
    Uint64 = 13, 64, Unsigned, "uint64";
    Complex64 = 14, 64, Other, "complex64";
    Complex128 = 15, 128, Other, "complex128";
    Bfloat16 = 16, 16, Other, "bfloat16";
    Float8E4M3FN = 17, 8, Other, "float8e4m3fn";
    Float8E4M3FNUZ = 18, 8, Other, "float8e4m3fnuz";
    Float8E5M2 = 19, 8, Other, "float8e5m2";
    Float8E5M2FNUZ = 20, 8, Other, "float8e5m2fnuz";
    Uint4 = 21, 4, Other, "uint4";
    Int4 = 22, 4, Other, "int4";
    Float4E2M1 = 23, 4, Other, "float4e2m1";
    Float8E8M0 = 24, 8, Other, "float8e8m0";
    Uint2 = 25, 2, Other, "uint2";
    Int2 = 26, 2, Other, "int2";
}

/// What a type's elements are to those who compute shapes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    Bool,
    Signed,
    Unsigned,
    /// Of 32 bits: sizes are scaled by them.
    Float,
    /// Nothing that a shape depends on.
    Other,
}

impl DType {
    /// Whether it has this number. The upper half of 64 bits without a sign counts as not.
    pub(crate) fn holds(self, int: i64) -> bool {
        let bits = self.bits();
        match self.family() {
            Family::Bool => (0..2).contains(&int),
            Family::Signed if bits >= 64 => true,
            Family::Signed => (-(1i64 << (bits - 1))..1i64 << (bits - 1)).contains(&int),
            Family::Unsigned => int >= 0 && (bits >= 64 || int.unsigned_abs() >> bits == 0),
            Family::Float | Family::Other => false,
        }
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
    fn types_have_their_numbers() {
        assert!(DType::Int8.holds(-128) && !DType::Int8.holds(128));
        assert!(DType::Uint8.holds(255) && !DType::Uint8.holds(256) && !DType::Uint8.holds(-1));
        assert!(DType::Int64.holds(i64::MIN) && DType::Uint64.holds(i64::MAX));
        assert!(DType::Bool.holds(1) && !DType::Bool.holds(2) && !DType::Float32.holds(0));
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
