//! The lane for kernels. GPU work cannot be interrupted, so it is done by a child process that can
//! be killed: [`lane`] is the node's side, [`process`] one life of the child, [`worker`] the child
//! itself, [`talk`] what they say to each other.

mod lane;
mod process;
mod talk;
mod worker;

pub(super) use lane::{Access, GpuLane, News};
pub(super) use process::GpuEvent;
pub(super) use talk::Opened;
pub(crate) use worker::run as run_worker;
