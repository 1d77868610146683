//! Words between the crew's module and the brain's, and to the coordinator: bytes, because each module has a
//! memory of its own.

use serde::de::DeserializeOwned;
use shoal_protocol::codec::Wire;
use shoal_protocol::{Attempt, CrewSay, Finished, FromNode, Hash, Micros, UnitOutput};
use wasm_bindgen::prelude::*;

pub(super) fn read<T: DeserializeOwned>(bytes: &[u8], what: &str) -> Result<T, JsError> {
    postcard::from_bytes(bytes)
        .map_err(|error| JsError::new(&format!("{what} that cannot be read: {error}")))
}

pub(super) fn say(say: &CrewSay) -> Vec<u8> {
    // Writing to memory cannot fail.
    postcard::to_allocvec(say).unwrap_or_default()
}

pub(super) fn bytes32(bytes: &[u8], what: &str) -> Result<[u8; 32], JsError> {
    bytes
        .try_into()
        .map_err(|_| JsError::new(&format!("{what} of {} bytes; expected 32", bytes.len())))
}

pub(super) fn hash(text: &str) -> Result<Hash, JsError> {
    text.parse().map_err(|error| JsError::new(&format!("{error}")))
}

/// The message that hands in a member's rows.
pub(super) fn done(attempt: Attempt, output: UnitOutput) -> Vec<u8> {
    let finished = Finished { attempt, took: Micros(0), output };
    FromNode::Done(vec![finished]).encode()
}
