//! What sealing costs the two ends of a link: the relay itself never sees it.

use std::hint::black_box;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use shoal_protocol::frame::{FrameKind, Header};
use shoal_protocol::limit::{MAX_LINK_FRAME, SEAL_BYTES};
use shoal_protocol::{CrewId, Epoch, NodeId, PublicKey};
use shoal_seal::{Handshake, Keys, Parties, Seal};

use crate::Outcome;

const FRAMES: u64 = 4_000;

/// Megabytes a second that one end seals, and the other opens, of full frames.
pub(crate) fn measure() -> Outcome<Value> {
    let (caller, called) = agreed()?;
    let (mut sealing, mut opening) = (Vec::new(), Vec::new());
    let (mut frame, mut words) = (Vec::with_capacity(MAX_LINK_FRAME), Vec::new());
    for sequence in 0..FRAMES {
        frame.clear();
        frame.extend(header(sequence).encode());
        frame.resize(MAX_LINK_FRAME - SEAL_BYTES, 0x5a);
        let start = Instant::now();
        caller.seal(&mut frame);
        sealing.push(start.elapsed());
        let start = Instant::now();
        black_box(called.open(&frame, &mut words).map_err(|error| format!("{error:?}"))?);
        opening.push(start.elapsed());
    }
    Ok(json!({ "seal": per_second(sealing), "open": per_second(opening) }))
}

/// Of the median, because other work on the machine makes some take long.
fn per_second(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    let median = times.get(times.len() / 2).copied().unwrap_or_default();
    MAX_LINK_FRAME as f64 / 1e6 / median.as_secs_f64()
}

fn header(sequence: u64) -> Header {
    Header {
        kind: FrameKind::Sealed,
        channel: 1,
        length: (MAX_LINK_FRAME - shoal_protocol::frame::HEADER_BYTES) as u32,
        source: NodeId(1),
        destination: NodeId(2),
        crew: CrewId(1),
        epoch: Epoch(1),
        sequence,
    }
}

fn agreed() -> Outcome<(Seal, Seal)> {
    let (one, other) = (Keys::new([1; 32]), Keys::new([2; 32]));
    let (coordinator, crew) = (PublicKey([3; 32]), CrewId(1));
    let parties = Parties { coordinator, crew, caller: NodeId(1), called: NodeId(2) };
    let failed = |error| format!("no agreement: {error:?}");
    let (mut calling, first) =
        Handshake::initiate(&one, &other.public(), &parties, [4; 32], &[]).map_err(failed)?;
    let answering =
        Handshake::respond(&other, &one.public(), &parties, [5; 32], &first).map_err(failed)?;
    let (called, answer) = answering.answer(&[]).map_err(failed)?;
    let (caller, _) = calling.finish(&answer).map_err(failed)?;
    Ok((caller, called))
}
