//! Joining, staying joined, and leaving.

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use shoal_protocol::limit::{
    HEARTBEAT, IDLE_HEARTBEAT, PROTOCOL_VERSION, RECONNECT_FIRST, RECONNECT_LONGEST,
};
use shoal_protocol::{
    Caps, Condition, FromNode, Held, Hello, Micros, NodeId, Refusal, Signature, Time, UnitOutput,
};

use crate::Output;
use crate::execute::FLUSH_EVERY;
use crate::state::{Node, Phase};

/// A coordinator that does not answer a greeting in this time is not one, or is overwhelmed.
const GREETING: Micros = Micros::from_secs(10);
/// Doublings of the wait between two attempts to connect; the longest wait is reached before.
const MAX_DOUBLINGS: u32 = 8;
/// Ten thousand nodes that lose their coordinator together come back over this time, not in the same instant.
const FIRST_SPREAD: Micros = Micros::from_millis(1_500);

impl Node {
    pub(crate) fn connect(&mut self) {
        self.phase = Phase::Connecting;
        self.outputs.push_back(Output::Connect);
    }

    /// The coordinator speaks first: its challenge.
    pub(crate) fn opened(&mut self, now: Time) {
        self.phase = Phase::Greeting { until: now + GREETING };
    }

    pub(crate) fn challenged(&mut self, statement: Vec<u8>) {
        if matches!(self.phase, Phase::Greeting { .. }) {
            self.challenge = Some(statement.clone());
            self.outputs.push_back(Output::Sign(statement));
        }
    }

    pub(crate) fn greet(&mut self, statement: &[u8], proof: Signature) {
        // The answer to an earlier connection's challenge proves nothing here.
        if self.challenge.take_if(|asked| asked == statement).is_none() {
            return;
        }
        // Stored answers lived in the old connection; what can be offered again is what this node has.
        self.finished.retain(|answer| matches!(answer.finished.output, UnitOutput::Inline(_)));
        let hello = Hello {
            version: PROTOCOL_VERSION,
            token: self.config.token.clone(),
            identity: self.config.identity,
            proof,
            caps: self.config.caps.clone(),
            held: self.held(),
        };
        self.send(FromNode::Hello(Box::new(hello)));
    }

    fn held(&self) -> Vec<Held> {
        let queued = self.queues.values().flatten();
        let queued = queued.map(|l| Held { attempt: l.attempt, job: l.job, span: l.span });
        let running = self.running.iter();
        let running = running.map(|(a, r)| Held { attempt: *a, job: r.job, span: r.span });
        let finished = self.finished.iter();
        let finished =
            finished.map(|f| Held { attempt: f.finished.attempt, job: f.job, span: f.span });
        queued.chain(running).chain(finished).collect()
    }

    pub(crate) fn welcomed(&mut self, now: Time, node: NodeId, session: alloc::string::String) {
        self.phase = Phase::Joined(node);
        self.session = Some(session);
        self.misses = 0;
        self.next_beat = now + HEARTBEAT;
        self.told_pause = self.paused;
        if self.paused {
            self.send(FromNode::Pause(true));
        }
        if self.condition != Condition::default() {
            self.send(FromNode::Condition(self.condition));
        }
        let held: BTreeSet<_> = self.held().iter().map(|held| held.job).collect();
        let over: Vec<_> = self.jobs.keys().filter(|job| !held.contains(job)).copied().collect();
        for job in over {
            self.forget(job);
        }
        self.elsewhere.clear();
        self.leave_pairs();
        self.prove_links();
    }

    pub(crate) fn refused(&mut self, now: Time, refusal: Refusal) {
        if refusal.is_final() {
            self.stop(Some(refusal));
        } else {
            self.outputs.push_back(Output::Disconnect);
            self.lost(now);
        }
    }

