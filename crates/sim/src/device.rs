//! A device: a real node brain, how fast it is, and whether it is away.

use shoal_node::{Config, Input, Node};
use shoal_protocol::{
    BlobRef, Caps, ExecItems, ExecWork, GpuCaps, Hash, Identity, JobSpec, Kernel, Lane, Limits,
    MapWork, Needs, NodeKind, Sizing, Time, Work,
};
use shoal_scheduler::Conn;

use crate::random::Random;
use crate::scenario::{JobPlan, Scenario};

pub(crate) struct Device {
    number: u64,
    pub(crate) node: Node,
    pub(crate) conn: Option<Conn>,
    pub(crate) item_micros: u64,
    /// Raised when the device dies, so that what it was computing is never heard of.
    pub(crate) birth: u32,
    pub(crate) frozen_until: Time,
    /// What happened to it while it was frozen.
    pub(crate) missed: Vec<Input>,
    pub(crate) timer: Option<Time>,
}

impl Device {
    pub(crate) fn new(number: u64, scenario: &Scenario, random: &mut Random) -> Device {
        let (low, high) = scenario.item_micros;
        let item_micros = random.range(low, high.max(low + 1));
        let (caps, seed) = (caps(number, random), random.draw());
        let mut device = Device {
            number,
            node: Node::new(config(number, caps.clone(), seed)),
            conn: None,
            item_micros,
            birth: 0,
            frozen_until: Time(0),
            missed: Vec::new(),
            timer: None,
        };
        device.node = Node::new(device.config(caps, seed));
        device
    }

    pub(crate) fn config(&self, caps: Caps, seed: u64) -> Config {
        config(self.number, caps, seed)
    }

    pub(crate) fn is_away(&self, now: Time) -> bool {
        now < self.frozen_until
    }
}

fn config(number: u64, caps: Caps, seed: u64) -> Config {
    let mut identity = [0; 16];
    identity[..8].copy_from_slice(&number.to_le_bytes());
    Config { token: String::new(), identity: Identity(identity), caps, seed }
}

pub(crate) fn caps(number: u64, random: &mut Random) -> Caps {
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
    }
}

/// A job of this plan; the work itself is never looked at here, only its kind.
pub(crate) fn spec(plan: &JobPlan) -> JobSpec {
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
            };
            Work::Map(MapWork { kernel, inputs: Vec::new(), output_bytes: 4 })
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
    JobSpec {
        name: String::from("simulated"),
        owner: String::from("sim"),
        work,
        items: plan.items,
        sizing: Sizing { grain: plan.grain, most: plan.most },
        strategy: plan.strategy,
        needs: Needs::lane(plan.lane),
        limits: Limits::default(),
    }
}
