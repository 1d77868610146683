//! A small world around the scheduler, so that a scenario is a few lines and reads as a sentence.
#![allow(dead_code, clippy::unwrap_used)]

use std::collections::BTreeSet;

use shoal_kinds::*;
use shoal_protocol::*;
use shoal_scheduler::*;

pub(crate) struct World {
    pub(crate) scheduler: Scheduler,
    pub(crate) now: Time,
    pub(crate) facts: Vec<Fact>,
    /// What each node was lent and has not answered, by connection.
    pub(crate) lent: Vec<(Conn, Lease)>,
    pub(crate) told: Vec<(Conn, JobId)>,
    pub(crate) revoked: Vec<Attempt>,
    pub(crate) refused: Vec<(Conn, Refusal)>,
    pub(crate) replies: Vec<Result<JobId, SubmitError>>,
    pub(crate) ended: Vec<JobId>,
    /// What was said about crews, and what the shell was asked to do for them.
    pub(crate) crews: crate::crew_world::Said,
    /// Every call to a crew.
    pub(crate) calls: Vec<(Conn, Enlist)>,
    /// What was said about blobs and is not done yet.
    pub(crate) shared: Vec<(Conn, SwarmTold)>,
    /// Requests asked of nodes, and services they were told to keep ready.
    pub(crate) asked: Vec<(Conn, Attempt, Vec<u8>)>,
    pub(crate) warm: Vec<Conn>,
    /// Who was asked for the key of its links.
    pub(crate) linking: Vec<Conn>,
    /// Bytes of answers that nodes said.
    pub(crate) said: std::collections::BTreeMap<Attempt, u64>,
    /// What became of requests.
    pub(crate) answers: Vec<(CallId, Vec<u8>, bool)>,
    pub(crate) unanswered: Vec<(CallId, CallError)>,
    /// Who gave each part of an answer.
    pub(crate) ran: Vec<Ran>,
    /// The shell cannot read results.
    pub(crate) unreadable: bool,
    /// Answers that differ do so within the tolerance.
    pub(crate) near: bool,
    /// The shell cannot write anything.
    pub(crate) full: bool,
}

impl World {
    pub(crate) fn new() -> World {
        World::with(Scheduler::new())
    }

    pub(crate) fn with(scheduler: Scheduler) -> World {
        let mut world = World {
            scheduler,
            now: Time(1_000_000_000),
            facts: Vec::new(),
            lent: Vec::new(),
            told: Vec::new(),
            revoked: Vec::new(),
            refused: Vec::new(),
            replies: Vec::new(),
            ended: Vec::new(),
            crews: Default::default(),
            calls: Vec::new(),
            shared: Vec::new(),
            asked: Vec::new(),
            warm: Vec::new(),
            linking: Vec::new(),
            said: Default::default(),
            answers: Vec::new(),
            unanswered: Vec::new(),
            ran: Vec::new(),
            unreadable: false,
            near: false,
            full: false,
        };
        world.give(Input::Start { seed: 7 });
        world
    }

    /// The same coordinator after a crash: only facts survive.
    pub(crate) fn restarted(&self) -> World {
        let mut world = World::with(Scheduler::replay(self.facts.iter().cloned()));
        let mut facts = self.facts.clone();
        facts.append(&mut world.facts);
        world.facts = facts;
        world.now = self.now;
        world
    }

    pub(crate) fn give(&mut self, input: Input) {
        self.scheduler.handle(self.now, input);
        let mut compared = Vec::new();
        while let Some(output) = self.scheduler.poll_output() {
            match output {
                Output::Record(fact) => self.facts.push(fact),
                Output::Send { conn, message } => self.sent(conn, message),
                Output::Refuse { conn, refusal } => {
                    self.lent.retain(|(holder, _)| *holder != conn);
                    self.refused.push((conn, refusal));
                }
                Output::Reply { result, .. } => self.replies.push(result),
                Output::Answered { call, part, last, ran } => {
                    self.answers.push((call, part.to_vec(), last));
                    self.ran.push(ran);
                }
                Output::Unanswered { call, error } => self.unanswered.push((call, error)),
                Output::Write { job, span, bytes } => {
                    let (items, size) = (span.len as u32, bytes.len() as u64);
                    let failed = Failed { items, bytes: size.saturating_sub(4) };
                    let place = Place { offset: 1_000, size, hash: hash(&bytes), failed };
                    let place = Some(place).filter(|_| !self.full);
                    compared.push(Input::Written { job, span, place });
                }
                Output::Ended(job) => self.ended.push(job),
                Output::Removed(_) => {}
                Output::Route { epoch, members, .. } => self.crews.routes.push((epoch, members)),
                Output::Drop(blobs) => self.crews.dropped.extend(blobs),
                Output::CompareRows { crew, a, b, .. } => {
                    let hash = |rows: &Rows| match rows {
                        Rows::Stored(blob) => blob.hash,
                        Rows::Result(place) => place.hash,
                    };
                    // One checker's rows are of one mark, and so are all those that are right.
                    let all: BTreeSet<_> = a.iter().chain(&b).map(hash).collect();
                    let same = all.len() == 1;
                    compared.push(Input::RowsCompared { crew, same: Some(same) });
                }
                Output::Compare { id, a, b, .. } => {
                    let same = a.place.offset == b.place.offset;
                    let outcome = match same {
                        _ if self.unreadable => Outcome::Unreadable,
                        true => Outcome::Same,
                        false if self.near => Outcome::Near,
                        false => Outcome::Different,
                    };
                    compared.push(Input::Compared { id, outcome });
                }
            }
        }
        self.scheduler.check();
        for input in compared {
            self.give(input);
        }
    }

