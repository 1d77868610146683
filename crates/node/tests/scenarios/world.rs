//! One node and what it asked of its shell.

use shoal_kinds::{ExecItems, ExecWork, Failing, Kind, LlmWork, NoopWork, Wire, llm};
use shoal_node::*;
use shoal_protocol::*;

pub(crate) struct World {
    pub(crate) node: Node,
    pub(crate) caps: Caps,
    pub(crate) now: Time,
    pub(crate) said: Vec<FromNode>,
    pub(crate) runs: Vec<Lease>,
    /// What requests were begun with.
    pub(crate) bodies: Vec<Vec<u8>>,
    pub(crate) aborted: Vec<Attempt>,
    pub(crate) connects: usize,
    pub(crate) stopped: Option<Option<Refusal>>,
    /// Statements to sign and jobs whose code to check, unanswered.
    pub(crate) to_sign: Vec<Vec<u8>>,
    pub(crate) to_check: Vec<JobId>,
    /// What was asked of crews.
    pub(crate) crew: Vec<Output>,
    pub(crate) warm: Vec<JobId>,
}

impl World {
    pub(crate) fn new() -> World {
        World::that_talks(false)
    }

    fn that_talks(talks: bool) -> World {
        let gpu = GpuCaps {
            name: "test".into(),
            backend: "test".into(),
            software: false,
            memory: None,
            buffer_bytes: 1 << 20,
            workgroup_invocations: 256,
            workgroup_bytes: 16 << 10,
            storage_buffers: 8,
            slots: 1,
        };
        let kind = NodeKind::Simulated;
        let name = String::from("n");
        let caps = Caps {
            kind,
            name,
            cpu_slots: 2,
            gpu: Some(gpu),
            memory: 1 << 30,
            threads: 2,
            engines: Vec::new(),
            speed: 100,
            class: 0,
        };
        let config = Config {
            token: "t".into(),
            identity: Identity([7; 32]),
            caps: caps.clone(),
            rules: Rules::default(),
            talks,
            shares: false,
            seed: 1,
        };
        World {
            node: Node::new(config),
            caps,
            now: Time(1_000_000),
            said: Vec::new(),
            runs: Vec::new(),
            bodies: Vec::new(),
            aborted: Vec::new(),
            connects: 0,
            stopped: None,
            to_sign: Vec::new(),
            to_check: Vec::new(),
            crew: Vec::new(),
            warm: Vec::new(),
        }
    }

    /// Joined and told of job 1.
    pub(crate) fn joined() -> World {
        World::new().join()
    }

    /// The same, and applications of others may talk to it.
    pub(crate) fn talking() -> World {
        World::that_talks(true).join()
    }

    fn join(mut self) -> World {
        let world = &mut self;
        world.give(Input::Start);
        world.open();
        world.welcome();
        self
    }

    /// The socket opens, the challenge comes, the greeting goes.
    pub(crate) fn open(&mut self) {
        self.give(Input::Opened);
        self.hear(ToNode::Challenge { nonce: [1; 32], coordinator: PublicKey([2; 32]) });
        self.sign();
    }

    pub(crate) fn sign(&mut self) {
        let statement = self.to_sign.remove(0);
        self.give(Input::Signed { statement, proof: Signature([3; 32], [4; 32]) });
    }

    pub(crate) fn welcome(&mut self) {
        let session = String::from("s");
        self.hear(ToNode::Welcome { node: NodeId(1), session });
        self.tell(None);
        self.said.clear();
    }

    /// Of job 1.
    pub(crate) fn tell(&mut self, signed: Option<Signed>) {
        self.tell_job(Kind::Noop(NoopWork), Footprint::NOTHING, signed, 1000);
    }

    /// Of job 1 as a service: it has no items.
    pub(crate) fn tell_service(&mut self, signed: Option<Signed>) {
        self.hear(ToNode::Forget(JobId(1)));
        self.tell_job(Kind::Noop(NoopWork), Footprint::NOTHING, signed, 0);
    }

    /// Of job 1 as one of programs, whose units take so much while they run.
    pub(crate) fn tell_taking(&mut self, takes: Footprint) {
        self.hear(ToNode::Forget(JobId(1)));
        self.tell_program(takes);
        self.give(Input::Checked { job: JobId(1), result: Ok(()) });
        self.said.clear();
    }

