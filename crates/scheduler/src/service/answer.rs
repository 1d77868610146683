//! What nodes say to requests: answers in parts, each byte given once, and failures.

use alloc::string::{String, ToString};
use shoal_protocol::{Attempt, Bytes, Failure, LimitKind, NodeId, Time};

use super::Service;
use super::call::{Asked, By, Call, CallId, Ran};
use super::crew::Crew;
use super::unanswered::{CallError, is_nodes_fault};
use crate::Output;
use crate::state::Scheduler;

/// A part of an answer as a node says it.
pub(crate) struct Part {
    /// Bytes before it.
    pub(crate) at: u64,
    pub(crate) bytes: Bytes,
    pub(crate) last: bool,
}

impl Call {
    /// What is new of a part of its answer: the rest was given before, by whoever was lost.
    fn gives(&mut self, now: Time, of: &Service, asked: Asked, bytes: &Bytes) -> Bytes {
        let skip = self.given.saturating_sub(asked.said).min(bytes.len() as u64) as usize;
        self.said(asked.attempt, asked.said + bytes.len() as u64);
        let new = bytes.slice(skip..);
        if of.spec.work.resumed(&[], &[]).is_none() {
            return new;
        }
        let before = self.answer.get(asked.said as usize..).unwrap_or_default();
        self.is_torn |= !before.starts_with(&bytes[..skip]);
        if !new.is_empty() {
            self.answer.extend_from_slice(&new);
            // It goes on: whoever is lost with it now is another matter.
            self.tries = 1;
            self.hears(now, of.spec.work.steps(&self.answer));
            self.note_speakers(of, asked.by);
        }
        new
    }

    fn note_speakers(&mut self, of: &Service, by: By) {
        let crew = of.crew.iter().filter(|_| by == By::Crew).flat_map(Crew::members);
        let alone = match by {
            By::Node(node) => Some(node),
            By::Crew => None,
        };
        for node in crew.chain(alone) {
            if !self.said_by.contains(&node) {
                self.said_by.push(node);
            }
        }
    }
}

impl Scheduler {
    /// What this node may answer: whoever was asked may, or the last of those who work on it together.
    fn may_answer(&self, call: &Call, node: NodeId, attempt: Attempt) -> Option<Asked> {
        let asked = *call.asked().find(|asked| asked.attempt == attempt)?;
        let may = match asked.by {
            By::Node(asked) => asked == node,
            By::Crew => self.crew_of_call(call).and_then(Crew::last) == Some(node),
        };
        may.then_some(asked)
    }

    /// Whether this node works on it: it may say that it cannot.
    fn works_on(&self, call: &Call, node: NodeId, attempt: Attempt) -> bool {
        call.asked().filter(|asked| asked.attempt == attempt).any(|asked| match asked.by {
            By::Node(asked) => asked == node,
            By::Crew => self.crew_of_call(call).is_some_and(|crew| crew.has(node)),
        })
    }

    fn crew_of_call(&self, call: &Call) -> Option<&Crew> {
        self.services.services.get(&call.service)?.crew.as_ref()
    }

    /// Whoever has a request failed it by its own fault.
    fn erred(&mut self, id: CallId, (node, attempt): (NodeId, Attempt), reason: &str) {
        let Some(call) = self.services.calls.get(&id) else { return };
        let (service, now) = (call.service, self.now);
        let asked = call.asked().find(|asked| asked.attempt == attempt).copied();
        match asked.map(|asked| asked.by) {
            None => {}
            Some(By::Node(_)) => self.replica_erred(service, node, reason),
            Some(By::Crew) => self.seat_erred(now, service, node, reason),
        }
    }

    /// A part of an answer. What whoever asked has already, from a node that was lost, is not given again.
    pub(crate) fn call_answered(&mut self, node: NodeId, attempt: Attempt, part: Part) {
        let Part { at, bytes, last } = part;
        let Some(&id) = self.services.asked.get(&attempt) else { return };
        let Some(call) = self.services.calls.get(&id) else { return };
        let asked = self.may_answer(call, node, attempt);
        let at = at.saturating_add(asked.map_or(0, |asked| asked.from));
        let Some(asked) = asked.filter(|asked| at >= asked.said) else {
            return;
        };
        if at > asked.said {
            let reason = "a part of its answer was lost";
            self.erred(id, (node, attempt), reason);
            self.ask_again_if(id, attempt, reason);
            return;
        }
        let (said, service) = (asked.said + bytes.len() as u64, call.service);
        let of = self.services.services.get(&service);
        let allowed = of.map(|of| of.spec.limits.output);
        if let Some(allowed) = allowed.filter(|most| said > *most) {
            let which = LimitKind::Output;
            let failure = Failure::Limit { item: None, which, allowed, stderr: String::new() };
            self.call_failed(node, attempt, failure);
            return;
        }
        if !bytes.is_empty() || last {
            self.won(id, attempt);
        }
        let services = &mut self.services;
        let (call, of) = (services.calls.get_mut(&id), services.services.get(&service));
        let (Some(call), Some(of)) = (call, of) else { return };
        let bytes = call.gives(self.now, of, asked, &bytes);
        if !bytes.is_empty() || last {
            let waited = asked.since - call.came;
            let crew = of.crew.as_ref().filter(|_| asked.by == By::Crew);
            let stages = crew.map_or(1, Crew::len);
            let ran = Ran { node, waited, took: self.now - asked.since, stages };
            self.outputs.push_back(Output::Answered { call: id, part: bytes, last, ran });
        }
        if last {
            let crewed = call.is_in_crew();
            if let Some(of) = services.services.get_mut(&service) {
                of.answered += 1;
                of.note_answer(self.now, call, call.at.unwrap_or(asked));
                if !crewed {
                    of.note_took(self.now - asked.since);
                }
                if let Some(replica) = of.replicas.get_mut(&node) {
                    replica.faults = 0;
                    replica.note_took(self.now - asked.since);
                }
            }
            self.consider_answer(id, asked);
            self.end_call(id, None);
            if crewed {
                self.crew_answered(service, attempt);
            }
            self.hand_out(service);
        }
    }

    /// A node could not answer.
    pub(crate) fn call_failed(&mut self, node: NodeId, attempt: Attempt, failure: Failure) {
        if self.services.looks.contains_key(&attempt) {
            return self.look_failed(node, attempt, &failure);
        }
        let Some(&id) = self.services.asked.get(&attempt) else { return };
        let Some(call) = self.services.calls.get(&id) else { return };
        if !self.works_on(call, node, attempt) {
            return;
        }
        let service = call.service;
        if is_nodes_fault(&failure) {
            let reason = failure.to_string();
            self.erred(id, (node, attempt), &reason);
            self.ask_again_if(id, attempt, &reason);
        } else if self.falls_out(id, attempt) {
            // The other may know better.
            self.hand_out(service);
        } else {
            self.end_call(id, Some(CallError::Failed { failure, node }));
            self.hand_out(service);
        }
        self.services.due = Some(self.now);
    }
}
