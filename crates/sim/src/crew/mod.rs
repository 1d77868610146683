//! Crews: nodes with real members, their links sealed and relayed or direct, and a field computed together. Whatever
//! goes wrong, the final field is that of an undisturbed world with the same pokes, bit for bit.
//!
//! [`shell`] has the members on their devices, [`engine`] computes their bands, [`radio`] opens direct channels,
//! [`relay`] is what the coordinator's shell does for them; [`field`] is what is computed, [`truth`] what must come of
//! it, and [`poke`] stirs it.

mod device;
mod engine;
mod field;
mod poke;
mod radio;
mod relay;
mod shell;
mod truth;

pub(crate) use device::Linked;
pub(crate) use relay::Crews;

use shoal_kinds::Reduce;
use shoal_node::{SimAnswer, StageAnswer};
use shoal_protocol::{CrewId, NodeId};
use shoal_scheduler::Conn;

use crate::random::Random;
use field::Grid;

/// A simulation, and when somebody wants it.
#[derive(Clone, Copy, Debug)]
pub struct CrewPlan {
    pub(crate) at: u64,
    pub(crate) grid: Grid,
    /// How many members are wanted; 0 if that does not matter.
    pub(crate) members: u8,
    pub(crate) keep_every: Option<u64>,
    pub(crate) speculate: bool,
    /// What a row of a step takes the fastest device.
    pub(crate) row_micros: u64,
    /// Pokes over the field, until then.
    pub(crate) pokes: u64,
    pub(crate) pokes_until: u64,
    /// Rows of strangers are computed again by the operator's own devices.
    pub(crate) checked: bool,
}

impl CrewPlan {
    pub(crate) fn random(random: &mut Random, devices: u64) -> CrewPlan {
        let halo = random.range(1, 4) as u32;
        let rows = random.range(24, 97) as u32;
        let keep = [Some(random.range(1, 12)), Some(0), None][random.range(0, 3) as usize];
        let (steps, row_micros) = (random.range(5, 120), random.range(20, 5_000));
        let reduce = Reduce::ALL.get((steps % 7) as usize).copied();
        let wanted = random.chance(500_000);
        let mut plan = CrewPlan {
            at: 0,
            grid: Grid { width: random.range(1, 6) as u32, rows, halo, steps, reduce },
            members: if wanted { random.range(1, devices.min(6) + 1) as u8 } else { 0 },
            keep_every: keep,
            speculate: random.chance(400_000),
            row_micros,
            pokes: if random.chance(500_000) { random.range(0, 60) } else { 0 },
            pokes_until: 0,
            checked: false,
        };
        plan.pokes_until = 1_000_000 + random.range(1, 3) * plan.work(devices);
        plan
    }

    /// About how long so many devices compute it.
    pub(crate) fn work(&self, devices: u64) -> u64 {
        let alone = self.grid.steps * self.row_micros * u64::from(self.grid.rows) * 2;
        (alone / devices.clamp(1, 6)).max(1)
    }
}

/// What crews did in a world.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CrewReport {
    pub fields: u64,
    pub epochs: u64,
    /// Pokes that counted, and those of them that counted again after a change of epoch.
    pub pokes: u64,
    pub pokes_again: u64,
    pub relayed: u64,
    pub direct: u64,
    pub stale: u64,
    /// Checks of strangers' rows, those that found lies, and steps that nobody checked.
    pub checks: u64,
    pub lies_found: u64,
    pub unchecked: u64,
    /// Fields whose last total was looked at.
    pub totals: u64,
    /// Fields that liars spoiled.
    pub wrong: u64,
    /// Of those, fields of jobs that say nothing: liars who had earned trust with other work vouched for others.
    pub vouched: u64,
    /// Simulations that were given up because too many members vanished when they began.
    pub given_up: u64,
}

impl CrewReport {
    pub(crate) fn add(&mut self, other: &CrewReport) {
        self.fields += other.fields;
        self.epochs += other.epochs;
        self.pokes += other.pokes;
        self.pokes_again += other.pokes_again;
        self.relayed += other.relayed;
        self.direct += other.direct;
        self.stale += other.stale;
        self.checks += other.checks;
        self.lies_found += other.lies_found;
        self.unchecked += other.unchecked;
        self.totals += other.totals;
        self.wrong += other.wrong;
        self.vouched += other.vouched;
        self.given_up += other.given_up;
    }
}

/// What happens between devices.
pub(crate) enum CrewEvent {
    /// A frame on its way to the relay, and from it.
    ToRelay(Conn, Vec<u8>),
    FromRelay(Conn, Vec<u8>),
    Direct {
        from: NodeId,
        to: usize,
        birth: u32,
        bytes: Vec<u8>,
    },
    DirectUp(Pair),
    DirectDown(Pair),
    Auditioned {
        device: usize,
        birth: u32,
        crew: CrewId,
    },
    /// The engine is done with its command.
    Engine {
        device: usize,
        birth: u32,
        crew: CrewId,
    },
    Answered {
        device: usize,
        birth: u32,
        crew: CrewId,
        answer: SimAnswer,
    },
    /// The engine of a service's parts answers.
    Staged {
        device: usize,
        birth: u32,
        crew: CrewId,
        answer: StageAnswer,
    },
    /// Rows were compared.
    Compared {
        life: u64,
        crew: CrewId,
        same: Option<bool>,
    },
    /// Somebody wants the so-many-th simulation.
    Submit(usize),
    /// Somebody stirs its field.
    Poke(usize),
}

/// Two devices, in these lives, in a crew.
#[derive(Clone, Copy)]
pub(crate) struct Pair {
    pub(crate) devices: (usize, usize),
    pub(crate) births: (u32, u32),
    pub(crate) crew: CrewId,
}
