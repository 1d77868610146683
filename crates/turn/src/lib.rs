//! STUN (RFC 8489) and TURN (RFC 8656) as a client speaks them: how a machine looks from outside, and an
//! address on a server that passes on what comes there. Pure; its shell is the radio of the native node.
//!
//! The contract of [`Turn`]: give it what came and the time, then send what [`Turn::poll`] gives to the server and
//! act on what [`Turn::news`] says. It never reads a clock or a socket; chance is its seed. Over TCP and TLS,
//! [`Stream`] cuts what comes into messages.
#![no_std]
#![cfg_attr(test, allow(clippy::unwrap_used))]

extern crate alloc;

mod message;
mod place;
mod stream;
mod stun;
mod turn;

pub use message::Id;
pub use place::{By, Place, place};
pub use stream::{OutOfStep, Stream, is_data};
pub use stun::{answer, ask};
pub use turn::{Access, Fault, News, Turn};
