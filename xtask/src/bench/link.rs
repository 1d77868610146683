//! `bench link`: there and back and megabytes a second between tabs and native nodes, beside a data channel by hand and
//! a bare TCP connection.

use std::io::{self, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::Instant;

use serde_json::Value;

use super::pool::Pool;
use super::report::{Report, Wanted, least, most};
use super::{Plan, build, figures, load, node};
use crate::shell::Outcome;

const LEAST_OF_BARE: f64 = 0.8;
const BARE: &str = "tab to tab by hand";
const NATIVE: &str = "native to native directly";
/// Of a bare TCP copy, between two native nodes.
const LEAST_OF_TCP: f64 = 0.5;
/// As the links are measured: so many trips of so many bytes, and so much in one flow.
const TRIPS: usize = 50;
const TRIP_BYTES: usize = 64;
const FLOW_BYTES: usize = 16 << 20;
const MESSAGE_BYTES: usize = 1 << 20;

pub(super) fn run(plan: &Plan) -> Outcome<Report> {
    build(plan)?;
    let pool = Pool::start()?;
    let rounds = plan.rounds.to_string();
    let words = ["e2e/bench/link.mjs", &pool.running.url, pool.token(), &rounds];
    let mut tcp = bare_tcp(plan.rounds)?;
    let found = figures(node().args(words))?;
    tcp.extend(bare_tcp(plan.rounds)?);
    let mut report = Report::new("link", plan.rounds);
    let (bare_trip, bare_speed) = (trip(&found, BARE)?, speed(&found, BARE)?);
    report.peer(&format!("ms there and back, {BARE}"), bare_trip);
    report.peer(&format!("MB/s, {BARE}"), bare_speed);
    let ways = found.as_object().into_iter().flatten().map(|(way, _)| way.as_str());
    for way in ways.filter(|way| *way != BARE) {
        let (trip, speed) = (trip(&found, way)?, speed(&found, way)?);
        report.ours(&format!("ms there and back, {way}"), trip);
        report.ours(&format!("MB/s, {way}"), speed);
        let ratio = format!("MB/s to the one by hand, {way}");
        if way.ends_with("directly") {
            report.ratio(&ratio, speed / bare_speed, Wanted::AtLeast(LEAST_OF_BARE));
            let fell = found[way]["fell"].as_f64().unwrap_or_default();
            report.ours(&format!("times fallen back to the relay, {way}"), fell);
            report.aside(&format!("trips to those by hand, {way}"), trip / bare_trip);
        } else if way.ends_with("by relay") {
            report.aside(&ratio, speed / bare_speed);
        }
    }
    beside_tcp(&mut report, &found, &tcp)?;
    report.note(
        "16 MiB until the other end said it has them, 4 MiB under way: 1 MiB a message, by hand 64 KiB a message; trips of 64 \
         bytes, the median of 50; the best round of each, in turn. By hand the pages do all themselves; ours hash, check and \
         by relay seal, in Workers; native nodes seal, hash and check between them, bare TCP does nothing of it",
    );
    report.note("`ms away`: a TCP relay before the coordinator that is late, each way between two nodes in all");
    report.note("direct links over a delayed network are not measured: this kernel has no netem");
    report.note(load());
    Ok(report)
}

/// Two native nodes beside a TCP connection that neither seals nor hashes.
fn beside_tcp(report: &mut Report, found: &Value, tcp: &[Bare]) -> Outcome<()> {
    let bare_trip = least(&tcp.iter().map(|bare| bare.trip).collect::<Vec<_>>());
    let bare_speed = most(&tcp.iter().map(|bare| bare.per_second).collect::<Vec<_>>());
    report.peer("ms there and back, bare TCP", bare_trip);
    report.peer("MB/s, bare TCP", bare_speed);
    let (trip, speed) = (trip(found, NATIVE)?, speed(found, NATIVE)?);
    let ratio = format!("MB/s to bare TCP, {NATIVE}");
    report.ratio(&ratio, speed / bare_speed, Wanted::AtLeast(LEAST_OF_TCP));
    report.aside(&format!("trips to those of bare TCP, {NATIVE}"), trip / bare_trip);
    Ok(())
}

/// One round over a TCP connection on loopback.
struct Bare {
    /// Milliseconds of a usual trip.
    trip: f64,
    /// Megabytes.
    per_second: f64,
}

/// Before and after the links, so that a busy moment does not strike one alone.
fn bare_tcp(rounds: usize) -> Outcome<Vec<Bare>> {
    (0..rounds).map(|_| bare_round().map_err(|error| format!("bare TCP: {error}"))).collect()
}

fn bare_round() -> io::Result<Bare> {
    let door = TcpListener::bind("127.0.0.1:0")?;
    let mut socket = TcpStream::connect(door.local_addr()?)?;
    let (other, _) = door.accept()?;
    socket.set_nodelay(true)?;
    let echo = std::thread::spawn(move || answer(other));
    let mut word = [1; TRIP_BYTES];
    let mut times = Vec::with_capacity(TRIPS);
    for _ in 0..TRIPS {
        let begun = Instant::now();
        socket.write_all(&word)?;
        socket.read_exact(&mut word)?;
        times.push(begun.elapsed().as_secs_f64() * 1e3);
    }
    times.sort_by(f64::total_cmp);
    let message = vec![1; MESSAGE_BYTES];
    let begun = Instant::now();
    for _ in 0..FLOW_BYTES / MESSAGE_BYTES {
        socket.write_all(&message)?;
    }
    socket.read_exact(&mut word[..1])?;
    let per_second = FLOW_BYTES as f64 / 1e6 / begun.elapsed().as_secs_f64();
    echo.join().map_err(|_| io::Error::other("the other end panicked"))??;
    Ok(Bare { trip: times[TRIPS / 2], per_second })
}

/// The other end: sends trips back, then says when it has the flow.
fn answer(mut socket: TcpStream) -> io::Result<()> {
    socket.set_nodelay(true)?;
    let mut word = [0; TRIP_BYTES];
    for _ in 0..TRIPS {
        socket.read_exact(&mut word)?;
        socket.write_all(&word)?;
    }
    let mut message = vec![0; MESSAGE_BYTES];
    for _ in 0..FLOW_BYTES / MESSAGE_BYTES {
        socket.read_exact(&mut message)?;
    }
    socket.write_all(&[1])
}

fn trip(found: &Value, way: &str) -> Outcome<f64> {
    Ok(least(&numbers(found, way, "trip")?))
}

fn speed(found: &Value, way: &str) -> Outcome<f64> {
    Ok(most(&numbers(found, way, "perSecond")?))
}

fn numbers(found: &Value, way: &str, what: &str) -> Outcome<Vec<f64>> {
    let numbers = found[way][what].as_array().map(|all| all.iter().filter_map(Value::as_f64));
    numbers.map(Iterator::collect).ok_or_else(|| format!("no {what} of {way} in {found}"))
}
