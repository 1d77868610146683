//! Answers of strangers, looked at. One of the operator's own nodes that keeps all of the service says some steps of an
//! answer again, each behind those before it, and must come to the same. Whoever answers cannot know which answers those
//! are, because they are real ones. The first of every stranger are looked at, later ones by chance, and never for more
//! than a small part of the time that strangers answer.
//!
//! Nobody waits for that: an answer was given before it is looked at. Whoever gave a wrong one gets no more of the
//! service for a while, and what it is in the middle of is broken off.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use shoal_protocol::{Attempt, Bytes, Failure, JobId, Micros, NodeId, Time};

use super::Service;
use super::answer::Part;
use super::call::{Asked, By, CallId};
use super::unanswered::CallError;
use crate::peers::Peer;
use crate::state::Scheduler;

/// So many answers of a stranger are right before only some are looked at: a broken device shows in the first.
const PROVEN: u32 = 3;
/// One in so many answers of proven strangers is looked at, drawn by chance, so that none knows which.
const LOOK_ONE_IN: u64 = 8;
/// Of the time that strangers take to answer, looking takes one part in so many at most: a few percent are little beside
/// what they bring.
const PART_OF_TIME: u64 = 50;
/// Steps of an answer that are said again at most. Between two of them an engine only reads, which is many times faster:
/// whoever changes every step is found by one, whoever changes one in ten by five looks in nine.
const STEPS: usize = 8;
/// A longer question and answer are not kept until somebody has time for them.
const MOST_LOOKED_AT: u64 = 4 << 20;
/// What is said again is one step.
const MOST_HEARD: usize = 1 << 17;
/// It may have to load a model first, and give way to requests: after that, another answer does as well.
const LOOK_WITHIN: Micros = Micros::from_secs(120);
/// Whoever made all of it ready to look at answers keeps it for so long after the last look began.
const LOOKER_STAYS: Micros = Micros::from_secs(60);
/// After a wrong answer, as in simulations.
const SUSPECTED_FOR: Micros = Micros::from_secs(600);

/// What is known of strangers' answers to one service.
#[derive(Default)]
pub(super) struct Proofs {
    /// Answers in a row that were right.
    right: BTreeMap<NodeId, u32>,
    look: Option<Look>,
    /// How long strangers took for their answers, and how long others looked at them.
    answering: Micros,
    looking: Micros,
    looked_at: u64,
    wrong: u64,
    /// Why the last answer that should have been looked at was not.
    unsure: Option<String>,
    /// Who had part in a wrong answer, and until when that keeps it out.
    suspects: BTreeMap<NodeId, Time>,
    /// The last wrong answer, in words.
    found: Option<String>,
    /// Until then one of the operator's own keeps all of it ready for the next look.
    wanted: Time,
}

/// An answer that is looked at, or is about to be.
struct Look {
    request: Bytes,
    answer: Vec<u8>,
    /// Where its steps end.
    ends: Vec<usize>,
    /// Those that are said again, the next one last.
    steps: Vec<usize>,
    /// The strangers who gave it.
    by: Vec<NodeId>,
    /// What all who gave it computed with: another version may round differently, and that is no lie.
    engine: String,
    since: Time,
    at: Option<At>,
}

/// Who says a step again.
struct At {
    node: NodeId,
    attempt: Attempt,
    heard: Vec<u8>,
}

