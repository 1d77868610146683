//! The lane for kernels. GPU work cannot be interrupted, so it is done by a child process that can
//! be killed: [`lane`] is the node's side, with what it knows of units ([`unit`]) and crews ([`crews`]);
//! [`process`] is one life of the child, [`worker`] the child itself, with its [`device`] and a [`band`] for
//! each crew; [`talk`] is what they say to each other.

mod band;
mod crews;
mod device;
mod lane;
mod process;
mod sim_talk;
mod talk;
mod unit;
mod worker;

pub(super) use lane::{GpuLane, News};
pub(super) use process::GpuEvent;
pub(super) use talk::Opened;
pub(super) use unit::Access;
pub(crate) use worker::run as run_worker;
