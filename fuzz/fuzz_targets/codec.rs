//! Bytes from a socket, in both directions: garbage is refused, and what is understood means the same
//! once it is written again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use shoal_protocol::codec::Wire;
use shoal_protocol::{FromNode, ToNode};

fuzz_target!(|bytes: &[u8]| {
    survives::<FromNode>(bytes);
    survives::<ToNode>(bytes);
});

/// By bytes, not by `==`: a number that is none is not equal to itself.
fn survives<M: Wire + std::fmt::Debug>(bytes: &[u8]) {
    let Ok(message) = M::decode(bytes) else { return };
    let written = message.encode();
    match M::decode(&written) {
        Ok(again) => assert_eq!(again.encode(), written, "{message:?} became {again:?}"),
        Err(error) => panic!("{message:?} was written but is {error}"),
    }
}
