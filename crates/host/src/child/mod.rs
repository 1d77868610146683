//! A process that computes for the node, with code that may crash or hang: a library of the donor's, or a driver. It is this
//! program's own file, started anew. [`process`] is one life of it, [`talk`] what the two say to each other,
//! and [`pair`] what that goes through.

mod pair;
mod process;
mod talk;

pub(crate) use process::{LOAD_WITHIN, Process};
pub(crate) use talk::{Word, leave, listen, write};
