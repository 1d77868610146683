//! Strangers' devices that say other words than the right ones, and what the coordinator makes of it. It has some words
//! said again by one of the operator's own: each word that comes back other than it was given is found wrong there and
//! then, somebody who lies is among those who are called wrong for it, they get nothing more for as long as they are
//! said to be left out, and nobody honest is called a liar. What nobody could look at is counted.

use std::collections::{BTreeMap, BTreeSet};

use shoal_protocol::{Attempt, FromNode, Lane, NodeId, ToNode};
use shoal_scheduler::{Conn, ProofsView, Ran, Scheduler};

use crate::report::Report;
use crate::world::{Probe, World};

/// A request is its number, and behind that what was said to it.
const NUMBER: usize = 8;

#[derive(Default)]
pub(crate) struct Lies {
    /// Devices of this world may lie.
    pub(crate) are_told: bool,
    /// What the coordinator asked of whom, and did not take back.
    asked: BTreeMap<Attempt, (Conn, Vec<u8>)>,
    /// Whole answers as they were given, by the number of their request.
    over: BTreeMap<u64, Vec<u8>>,
    /// Answers that were wrong, words that were said again, and those that were other ones.
    wrong: u64,
    again: u64,
    found: u64,
    unchecked: u64,
    /// Who gave wrong answers alone, and who was called wrong.
    alone: BTreeSet<NodeId>,
    named: BTreeSet<NodeId>,
}

impl Lies {
    pub(crate) fn told(&mut self, conn: Conn, message: &ToNode) {
        if !self.are_told {
            return;
        }
        if let ToNode::Ask { call, body, .. } = message {
            self.asked.insert(*call, (conn, body.to_vec()));
        } else if let ToNode::AskMore { call, body } = message {
            let (_, asked) = self.asked.get_mut(call).expect("more of nothing");
            asked.extend_from_slice(body);
        } else if let ToNode::Revoke(calls) = message {
            self.asked.retain(|call, _| !calls.contains(call));
        }
    }

    /// Nothing from there is heard any more.
    pub(crate) fn closed(&mut self, conn: Conn) {
        self.asked.retain(|_, (of, _)| *of != conn);
    }

    pub(crate) fn cut_off(&mut self) {
        self.asked.clear();
    }

    /// An answer is complete.
    pub(crate) fn given(&mut self, number: u64, heard: Vec<u8>, is_wrong: bool, ran: Ran) {
        if self.are_told {
            self.over.insert(number, heard);
            self.wrong += u64::from(is_wrong);
            self.alone.extend((is_wrong && ran.stages == 1).then_some(ran.node));
        }
    }

    pub(crate) fn fill(&self, report: &mut Report) {
        (report.wrong_answers, report.lies_found) = (self.wrong, self.found);
        (report.words_again, report.unchecked_answers) = (self.again, self.unchecked);
    }

    /// If this is a word of an answer that was given before, said again, whether it is the same.
    fn same_again(&self, conn: Conn, message: &FromNode) -> Option<bool> {
        let FromNode::Answer { call, at: 0, part, .. } = message else { return None };
        let (_, body) = self.asked.get(call).filter(|(of, _)| *of == conn)?;
        let (number, said) = body.split_first_chunk::<NUMBER>()?;
        let given = self.over.get(&u64::from_le_bytes(*number))?;
        let rest = given.strip_prefix(said).expect("behind words that nobody gave");
        let (length, _) = rest.split_first_chunk::<4>().expect("behind the end");
        let word = rest.get(..4 + u32::from_le_bytes(*length) as usize).expect("a whole word");
        Some(part.starts_with(word))
    }
}

impl<P: Probe> World<P> {
    /// What a node says goes to the coordinator, and what becomes of it is compared with what should.
    pub(crate) fn said(&mut self, conn: Conn, message: FromNode) {
        let same = self.callers.lies.same_again(conn, &message);
        let Some(same) = same else { return self.give_said(conn, message) };
        let device = self.sockets.get(&conn).map(|socket| socket.device as u64);
        assert!(device.is_none_or(|device| device < self.scenario.own), "a stranger looks");
        let Some(before) = self.proofs() else { return self.give_said(conn, message) };
        self.give_said(conn, message);
        let Some(after) = self.proofs() else { return };
        self.callers.lies.again += 1;
        assert_eq!(after.wrong - before.wrong, u64::from(!same), "{before:?} {after:?}");
        if same {
            return;
        }
        self.callers.lies.found += 1;
        let rest = |view: &ProofsView, node| {
            view.suspects.iter().find(|(it, _)| *it == node).map(|it| it.1)
        };
        let mut new =
            after.suspects.iter().filter(|(node, left)| rest(&before, *node) < Some(*left));
        assert!(new.any(|(node, _)| self.lies(*node)), "only honest devices are called wrong");
        self.callers.lies.named.extend(after.suspects.iter().map(|(node, _)| *node));
    }

    fn proofs(&self) -> Option<ProofsView> {
        self.scheduler.as_ref()?.proofs_of(self.clock(), self.callers.service()?)
    }

    fn lies(&self, node: NodeId) -> bool {
        let device = self.devices.get(self.oracle.device_of(node) as usize);
        device.is_some_and(|device| !device.is_honest())
    }

    /// Whoever had part in a wrong answer has nothing of the service.
    pub(crate) fn liars_are_out(&self, live: &Scheduler) {
        let Some(service) = self.callers.service().filter(|_| self.callers.lies.are_told) else {
            return;
        };
        let Some(proofs) = live.proofs_of(self.clock(), service) else { return };
        for view in live.services().iter().filter(|_| !proofs.suspects.is_empty()) {
            let whole = view.replicas.iter().map(|replica| replica.node);
            let parts = view.split.iter().flat_map(|split| &split.stages).map(|stage| stage.node);
            let out = |node| proofs.suspects.iter().all(|(suspect, _)| *suspect != node);
            assert!(whole.chain(parts).all(out), "a liar serves on: {proofs:?}");
        }
    }

    /// Whether all answers are looked at that are to be.
    pub(crate) fn looks_are_over(&self) -> bool {
        let proofs = || self.proofs().filter(|_| self.callers.lies.are_told);
        proofs().is_none_or(|proofs| proofs.waiting == 0)
    }

    /// At the end. That somebody new answered does not go unnoticed: it was looked at, or nobody could.
    pub(crate) fn lies_are_found(&mut self, live: &Scheduler) {
        let Some(service) = self.callers.service().filter(|_| self.callers.lies.are_told) else {
            return;
        };
        let Some(proofs) = live.proofs_of(self.clock(), service) else { return };
        let why = live.explain_service(self.clock(), service).map(|why| why.lines);
        let noticed = proofs.looked_at + proofs.unchecked;
        assert!(proofs.answers == 0 || noticed > 0, "nobody looks: {why:#?}");
        // Where nobody leaves and liars always lie, each of them is found by its first answer.
        let always = self.scenario.spoilers.iter().all(|(_, every)| *every == 1);
        if self.report.faults == 0 && always && proofs.unchecked == 0 {
            let Lies { wrong, found, alone, named, .. } = &self.callers.lies;
            assert!(*wrong == 0 || *found > 0, "wrong answers went unseen: {why:#?}");
            assert!(alone.is_subset(named), "{alone:?} lied, {named:?} were found: {why:#?}");
        }
        self.callers.lies.unchecked = proofs.unchecked;
        for node in live.nodes(self.clock()) {
            let framed = node.trust[Lane::Cpu].wrong > 0 && !self.lies(node.node);
            assert!(!framed, "{} is called a liar: {why:#?}", node.caps.name);
        }
    }
}
