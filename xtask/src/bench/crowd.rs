//! The crowd that `bench nodes` lets join: a program of its own, seen through the lines it prints.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::Deserialize;

use super::pool::{Pool, roomy};
use crate::shell::{Outcome, cargo, not_started, run, target};

const LOOK: Duration = Duration::from_millis(20);
const PATIENCE: Duration = Duration::from_secs(120);
/// A coordinator that needs longer for a word is not responsive.
const ASK_WITHIN: Duration = Duration::from_secs(10);

/// A line of the crowd.
#[derive(Clone, Copy, Deserialize)]
struct Line {
    joined: u64,
    /// Connections tried since the line before.
    tries: u64,
}

pub(super) struct Swarm {
    child: Child,
    lines: Arc<Mutex<Vec<(Instant, Line)>>>,
}

/// How a crowd came (back).
pub(super) struct Coming {
    pub(super) seconds: f64,
    /// Most connections tried within a tenth of a second while the coordinator was there.
    pub(super) most_tries: f64,
    /// Seconds of the slowest answer to somebody else meanwhile.
    pub(super) slowest_answer: f64,
}

impl Swarm {
    pub(super) fn build() -> Outcome {
        run(cargo().args(["build", "--quiet", "--release", "--package", "xtask-swarm"]))
    }

    pub(super) fn start(pool: &Pool, nodes: u64) -> Outcome<Swarm> {
        let token = pool.running.join.split_once('#').map(|(_, token)| token).unwrap_or_default();
        let token = token.split('&').next().unwrap_or_default();
        let mut swarm = roomy(&target().join("release/xtask-swarm"));
        swarm.args([pool.place(), token, &nodes.to_string()]);
        swarm.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = swarm.spawn().map_err(|error| not_started(&swarm, &error))?;
        let lines = Arc::new(Mutex::new(Vec::new()));
        if let Some(stdout) = child.stdout.take() {
            let lines = lines.clone();
            std::thread::spawn(move || {
                for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                    if let Ok(line) = serde_json::from_str(&line) {
                        let mut lines = lines.lock().unwrap_or_else(PoisonError::into_inner);
                        lines.push((Instant::now(), line));
                    }
                }
            });
        }
        Ok(Swarm { child, lines })
    }

    /// Waits until so many are joined that were not so at some time since `from`, while somebody else
    /// asks the coordinator for its health.
    pub(super) fn wait(&self, pool: &Pool, nodes: u64, from: Instant) -> Outcome<Coming> {
        // It can be reached by now; what was tried before cost it nothing.
        let (up, mut slowest) = (Instant::now(), 0.0_f64);
        while from.elapsed() < PATIENCE {
            if let Some(took) = ask(pool.place()) {
                slowest = slowest.max(took.as_secs_f64());
            }
            let lines = self.since(from);
            let away = lines.iter().position(|(_, line)| line.joined < nodes);
            let back =
                away.and_then(|away| lines[away..].iter().find(|(_, line)| line.joined >= nodes));
            if let Some((at, _)) = back {
                let seconds = at.duration_since(from).as_secs_f64();
                let most_tries = most_tries(&lines, up);
                return Ok(Coming { seconds, most_tries, slowest_answer: slowest });
            }
            std::thread::sleep(LOOK);
        }
        let joined = self.since(from).last().map_or(0, |(_, line)| line.joined);
        Err(format!("{joined} of {nodes} nodes are there after {} s", PATIENCE.as_secs()))
    }

    fn since(&self, from: Instant) -> Vec<(Instant, Line)> {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().filter(|(at, _)| *at >= from).copied().collect()
    }
}

impl Drop for Swarm {
    fn drop(&mut self) {
        // Already gone is as good.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn most_tries(lines: &[(Instant, Line)], from: Instant) -> f64 {
    let tried: Vec<u64> =
        lines.iter().filter(|(at, _)| *at >= from).map(|(_, line)| line.tries).collect();
    // A line is a twentieth of a second.
    tried.windows(2).map(|pair| pair[0] + pair[1]).max().unwrap_or(0) as f64
}

/// How long the coordinator takes to say that it is well.
fn ask(place: &str) -> Option<Duration> {
    let start = Instant::now();
    let address: SocketAddr = place.parse().ok()?;
    let mut stream = TcpStream::connect_timeout(&address, ASK_WITHIN).ok()?;
    stream.set_read_timeout(Some(ASK_WITHIN)).ok()?;
    let request = format!("GET /healthz HTTP/1.1\r\nHost: {place}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).ok()?;
    answer.starts_with(b"HTTP/1.1 200").then(|| start.elapsed())
}
