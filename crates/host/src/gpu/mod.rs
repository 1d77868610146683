//! The lane for kernels. GPU work cannot be interrupted, so it is done by a child process that can
//! be killed: [`lane`] is the node's side, which obeys [`shoal_node::supervise`]; [`process`] is one life of the
//! child, [`worker`] the child itself, with its [`device`] and a [`band`] for each crew; [`talk`] is what they say
//! to each other.

mod band;
mod device;
mod lane;
mod process;
mod sim_talk;
mod talk;
mod worker;

pub(super) use lane::{GpuLane, News};
pub use process::WORKER;
pub(super) use process::{Access, GpuEvent};
pub(super) use talk::Opened;
pub use worker::run as run_worker;