    fn sent(&mut self, conn: Conn, message: ToNode) {
        match message {
            ToNode::Lend(leases) => self.lent.extend(leases.into_iter().map(|l| (conn, l))),
            ToNode::Revoke(attempts) => {
                self.lent.retain(|(_, lease)| !attempts.contains(&lease.attempt));
                self.revoked.extend(attempts);
            }
            ToNode::Job { job, .. } => self.told.push((conn, job)),
            ToNode::Welcome { .. }
            | ToNode::Refused(_)
            | ToNode::Forget(_)
            | ToNode::Challenge { .. }
            | ToNode::Quic(_) => {}
            ToNode::Link => self.linking.push(conn),
            ToNode::Audition { crew, .. } => {
                self.crews.auditioning = Some(crew);
                self.crews.auditions.push(conn);
            }
            ToNode::Enlist(enlist) => {
                self.calls.push((conn, (*enlist).clone()));
                self.crews.enlisted.insert(conn, *enlist);
            }
            ToNode::Dismiss { .. } => {
                self.crews.enlisted.remove(&conn);
                self.crews.dismissed.push(conn);
            }
            ToNode::ToCrew { say, .. } => self.crews.told.push((conn, say)),
            ToNode::Swarm(told) => self.shared.push((conn, told)),
            ToNode::Warm { .. } => self.warm.push(conn),
            ToNode::Ask { call, body, .. } => self.asked.push((conn, call, body.to_vec())),
            ToNode::AskMore { call, body } => {
                let of = self.asked.iter_mut().rfind(|(to, of, _)| (*to, *of) == (conn, call));
                of.expect("a request").2.extend(body);
            }
        }
    }

    pub(crate) fn wait(&mut self, millis: u64) {
        self.now = self.now + Micros::from_millis(millis);
        self.give(Input::Tick);
    }

    pub(crate) fn join(&mut self, n: u64) -> Conn {
        self.join_as(n, n, caps(100), Vec::new())
    }

    pub(crate) fn join_as(&mut self, conn: u64, who: u64, caps: Caps, held: Vec<Held>) -> Conn {
        let hello = hello(who, caps, held);
        self.connect(conn, hello, false, 0)
    }

    /// One of the operator's own nodes.
    pub(crate) fn join_trusted(&mut self, n: u64) -> Conn {
        self.join_own_with(n, caps(100))
    }

    pub(crate) fn join_own_with(&mut self, n: u64, caps: Caps) -> Conn {
        let hello = hello(n, caps, Vec::new());
        self.connect(n, hello, true, 0)
    }

    pub(crate) fn join_from(&mut self, n: u64, network: u64) -> Conn {
        let hello = hello(n, caps(100), Vec::new());
        self.connect(n, hello, false, network)
    }

    fn connect(&mut self, conn: u64, hello: Hello, trusted: bool, network: u64) -> Conn {
        let (conn, session) = (Conn(conn), String::new());
        self.give(Input::Connected { conn, hello, session, trusted, network });
        conn
    }

    pub(crate) fn leave(&mut self, conn: Conn) {
        self.lent.retain(|(holder, _)| *holder != conn);
        self.give(Input::Disconnected { conn });
    }

    pub(crate) fn submit(&mut self, spec: JobSpec) -> JobId {
        self.give(Input::Submit { request: RequestId(0), spec });
        self.replies.last().cloned().unwrap().unwrap()
    }

    /// What a node holds, oldest first.
    pub(crate) fn held_by(&self, conn: Conn) -> Vec<Lease> {
        self.lent.iter().filter(|(holder, _)| *holder == conn).map(|(_, lease)| *lease).collect()
    }

    /// The node answers its oldest unit after this time.
    pub(crate) fn answer(&mut self, conn: Conn, millis: u64) -> Option<Lease> {
        let at = self.lent.iter().position(|(holder, _)| *holder == conn)?;
        let (_, lease) = self.lent.remove(at);
        self.now = self.now + Micros::from_millis(millis);
        self.answer_attempt(conn, lease.attempt, millis);
        Some(lease)
    }

    pub(crate) fn answer_attempt(&mut self, conn: Conn, attempt: Attempt, millis: u64) {
        let took = Micros::from_millis(millis);
        self.give(Input::Done { conn, results: vec![Arrived { attempt, took, place: None }] });
    }

