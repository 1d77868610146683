//! ONNX models as graphs: what is in a file, which shapes its values have, where it can be cut, and its slices as files.
//! Pure: it computes nothing of a model and touches no files. Engines run what it writes.
//!
//! ```
//! use shoal_onnx::{DType, Given, Model, TensorType};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let tiny = [8, 8, 66, 2, 16, 17, 58, 56,
//! #     10, 12, 10, 1, b'x', 18, 1, b'h', 34, 4, b'R', b'e', b'l', b'u',
//! #     10, 11, 10, 1, b'h', 18, 1, b'y', 34, 3, b'A', b'b', b's',
//! #     90, 22, 10, 1, b'x', 18, 17, 10, 15, 8, 1, 18, 11, 10, 5, 18, 3, b'n', b'u', b'm', 10, 2, 8, 3,
//! #     98, 3, 10, 1, b'y'];
//! # let file = tiny.to_vec();
//! // The bytes of a file. The model shares them, and so do its slices: weights are never copied.
//! let model = Model::read(file)?;
//! for input in model.inputs() {
//!     println!("{} is {}", input.name(), input.expects()); // x is float32[num x 3]
//! }
//!
//! // What open dimensions are must be given; every other shape follows.
//! let shapes = model.shapes(&[Given::new("x", TensorType::new(DType::Float32, [2, 3]))])?;
//! assert_eq!(shapes.of("y").map(|ty| ty.dims.as_slice()), Some(&[2, 3][..]));
//!
//! // Where it can be cut, and what crosses there.
//! let cuts = model.cuts(&shapes);
//! for cut in cuts.iter() {
//!     println!("at {}: {} tensors, {} bytes", cut.at, cut.tensors, cut.bytes);
//! }
//!
//! // For placement: a row of parts with their work, weights and what each hands on.
//! let parts = cuts.parts(16);
//!
//! // The steps between two positions, as an ONNX file.
//! let part = parts.parts[0];
//! let slice = cuts.slice(part.from, part.to)?;
//! assert_eq!((slice.takes, slice.gives), (vec!["x".to_string()], vec!["h".to_string()]));
//! # assert_eq!(Model::read(slice.file.to_bytes())?.nodes().len(), 1);
//! # Ok(())
//! # }
//! ```
//!
//! Slices one after another say what the whole says. A slice takes some of what crosses its begin, gives some of what
//! crosses its end, and the rest is passed on beside it ([`Slice`]).
#![no_std]

extern crate alloc;

mod check;
mod cost;
mod cut;
mod dtype;
mod error;
mod explicit;
mod join;
mod limit;
mod metadata;
mod model;
mod node;
mod parts;
mod peak;
mod read;
mod shape;
mod slice;
mod tensor;
#[cfg(test)]
mod testing;
mod wire;

pub use cost::Cost;
pub use cut::{Crossing, Cut, Cuts};
pub use dtype::{DType, Dim, TensorType};
pub use error::{CutError, MetadataError, Place, ReadError, ShapeError};
pub use join::JoinError;
pub use limit::{LONGEST_ROW, MOST_PARTS};
pub use metadata::SliceNote;
pub use model::Model;
pub use node::Node;
pub use parts::{Part, Parts};
pub use read::{Declared, ValueInfo};
pub use shape::{Given, Missing, Shapes};
pub use slice::Slice;
pub use tensor::{Tensor, Value};
pub use wire::{Pieces, may_begin};
