//! `bench service`: what a request to a program that is kept ready costs, above the program's own run.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Stdio;
use std::time::Instant;

use super::pool::Pool;
use super::report::{Report, Wanted, least, median};
use super::{Plan, build, figures};
use crate::shell::{Outcome, output, root};

const REQUESTS: usize = 2_000;
/// Runs of the same program as a job, on the same node: what a run costs where nobody waits for it.
const RUNS: usize = 4_000;
const MOST_ABOVE_MILLIS: f64 = 0.5;

pub(super) fn run(plan: &Plan) -> Outcome<Report> {
    build(plan)?;
    let program = root().join("examples/programs/target/shout.wasm").display().to_string();
    let (mut trips, mut late, mut own) = (Vec::new(), Vec::new(), Vec::new());
    for round in 1..=plan.rounds {
        plan.say(&format!("round {round}"));
        let mut pool = Pool::start()?;
        let key = pool.running.key.clone();
        pool.add_node(&["--no-gpu", "--cpus", "1", "--key", &key])?;
        own.push(own_run(&pool, &program)?);
        output(&mut pool.client(&["service", "add", "shout", &program]))?;
        let mut line = Line::open(&pool)?;
        (0..REQUESTS / 10).try_for_each(|_| line.ask(b"warm").map(drop))?;
        let times = (0..REQUESTS).map(|_| line.ask(b"hello"));
        let times = times.collect::<Outcome<Vec<_>>>()?;
        trips.push(median(&times));
        late.push(at(&times, 0.99));
    }
    let (trip, own) = (least(&trips), least(&own));
    let mut report = Report::new("service", plan.rounds);
    report.ours("roundTripMillis", trip);
    report.ours("roundTripMillis99", least(&late));
    report.ours("ownRunMillis", own);
    report.ours("aboveOwnRunMillis", trip - own);
    report.judge("aboveOwnRunMillis", trip - own, Wanted::AtMost(MOST_ABOVE_MILLIS));
    report.note("one native node over loopback, one request at a time over one connection; median");
    report
        .note("own run: the same program as a job over many lines on the same node, time by runs");
    Ok(report)
}

/// Milliseconds of one run among many.
fn own_run(pool: &Pool, program: &str) -> Outcome<f64> {
    let lines = std::env::temp_dir().join(format!("shoal-bench-{}.txt", std::process::id()));
    let written = std::fs::write(&lines, "hello\n".repeat(RUNS));
    written.map_err(|error| format!("{}: {error}", lines.display()))?;
    let input = std::fs::File::open(&lines).map_err(|error| error.to_string());
    let mut exec = pool.client(&["exec", program, "--lines", "--json"]);
    let done = figures(exec.stdin(input?).stderr(Stdio::null()));
    // Whatever came of it.
    let _ = std::fs::remove_file(&lines);
    let job = done.map(|mut done| done["job"].take())?;
    let time = |name: &str| job[name].as_f64().ok_or_else(|| format!("the job has no `{name}`"));
    Ok((time("ended")? - time("started")?) / RUNS as f64)
}

fn at(times: &[f64], share: f64) -> f64 {
    let mut times = times.to_vec();
    times.sort_by(f64::total_cmp);
    times.get((times.len() as f64 * share) as usize).copied().unwrap_or(f64::NAN)
}

/// A connection that is kept.
struct Line {
    head: String,
    read: BufReader<TcpStream>,
}

impl Line {
    fn open(pool: &Pool) -> Outcome<Line> {
        let socket = TcpStream::connect(pool.place()).map_err(|error| error.to_string())?;
        socket.set_nodelay(true).map_err(|error| error.to_string())?;
        let (host, key) = (pool.place(), &pool.running.key);
        let head = format!(
            "POST /api/v1/services/shout HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {key}\r\n"
        );
        Ok(Line { head, read: BufReader::new(socket) })
    }

    /// Milliseconds until the whole answer is here.
    fn ask(&mut self, request: &[u8]) -> Outcome<f64> {
        let began = Instant::now();
        let answer = self.exchange(request).map_err(|error| format!("the service: {error}"))?;
        let took = began.elapsed().as_secs_f64() * 1e3;
        if answer == request.to_ascii_uppercase() {
            return Ok(took);
        }
        Err(format!("the service answered `{}`", String::from_utf8_lossy(&answer)))
    }

    fn exchange(&mut self, request: &[u8]) -> std::io::Result<Vec<u8>> {
        let mut asked =
            format!("{}content-length: {}\r\n\r\n", self.head, request.len()).into_bytes();
        asked.extend(request);
        self.read.get_mut().write_all(&asked)?;
        let mut chunked = false;
        let mut length = 0;
        loop {
            let line = self.line()?.to_ascii_lowercase();
            if line.is_empty() {
                break;
            }
            chunked |= line == "transfer-encoding: chunked";
            if let Some(bytes) = line.strip_prefix("content-length: ") {
                length = bytes.parse().map_err(std::io::Error::other)?;
            }
        }
        if !chunked {
            return self.take(length);
        }
        let mut answer = Vec::new();
        loop {
            let size = usize::from_str_radix(&self.line()?, 16).map_err(std::io::Error::other)?;
            answer.extend(self.take(size)?);
            self.line()?;
            if size == 0 {
                return Ok(answer);
            }
        }
    }

    fn line(&mut self) -> std::io::Result<String> {
        let mut line = String::new();
        self.read.read_line(&mut line)?;
        Ok(line.trim_end().to_owned())
    }

    fn take(&mut self, size: usize) -> std::io::Result<Vec<u8>> {
        let mut bytes = vec![0; size];
        self.read.read_exact(&mut bytes)?;
        Ok(bytes)
    }
}
