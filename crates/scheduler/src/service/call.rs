//! Requests: queued, asked of a replica or a crew, asked again, ended.

use alloc::string::String;
use alloc::vec::Vec;
use core::cmp::Reverse;
use shoal_kinds::Kind;
use shoal_protocol::limit::{MAX_CALLS_PER_NODE, REQUEST_PART_BYTES};
use shoal_protocol::{Attempt, Bytes, JobId, Micros, NodeId, Priority, Time, ToNode};

use super::race::HURRIED_FOR;
use super::replica::Replica;
use super::unanswered::CallError;
use super::{Service, rank};
use crate::Output;
use crate::state::{Conn, Scheduler};

/// Nodes one request is given to: one lost to bad luck, one more, and then something is wrong with it.
pub(super) const MAX_TRIES: u32 = 3;

/// Bodies of requests that wait or are at work, of all services together: they are in memory here.
const MAX_HELD_BYTES: u64 = 512 << 20;

/// A request, counted by the shell; never used twice in a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CallId(pub u64);

pub(super) struct Call {
    pub(super) service: JobId,
    pub(super) came: Time,
    pub(super) deadline: Time,
    priority: Priority,
    /// Kept until it is answered, so that it can be asked again.
    body: Bytes,
    /// Whom it is asked of now.
    pub(super) at: Option<Asked>,
    /// Whom it is asked of as well, because it should be answered soon: who answers first, answers.
    pub(super) rival: Option<Asked>,
    /// When it is asked of a second node, if it is not answered by then.
    pub(super) race_at: Option<Time>,
    pub(super) tries: u32,
    /// Who was asked before, in vain: another may do better.
    pub(super) failed_on: Vec<NodeId>,
    /// Bytes of the answer that whoever asked has already.
    pub(super) given: u64,
    /// What was given of the answer, where another node can go on behind it.
    pub(super) answer: Vec<u8>,
    /// Who said some of that, alone or with others.
    pub(super) said_by: Vec<NodeId>,
    /// One of them said the beginning of a word, and the next one another word.
    pub(super) is_torn: bool,
}

impl Call {
    /// Nobody was asked yet.
    pub(super) fn is_new(&self) -> bool {
        self.tries == 0
    }

    /// Whether several nodes work on it together.
    pub(super) fn is_in_crew(&self) -> bool {
        self.at.is_some_and(|at| at.by == By::Crew)
    }

    pub(super) fn body(&self) -> Bytes {
        self.body.clone()
    }

    pub(super) fn bytes(&self) -> u64 {
        self.body.len() as u64
    }

    /// What the next node is asked, and behind how many bytes of the answer it goes on: all of it, or the rest where such
    /// work can be gone on with.
    fn asks(&self, work: &Kind) -> (Bytes, u64) {
        let resumed = (self.given > 0).then(|| work.resumed(&self.body, &self.answer)).flatten();
        resumed.map_or_else(|| (self.body.clone(), 0), |(body, from)| (Bytes::from(body), from))
    }

    /// So many bytes of its answer have come now.
    pub(super) fn said(&mut self, attempt: Attempt, said: u64) {
        if let Some(at) = self.at.as_mut().filter(|at| at.attempt == attempt) {
            at.said = said;
        }
        self.given = self.given.max(said);
    }

    /// Whom it is asked of, one or two.
    pub(super) fn asked(&self) -> impl Iterator<Item = &Asked> {
        self.at.iter().chain(&self.rival)
    }

    /// What it is called on this node, if that is asked alone or as one of two.
    pub(super) fn on(&self, node: NodeId) -> Option<Attempt> {
        self.asked().find(|asked| asked.by == By::Node(node)).map(|asked| asked.attempt)
    }
}

/// What whoever asks says of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Urgency {
    pub priority: Priority,
    /// There is no answer after that.
    pub deadline: Time,
    /// How soon it should be answered, if that is worth a second node.
    pub budget: Option<Micros>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) by: By,
    pub(super) attempt: Attempt,
    pub(super) since: Time,
    /// Bytes of the answer that it has said, those it goes on behind among them.
    pub(super) said: u64,
    /// How many those are.
    pub(super) from: u64,
    /// When the first part of its answer came, and how many steps of the answer were known then.
    pub(super) heard: Option<(Time, u64)>,
}

