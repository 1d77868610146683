//! ONNX Runtime beside the engine that is built in. The library is the donor's own, or one that the system has; it is the
//! code of others, so each model has a child process in which it may crash or hang. [`find`] says where the library is,
//! [`process`] is one life of the child, [`worker`] the child itself, [`remote`] what a model's front asks; [`talk`] is
//! what they say to each other, and [`pair`] what that goes through.

mod find;
mod pair;
mod process;
mod remote;
mod talk;
mod worker;

pub use find::Accelerate;
pub use process::WORKER;
pub(super) use remote::Accelerator;
pub use worker::run as run_worker;
