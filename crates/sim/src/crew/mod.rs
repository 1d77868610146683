//! Worlds with a crew: the real scheduler, real nodes with real members, their links sealed and relayed or
//! direct, and a field computed together. Devices vanish, freeze and come back, the coordinator crashes, frames
//! get lost, direct ways die, an engine hangs, hands stir; the final field is that of an undisturbed world with
//! the same strokes, bit for bit.

mod coordinator;
mod device;
mod engine;
mod fault;
mod field;
mod radio;
mod shell;
mod stroke;
mod world;

use crate::random::Random;
use field::Grid;

/// What one world is like.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) devices: usize,
    pub(crate) grid: Grid,
    pub(crate) members: u8,
    pub(crate) keep_every: Option<u64>,
    pub(crate) speculate: bool,
    /// From one end of a socket to the other, in microseconds.
    pub(crate) delay: (u64, u64),
    /// Of a million frames.
    pub(crate) lost: u64,
    pub(crate) doubled: u64,
    /// Of a million tries, how many direct ways open, and after how long they die.
    pub(crate) direct: u64,
    pub(crate) direct_lives: u64,
    /// What a row of a step takes the fastest device.
    pub(crate) row_micros: u64,
    pub(crate) faults: u64,
    pub(crate) faults_until: u64,
    /// Strokes over the field, in the same time.
    pub(crate) strokes: u64,
}

impl Plan {
    fn random(random: &mut Random) -> Plan {
        let halo = random.range(1, 4) as u32;
        let rows = random.range(24, 97) as u32;
        let devices = random.range(1, 7) as usize;
        let keep = [Some(random.range(1, 12)), Some(0), None][random.range(0, 3) as usize];
        let slow = random.chance(300_000);
        let (steps, row_micros) = (random.range(5, 120), random.range(20, 5_000));
        // Faults come while there is something to disturb, and some before and after.
        let work = steps * row_micros * u64::from(rows) * 2 / devices as u64;
        let rarely = |random: &mut Random, most: u64| {
            if random.chance(500_000) { random.range(0, most) } else { 0 }
        };
        Plan {
            devices,
            grid: Grid { width: random.range(1, 6) as u32, rows, halo, steps },
            members: if random.chance(500_000) {
                random.range(1, devices as u64 + 1) as u8
            } else {
                0
            },
            keep_every: keep,
            speculate: random.chance(400_000),
            delay: if slow { (20_000, 60_000) } else { (100, 3_000) },
            lost: rarely(random, 50_000),
            doubled: rarely(random, 50_000),
            direct: [0, 500_000, 1_000_000][random.range(0, 3) as usize],
            direct_lives: [500_000, 10_000_000, u64::MAX / 4][random.range(0, 3) as usize],
            row_micros,
            faults: random.range(0, 12),
            faults_until: 1_000_000 + random.range(work, 3 * work),
            strokes: rarely(random, 60),
        }
    }
}

/// What a world came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CrewReport {
    pub events: u64,
    pub epochs: u64,
    pub faults: u64,
    pub crashes: u64,
    /// Strokes that counted, and those of them that counted again after a change of epoch.
    pub strokes: u64,
    pub strokes_again: u64,
    pub relayed: u64,
    pub direct: u64,
    pub stale: u64,
    pub trace: u64,
    pub virtual_micros: u64,
}

/// Runs a world with a crew to its end; panics where a promise is broken.
pub fn crew(seed: u64) -> CrewReport {
    let mut random = Random::new(seed ^ 0xc4e3);
    let plan = Plan::random(&mut random);
    world::World::new(plan, random).run()
}
