//! A device: a real node brain, how fast it is, whether it is away, and whether it lies.

use std::collections::BTreeMap;

use shoal_kinds::{ExecItems, ExecWork, Failing, JobSpec, Kernel, Kind, MapWork, NoopWork};
use shoal_node::{Config, Input, Node, Phase, Rules};
use shoal_protocol::{
    Attempt, BlobRef, Caps, Dtype, Engine, Footprint, GpuCaps, Hash, Identity, Lane, Limits,
    Micros, Needs, NodeKind, Policy, PublicKey, Signature, Signed, Sizing, Strategy, Time,
    Tolerance,
};
use shoal_scheduler::Conn;

use crate::crew::Linked;
use crate::hostile::Hostile;
use crate::liar::Character;
use crate::random::Random;
use crate::scenario::{JobPlan, PLENTY, Scenario};
use crate::swarm::Shelf;

/// Kinds of floating point among many devices.
pub(crate) const CLASSES: u64 = 4;

pub(crate) struct Device {
    pub(crate) number: u64,
    pub(crate) identity: Identity,
    pub(crate) node: Node,
    pub(crate) conn: Option<Conn>,
    pub(crate) item_micros: u64,
    /// Its numeric class: a few kinds of floating point among many devices.
    class: u64,
    pub(crate) character: Character,
    /// Units it answered, and how many of those with a lie.
    pub(crate) answers: u64,
    pub(crate) lies: u64,
    /// Raised when the device dies, so that what it was computing is never heard of.
    pub(crate) birth: u32,
    pub(crate) frozen_until: Time,
    /// Nothing it says is heard, and it hears nothing.
    pub(crate) cut_until: Time,
    pub(crate) hidden_until: Time,
    /// What happened to it while it was frozen.
    pub(crate) missed: Vec<Input>,
    pub(crate) timer: Option<Time>,
    /// When it was born or came back; `None` while it is away.
    pub(crate) up_since: Option<Time>,
    pub(crate) slots: u64,
    /// What its donor lends of its memory at most.
    pub(crate) memory: u64,
    /// What its node offers now.
    pub(crate) caps: Caps,
    /// What each unit takes that it computes.
    pub(crate) running: BTreeMap<Attempt, Footprint>,
    /// Then its node is never asked.
    pub(crate) hostile: Option<Hostile>,
    /// Its keys and members, where devices have to do with each other.
    pub(crate) linked: Option<Box<Linked>>,
    /// What it has and needs of the blob that is exchanged.
    pub(crate) shelf: Option<Box<Shelf>>,
}

impl Device {
    pub(crate) fn new(number: u64, scenario: &Scenario, random: &mut Random) -> Device {
        let (low, high) = scenario.item_micros;
        let slower = if number == 0 { scenario.straggler } else { 1 };
        let item_micros = random.range(low, high.max(low + 1)) * slower.max(1);
        let memory = scenario.memory_of(number);
        let class = 1 + number % scenario.classes;
        let (caps, seed) = (caps(number, memory, class, random), random.draw());
        let hostile = scenario.enemy(number).map(Hostile::new);
        let links = scenario.has_links() && hostile.is_none();
        let linked = links.then(|| Box::new(Linked::new(scenario.spoils(number), random)));
        let identity = linked.as_ref().map_or(named(number), |linked| linked.identity());
        Device {
            number,
            slots: u64::from(caps.slots(Lane::Gpu)),
            memory,
            caps: caps.clone(),
            running: BTreeMap::new(),
            node: Node::new(config(identity, caps, seed)),
            identity,
            conn: None,
            item_micros,
            class,
            character: scenario.character(number),
            answers: 0,
            lies: 0,
            birth: 0,
            frozen_until: Time(0),
            cut_until: Time(0),
            hidden_until: Time(0),
            missed: Vec::new(),
            timer: None,
            up_since: None,
            hostile,
            linked,
            shelf: None,
        }
    }

    /// Dies and is born again with the same identity.
    pub(crate) fn reborn(&mut self, seed: u64) {
        let caps = caps(self.number, self.memory, self.class, &mut Random::new(seed));
        self.caps = caps.clone();
        self.running.clear();
        self.slots = u64::from(caps.slots(Lane::Gpu));
        self.birth += 1;
        self.node = Node::new(config(self.identity, caps, seed));
        self.missed.clear();
        self.frozen_until = Time(0);
        self.hidden_until = Time(0);
        self.timer = None;
        if let Some(linked) = &mut self.linked {
            linked.reborn(&mut Random::new(seed ^ 0x11f3));
        }
        if let Some(shelf) = &mut self.shelf {
            shelf.reborn();
        }
    }

    /// The donor lends this part of its memory now, in percent.
    pub(crate) fn lends(&self, percent: u64) -> Input {
        Input::Offer(Caps { memory: self.memory / 100 * percent, ..self.caps.clone() })
    }

