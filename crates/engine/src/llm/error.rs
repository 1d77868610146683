//! Why a model is not loaded, and why a run is refused.

use thiserror::Error;

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LoadError {
    #[error("the weights cannot be read: {0}")]
    Read(String),
    #[error("tensor `{name}` takes {expected} bytes, {found} were given")]
    Length { name: String, expected: u64, found: u64 },
    #[error("tensor `{name}` is missing")]
    Missing { name: String },
    #[error("tensor `{name}` holds a number that is not finite")]
    NotFinite { name: String },
    #[error(transparent)]
    Layers(#[from] shoal_gguf::PartError),
    #[error("this processor has no {name} instructions")]
    Kernel { name: &'static str },
    #[error("the model does not fit this GPU: {0}")]
    Device(String),
}

/// Nothing has changed when a run is refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RunError {
    #[error(
        "sequence {sequence} has {length} positions here, so that position {position} does not follow"
    )]
    Hole { sequence: u64, length: u32, position: u32 },
    #[error("sequence {sequence} would have more than {most} positions")]
    Context { sequence: u64, most: u32 },
    #[error("there are {most} sequences already")]
    Sequences { most: usize },
    #[error("a run takes 1 to {most} rows, not {found}")]
    Rows { found: usize, most: usize },
    #[error("token {token} is not in the vocabulary of {vocab}")]
    Token { token: u32, vocab: u32 },
    #[error("{rows} rows take {expected} {what}, {found} were given")]
    Input { rows: usize, expected: usize, found: usize, what: &'static str },
    #[error("these layers take {expected}")]
    Kind { expected: &'static str },
    #[error("the layers computed a number that is not finite: the weights or the input are broken")]
    NotFinite,
    #[error("the GPU failed: {0}")]
    Device(String),
}