    /// The connection is gone: go on computing, and try again after a while.
    pub(crate) fn lost(&mut self, now: Time) {
        if matches!(self.phase, Phase::Waiting { .. } | Phase::Idle) {
            return;
        }
        self.session = None;
        self.leave_quic();
        self.challenge = None;
        let doublings = self.misses.min(MAX_DOUBLINGS);
        let wait = (RECONNECT_FIRST.0 << doublings).min(RECONNECT_LONGEST.0);
        self.misses = self.misses.saturating_add(1);
        let spread = if doublings == 0 { FIRST_SPREAD.0 } else { wait / 2 };
        let wait = wait / 2 + self.next_random() % (spread + 1);
        self.phase = Phase::Waiting { until: now + Micros(wait) };
        // Whoever asked hears that the connection is gone, and asks another.
        self.fail_calls(None);
    }

    pub(crate) fn stop(&mut self, refusal: Option<Refusal>) {
        let running: Vec<_> = self.running.keys().copied().collect();
        for attempt in running {
            self.outputs.push_back(Output::Abort(attempt));
        }
        self.leave_crews(None);
        self.running.clear();
        self.finished.clear();
        self.queues = Default::default();
        self.jobs.clear();
        self.session = None;
        self.leave_quic();
        self.phase = Phase::Stopped;
        self.fail_calls(None);
        self.outputs.push_back(Output::Disconnect);
        self.outputs.push_back(Output::Stopped(refusal));
    }

    pub(crate) fn offer(&mut self, caps: Caps) {
        self.config.caps = caps.clone();
        self.overdrawn = !caps.holds(&self.in_use());
        if self.is_joined() {
            self.send(FromNode::Caps(caps));
        }
        self.begin_all();
    }

    pub(crate) fn pause(&mut self, paused: bool) {
        if self.paused == paused {
            return;
        }
        self.paused = paused;
        self.told_pause = true;
        if self.is_joined() {
            self.send(FromNode::Pause(paused));
        }
        if paused {
            self.fail_calls(None);
            self.hand_back();
            self.leave_work();
        }
    }

    pub(crate) fn feel(&mut self, condition: Condition) {
        let changed = core::mem::replace(&mut self.condition, condition) != condition;
        if changed && self.is_joined() {
            self.send(FromNode::Condition(condition));
        }
    }

    pub fn next_timeout(&self) -> Option<Time> {
        match self.phase {
            Phase::Idle | Phase::Connecting | Phase::Stopped => None,
            Phase::Greeting { until } | Phase::Waiting { until } => Some(until),
            Phase::Joined(_) => {
                let flush = (!self.finished.is_empty()).then_some(self.last_flush + FLUSH_EVERY);
                let quic = self.quic.next_timeout(!self.crews.is_empty());
                flush.into_iter().chain(quic).chain([self.next_beat]).min()
            }
        }
    }

    pub(crate) fn on_time(&mut self, now: Time) {
        match self.phase {
            Phase::Waiting { until } if now >= until => self.connect(),
            Phase::Greeting { until } if now >= until => {
                self.outputs.push_back(Output::Disconnect);
                self.lost(now);
            }
            Phase::Joined(_) => {
                self.flush_if_due(now);
                self.beat_if_due(now);
                self.quic_if_due(now);
            }
            Phase::Idle
            | Phase::Connecting
            | Phase::Greeting { .. }
            | Phase::Waiting { .. }
            | Phase::Stopped => {}
        }
    }

    fn beat_if_due(&mut self, now: Time) {
        let pace = if self.holds_units() { HEARTBEAT } else { IDLE_HEARTBEAT };
        // An idle node that was lent units must not wait out its idle beat.
        self.next_beat = self.next_beat.min(now + pace);
        if now >= self.next_beat {
            let running = self.running.keys().copied().collect();
            let queued = self.queues.values().flatten().map(|lease| lease.attempt);
            let unsent = self.finished.iter().map(|answer| answer.finished.attempt);
            let queued = queued.chain(unsent).collect();
            self.send(FromNode::Alive { running, queued });
            if self.told_pause {
                // Said again, in case it was lost: a node thought to be paused gets nothing for ever.
                self.send(FromNode::Pause(self.paused));
            }
            self.say_declined_again();
            self.next_beat = now + pace;
        }
    }

    /// Xorshift: good enough to spread reconnects.
    fn next_random(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random
    }
}
