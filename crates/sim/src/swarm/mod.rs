//! Worlds with a swarm: the real scheduler deals, real nodes exchange pieces of one blob. Links come and go or never
//! come to be, words get lost, devices vanish and come back with what they had, some give wrong bytes, some nothing,
//! some accuse everybody, some claim what does not exist and change their minds all the time, the coordinator crashes. In the end everybody has the right bytes, and where nothing went
//! wrong the coordinator gave little more than one copy.

mod device;
mod fault;
mod shell;
mod world;

use crate::random::Random;

/// What one world is like.
#[derive(Clone, Copy, Debug)]
pub struct SwarmPlan {
    pub devices: usize,
    pub pieces: u32,
    /// From one end of a socket to the other, in microseconds.
    pub delay: (u64, u64),
    /// Bytes of a piece that a device sends in a second, at least and at most, and the coordinator.
    pub rates: (u64, u64),
    pub coordinator_rate: u64,
    /// Of a million pairs, how many find a direct way; after how many microseconds it dies.
    pub direct: u64,
    pub direct_lives: u64,
    /// Of a million words between nodes, how many never come.
    pub lost: u64,
    /// Of a million devices.
    pub liars: u64,
    pub mute: u64,
    pub accusers: u64,
    /// One device in three says whatever costs it nothing, 250 words a second, for a while.
    pub floods: bool,
    /// Devices begin within so many microseconds.
    pub spread: u64,
    /// Devices that vanish and come back, crashes of the coordinator.
    pub faults: u64,
}

impl SwarmPlan {
    /// Nothing goes wrong.
    pub fn calm(devices: usize, pieces: u32) -> SwarmPlan {
        SwarmPlan {
            devices,
            pieces,
            delay: (500, 5_000),
            rates: (20_000_000, 100_000_000),
            coordinator_rate: 100_000_000,
            direct: 1_000_000,
            direct_lives: u64::MAX / 4,
            lost: 0,
            liars: 0,
            mute: 0,
            accusers: 0,
            floods: false,
            spread: 2_000_000,
            faults: 0,
        }
    }

    fn random(random: &mut Random) -> SwarmPlan {
        let devices = random.range(2, 12) as usize;
        let calm = SwarmPlan::calm(devices, random.range(9, 17) as u32);
        if random.chance(200_000) {
            return calm;
        }
        let rarely = |random: &mut Random, most: u64| {
            if random.chance(400_000) { random.range(0, most) } else { 0 }
        };
        SwarmPlan {
            delay: if random.chance(300_000) { (20_000, 90_000) } else { calm.delay },
            rates: if random.chance(300_000) { (200_000, 2_000_000) } else { calm.rates },
            coordinator_rate: [1_000_000, 20_000_000, 100_000_000][random.range(0, 3) as usize],
            direct: [0, 500_000, 900_000, 1_000_000][random.range(0, 4) as usize],
            direct_lives: [500_000, 5_000_000, u64::MAX / 4][random.range(0, 3) as usize],
            lost: rarely(random, 200_000),
            liars: rarely(random, 400_000),
            mute: rarely(random, 400_000),
            accusers: rarely(random, 300_000),
            spread: random.range(1, 20_000_000),
            faults: rarely(random, 12),
            ..calm
        }
    }

    fn is_calm(&self) -> bool {
        let calm = SwarmPlan::calm(self.devices, self.pieces);
        (self.direct, self.direct_lives, self.lost) == (calm.direct, calm.direct_lives, 0)
            && !self.floods
            && self.liars + self.mute + self.accusers + self.faults == 0
            && self.rates == calm.rates
            && self.coordinator_rate == calm.coordinator_rate
    }
}

/// What a world came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SwarmReport {
    pub events: u64,
    /// Pieces from the coordinator and from node to node, as their takers count.
    pub fetched: u64,
    pub exchanged: u64,
    /// Pieces of one copy.
    pub pieces: u64,
    pub devices: u64,
    pub faults: u64,
    /// Nodes that were found to give wrong bytes.
    pub named: u64,
    pub virtual_micros: u64,
    pub trace: u64,
}

/// Runs a world with a swarm to its end; panics where a promise is broken.
pub fn swarm(seed: u64) -> SwarmReport {
    let mut random = Random::new(seed ^ 0x5a4e);
    let plan = SwarmPlan { floods: seed % 3 == 2, ..SwarmPlan::random(&mut random) };
    let report = world::World::new(plan, random).run();
    if plan.is_calm() {
        let copies = report.fetched as f64 / report.pieces as f64;
        assert!(copies < 1.6, "{copies} copies came from the coordinator: {plan:?}");
    }
    report
}

/// The same for a plan of one's own.
pub fn swarm_of(plan: SwarmPlan, seed: u64) -> SwarmReport {
    world::World::new(plan, Random::new(seed)).run()
}
