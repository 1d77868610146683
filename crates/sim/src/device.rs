//! A device: a real node brain, how fast it is, whether it is away, and whether it lies.

use shoal_node::{Config, Input, Node, Rules};
use shoal_protocol::{
    BlobRef, Caps, Dtype, ExecItems, ExecWork, GpuCaps, Hash, Identity, JobSpec, Kernel, Lane,
    Limits, MapWork, Micros, Needs, NodeKind, Policy, PublicKey, Signature, Signed, Sizing,
    Strategy, Time, Tolerance, Work,
};
use shoal_scheduler::Conn;

use crate::hostile::Hostile;
use crate::liar::Character;
use crate::random::Random;
use crate::scenario::{JobPlan, Scenario};

pub(crate) struct Device {
    pub(crate) number: u64,
    pub(crate) node: Node,
    pub(crate) conn: Option<Conn>,
    pub(crate) item_micros: u64,
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
    /// Then its node is never asked.
    pub(crate) hostile: Option<Hostile>,
}

impl Device {
    pub(crate) fn new(number: u64, scenario: &Scenario, random: &mut Random) -> Device {
        let (low, high) = scenario.item_micros;
        let slower = if number == 0 { scenario.straggler } else { 1 };
        let item_micros = random.range(low, high.max(low + 1)) * slower.max(1);
        let (caps, seed) = (caps(number, random), random.draw());
        Device {
            number,
            slots: u64::from(caps.slots(Lane::Gpu)),
            node: Node::new(config(number, caps, seed)),
            conn: None,
            item_micros,
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
            hostile: scenario.enemy(number).map(Hostile::new),
        }
    }

    /// Dies and is born again with the same identity.
    pub(crate) fn reborn(&mut self, seed: u64) {
        let caps = caps(self.number, &mut Random::new(seed));
        self.slots = u64::from(caps.slots(Lane::Gpu));
        self.birth += 1;
        self.node = Node::new(config(self.number, caps, seed));
        self.missed.clear();
        self.frozen_until = Time(0);
        self.hidden_until = Time(0);
    }

    pub(crate) fn is_away(&self, now: Time) -> bool {
        now < self.frozen_until
    }

    /// Its numeric class: a few kinds of floating point among many devices.
    pub(crate) fn class(&self) -> u64 {
        class(self.number)
    }
}

fn class(number: u64) -> u64 {
    1 + number % 4
}

fn config(number: u64, caps: Caps, seed: u64) -> Config {
    let mut identity = [0; 32];
    identity[..8].copy_from_slice(&number.to_le_bytes());
    let rules = Rules::default();
    Config {
        token: String::new(),
        identity: Identity(identity),
        caps,
        rules,
        talks: false,
        shares: false,
        seed,
    }
}

/// The device of an identity.
pub(crate) fn number_of(identity: &Identity) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|i| identity.0[i]))
}

fn caps(number: u64, random: &mut Random) -> Caps {
    let gpu = GpuCaps {
        name: String::from("simulated"),
        backend: String::from("simulated"),
        software: true,
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
        speed: random.range(20, 200) as u32,
        class: class(number),
    }
}

/// Devices of a crew differ in nothing but their numbers.
pub(crate) fn crew_caps(number: usize) -> Caps {
    caps(number as u64, &mut Random::new(1))
}

/// A job for a crew.
pub(crate) fn crew_spec(work: Work, rows: u64) -> JobSpec {
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
    let work = match plan.lane {
        Lane::Inline => Work::Noop,
        Lane::Gpu => {
            let kernel = Kernel {
                source: String::new(),
                entry: String::new(),
                workgroup: [64, 1, 1],
                bindings: Vec::new(),
                params: None,
                windows: None,
            };
            Work::Map(MapWork { kernel, inputs: Vec::new(), output_bytes: 4, fold: None })
        }
        Lane::Cpu => Work::Exec(ExecWork {
            module: blob,
            args: Vec::new(),
            env: Vec::new(),
            items: ExecItems::Files { manifest: blob },
            folder: None,
            clock: false,
        }),
    };
    let dtype = if plan.floats { Dtype::F32 } else { Dtype::Bytes };
    JobSpec {
        name: format!("job {number}"),
        owner: String::from("sim"),
        work,
        items: plan.items,
        sizing: Sizing::loose(plan.grain, plan.most),
        strategy: plan.strategy,
        needs: Needs::lane(plan.lane),
        // Devices here do not end what takes too long, and some are very slow.
        limits: Limits { time: Micros::from_secs(3_600), ..Limits::default() },
        policy: Policy { tolerance: Tolerance::usual(dtype), ..plan.policy },
        signed: Some(Signed { by: author(number as u8), signature: Signature([0; 32], [0; 32]) }),
    }
}