/// Who answers a request, and what it took: of the node that answers, not of others that were lost with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ran {
    pub node: NodeId,
    /// Until that node was asked.
    pub waited: Micros,
    /// From then on, with the way there and back.
    pub took: Micros,
    /// Nodes that it went through, one after another.
    pub stages: usize,
}

/// Who has a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    Node(NodeId),
    /// The crew of the service, as it is now: with another epoch all is asked again.
    Crew,
}

impl Scheduler {
    pub(crate) fn take_call(
        &mut self,
        id: CallId,
        service: JobId,
        (body, urgency): (Vec<u8>, Urgency),
    ) {
        let Urgency { priority, deadline, budget } = urgency;
        let Some(of) = self.services.services.get_mut(&service) else {
            self.outputs.push_back(Output::Unanswered { call: id, error: CallError::Gone });
            return;
        };
        let waiting = of.waiting();
        let held = self.services.held.saturating_add(body.len() as u64);
        if waiting >= of.spec.queue as usize || held > MAX_HELD_BYTES {
            of.failed += 1;
            let error = match held > MAX_HELD_BYTES {
                true => CallError::Heavy { bytes: self.services.held },
                false => CallError::Full { waiting },
            };
            self.outputs.push_back(Output::Unanswered { call: id, error });
            return;
        }
        of.queue[rank(priority)].push_back(id);
        let race_at = budget.map(|budget| self.now + of.patience(budget));
        if budget.is_some() {
            of.hurried = self.now + HURRIED_FOR;
        }
        let call = Call {
            service,
            came: self.now,
            deadline,
            priority,
            body: Bytes::from(body),
            at: None,
            rival: None,
            race_at,
            tries: 0,
            failed_on: Vec::new(),
            given: 0,
            answer: Vec::new(),
            said_by: Vec::new(),
            is_torn: false,
        };
        self.services.held = held;
        self.services.calls.insert(id, call);
        self.services.deadlines.insert((deadline, id));
        self.services.races.extend(race_at.map(|time| (time, id)));
        self.hand_out(service);
        // Whoever still waits wants another replica.
        if self.services.services.get(&service).is_some_and(|of| of.waiting() > 0) {
            self.services.due = Some(self.now);
        }
    }

    /// Gives waiting requests to replicas with room.
    pub(super) fn hand_out(&mut self, service: JobId) {
        // One at a time, and seldom: it does not wait behind requests.
        self.go_on_looking(service);
        while let Some((id, by)) = self.next_pair(service) {
            match by {
                By::Node(node) => self.hand_to(id, service, node),
                By::Crew => self.hand_to_crew(id, service),
            }
        }
    }

    /// The first request that somebody can take, and who takes it.
    fn next_pair(&self, service: JobId) -> Option<(CallId, By)> {
        let of = self.services.services.get(&service)?;
        // Where several keep it ready together, that is how it is wanted: others only stood in for them.
        if of.crew_has_room() {
            return of.queue.iter().flatten().next().map(|id| (*id, By::Crew));
        }
        for id in of.queue.iter().flatten() {
            let call = self.services.calls.get(id)?;
            match self.freest(of, &call.failed_on) {
                Some(node) => return Some((*id, By::Node(node))),
                // It waits for another node than those it failed on. Who comes after it need not.
                None if !call.failed_on.is_empty() => {}
                None => return None,
            }
        }
        None
    }

    /// The ready replica that takes a request: the operator's own first, so that no claim of a stranger draws all
    /// requests to it; then the one that is expected to answer first; between equals the one with most room, then the
    /// nearest. One that failed on it is asked again only where nobody else is ready.
    pub(super) fn freest(&self, of: &Service, failed_on: &[NodeId]) -> Option<NodeId> {
        self.freest_of(of, failed_on, |_| true)
    }

