//! ONNX Runtime beside the engine that is built in. The library is the donor's own, or one that the system has; it is the
//! code of others, so each model has a [child process](crate::child) in which it may crash or hang. [`find`] says where the
//! library is, [`worker`] is the child, [`remote`] what a model's front asks.

mod find;
mod remote;
mod worker;

pub use find::Accelerate;
pub(super) use remote::Accelerator;
pub use worker::{WORKER, run as run_worker};
