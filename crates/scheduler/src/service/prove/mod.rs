//! Answers of strangers, looked at. One of the operator's own nodes that keeps all of the service says some steps of an
//! answer again, each behind those before it, and must come to the same. Whoever answers cannot know which answers those
//! are, because they are real ones. The first of every stranger are looked at, later ones by chance, and never for more
//! than a small part of the time that strangers answer.
//!
//! Nobody waits for that: an answer was given before it is looked at. Whoever gave a wrong one gets no more of the
//! service for a while, and what it said something of is broken off. Every answer of strangers is counted once: it was
//! looked at, was not drawn, or should have been looked at and nobody could.
//!
//! - [`draw`]: which answers are looked at, and which of their steps
//! - [`look`]: who says them again, and who does when that one is lost
//! - [`found`]: what follows

mod draw;
mod found;
mod look;

use alloc::collections::{BTreeMap, VecDeque};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use shoal_protocol::{Attempt, JobId, Micros, NodeId, Time};

use super::Service;
use crate::peers::Peer;
use crate::state::Scheduler;
use look::Look;

/// So many answers of a stranger are right before only some are looked at: a broken device shows in the first.
const PROVEN: u32 = 3;

/// What is known of strangers' answers to one service.
#[derive(Default)]
pub(super) struct Proofs {
    /// Answers in a row that were right.
    right: BTreeMap<NodeId, u32>,
    look: Option<Look>,
    /// Those that are looked at next: of each stranger that is not proven one at most.
    waiting: VecDeque<Look>,
    /// How long strangers took for their answers, and how long others looked at them.
    answering: Micros,
    looking: Micros,
    /// Answers in which strangers had part; of those, some were looked at, nobody could look at some that should have
    /// been, and the others were not drawn.
    answers: u64,
    looked_at: u64,
    unchecked: u64,
    passed: u64,
    wrong: u64,
    /// Why the last answer was not looked at that should have been.
    unsure: Option<String>,
    /// Who had part in a wrong answer, and until when that keeps it out.
    suspects: BTreeMap<NodeId, Time>,
    /// The last wrong answer, in words.
    found: Option<String>,
    /// Until then one of the operator's own keeps all of it ready for the next look.
    wanted: Time,
}

/// What people are told of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProofsView {
    /// Answers in which strangers had part.
    pub answers: u64,
    pub looked_at: u64,
    pub wrong: u64,
    /// Those that should have been looked at, and nobody could; and why the last of them was not.
    pub unchecked: u64,
    pub unsure: Option<String>,
    /// Those that are being looked at, or wait for that.
    pub waiting: u64,
    /// The last wrong answer, and who is kept out for how long.
    pub found: Option<String>,
    pub suspects: Vec<(NodeId, Micros)>,
}

impl Proofs {
    /// Whether one of the operator's own keeps the service ready to look at answers.
    pub(super) fn is_wanted(&self, now: Time) -> bool {
        self.look.is_some() || now < self.wanted
    }

    /// Whether a node is kept out for a wrong answer.
    pub(super) fn suspects(&self, now: Time, node: NodeId) -> bool {
        self.suspects.get(&node).is_some_and(|until| *until > now)
    }

    /// The answer that is looked at, and those that wait for that.
    fn pending(&self) -> impl Iterator<Item = &Look> {
        self.look.iter().chain(&self.waiting)
    }

    /// So many answers of a stranger must be looked at beside those that wait for it, before chance may draw them.
    fn lacks(&self, node: NodeId) -> usize {
        let right = self.right.get(&node).map_or(0, |right| *right as usize);
        let waiting = self.pending().filter(|look| look.by.contains(&node)).count();
        (PROVEN as usize).saturating_sub(right + waiting)
    }

    /// An answer that should have been looked at, and nobody could.
    fn nobody_could(&mut self, why: String) {
        self.unchecked += 1;
        self.unsure = Some(why);
    }

    /// Who says a step again now.
    pub(super) fn looker(&self) -> Option<NodeId> {
        Some(self.look.as_ref()?.at.as_ref()?.node)
    }

    /// And as what.
    fn attempt(&self) -> Option<Attempt> {
        Some(self.look.as_ref()?.at.as_ref()?.attempt)
    }
}

impl Scheduler {
    pub fn proofs_of(&self, now: Time, service: JobId) -> Option<ProofsView> {
        let of = self.services.services.get(&service)?;
        if !of.spec.strangers || of.spec.work.steps_again(&[], false).is_none() {
            return None;
        }
        let proofs = &of.proofs;
        let kept_out = proofs.suspects.iter().filter(|(_, until)| **until > now);
        Some(ProofsView {
            answers: proofs.answers,
            looked_at: proofs.looked_at,
            wrong: proofs.wrong,
            unchecked: proofs.unchecked,
            unsure: proofs.unsure.clone(),
            waiting: proofs.pending().count() as u64,
            found: proofs.found.clone(),
            suspects: kept_out.map(|(node, until)| (*node, *until - now)).collect(),
        })
    }

    /// The one version that all of them compute with. None if they differ, or one is not here any more.
    fn engine_of_all(&self, of: &Service, nodes: &[NodeId]) -> Option<String> {
        let mut engines = nodes.iter().map(|node| Some(of.engine_of(self.peers.get(node)?)));
        let first = engines.next()??;
        engines.all(|engine| engine.as_ref() == Some(&first)).then_some(first)
    }

    fn called_node(&self, node: NodeId) -> String {
        let name = self.node_name(node).unwrap_or_default();
        format!("{name} (node {node})")
    }

    /// Part of [`Scheduler::check`].
    pub(super) fn check_looks(&self) {
        let at = self.services.services.iter();
        let at = at.filter_map(|(id, of)| Some((of.proofs.attempt()?, *id)));
        assert!(at.eq(self.looks_by_service()), "looks that nobody knows");
        for Service { proofs, .. } in self.services.services.values() {
            let counted = proofs.looked_at + proofs.unchecked + proofs.passed;
            let pending = proofs.pending().count() as u64;
            assert_eq!(proofs.answers, counted + pending, "answers of strangers counted wrong");
        }
    }

    fn looks_by_service(&self) -> impl Iterator<Item = (Attempt, JobId)> {
        let mut looks: Vec<_> = self.services.looks.iter().map(|(a, id)| (*id, *a)).collect();
        looks.sort_unstable();
        looks.into_iter().map(|(id, attempt)| (attempt, id))
    }
}

impl Service {
    /// The version of the engine that a node computes it with; empty if any engine will do.
    fn engine_of(&self, peer: &Peer) -> String {
        let Some(name) = &self.spec.needs.engine else { return String::new() };
        let engine = peer.caps.engines.iter().find(|engine| engine.name == *name);
        engine.map(|engine| engine.version.clone()).unwrap_or_default()
    }
}
