//! Why a file is refused, and which part of it: every message names the key, the tensor or the byte.

use alloc::string::String;
use core::fmt;
use thiserror::Error;

use crate::limit::MOST_SHOWN;

/// A file that is not a GGUF file, or a model that cannot run here.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ReadError {
    /// No fault of the file: more of its first bytes are needed, at least so many.
    #[error("the head of the file takes at least {needed} bytes")]
    Short { needed: u64 },
    #[error("this is not a GGUF file")]
    NotGguf,
    #[error("the file is cut off: {what} ends at byte {end}, the file has {size} bytes")]
    CutOff { what: String, end: u64, size: u64 },
    #[error("the file is of GGUF version {version}, only versions 2 and 3 are supported")]
    Version { version: u32 },
    #[error("the file is a big-endian GGUF file, only little-endian ones are supported")]
    BigEndian,
    #[error("the file's head is broken at byte {at}: {what}")]
    Wire { at: u64, what: String },
    #[error("the file's {what} are {found}, at most {most} are supported")]
    TooMany { what: &'static str, found: u64, most: u64 },
    #[error("the file's `{}` {what}", Shown(.key))]
    Key { key: String, what: String },
    #[error("tensor `{}` {what}", Shown(.name))]
    Tensor { name: String, what: String },
    #[error(
        "models of the architecture `{}` are not supported, only llama, qwen2, qwen3 and gemma3",
        Shown(.name)
    )]
    Arch { name: String },
}

/// Why a range of layers is none.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the model has the layers 0 to {layers}, not {from} to {to}")]
pub struct PartError {
    pub from: u32,
    pub to: u32,
    pub layers: u32,
}

impl ReadError {
    pub(crate) fn key(key: &str, what: impl Into<String>) -> ReadError {
        ReadError::Key { key: short(key), what: what.into() }
    }

    pub(crate) fn tensor(name: &str, what: impl Into<String>) -> ReadError {
        ReadError::Tensor { name: short(name), what: what.into() }
    }

    pub(crate) fn wire(at: u64, what: impl Into<String>) -> ReadError {
        ReadError::Wire { at, what: what.into() }
    }
}

/// One character more than is shown, so that it is seen to be longer.
fn short(name: &str) -> String {
    name.chars().take(MOST_SHOWN + 1).collect()
}

/// A stranger's name: shortened, without characters that change what is around it.
pub(crate) struct Shown<'a>(pub(crate) &'a str);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use fmt::Write as _;
        for (at, letter) in self.0.chars().enumerate() {
            if at == MOST_SHOWN {
                return f.write_str("...");
            }
            f.write_char(if letter.is_control() { ' ' } else { letter })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn names_of_strangers_are_shortened() {
        let error = ReadError::key(&"x\n".repeat(500), "is missing");
        let text = error.to_string();
        assert!(text.ends_with("x ...` is missing"), "{text}");
        assert!(text.len() < 200);
    }
}
