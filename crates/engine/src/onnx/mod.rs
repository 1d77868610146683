//! ONNX models. [`Model`] is the front: it checks requests and answers alike, whichever [`Engine`] computes them. rten is
//! built in, natively and in a browser. Beside it there may be a second engine; the faster one answers, and the
//! built-in one whenever the other fails.

mod built_in;
mod choice;
mod convert;
mod doubts;
mod elsewhere;
mod engine;
#[cfg(feature = "onnxruntime")]
mod library;
#[cfg(test)]
mod made;
mod memory;
mod model;
mod reliance;
mod room;
mod sight;
mod stage;

pub use built_in::Threads;
pub use choice::{Choice, Which};
pub use elsewhere::Asked;
pub use engine::{Engine, Note, Second, Trouble};
#[cfg(feature = "onnxruntime")]
pub use library::{Library, Session};
pub use memory::{Memory, Stays};
pub use model::Model;
pub use reliance::Reliance;
pub use stage::Stage;

use bytes::Bytes;
use shoal_kinds::onnx::Wire;
use shoal_kinds::{Kind, OnnxWork};
use shoal_protocol::{BlobRef, Failure, Hash};

use crate::ports::ports;
use model::{refused, unable};

/// The model of work that runs here; none if it is of another kind.
pub fn model(work: &Kind) -> Option<&OnnxWork> {
    if let Kind::Onnx(onnx) = work { Some(onnx) } else { None }
}

/// The work that a file makes by itself, for whoever runs it without a pool.
pub fn work_of(file: &[u8]) -> Result<OnnxWork, Failure> {
    let graph = shoal_onnx::Model::read(Bytes::copy_from_slice(file));
    let graph = graph.map_err(|error| unable(error.to_string()))?;
    let (inputs, outputs) = ports(&graph).map_err(unable)?;
    // Nobody fetches it, so nobody looks at its hash.
    let model = BlobRef { hash: Hash([0; 32]), size: file.len() as u64 };
    Ok(OnnxWork { model, inputs, outputs, batch: None, parts: Vec::new(), wire: Wire::F32 })
}
