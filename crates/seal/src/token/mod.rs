//! Capability tokens: what a node may do to the members of a crew. The coordinator signs the first block; the
//! holder may add blocks that allow less, and hands on only what it means to. Blocks are nested: one that
//! allows more than the one before makes the token worthless.
//!
//! A token in its holder's hands ends with a secret, with which the next block is signed. One that is shown
//! ends with a signature by that secret instead, so that neither can its end be cut off nor can whoever sees
//! it add anything.

mod chain;
mod claims;

pub use chain::{MAX_BLOCKS, MAX_TOKEN_BYTES, TokenError, attenuate, mint, present, read};
pub use claims::{Claims, Denied, Rights};