    /// Of those that may.
    pub(super) fn freest_of(
        &self,
        of: &Service,
        failed_on: &[NodeId],
        may: impl Fn(NodeId) -> bool,
    ) -> Option<NodeId> {
        let room = |node: NodeId, replica: &Replica| {
            let peer = self.peers.get(&node).filter(|peer| !peer.paused && !peer.silent)?;
            let slots = usize::from(peer.caps.slots_for(&of.spec.needs));
            let all = self.services.calls_of(node);
            let (slots, running) = match of.spec.work.at_once() {
                Some(most) if slots > 0 => (usize::from(most), replica.calls),
                Some(_) | None => (slots, self.services.slots_of(node)),
            };
            let free = slots.saturating_sub(running).min(MAX_CALLS_PER_NODE.saturating_sub(all));
            let far = peer.round_trip.map_or(u64::MAX, |trip| trip.0);
            let expected = replica.expected(self.now, slots, running);
            let order = (peer.trusted, Reverse(expected), free, Reverse(far));
            Some((order, free))
        };
        let ready = of
            .replicas
            .iter()
            .filter(|(node, replica)| replica.is_ready() && !of.is_unfit(self.now, **node))
            .filter(|(node, _)| may(**node));
        let here = ready.filter_map(|(node, replica)| {
            let (order, free) = room(*node, replica)?;
            Some((order, *node, free))
        });
        let here: Vec<_> = here.collect();
        let fresh = here.iter().any(|(_, node, _)| !failed_on.contains(node));
        let left = here.iter().filter(|(_, node, _)| !fresh || !failed_on.contains(node));
        left.filter(|(_, _, free)| *free > 0).max().map(|(_, node, _)| *node)
    }

    /// Alone, or beside another that has it already.
    pub(super) fn hand_to(&mut self, id: CallId, service: JobId, node: NodeId) {
        let attempt = self.next_attempt();
        let Some(conn) = self.conn_of(node) else { return };
        let services = &mut self.services;
        let (Some(of), Some(call)) =
            (services.services.get_mut(&service), services.calls.get_mut(&id))
        else {
            return;
        };
        of.queue[rank(call.priority)].retain(|queued| *queued != id);
        let (body, from) = call.asks(&of.spec.work);
        let asked =
            Asked { by: By::Node(node), attempt, since: self.now, said: from, from, heard: None };
        match call.at {
            None => call.at = Some(asked),
            Some(_) => call.rival = Some(asked),
        }
        call.tries += 1;
        services.asked.insert(attempt, id);
        if let Some(replica) = of.replicas.get_mut(&node) {
            replica.calls += 1;
        }
        self.peers.expect_word(self.now, node);
        self.send_body(conn, attempt, service, body);
    }

    fn hand_to_crew(&mut self, id: CallId, service: JobId) {
        let (now, attempt) = (self.now, self.next_attempt());
        let services = &mut self.services;
        let (Some(of), Some(call)) =
            (services.services.get_mut(&service), services.calls.get_mut(&id))
        else {
            return;
        };
        of.queue[rank(call.priority)].retain(|queued| *queued != id);
        let (body, from) = call.asks(&of.spec.work);
        call.at =
            Some(Asked { by: By::Crew, attempt, since: self.now, said: from, from, heard: None });
        call.tries += 1;
        services.asked.insert(attempt, id);
        let Some(crew) = &mut of.crew else { return };
        if crew.calls == 0 {
            crew.moves(now);
        }
        crew.calls += 1;
        let first = crew.first();
        if let Some(conn) = first.and_then(|first| self.conn_of(first)) {
            self.send_body(conn, attempt, service, body);
        }
    }

    /// In parts, because messages are bounded. The bytes stay where they are: what needs several messages is all in those
    /// that end with it, which are sent from there.
    pub(super) fn send_body(&mut self, conn: Conn, call: Attempt, job: JobId, mut rest: Bytes) {
        let part = |rest: &mut Bytes| rest.split_to(rest.len().min(REQUEST_PART_BYTES));
        let body = if rest.len() > REQUEST_PART_BYTES { Bytes::new() } else { part(&mut rest) };
        self.send(conn, ToNode::Ask { call, job, body, rest: rest.len() as u64 });
        while !rest.is_empty() {
            self.send(conn, ToNode::AskMore { call, body: part(&mut rest) });
        }
    }

