//! Measuring links: it answers whoever calls, and calls and measures on order. Orders are lines of its input, answers
//! are lines of JSON.
//!
//! What is said on channel 1 is said back on channel 2; of channel 3 what came is told on channel 2, as four
//! bytes with its length.

use std::io::{BufRead as _, Write as _};
use std::sync::Arc;
use std::time::Instant;

use serde_json::json;
use shoal_protocol::{CrewId, NodeId, Path};
use tokio::sync::mpsc;

use super::{Order, Talk};
use crate::{Event, Host};

const ASK: u16 = 1;
const ANSWER: u16 = 2;
const FLOW: u16 = 3;

/// Whom this node talks to, and what it measures of that.
#[derive(Default)]
pub(crate) struct Measure {
    with: Option<(CrewId, NodeId)>,
    task: Task,
}

#[derive(Default)]
enum Task {
    #[default]
    Rest,
    Trips {
        left: usize,
        message: Arc<Vec<u8>>,
        since: Instant,
        millis: Vec<f64>,
    },
    Flow {
        bytes: usize,
        message: Arc<Vec<u8>>,
        /// Messages that may be under way.
        ahead: usize,
        sent: usize,
        arrived: usize,
        since: Instant,
    },
}

/// The lines of its input, until it ends.
pub(super) fn read(to_loop: &mpsc::Sender<Event>) {
    let lines = std::io::stdin().lock().lines().map_while(Result::ok);
    for order in lines.map(Order::Line).chain([Order::End]) {
        if to_loop.blocking_send(Event::Order(order)).is_err() {
            return;
        }
    }
}

impl Measure {
    pub(super) fn met(&mut self, crew: CrewId, node: NodeId) {
        self.with = Some((crew, node));
        answer(&json!({ "met": node.0 }));
    }

    pub(super) fn not_met(&self, node: NodeId) {
        answer(&json!({ "notMet": node.0 }));
    }

    pub(super) fn using(&self, path: Path) {
        let via = match path {
            Path::Relay => "relay",
            Path::Direct => "direct",
        };
        answer(&json!({ "via": via }));
    }
}

impl Host<'_> {
    /// `meet NODE`, `trips COUNT SIZE`, or `flow BYTES MESSAGE AHEAD`.
    pub(super) fn measure_order(&mut self, line: &str) {
        let mut words = line.split_whitespace();
        let name = words.next().unwrap_or_default();
        let numbers: Vec<usize> = words.filter_map(|word| word.parse().ok()).collect();
        let Some(Talk::Measure(talk)) = &mut self.talk else { return };
        match (name, &numbers[..]) {
            ("meet", [node]) => return self.meet(NodeId(*node as u64)),
            ("trips", [left, size]) => {
                let (left, message) = (*left, Arc::new(vec![0; *size]));
                let (since, millis) = (Instant::now(), Vec::new());
                talk.task = Task::Trips { left, message, since, millis };
            }
            ("flow", [bytes, size, ahead]) => {
                let (bytes, ahead, message) = (*bytes, *ahead, Arc::new(vec![0; *size]));
                let (sent, arrived, since) = (0, 0, Instant::now());
                talk.task = Task::Flow { bytes, message, ahead, sent, arrived, since };
            }
            _ => return answer(&json!({ "unknown": line })),
        }
        self.measure_on();
    }

    pub(super) fn measure_heard(
        &mut self,
        crew: CrewId,
        from: NodeId,
        channel: u16,
        bytes: Vec<u8>,
    ) {
        let reply = match channel {
            ASK => bytes,
            FLOW => (bytes.len() as u32).to_le_bytes().to_vec(),
            _ => return self.measure_answered(&bytes),
        };
        self.talk_say(crew, from, ANSWER, Arc::new(reply));
    }

    fn measure_answered(&mut self, bytes: &[u8]) {
        let Some(Talk::Measure(talk)) = &mut self.talk else { return };
        match &mut talk.task {
            Task::Rest => {}
            Task::Trips { since, millis, left, .. } => {
                millis.push(since.elapsed().as_secs_f64() * 1e3);
                *left = left.saturating_sub(1);
                *since = Instant::now();
            }
            Task::Flow { arrived, .. } => {
                *arrived +=
                    bytes.first_chunk().map_or(0, |size| u32::from_le_bytes(*size)) as usize;
            }
        }
        self.measure_on();
    }

    /// Says what the task has to say now, or that it is done.
    fn measure_on(&mut self) {
        let Some(Talk::Measure(measure)) = &mut self.talk else { return };
        let Measure { with: Some((crew, to)), task } = measure else { return };
        let ((crew, to), mut says) = ((*crew, *to), Vec::new());
        match task {
            Task::Rest => {}
            Task::Trips { left: 0, millis, .. } => {
                answer(&json!({ "trips": millis }));
                *task = Task::Rest;
            }
            Task::Trips { message, .. } => says.push((ASK, message.clone())),
            Task::Flow { bytes, arrived, since, .. } if *arrived >= *bytes => {
                answer(&json!({ "seconds": since.elapsed().as_secs_f64() }));
                *task = Task::Rest;
            }
            Task::Flow { bytes, message, ahead, sent, arrived, .. } => {
                while *sent < *bytes && *sent - *arrived < *ahead * message.len() {
                    *sent += message.len().max(1);
                    says.push((FLOW, message.clone()));
                }
            }
        }
        for (channel, message) in says {
            self.talk_say(crew, to, channel, message);
        }
    }
}

fn answer(value: &serde_json::Value) {
    let mut out = std::io::stdout().lock();
    // Whoever gave the order may be gone.
    let _ = writeln!(out, "{value}").and_then(|()| out.flush());
}
