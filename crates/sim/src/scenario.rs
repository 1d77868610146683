//! What a simulated world is like.

use shoal_protocol::{Footprint, Lane, Policy, Strategy, Verify};

use crate::crew::CrewPlan;
use crate::hostile::Enemy;
use crate::liar::{Character, Lie};
use crate::random::Random;
use crate::staged::SplitPlan;
use crate::swarm::SwarmPlan;

#[derive(Clone, Debug)]
pub struct Scenario {
    pub nodes: u64,
    /// How many of them are the operator's own.
    pub own: u64,
    /// How many of those join only when the others are at work, the last ones of them.
    pub late: u64,
    /// Who lies, by device; the others are honest.
    pub liars: Vec<(u64, Character)>,
    /// Devices beside those that want jobs to fail or to stand still.
    pub enemies: Vec<Enemy>,
    /// Numeric classes of devices: whose floats differ in their last bits.
    pub classes: u64,
    /// Networks the devices connect from; 0 if nobody knows.
    pub networks: u64,
    pub jobs: Vec<JobPlan>,
    /// Simulations, each computed by a crew.
    pub crews: Vec<CrewPlan>,
    /// Devices that spoil the rows they compute in a crew, in one step of so many, and claim to be the fastest.
    pub spoilers: Vec<(u64, u64)>,
    /// A large blob that the first devices need.
    pub swarm: Option<SwarmPlan>,
    /// How frames go from device to device.
    pub links: Links,
    /// What donors lend of their memory, from and to; [`PLENTY`] if nothing is said.
    pub memory: Option<(u64, u64)>,
    /// One-way delay of a message, in microseconds.
    pub delay: (u64, u64),
    /// Microseconds one item takes, by node.
    pub item_micros: (u64, u64),
    /// The first device is this many times slower than it was drawn.
    pub straggler: u64,
    pub faults: Faults,
    /// Each job is submitted when the one before is done.
    pub in_turn: bool,
    /// Requests to a service, which several devices may keep ready together.
    pub calls: u64,
    pub split: Option<SplitPlan>,
    /// Check every invariant after every this many inputs.
    pub check_every: u64,
}

/// What goes wrong. Means are microseconds between two events, 0 for never.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    /// Messages lost, said twice, or overtaken by later ones, of a million.
    pub loss: u64,
    pub twice: u64,
    pub disorder: u64,
    /// A device vanishes.
    pub churn: u64,
    /// How long a vanished device is away; from 10 ms to 4 s if 0.
    pub away: u64,
    /// A device neither answers nor leaves for a while.
    pub freezes: u64,
    /// Some devices are cut off for a while without anybody noticing.
    pub partitions: u64,
    /// A page hides, and computes at a third of its speed.
    pub hides: u64,
    /// The coordinator's clock jumps.
    pub jumps: u64,
    /// Units that fail for no good reason, of a million.
    pub mishaps: u64,
    /// The coordinator is killed between two batches.
    pub crashes: u64,
    /// The coordinator is killed in the middle of a batch, after any of its facts.
    pub kills: u64,
    /// A device says for a while whatever costs it nothing.
    pub floods: u64,
    /// A socket breaks, and both ends hear of it.
    pub breaks: u64,
    /// The engine of a crew's member hangs for a while.
    pub hangs: u64,
    /// All direct channels between devices break.
    pub cuts: u64,
    /// Faults stop after this much virtual time, and then everything must finish.
    pub until: u64,
}

/// Frames between devices, by relay or directly.
#[derive(Clone, Copy, Debug, Default)]
pub struct Links {
    /// Of a million frames.
    pub lost: u64,
    pub doubled: u64,
    /// Of a million tries, how many direct ways open, and after how many microseconds they die.
    pub direct: u64,
    pub direct_lives: u64,
}

#[derive(Clone, Debug)]
pub struct JobPlan {
    pub at: u64,
    pub items: u64,
    pub grain: u64,
    pub most: u64,
    pub lane: Lane,
    /// What a unit takes while it runs.
    pub takes: Footprint,
    pub strategy: Strategy,
    pub policy: Policy,
    /// Answers are floats, which differ between numeric classes.
    pub floats: bool,
}

/// Memory of a device that nothing is said of.
pub(crate) const PLENTY: u64 = 16 << 30;
/// A donor who lowers what is lent leaves so much of it, in percent.
pub(crate) const LENT_LEAST: u64 = 50;

/// Looking at everything after every step of a crowd would take hours.
const CROWD_CHECKED_EVERY: u64 = 10_007;

