//! What makes a link between two nodes theirs alone: they agree on keys, seal what the relay carries, and
//! show each other tokens that say what they may do. Pure; its shells are those of `shoal-node`, and the
//! coordinator, which mints tokens.
//!
//! Nothing here draws random numbers: whoever needs some gives them as an argument, fresh for each call.
//!
//! - [`Keys`]: a node's half of a key agreement, and [`is_signed`]: whether somebody stands for it
//! - [`Handshake`]: Noise KK, two messages, then a [`Seal`] for frames
//! - [`stream`]: the same for a stream between two nodes that have a sealed link already
//! - [`token`]: what a link is allowed, as a chain of signed blocks that only get narrower
#![no_std]

extern crate alloc;

mod cipher;
mod handshake;
mod keys;
mod seal;
pub mod stream;
pub mod token;

pub use handshake::{Answering, Handshake, MAX_WORD_BYTES, Parties, ShakeError};
pub use keys::{Keys, is_signed};
pub use seal::{Seal, SealError};
pub use token::{Claims, Denied, Rights, TokenError, attenuate, mint, present, read};
