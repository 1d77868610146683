//! Prints what `cargo xtask types` makes TypeScript of: the schemas of requests and answers, and the constants that
//! both languages must have the same.
#![allow(clippy::print_stdout, reason = "what it prints is read by another program")]

use serde_json::{Value, json};
use shoal_api::schema::{answers, requests};
use shoal_kinds::{Kind, Told};
use shoal_peer::agreed;
use shoal_protocol::{frame, limit, quic, sign, swarm};

const KIND: &str = "crates/kinds/src/kind.rs";
const FRAME: &str = "crates/protocol/src/frame.rs";
const LIMIT: &str = "crates/protocol/src/limit.rs";
const QUIC: &str = "crates/protocol/src/quic.rs";
const SWARM: &str = "crates/protocol/src/swarm.rs";
const SIGN: &str = "crates/protocol/src/sign.rs";
const PART: &str = "crates/peer/src/part.rs";
const WORDS: &str = "crates/peer/src/words.rs";

fn main() {
    let constants = [kinds(), protocol(), peer()].concat();
    let constants = constants.iter().map(|(name, value, file, constant)| {
        json!({ "name": name, "value": value, "file": file, "constant": constant })
    });
    let all = json!({
        "requests": requests().schemas,
        "answers": answers().schemas,
        "constants": constants.collect::<Vec<_>>(),
    });
    println!("{all}");
}

/// Its name in TypeScript, its value, the file it is in and its name there.
type Constant = (&'static str, Value, &'static str, &'static str);

/// What people are told of each kind.
fn kinds() -> Vec<Constant> {
    let all = Kind::told().into_iter().map(|(name, Told { donor, item, items })| {
        (String::from(name), json!({ "donor": donor, "item": item, "items": items }))
    });
    vec![("KINDS", Value::Object(all.collect()), KIND, "told")]
}

fn protocol() -> Vec<Constant> {
    let same = |name, value: Value, file| (name, value, file, name);
    vec![
        same("MAX_FRAME_BYTES", limit::MAX_FRAME_BYTES.into(), LIMIT),
        same("MAX_INLINE_BYTES", limit::MAX_INLINE_BYTES.into(), LIMIT),
        same("MAX_STDERR_BYTES", limit::MAX_STDERR_BYTES.into(), LIMIT),
        same("MAX_VIEW_SIDE", limit::MAX_VIEW_SIDE.into(), LIMIT),
        same("LINK_WINDOW", limit::LINK_WINDOW.into(), LIMIT),
        same("PIECE_BYTES", limit::PIECE_BYTES.into(), LIMIT),
        same("SHARED_FROM", limit::SHARED_FROM.into(), LIMIT),
        same("FRAME_VERSION", frame::FRAME_VERSION.into(), FRAME),
        same("HEADER_BYTES", frame::HEADER_BYTES.into(), FRAME),
        same("LENGTH_AT", frame::LENGTH_AT.into(), FRAME),
        same("CREW_AT", frame::CREW_AT.into(), FRAME),
        same("FIRST_OF_FRAMES", frame::FIRST_OF_FRAMES.into(), FRAME),
        same("BLOBS", swarm::BLOBS.into(), SWARM),
        same("CODE_DOMAIN", sign::CODE_DOMAIN.into(), SIGN),
        ("QUIC_ACCEPTED", quic::ACCEPTED.into(), QUIC, "ACCEPTED"),
    ]
}

/// Of `@shoal/sdk/gpu-p2p`.
fn peer() -> Vec<Constant> {
    vec![
        ("PEER_VERSION", agreed::VERSION.into(), WORDS, "VERSION"),
        ("PEER_CONTROL", agreed::CONTROL.into(), WORDS, "CONTROL"),
        ("PEER_FIRST_DATA", agreed::FIRST_DATA.into(), WORDS, "FIRST_DATA"),
        ("PEER_DATA_CHANNELS", agreed::DATA_CHANNELS.into(), WORDS, "DATA_CHANNELS"),
        ("PEER_WORDS_BYTES", agreed::MAX_WORDS_BYTES.into(), WORDS, "MAX_WORDS_BYTES"),
        ("PEER_PART_BYTES", agreed::PART_BYTES.into(), PART, "PART_BYTES"),
        ("PEER_WINDOW_BYTES", agreed::WINDOW_BYTES.into(), PART, "WINDOW_BYTES"),
    ]
}
