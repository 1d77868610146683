//! A language model on this machine's GPU. Drivers crash and hang, so the model is in a [child process](crate::child):
//! [`remote`] asks it on behalf of the conversations, [`worker`] is the child, [`talk`] what they say to each other.

mod remote;
mod talk;
mod worker;

pub(super) use remote::Remote;
pub(super) use talk::Open;
pub use worker::{WORKER, run};