    /// All requests of a node that is gone.
    pub(crate) fn calls_lost(&mut self, node: NodeId) {
        self.looks_lost(node);
        let lost = self.services.calls.iter();
        let lost = lost.filter_map(|(id, call)| Some((*id, call.on(node)?)));
        let lost: Vec<_> = lost.collect();
        for (id, attempt) in lost {
            self.ask_again_if(id, attempt, "the node left");
        }
    }

    /// Unless that happened already, because whoever failed it makes way for another, or another has it as well.
    pub(super) fn ask_again_if(&mut self, id: CallId, attempt: Attempt, reason: &str) {
        if self.falls_out(id, attempt) {
            return;
        }
        let call = self.services.calls.get(&id);
        if call.is_some_and(|call| call.at.is_some_and(|at| at.attempt == attempt)) {
            self.ask_again(id, String::from(reason));
        }
    }

    pub(super) fn ask_again(&mut self, id: CallId, reason: String) {
        let Some(call) = self.services.calls.get_mut(&id) else { return };
        if let Some(Asked { by: By::Node(node), .. }) = call.at {
            call.failed_on.push(node);
        }
        let (service, tries, given, priority) =
            (call.service, call.tries, call.given, call.priority);
        let of = self.services.services.get(&service);
        let repeats = of.is_some_and(|of| of.spec.work.repeats());
        if tries >= MAX_TRIES || given > 0 && !repeats {
            self.end_call(id, Some(CallError::Lost { reason, tries }));
            return;
        }
        self.let_go(id);
        if let Some(of) = self.services.services.get_mut(&service) {
            of.repeated += 1;
            // It waited before.
            of.queue[rank(priority)].push_front(id);
        }
        self.hand_out(service);
    }

    /// Whoever asked does not wait any more.
    pub(crate) fn hang_up(&mut self, id: CallId) {
        let service = self.services.calls.get(&id).map(|call| call.service);
        self.end_call(id, None);
        if let Some(service) = service {
            self.hand_out(service);
        }
    }

    pub(super) fn end_call(&mut self, id: CallId, error: Option<CallError>) {
        self.let_go(id);
        let Some(call) = self.services.calls.remove(&id) else { return };
        self.services.held -= call.bytes();
        self.services.deadlines.remove(&(call.deadline, id));
        if let Some(time) = call.race_at {
            self.services.races.remove(&(time, id));
        }
        if let Some(of) = self.services.services.get_mut(&call.service) {
            of.queue.iter_mut().for_each(|queue| queue.retain(|queued| *queued != id));
            of.failed += u64::from(error.is_some());
        }
        if let Some(error) = error {
            self.outputs.push_back(Output::Unanswered { call: id, error });
        }
    }

    /// Takes a request from its node, which is told to stop: it may be silent or wrong and still at it, and whatever
    /// it is asked next would wait behind that.
    pub(super) fn let_go(&mut self, id: CallId) {
        let Some(call) = self.services.calls.get_mut(&id) else { return };
        let both = [call.at.take(), call.rival.take()];
        let service = call.service;
        for Asked { by, attempt, .. } in both.into_iter().flatten() {
            self.stop_asked(service, by, attempt);
        }
    }

    /// Whoever has it stops.
    pub(super) fn stop_asked(&mut self, service: JobId, by: By, attempt: Attempt) {
        self.services.asked.remove(&attempt);
        let Some(of) = self.services.services.get_mut(&service) else { return };
        match by {
            By::Node(node) => {
                if let Some(replica) = of.replicas.get_mut(&node) {
                    replica.calls -= 1;
                    replica.used = self.now;
                }
                if let Some(conn) = self.conn_of(node) {
                    self.send(conn, ToNode::Revoke([attempt].into()));
                }
            }
            By::Crew => {
                let Some(crew) = &mut of.crew else { return };
                crew.calls -= 1;
                self.drop_in_crew(service, attempt);
            }
        }
    }
}
