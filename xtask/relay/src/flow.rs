//! How many bytes pass in a second, and how long a small message takes there and back.

use std::path::Path;
use std::thread;
use std::time::Instant;

use serde_json::{Map, Value, json};
use shoal_protocol::limit::LINK_WINDOW;

use crate::Outcome;
use crate::middle::Middle;
use crate::quic;
use crate::wire::Wire;

/// Passed in each measurement.
pub(crate) const TOTAL: usize = 768 << 20;
/// What a receiver takes before it says so.
pub(crate) const ACK_EVERY: usize = 1 << 20;
pub(crate) const ACK_BYTES: usize = 64;
pub(crate) const TRIPS: usize = 3_000;
const TRIP_BYTES: usize = 4 << 10;
const SIZES: [(&str, usize); 2] = [("64KiB", 64 << 10), ("1MiB", 1 << 20)];
/// A browser's mask, drawn once.
const MASK: [u8; 4] = [0x9d, 0x3c, 0x51, 0xe7];

/// Two that talk, and what they say, ready to be sent.
pub(crate) struct Pair {
    pub(crate) one: Wire,
    pub(crate) other: Wire,
    /// From the one, of the size asked for.
    pub(crate) message: Vec<u8>,
    /// From the other, small.
    pub(crate) ack: Vec<u8>,
    /// From the other, of the same size.
    pub(crate) echo: Vec<u8>,
}

impl Pair {
    fn plain((one, other): (Wire, Wire), size: usize) -> Pair {
        let (message, ack) = (one.framed(&vec![0x5a; size]), other.framed(&[1; ACK_BYTES]));
        let echo = other.framed(&vec![0x5a; size]);
        Pair { one, other, message, ack, echo }
    }

    fn crew(middle: &mut Middle, size: usize, mask: [u8; 4]) -> Outcome<Pair> {
        let mut clients = middle.crew(2, mask)?;
        let (Some(other), Some(one)) = (clients.pop(), clients.pop()) else {
            return Err("expected two clients".into());
        };
        let (message, ack) = (one.frame_to(&other, size), other.frame_to(&one, ACK_BYTES));
        let echo = other.frame_to(&one, size);
        Ok(Pair { one: one.wire, other: other.wire, message, ack, echo })
    }
}

/// All ways once, one after the other.
pub(crate) fn measure(python: &str, script: &str, folder: &Path) -> Outcome<Value> {
    let copy = Middle::copy()?;
    let websockets = Middle::python(python, script)?;
    let mut ours = Middle::coordinator(folder)?;
    let quic_folder = folder.with_extension("quic");
    let mut by_quic = Middle::coordinator_quic(&quic_folder)?;
    let mut found = Found::default();
    for (name, size) in SIZES {
        found.flow("none", name, None, Pair::plain(Middle::none()?, size))?;
        found.flow("copy", name, Some(&copy), Pair::plain(copy.bare_pair()?, size))?;
        let pair = Pair::crew(&mut ours, size, [0; 4])?;
        found.flow("ours", name, Some(&ours), pair)?;
        let cpu = by_quic.cpu()?;
        found.note("quic", name.into(), quic::flow(&mut by_quic, size)?);
        let seconds = (by_quic.cpu()? - cpu) * 1e9 / TOTAL as f64;
        found.note("quic", format!("{name} processor seconds per GB"), seconds);
        let pair = Pair::crew(&mut ours, size, MASK)?;
        found.flow("oursMasked", name, Some(&ours), pair)?;
        let pair = Pair::plain(websockets.socket_pair([0; 4])?, size);
        found.flow("python", name, Some(&websockets), pair)?;
    }
    found.trip("none", Pair::plain(Middle::none()?, TRIP_BYTES))?;
    found.trip("copy", Pair::plain(copy.bare_pair()?, TRIP_BYTES))?;
    found.trip("ours", Pair::crew(&mut ours, TRIP_BYTES, [0; 4])?)?;
    found.note("quic", "trip".into(), quic::trip(&mut by_quic, TRIP_BYTES)?);
    found.trip("oursMasked", Pair::crew(&mut ours, TRIP_BYTES, MASK)?)?;
    found.trip("python", Pair::plain(websockets.socket_pair([0; 4])?, TRIP_BYTES))?;
    found.0.insert("dropped".into(), ours.order("")?.into());
    found.0.insert("droppedByQuic".into(), by_quic.order("")?.into());
    drop((ours, by_quic));
    let _ = (std::fs::remove_dir_all(folder), std::fs::remove_dir_all(quic_folder));
    Ok(Value::Object(found.0))
}

#[derive(Default)]
struct Found(Map<String, Value>);

impl Found {
    fn note(&mut self, way: &str, what: String, value: f64) {
        self.0.entry(way).or_insert_with(|| json!({}))[what] = json!(value);
    }

    fn flow(&mut self, way: &str, name: &str, middle: Option<&Middle>, pair: Pair) -> Outcome {
        let cpu = || middle.map_or(Ok(0.0), Middle::cpu);
        let before = cpu()?;
        self.note(way, name.into(), flow(pair)?);
        if middle.is_some() {
            let seconds = (cpu()? - before) * 1e9 / TOTAL as f64;
            self.note(way, format!("{name} processor seconds per GB"), seconds);
        }
        Ok(())
    }

    fn trip(&mut self, way: &str, pair: Pair) -> Outcome {
        let micros = trip(pair)?;
        self.note(way, "trip".into(), micros);
        Ok(())
    }
}

/// Megabytes in a second, from the one to the other, with no more on the way than a link would have.
fn flow(pair: Pair) -> Outcome<f64> {
    let Pair { mut one, mut other, message, ack, .. } = pair;
    let size = message.len();
    let count = TOTAL / size;
    let receiver = thread::spawn(move || -> Outcome<Instant> {
        let mut unsaid = 0;
        for _ in 0..count {
            unsaid += other.skip()?;
            if unsaid >= ACK_EVERY {
                unsaid -= ACK_EVERY;
                other.send(&ack)?;
            }
        }
        Ok(Instant::now())
    });
    let start = Instant::now();
    let mut ahead = 0;
    for _ in 0..count {
        while ahead + size > LINK_WINDOW as usize {
            one.skip()?;
            ahead = ahead.saturating_sub(ACK_EVERY);
        }
        one.send(&message)?;
        ahead += size;
    }
    let end = receiver.join().map_err(|_| "the receiver died")??;
    Ok((count * size) as f64 / 1e6 / end.duration_since(start).as_secs_f64())
}

/// Median microseconds there and back.
fn trip(pair: Pair) -> Outcome<f64> {
    let Pair { mut one, mut other, message, echo, .. } = pair;
    let answerer = thread::spawn(move || -> Outcome {
        for _ in 0..TRIPS {
            other.skip()?;
            other.send(&echo)?;
        }
        Ok(())
    });
    let mut times = Vec::with_capacity(TRIPS);
    for _ in 0..TRIPS {
        let start = Instant::now();
        one.send(&message)?;
        one.skip()?;
        times.push(start.elapsed().as_secs_f64() * 1e6);
    }
    answerer.join().map_err(|_| "the answerer died")??;
    times.sort_by(f64::total_cmp);
    Ok(times[TRIPS / 2])
}
