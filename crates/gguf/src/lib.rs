//! Language models in GGUF files: what the head of a file says, which bytes some layers need, and what quantised bytes
//! mean. Pure: it computes nothing of a model and touches no files. `engine/llm` runs what it reads.
//!
//! ```
//! use shoal_gguf::{FIRST_BYTES, Model, ReadError};
//!
//! /// Reads a model's head through whatever gives the file's first bytes.
//! fn open(size: u64, first: impl Fn(u64) -> Vec<u8>) -> Result<Model, ReadError> {
//!     let mut wanted = FIRST_BYTES.min(size);
//!     loop {
//!         match Model::read(first(wanted), size) {
//!             // The tokenizer's list may be long: the error says how much it takes at least.
//!             Err(ReadError::Short { needed }) => wanted = needed.max(wanted * 2).min(size),
//!             read => return read,
//!         }
//!     }
//! }
//!
//! let error = open(4, |_| b"PK\x03\x04".to_vec()).err();
//! assert_eq!(error.map(|it| it.to_string()).as_deref(), Some("this is not a GGUF file"));
//! ```
//!
//! A node that has some of the layers asks [`Model::part`] which ranges of the file to fetch, one that has some rows of
//! every matrix [`Model::slice`].
#![no_std]

extern crate alloc;

mod config;
mod dequantise;
mod error;
mod head;
mod limit;
mod model;
mod share;
#[cfg(test)]
mod testing;
mod types;
mod value;
mod wire;

pub use config::{Activation, Arch, Config, Rope, RopeStyle, Window};
pub use dequantise::{WrongLength, from_half};
pub use error::{PartError, ReadError};
pub use head::{Head, TensorInfo};
pub use limit::{FIRST_BYTES, MOST_HEAD_BYTES};
pub use model::{Model, Part, Role};
pub use share::{Piece, Share, Slice};
pub use types::Type;
pub use value::{List, Text, Value};