    /// Of job 1 as a language model that holds so many conversations and takes so much, all of them included.
    pub(crate) fn tell_language(&mut self, conversations: u16, takes: Footprint) {
        self.hear(ToNode::Forget(JobId(1)));
        let model = BlobRef { hash: Hash([0; 32]), size: 0 };
        let about = llm::Summary::default();
        let (wire, split) = (Wire::F32, false);
        let (context, by, on) = (16, llm::By::Layers, llm::On::Processor);
        let work = LlmWork { model, about, context, conversations, split, wire, by, on };
        let signed = Signed { by: PublicKey([1; 32]), signature: Signature([0; 32], [0; 32]) };
        self.tell_job(work.into(), takes, Some(signed), 0);
        self.give(Input::Checked { job: JobId(1), result: Ok(()) });
        self.said.clear();
    }

    /// Of job 1 as one of programs, whose code is not checked yet.
    pub(crate) fn tell_again(&mut self) {
        self.tell_program(Footprint::NOTHING);
    }

    fn tell_program(&mut self, takes: Footprint) {
        let blob = BlobRef { hash: Hash([0; 32]), size: 0 };
        let program = ExecWork {
            module: blob,
            args: Vec::new(),
            env: Vec::new(),
            items: ExecItems::Files { manifest: blob },
            folder: None,
            clock: false,
            failing: Failing::default(),
            leaves: false,
        };
        let signed = Signed { by: PublicKey([1; 32]), signature: Signature([0; 32], [0; 32]) };
        self.tell_job(program.into(), takes, Some(signed), 1000);
    }

    fn tell_job(&mut self, work: Kind, takes: Footprint, signed: Option<Signed>, items: u64) {
        self.hear(ToNode::Job {
            job: JobId(1),
            name: "job".into(),
            owner: "me".into(),
            items,
            work: Box::new(work.work()),
            limits: Limits::default(),
            takes,
            signed,
        });
    }

    pub(crate) fn give(&mut self, input: Input) {
        self.node.handle(self.now, input);
        while let Some(output) = self.node.poll_output() {
            match output {
                Output::Connect => self.connects += 1,
                Output::Disconnect | Output::Forget(_) => {}
                Output::Audition { .. }
                | Output::Enlist(_)
                | Output::Dismiss(_)
                | Output::ToCrew { .. }
                | Output::AskCrew { .. }
                | Output::OpenQuic(_)
                | Output::CloseQuic
                | Output::Link
                | Output::Swarm(_) => self.crew.push(output),
                Output::Send(message) => self.said.push(message),
                Output::Run { lease, body, .. } => {
                    self.runs.push(lease);
                    self.bodies.extend(body.map(|body| body.to_vec()));
                }
                Output::Warm(job) => self.warm.push(job),
                Output::Abort(attempt) => self.aborted.push(attempt),
                Output::Sign(statement) => self.to_sign.push(statement),
                Output::Check(job) => self.to_check.push(job),
                Output::Stopped(refusal) => self.stopped = Some(refusal),
            }
        }
        self.node.check();
    }

    pub(crate) fn hear(&mut self, message: ToNode) {
        self.give(Input::Received(message));
    }

    pub(crate) fn lend(&mut self, attempts: std::ops::Range<u64>) {
        let lease = |n| Lease { attempt: Attempt(n), job: JobId(1), span: Span::new(n, 1) };
        self.hear(ToNode::Lend(attempts.map(lease).collect()));
    }

    pub(crate) fn ran(&mut self, attempt: u64) {
        let result = Ok(UnitOutput::Inline(Vec::new()));
        self.give(Input::Ran { attempt: Attempt(attempt), took: Micros(1), result });
    }

    pub(crate) fn wait(&mut self, millis: u64) {
        self.now = self.now + Micros::from_millis(millis);
        self.give(Input::Tick);
    }

    pub(crate) fn answers(&self) -> Vec<usize> {
        let sizes = self.said.iter().filter_map(|message| {
            let FromNode::Done(results) = message else { return None };
            Some(results.len())
        });
        sizes.collect()
    }
}
