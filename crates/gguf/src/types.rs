//! How weights are written: the types this crate knows, and names for those it does not.

use alloc::format;
use alloc::string::String;

/// The type of a tensor's elements. Quantised types hold blocks of elements with common scales.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Type {
    F32,
    F16,
    BF16,
    Q4_0,
    Q4_1,
    Q5_0,
    Q5_1,
    Q8_0,
    Q4K,
    Q5K,
    Q6K,
}

impl Type {
    pub const ALL: [Type; 11] = [
        Type::F32,
        Type::F16,
        Type::BF16,
        Type::Q4_0,
        Type::Q4_1,
        Type::Q5_0,
        Type::Q5_1,
        Type::Q8_0,
        Type::Q4K,
        Type::Q5K,
        Type::Q6K,
    ];

    /// Its number in files.
    pub fn id(self) -> u32 {
        match self {
            Type::F32 => 0,
            Type::F16 => 1,
            Type::Q4_0 => 2,
            Type::Q4_1 => 3,
            Type::Q5_0 => 6,
            Type::Q5_1 => 7,
            Type::Q8_0 => 8,
            Type::Q4K => 12,
            Type::Q5K => 13,
            Type::Q6K => 14,
            Type::BF16 => 30,
        }
    }

    /// The type with this number, or what else is known of it.
    pub(crate) fn of(id: u32) -> Result<Type, String> {
        if let Some(ty) = Type::ALL.into_iter().find(|ty| ty.id() == id) {
            return Ok(ty);
        }
        let named = FOREIGN.iter().find(|(number, _)| *number == id);
        let known = "F32, F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q4_K, Q5_K and Q6_K are";
        Err(match named {
            Some((_, name)) => format!("is of the type {name}, which is not supported; {known}"),
            None => format!("is of the unknown type {id}; {known} supported"),
        })
    }

    pub fn name(self) -> &'static str {
        match self {
            Type::F32 => "F32",
            Type::F16 => "F16",
            Type::BF16 => "BF16",
            Type::Q4_0 => "Q4_0",
            Type::Q4_1 => "Q4_1",
            Type::Q5_0 => "Q5_0",
            Type::Q5_1 => "Q5_1",
            Type::Q8_0 => "Q8_0",
            Type::Q4K => "Q4_K",
            Type::Q5K => "Q5_K",
            Type::Q6K => "Q6_K",
        }
    }

    /// Elements of a block.
    pub fn block(self) -> usize {
        match self {
            Type::F32 | Type::F16 | Type::BF16 => 1,
            Type::Q4_0 | Type::Q4_1 | Type::Q5_0 | Type::Q5_1 | Type::Q8_0 => 32,
            Type::Q4K | Type::Q5K | Type::Q6K => 256,
        }
    }

    pub fn block_bytes(self) -> usize {
        match self {
            Type::F32 => 4,
            Type::F16 | Type::BF16 => 2,
            Type::Q4_0 => 18,
            Type::Q4_1 => 20,
            Type::Q5_0 => 22,
            Type::Q5_1 => 24,
            Type::Q8_0 => 34,
            Type::Q4K => 144,
            Type::Q5K => 176,
            Type::Q6K => 210,
        }
    }
}

/// What llama.cpp writes and this crate does not read.
const FOREIGN: [(u32, &str); 22] = [
    (9, "Q8_1"),
    (10, "Q2_K"),
    (11, "Q3_K"),
    (15, "Q8_K"),
    (16, "IQ2_XXS"),
    (17, "IQ2_XS"),
    (18, "IQ3_XXS"),
    (19, "IQ1_S"),
    (20, "IQ4_NL"),
    (21, "IQ3_S"),
    (22, "IQ2_S"),
    (23, "IQ4_XS"),
    (24, "I8"),
    (25, "I16"),
    (26, "I32"),
    (27, "I64"),
    (28, "F64"),
    (29, "IQ1_M"),
    (34, "TQ1_0"),
    (35, "TQ2_0"),
    (39, "MXFP4"),
    (40, "NVFP4"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_that_are_not_supported_are_named() {
        assert_eq!(Type::of(12), Ok(Type::Q4K));
        let foreign = Type::of(20).expect_err("IQ4_NL");
        assert!(foreign.contains("IQ4_NL, which is not supported"), "{foreign}");
        assert!(Type::of(999).expect_err("none").contains("unknown type 999"));
        assert!(Type::ALL.into_iter().all(|ty| Type::of(ty.id()) == Ok(ty)));
    }
}