impl Scenario {
    /// A world drawn from a seed: mostly small enough to check after every step, now and then a crowd.
    pub fn random(random: &mut Random, crowded: bool, besieged: bool) -> Scenario {
        let nodes = if crowded { random.range(1_000, 10_001) } else { random.range(1, 40) };
        let liars = if random.chance(400_000) { draw_liars(nodes, random) } else { Vec::new() };
        let networks = if random.chance(300_000) { random.range(1, 30) } else { 0 };
        let own = if random.chance(300_000) { 1 } else { 0 };
        let mut jobs: Vec<_> = (0..random.range(1, 5)).map(|_| JobPlan::random(random)).collect();
        for job in &mut jobs {
            job.policy.verify = draw_verify(nodes, networks, &liars, random);
            if crowded {
                // Something to do for everybody.
                job.items = job.items.saturating_mul(20).min(60_000);
            }
        }
        let mut scenario = Scenario {
            nodes,
            own,
            late: 0,
            liars,
            enemies: Vec::new(),
            classes: crate::device::CLASSES,
            networks,
            jobs,
            crews: Vec::new(),
            spoilers: Vec::new(),
            swarm: None,
            links: Links::default(),
            memory: None,
            delay: (random.range(50, 2_000), random.range(2_000, 80_000)),
            item_micros: (random.range(1, 50), random.range(50, 3_000)),
            straggler: if random.chance(200_000) { 20 } else { 1 },
            faults: Faults::random(random),
            in_turn: false,
            calls: 0,
            split: None,
            check_every: if crowded { CROWD_CHECKED_EVERY } else { 1 },
        };
        if besieged {
            let enemies = random.range(1, 4);
            scenario.enemies = (0..enemies).map(|_| Enemy::random(random)).collect();
        }
        scenario
    }

    /// Many nodes, many small units, no faults: what scheduling itself costs.
    pub fn crowd(nodes: u64, units: u64) -> Scenario {
        let job = JobPlan {
            at: 2_000_000,
            items: units,
            grain: 1,
            most: 1,
            lane: Lane::Gpu,
            takes: Footprint::NOTHING,
            strategy: Strategy::Adaptive,
            policy: Policy::default(),
            floats: false,
        };
        Scenario {
            nodes,
            own: 0,
            late: 0,
            liars: Vec::new(),
            enemies: Vec::new(),
            classes: crate::device::CLASSES,
            networks: 0,
            jobs: vec![job],
            crews: Vec::new(),
            spoilers: Vec::new(),
            swarm: None,
            links: Links::default(),
            memory: None,
            delay: (200, 20_000),
            item_micros: (20_000, 200_000),
            straggler: 1,
            faults: Faults::default(),
            in_turn: false,
            calls: 0,
            split: None,
            check_every: u64::MAX,
        }
    }

    /// With devices that talk and talk. None of them hides: what they say last of themselves has to be true.
    pub fn flooded(mut self) -> Scenario {
        (self.faults.floods, self.faults.hides) = (300_000, 0);
        self
    }

    /// Devices with little memory, for jobs that take some of it. Any one unit fits any device at any time, so that
    /// everything can end; two of them fit few.
    pub fn narrow(mut self, random: &mut Random) -> Scenario {
        let least = 256 << 20;
        self.memory = Some((least, 4 * least));
        for job in &mut self.jobs {
            let part = random.range(0, 4) * least / 100 * LENT_LEAST / 3;
            job.takes = match job.lane {
                Lane::Inline => Footprint::NOTHING,
                Lane::Gpu => Footprint { gpu_memory: part, ..Footprint::NOTHING },
                Lane::Cpu => Footprint { memory: part, threads: 1, ..Footprint::NOTHING },
            };
        }
        self
    }

    /// Whether devices have anything to do with each other: then they have real keys.
    pub(crate) fn has_links(&self) -> bool {
        !self.crews.is_empty() || self.swarm.is_some() || self.split.is_some()
    }

    /// Whether a device joins when the others are at work.
    pub(crate) fn is_late(&self, device: u64) -> bool {
        (self.own - self.late..self.own).contains(&device)
    }

    /// In how many of its steps a device spoils its rows.
    pub(crate) fn spoils(&self, device: u64) -> Option<u64> {
        self.spoilers.iter().find(|(number, _)| *number == device).map(|(_, every)| *every)
    }

    pub(crate) fn memory_of(&self, device: u64) -> u64 {
        self.memory.map_or(PLENTY, |(low, high)| Random::new(device).range(low, high))
    }

    pub fn character(&self, device: u64) -> Character {
        let liar = self.liars.iter().find(|(number, _)| *number == device);
        liar.map_or(Character::Honest, |(_, character)| *character)
    }

    /// Those after the others are hostile.
    pub(crate) fn enemy(&self, device: u64) -> Option<Enemy> {
        let at = usize::try_from(device.checked_sub(self.nodes)?).ok()?;
        self.enemies.get(at).copied()
    }

    /// Whether a job may fail by no fault of its own: liars are among so few that nobody can tell who is right.
    pub fn may_fail(&self) -> bool {
        let voices = if self.networks == 0 { self.nodes } else { self.nodes.min(self.networks) };
        !self.liars.is_empty() && voices < 8
    }