    /// Begins to compute; whatever it was lent and told, it stays within what its donor lends.
    pub(crate) fn begins(&mut self, attempt: Attempt, takes: Footprint) {
        self.running.insert(attempt, takes);
        let all = self.running.values().fold(Footprint::NOTHING, |sum, takes| sum.and(*takes));
        let fits = takes == Footprint::NOTHING || self.caps.holds(&all);
        assert!(fits, "device {} lends less than {all:?}", self.number);
    }

    /// It lies neither about units nor in crews, and does not want jobs to fail.
    pub(crate) fn is_honest(&self) -> bool {
        let spoils = self.linked.as_ref().is_some_and(|linked| linked.spoils.is_some());
        self.character == Character::Honest && !spoils && self.hostile.is_none()
    }

    pub(crate) fn is_joined(&self) -> bool {
        matches!(self.node.status().phase, Phase::Joined(_))
    }

    pub(crate) fn is_away(&self, now: Time) -> bool {
        now < self.frozen_until
    }

    pub(crate) fn class(&self) -> u64 {
        self.class
    }
}

fn config(identity: Identity, caps: Caps, seed: u64) -> Config {
    let (token, rules) = (String::new(), Rules::default());
    Config { token, identity, caps, rules, talks: false, shares: true, seed }
}

/// The identity of a device that nobody but the coordinator has to know.
fn named(number: u64) -> Identity {
    let mut identity = [0; 32];
    identity[..8].copy_from_slice(&number.to_le_bytes());
    Identity(identity)
}

/// The device of such an identity.
pub(crate) fn number_of(identity: &Identity) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|i| identity.0[i]))
}

fn caps(number: u64, memory: u64, class: u64, random: &mut Random) -> Caps {
    let gpu = GpuCaps {
        name: String::from("simulated"),
        backend: String::from("simulated"),
        software: true,
        memory: None,
        buffer_bytes: 128 << 20,
        workgroup_invocations: 256,
        workgroup_bytes: 16 << 10,
        storage_buffers: 8,
        slots: random.range(1, 3) as u16,
    };
    Caps {
        kind: NodeKind::Simulated,
        name: format!("device {number}"),
        cpu_slots: random.range(1, 5) as u16,
        gpu: Some(gpu),
        memory,
        threads: 64,
        engines: vec![Engine::new(Engine::WGSL, "1"), Engine::new(Engine::WASI, "1")],
        speed: random.range(20, 200) as u32,
        class,
    }
}

/// What a device claims that only wants to be lent something.
pub(crate) fn usual_caps(number: usize) -> Caps {
    let number = number as u64;
    caps(number, PLENTY, 1 + number % CLASSES, &mut Random::new(1))
}

/// A job for a crew.
pub(crate) fn crew_spec(work: Kind, rows: u64) -> JobSpec {
    JobSpec {
        name: String::from("field"),
        owner: String::from("sim"),
        work,
        items: rows,
        sizing: Sizing::fixed(rows),
        strategy: Strategy::Adaptive,
        needs: Needs::lane(Lane::Gpu),
        limits: Limits::default(),
        policy: Policy::default(),
        signed: Some(Signed { by: author(0), signature: Signature([0; 32], [0; 32]) }),
    }
}

/// Jobs are of three people's.
pub(crate) fn author(number: u8) -> PublicKey {
    PublicKey([number % 3; 32])
}

/// A job of this plan; the work itself is never looked at here, only its kind.
pub(crate) fn spec(number: usize, plan: &JobPlan) -> JobSpec {
    let blob = BlobRef { hash: Hash([0; 32]), size: 0 };
    let work: Kind = match plan.lane {
        Lane::Inline => NoopWork.into(),
        Lane::Gpu => {
            let kernel = Kernel {
                source: String::new(),
                entry: String::new(),
                workgroup: [64, 1, 1],
                bindings: Vec::new(),
                params: None,
                windows: None,
            };
            MapWork { kernel, inputs: Vec::new(), output_bytes: 4, fold: None }.into()
        }
        Lane::Cpu => ExecWork {
            module: blob,
            args: Vec::new(),
            env: Vec::new(),
            items: ExecItems::Files { manifest: blob },
            folder: None,
            clock: false,
            failing: Failing::default(),
            leaves: false,
        }
        .into(),
    };
    let dtype = if plan.floats { Dtype::F32 } else { Dtype::Bytes };
    JobSpec {
        name: format!("job {number}"),
        owner: String::from("sim"),
        work,
        items: plan.items,
        sizing: Sizing::loose(plan.grain, plan.most),
        strategy: plan.strategy,
        needs: Needs::lane(plan.lane).takes(plan.takes),
        // Devices here do not end what takes too long, and some are very slow.
        limits: Limits { time: Micros::from_secs(3_600), ..Limits::default() },
        policy: Policy { tolerance: Tolerance::usual(dtype), ..plan.policy },
        signed: Some(Signed { by: author(number as u8), signature: Signature([0; 32], [0; 32]) }),
    }
}
