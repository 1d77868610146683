//! What a simulated world is like.

use shoal_protocol::{Lane, Strategy};

use crate::random::Random;

#[derive(Clone, Debug)]
pub struct Scenario {
    pub nodes: u64,
    pub jobs: Vec<JobPlan>,
    /// One-way delay of a message, in microseconds.
    pub delay: (u64, u64),
    /// Microseconds one item takes, by node.
    pub item_micros: (u64, u64),
    /// Messages lost, of a million.
    pub loss: u64,
    /// Mean microseconds between a node's vanishing and the next one's; 0 for never.
    pub churn: u64,
    /// Mean microseconds between freezes of a node (it neither answers nor leaves); 0 for never.
    pub freezes: u64,
    /// Units that fail for no good reason, of a million.
    pub mishaps: u64,
    /// Mean microseconds between crashes of the coordinator; 0 for never.
    pub crashes: u64,
    /// Faults stop after this much virtual time, and then everything must finish.
    pub faults_until: u64,
    /// Check every invariant after every this many events.
    pub check_every: u64,
}

#[derive(Clone, Debug)]
pub struct JobPlan {
    pub at: u64,
    pub items: u64,
    pub grain: u64,
    pub most: u64,
    pub lane: Lane,
    pub strategy: Strategy,
}

impl Scenario {
    /// A world drawn from a seed, small enough to check after every step.
    pub fn random(random: &mut Random) -> Scenario {
        let jobs = (0..random.range(1, 5)).map(|_| JobPlan::random(random)).collect();
        let sometimes = |random: &mut Random, low, high| {
            if random.chance(500_000) { random.range(low, high) } else { 0 }
        };
        Scenario {
            nodes: random.range(1, 40),
            jobs,
            delay: (random.range(50, 2_000), random.range(2_000, 80_000)),
            item_micros: (random.range(1, 50), random.range(50, 3_000)),
            loss: sometimes(random, 100, 30_000),
            churn: sometimes(random, 100_000, 3_000_000),
            freezes: sometimes(random, 500_000, 5_000_000),
            mishaps: sometimes(random, 100, 3_000),
            crashes: sometimes(random, 1_000_000, 10_000_000),
            faults_until: random.range(2_000_000, 20_000_000),
            check_every: 1,
        }
    }

    /// Many nodes, many small units, no faults: what scheduling itself costs.
    pub fn crowd(nodes: u64, units: u64) -> Scenario {
        let job = JobPlan {
            at: 2_000_000,
            items: units,
            grain: 1,
            most: 1,
            lane: Lane::Gpu,
            strategy: Strategy::Adaptive,
        };
        Scenario {
            nodes,
            jobs: vec![job],
            delay: (200, 20_000),
            item_micros: (20_000, 200_000),
            loss: 0,
            churn: 0,
            freezes: 0,
            mishaps: 0,
            crashes: 0,
            faults_until: 0,
            check_every: u64::MAX,
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
            strategy: strategies[random.range(0, 4) as usize],
        }
    }
}