    /// The most liars that say the same.
    pub fn largest_group(&self) -> usize {
        let concert = self.liars.iter().filter(|(_, character)| {
            matches!(character, Character::Liar { kind: Lie::Concert { .. }, .. })
        });
        concert.count().max(usize::from(!self.liars.is_empty()))
    }
}

/// At most a fifth, of any kind; all that act in concert are of one group.
fn draw_liars(nodes: u64, random: &mut Random) -> Vec<(u64, Character)> {
    let count = random.range(0, nodes / 5 + 1);
    let liar = |random: &mut Random| {
        let kinds = [Lie::Random, Lie::Subtle, Lie::Lazy, Lie::Concert { group: 1 }];
        let after = if random.chance(400_000) { random.range(10, 30) } else { 0 };
        let every = if random.chance(200_000) { random.range(2, 8) } else { 1 };
        Character::Liar { kind: kinds[random.range(0, 4) as usize], after, every }
    };
    // The first devices are the operator's own.
    (1..=count).map(|n| (nodes - n, liar(random))).filter(|(n, _)| *n > 0).collect()
}

/// A quorum only where honest devices of enough networks can make one.
fn draw_verify(
    nodes: u64,
    networks: u64,
    liars: &[(u64, Character)],
    random: &mut Random,
) -> Verify {
    let voices = if networks == 0 { nodes } else { nodes.min(networks) };
    let most = (voices / 4).min(4);
    match random.range(0, 4) {
        0 if liars.is_empty() => Verify::None,
        0 | 1 => Verify::Adaptive,
        2 if most >= 2 => Verify::Quorum { votes: random.range(2, most + 1) as u16 },
        _ => Verify::Spot { per_million: random.range(10_000, 500_000) as u32 },
    }
}

impl Links {
    pub(crate) fn random(random: &mut Random) -> Links {
        let rarely = |random: &mut Random, most: u64| {
            if random.chance(500_000) { random.range(0, most) } else { 0 }
        };
        Links {
            lost: rarely(random, 50_000),
            doubled: rarely(random, 50_000),
            direct: [0, 500_000, 1_000_000][random.range(0, 3) as usize],
            direct_lives: [500_000, 10_000_000, u64::MAX / 4][random.range(0, 3) as usize],
        }
    }
}

impl Faults {
    /// About so many until then, of those that meet whoever has to do with others.
    pub(crate) fn few(count: u64, until: u64) -> Faults {
        let kinds = 6;
        let mean = (kinds * until).checked_div(count).unwrap_or(0);
        let (churn, freezes, crashes) = (mean, mean, mean);
        let (breaks, hangs, cuts) = (mean, mean, mean);
        Faults { churn, freezes, crashes, breaks, hangs, cuts, until, ..Faults::default() }
    }

    /// And those of links and members as well.
    pub(crate) fn with_links(self, random: &mut Random) -> Faults {
        let mut sometimes = || {
            if random.chance(400_000) { random.range(1_000_000, 8_000_000) } else { 0 }
        };
        let (breaks, hangs, cuts) = (sometimes(), sometimes(), sometimes());
        Faults { breaks, hangs, cuts, ..self }
    }

    fn random(random: &mut Random) -> Faults {
        let sometimes = |random: &mut Random, low, high| {
            if random.chance(500_000) { random.range(low, high) } else { 0 }
        };
        let rarely = |random: &mut Random, low, high| {
            if random.chance(250_000) { random.range(low, high) } else { 0 }
        };
        Faults {
            loss: sometimes(random, 100, 30_000),
            twice: rarely(random, 100, 30_000),
            disorder: rarely(random, 100, 30_000),
            churn: sometimes(random, 100_000, 3_000_000),
            away: 0,
            freezes: sometimes(random, 500_000, 5_000_000),
            partitions: rarely(random, 1_000_000, 8_000_000),
            hides: rarely(random, 200_000, 3_000_000),
            jumps: rarely(random, 2_000_000, 9_000_000),
            mishaps: sometimes(random, 100, 3_000),
            crashes: sometimes(random, 1_000_000, 10_000_000),
            kills: rarely(random, 500_000, 5_000_000),
            floods: 0,
            breaks: 0,
            hangs: 0,
            cuts: 0,
            until: random.range(2_000_000, 20_000_000),
        }
    }
}

impl JobPlan {
    fn random(random: &mut Random) -> JobPlan {
        let grain = random.range(1, 200);
        let lane = [Lane::Inline, Lane::Gpu, Lane::Cpu][random.range(0, 3) as usize];
        let strategies =
            [Strategy::Adaptive, Strategy::Adaptive, Strategy::RoundRobin, Strategy::Weight];
        JobPlan {
            at: random.range(0, 3_000_000),
            items: random.range(1, 20_000),
            grain,
            most: grain * random.range(1, 50),
            lane,
            takes: Footprint::NOTHING,
            strategy: strategies[random.range(0, 4) as usize],
            policy: Policy::default(),
            floats: random.chance(500_000),
        }
    }
}