/// What people are told of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProofsView {
    pub looked_at: u64,
    pub wrong: u64,
    /// Why the last answer was not looked at that should have been.
    pub unsure: Option<String>,
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

    fn is_proven(&self, node: NodeId) -> bool {
        self.right.get(&node).is_some_and(|right| *right >= PROVEN)
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
    /// An answer is complete. If strangers had part in it, it may be looked at.
    pub(super) fn consider_answer(&mut self, id: CallId, asked: Asked) {
        let now = self.now;
        let Some(call) = self.services.calls.get(&id) else { return };
        let service = call.service;
        let Some(of) = self.services.services.get(&service) else { return };
        let together = asked.by == By::Crew;
        let by = match asked.by {
            By::Node(node) => Vec::from([node]),
            By::Crew => of.crew.as_ref().map(super::Crew::nodes).unwrap_or_default(),
        };
        let engine = self.engine_of_all(of, &by);
        let by: Vec<_> = by.into_iter().filter(|node| !self.is_own(*node)).collect();
        let work = &of.spec.work;
        if by.is_empty() || work.steps_again(&[], false).is_none() {
            return;
        }
        let ends = work.steps_again(&call.answer, together);
        // What came before is another's, who was lost.
        let before =
            |ends: &Vec<usize>| ends.iter().filter(|end| **end as u64 <= asked.from).count();
        let first = ends.as_ref().map_or(0, before);
        let held = call.bytes() + call.answer.len() as u64;
        let Some(of) = self.services.services.get_mut(&service) else { return };
        of.proofs.answering.0 += (now - asked.since).0;
        let Some(ends) = ends else {
            let why = "what its devices send each other is rounded, so one device may well answer otherwise";
            of.proofs.unsure = Some(why.into());
            return;
        };
        let due = of.proofs.looking.0.saturating_mul(PART_OF_TIME) <= of.proofs.answering.0;
        let new = by.iter().any(|node| !of.proofs.is_proven(*node));
        if of.proofs.look.is_some() || first >= ends.len() || held > MOST_LOOKED_AT {
            return;
        }
        let drawn = new || due && self.chance.hits(1, LOOK_ONE_IN);
        if !drawn {
            return;
        }
        let Some(engine) = engine else {
            let why = "its devices have different versions of the engine";
            of.proofs.unsure = Some(why.into());
            return;
        };
        let among = (ends.len() - first) as u64;
        let draw = |_| first + self.chance.below(among) as usize;
        let steps: BTreeSet<usize> = (0..STEPS).map(draw).collect();
        let Some(call) = self.services.calls.get(&id) else { return };
        let (request, answer) = (call.body(), call.answer.clone());
        let steps = steps.into_iter().rev().collect();
        let look = Look { request, answer, ends, steps, by, engine, since: now, at: None };
        let Some(of) = self.services.services.get_mut(&service) else { return };
        (of.proofs.look, of.proofs.wanted) = (Some(look), now + LOOKER_STAYS);
        self.services.due = Some(now);
    }

    /// Has one of the operator's own keep all of it ready while there is something to look at, and gives up where none can
    /// or it takes too long.
    pub(super) fn keep_looker(&mut self, now: Time, service: JobId) {
        let Some(of) = self.services.services.get_mut(&service) else { return };
        of.proofs.suspects.retain(|_, until| *until > now);
        of.proofs.right.retain(|node, _| self.peers.contains_key(node));
        let Some(look) = &of.proofs.look else { return };
        if now > look.since + LOOK_WITHIN {
            return self.give_up_look(service, "none of your own devices had time for it".into());
        }
        if look.at.is_some() {
            return;
        }
        let Some(of) = self.services.services.get(&service) else { return };
        if of.replicas.keys().any(|node| self.is_own(*node)) {
            return self.go_on_looking(service);
        }
        let able = self.peers.values().filter(|peer| {
            let takes = of.spec.needs.takes;
            peer.trusted && self.may_take_on(now, service, of, peer) && self.can_keep(peer, takes)
        });
        let best = able.max_by_key(|peer| (peer.condition.visible, peer.caps.speed, peer.node));
        let Some(node) = best.map(|peer| peer.node) else {
            let mib = of.spec.needs.takes.memory.div_ceil(1 << 20);
            let why = format!(
                "none of your own devices that has no part in it has {mib} MiB of memory free for all of it"
            );
            return self.give_up_look(service, why);
        };
        if of.replicas.len() <= usize::from(of.spec.most) {
            self.take_on(now, service, node);
            if let Some(of) = self.services.services.get_mut(&service)
                && let Some(replica) = of.replicas.get_mut(&node)
            {
                replica.stands_in = true;
            }
        }
    }

    /// Asks for the next step, as soon as one of the operator's own has room.
    pub(super) fn go_on_looking(&mut self, service: JobId) {
        let Some(of) = self.services.services.get(&service) else { return };
        let Some(look) = of.proofs.look.as_ref().filter(|look| look.at.is_none()) else { return };
        let Some(node) = self.freest(of, &[]).filter(|node| self.is_own(*node)) else { return };
        if self.engine_of_all(of, &[node]).as_ref() != Some(&look.engine) {
            let why = format!("{} has another version of the engine", self.called_node(node));
            return self.give_up_look(service, why);
        }
        let Some(step) = look.steps.last() else { return };
        let from =
            step.checked_sub(1).and_then(|before| look.ends.get(before)).copied().unwrap_or(0);
        let asks = of.spec.work.resumed(&look.request, &look.answer[..from]);
        let Some((body, _)) = asks.filter(|(_, behind)| *behind == from as u64) else {
            return self.give_up_look(service, "the answer has no steps".into());
        };
        let Some(conn) = self.conn_of(node) else { return };
        let attempt = self.next_attempt();
        let Some(of) = self.services.services.get_mut(&service) else { return };
        if let Some(look) = &mut of.proofs.look {
            look.at = Some(At { node, attempt, heard: Vec::new() });
        }
        if let Some(replica) = of.replicas.get_mut(&node) {
            replica.calls += 1;
        }
        self.services.looks.insert(attempt, service);
        self.peers.expect_word(self.now, node);
        self.send_body(conn, attempt, service, Bytes::from(body));
    }

    /// A step is said again.
    pub(crate) fn look_heard(&mut self, node: NodeId, attempt: Attempt, part: &Part) {
        let Some(&service) = self.services.looks.get(&attempt) else { return };
        let Some(of) = self.services.services.get_mut(&service) else { return };
        let Some(look) = &mut of.proofs.look else { return };
        let Some(at) = look.at.as_mut().filter(|at| (at.node, at.attempt) == (node, attempt))
        else {
            return;
        };
        let heard = at.heard.len() as u64;
        if part.at < heard {
            return;
        }
        if part.at > heard || at.heard.len() + part.bytes.len() > MOST_HEARD {
            return self.give_up_look(service, "a part of what was said again was lost".into());
        }
        at.heard.extend_from_slice(&part.bytes);
        let Some(step) = look.steps.last().copied() else { return };
        let from =
            step.checked_sub(1).and_then(|before| look.ends.get(before)).copied().unwrap_or(0);
        let to = look.ends.get(step).copied().unwrap_or(from);
        match of.spec.work.same_step(&look.answer[from..to], &at.heard) {
            None if !part.last => {}
            None => self.give_up_look(service, "nothing was said again".into()),
            Some(false) => self.found_wrong(service),
            Some(true) => {
                look.steps.pop();
                let over = look.steps.is_empty();
                self.stop_looker(service);
                if over {
                    self.found_right(service)
                } else {
                    self.go_on_looking(service)
                }
                self.hand_out(service);
            }
        }
    }

    /// Whoever says it again cannot.
    pub(super) fn look_failed(&mut self, node: NodeId, attempt: Attempt, failure: &Failure) {
        let Some(&service) = self.services.looks.get(&attempt) else { return };
        let of = self.services.services.get(&service);
        if of.and_then(|of| of.proofs.looker()) == Some(node) {
            // Words that the model does not have: whoever answered could not have gone on behind them either.
            match matches!(failure, Failure::Model { .. }) {
                true => self.found_wrong(service),
                false => self.give_up_look(service, failure.to_string()),
            }
            self.hand_out(service);
        }
    }

    /// A node does not keep it ready any more, or is gone.
    pub(super) fn looker_leaves(&mut self, service: JobId, node: NodeId) {
        let of = self.services.services.get(&service);
        if of.and_then(|of| of.proofs.looker()) == Some(node) {
            self.give_up_look(service, "the device that looked at it left".into());
        }
    }

    fn give_up_look(&mut self, service: JobId, why: String) {
        self.end_look(service);
        if let Some(of) = self.services.services.get_mut(&service) {
            of.proofs.unsure = Some(why);
        }
    }

    fn stop_looker(&mut self, service: JobId) {
        let of = self.services.services.get_mut(&service);
        let at = of.and_then(|of| of.proofs.look.as_mut()?.at.take());
        if let Some(At { node, attempt, .. }) = at {
            self.services.looks.remove(&attempt);
            self.stop_asked(service, By::Node(node), attempt);
        }
    }

    fn end_look(&mut self, service: JobId) -> Option<Look> {
        self.stop_looker(service);
        let now = self.now;
        let proofs = &mut self.services.services.get_mut(&service)?.proofs;
        let look = proofs.look.take()?;
        // With whatever had to be loaded for it.
        proofs.looking.0 += (now - look.since).0;
        Some(look)
    }

    fn found_right(&mut self, service: JobId) {
        let Some(look) = self.end_look(service) else { return };
        let Some(of) = self.services.services.get_mut(&service) else { return };
        of.proofs.looked_at += 1;
        of.proofs.unsure = None;
        for node in look.by {
            *of.proofs.right.entry(node).or_default() += 1;
        }
    }

    /// Those strangers who gave it get no more of the service for a while, and what they are in the middle of ends. If it
    /// is only one, it has lied: that counts like a wrong answer in a job.
    fn found_wrong(&mut self, service: JobId) {
        let now = self.now;
        let of = self.services.services.get(&service);
        let Some(looker) = of.and_then(|of| of.proofs.looker()) else { return };
        let Some(Look { by, .. }) = self.end_look(service) else { return };
        let names: Vec<_> = by.iter().map(|node| self.called_node(*node)).collect();
        let mut what = format!(
            "{} said an answer of {} again and came to other words",
            self.called_node(looker),
            names.join(", ")
        );
        if by.len() > 1 {
            what += ": one of them lied";
        }
        let Some(of) = self.services.services.get_mut(&service) else { return };
        let lane = of.spec.needs.lane;
        (of.trouble, of.proofs.found) = (Some(what.clone()), Some(what.clone()));
        of.proofs.looked_at += 1;
        of.proofs.wrong += 1;
        // It may be needed in the place of whoever goes.
        (of.proofs.unsure, of.proofs.wanted) = (None, now);
        for node in &by {
            of.proofs.right.remove(node);
            of.proofs.suspects.insert(*node, now + SUSPECTED_FOR);
            of.unfit.insert(*node, now + SUSPECTED_FOR);
        }
        if let [liar] = by.as_slice() {
            self.belie(now, *liar, lane);
        }
        self.break_off(service, &by, &what);
        self.crew_lied(now, service, &by, &what);
        by.iter().for_each(|node| self.dismiss_replica(service, *node));
        self.services.due = Some(now);
        self.hand_out(service);
    }

    /// Answers that they have said something of: nobody can go on behind words that may be wrong.
    fn break_off(&mut self, service: JobId, by: &[NodeId], why: &str) {
        let Some(of) = self.services.services.get(&service) else { return };
        let crewed = of.crew.as_ref().is_some_and(|crew| by.iter().any(|node| crew.has(*node)));
        let theirs = |asked: &Asked| match asked.by {
            By::Node(node) => by.contains(&node),
            By::Crew => crewed,
        };
        let calls = self.services.calls.iter().filter(|(_, call)| {
            let begun = |asked: &&Asked| theirs(asked) && asked.said > asked.from;
            call.service == service && call.asked().any(|asked| begun(&asked))
        });
        let calls: Vec<_> = calls.map(|(id, _)| *id).collect();
        for id in calls {
            self.end_call(id, Some(CallError::Doubted { why: why.into() }));
        }
    }

    pub fn proofs_of(&self, now: Time, service: JobId) -> Option<ProofsView> {
        let of = self.services.services.get(&service)?;
        if !of.spec.strangers || of.spec.work.steps_again(&[], false).is_none() {
            return None;
        }
        let Proofs { looked_at, wrong, unsure, found, suspects, .. } = &of.proofs;
        let kept_out = suspects.iter().filter(|(_, until)| **until > now);
        Some(ProofsView {
            looked_at: *looked_at,
            wrong: *wrong,
            unsure: unsure.clone(),
            found: found.clone(),
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