    /// The node answers its oldest unit with this value instead of the right one, which is 0.
    pub(crate) fn answer_with(&mut self, conn: Conn, value: u8) -> Option<Lease> {
        let at = self.lent.iter().position(|(holder, _)| *holder == conn)?;
        let (_, lease) = self.lent.remove(at);
        self.now = self.now + Micros::from_millis(1);
        let (offset, hash, failed) = (value.into(), Hash([value; 32]), Failed::default());
        let place = Place { offset, size: 1, hash, failed };
        let (attempt, took) = (lease.attempt, Micros::from_millis(1));
        let results = vec![Arrived { attempt, took, place: Some(place) }];
        self.give(Input::Done { conn, results });
        Some(lease)
    }

    /// The node answers its oldest unit rightly; so many of its items failed by themselves.
    pub(crate) fn answer_failed(&mut self, conn: Conn, items: u32) -> Option<Lease> {
        let at = self.lent.iter().position(|(holder, _)| *holder == conn)?;
        let (_, lease) = self.lent.remove(at);
        self.now = self.now + Micros::from_millis(1);
        let failed = Failed { items, bytes: u64::from(items) * 8 };
        let place = Place { offset: 0, size: 100, hash: Hash([0; 32]), failed };
        let (attempt, took) = (lease.attempt, Micros::from_millis(1));
        let results = vec![Arrived { attempt, took, place: Some(place) }];
        self.give(Input::Done { conn, results });
        Some(lease)
    }

    /// All nodes answer their oldest unit in turn with their value, until nobody has one.
    pub(crate) fn work(&mut self, nodes: &[(Conn, u8)]) {
        for _ in 0..100_000 {
            let answers = nodes.iter().filter_map(|(conn, value)| self.answer_with(*conn, *value));
            if answers.count() == 0 {
                return;
            }
        }
        panic!("the nodes never stop");
    }

    pub(crate) fn fail(&mut self, conn: Conn, failure: Failure) -> Option<Lease> {
        let at = self.lent.iter().position(|(holder, _)| *holder == conn)?;
        let (_, lease) = self.lent.remove(at);
        let message = FromNode::Failed { attempt: lease.attempt, failure };
        self.give(Input::Said { conn, message });
        Some(lease)
    }

    pub(crate) fn say(&mut self, conn: Conn, message: FromNode) {
        self.give(Input::Said { conn, message });
    }

    /// Everybody answers until nothing is lent; each takes its own time per item.
    pub(crate) fn finish(&mut self, micros_per_item: &[(Conn, u64)]) {
        for _ in 0..100_000 {
            let mut quiet = true;
            for (conn, micros) in micros_per_item {
                let items = self.held_by(*conn).first().map(|lease| lease.span.len);
                if let Some(items) = items {
                    self.answer(*conn, items * micros / 1000);
                    quiet = false;
                }
            }
            if quiet {
                return;
            }
        }
        panic!("the job does not end");
    }

    pub(crate) fn state(&self, job: JobId) -> JobState {
        self.view(job).state
    }

    pub(crate) fn view(&self, job: JobId) -> JobView {
        self.scheduler.job(self.now, job).unwrap()
    }
}

pub(crate) fn hello(who: u64, caps: Caps, held: Vec<Held>) -> Hello {
    Hello {
        version: limit::PROTOCOL_VERSION,
        token: String::new(),
        identity: Identity(core::array::from_fn(|at| who.to_le_bytes()[at % 8])),
        proof: Signature([0; 32], [0; 32]),
        caps,
        held,
    }
}

pub(crate) fn caps(speed: u32) -> Caps {
    let gpu = GpuCaps {
        name: "test".into(),
        backend: "test".into(),
        software: false,
        memory: None,
        buffer_bytes: 128 << 20,
        workgroup_invocations: 256,
        workgroup_bytes: 16 << 10,
        storage_buffers: 8,
        slots: 1,
    };
    let kind = NodeKind::Simulated;
    Caps {
        kind,
        name: "n".into(),
        cpu_slots: 1,
        gpu: Some(gpu),
        memory: 1 << 30,
        threads: 8,
        engines: vec![Engine::new(Engine::WGSL, "1"), Engine::new(Engine::WASI, "1")],
        speed,
        class: 1,
    }
}

pub(crate) fn job(items: u64) -> JobSpec {
    JobSpec {
        name: "test".into(),
        owner: "tester".into(),
        work: Kind::Noop(NoopWork),
        items,
        sizing: Sizing::loose(10, 1_000),
        strategy: Strategy::Adaptive,
        needs: Needs::lane(Lane::Gpu),
        limits: Limits::default(),
        policy: Policy::default(),
        signed: None,
    }
}

pub(crate) fn trap() -> Failure {
    Failure::Trap { item: 3, message: "unreachable".into(), stderr: "oh".into() }
}
