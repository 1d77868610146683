//! Measurements: worlds whose outcome is a number. Virtual time and counted work, so the figures do not depend on
//! the machine.

use shoal_protocol::{Footprint, Lane, Policy, Strategy, Verify};

use crate::liar::{Character, Lie};
use crate::report::Report;
use crate::scenario::{Faults, JobPlan, Scenario};
use crate::world::run_probed;

const SECOND: u64 = 1_000_000;

/// How a pool copes with nodes that leave, and with one that is slow.
#[derive(Clone, Debug)]
pub struct Churn {
    /// Capacity that was there, divided by what was needed.
    pub leaving: f64,
    /// Time taken, divided by work over capacity.
    pub straggler: f64,
    pub speculated: u64,
}

/// A job of about a minute on 8 nodes: with one leaving every 5 s, and with one ten times slower.
pub fn churn(seed: u64) -> Churn {
    let job =
        JobPlan { at: 2 * SECOND, items: 480_000, grain: 8, most: 4_096, ..job_plan(Verify::None) };
    let base = Scenario {
        nodes: 8,
        jobs: vec![job],
        item_micros: (1_000, 1_001),
        delay: (2_000, 20_000),
        check_every: 1_000,
        ..Scenario::crowd(8, 1)
    };
    let leaving = Scenario {
        faults: Faults {
            churn: 5 * SECOND,
            away: 8 * SECOND,
            until: 300 * SECOND,
            ..Faults::default()
        },
        ..base.clone()
    };
    let left = run_probed(seed, leaving, ()).0;
    let slow = run_probed(seed, Scenario { straggler: 10, ..base }, ()).0;
    Churn {
        leaving: left.capacity_items as f64 / left.jobs[0].items as f64,
        straggler: slow.capacity_items as f64 / slow.jobs[0].items as f64,
        speculated: slow.speculated,
    }
}

/// What checking costs and what it catches.
#[derive(Clone, Debug)]
pub struct Checking {
    pub nodes: u64,
    pub liars: u64,
    pub units: u64,
    /// Units wrong when their job was delivered.
    pub wrong: u64,
    /// Work beyond what was asked for, in the first job and in the one after it.
    pub extra_first: f64,
    pub extra_later: f64,
    /// Answers a liar had given when it was found out for good, on average; and liars not found out.
    pub liar_answers: f64,
    pub liars_left: u64,
}

/// Who lies in a measurement.
#[derive(Clone, Copy, Debug)]
pub enum Gang {
    Nobody,
    /// A fifth in concert: half of them at once, half when they are trusted.
    Concert,
    /// A fifth in concert, each lying once in ten answers and covering for the others.
    Rare,
    /// A fifth of all kinds.
    Mixed,
}

impl Gang {
    fn liars(self, nodes: u64) -> Vec<(u64, Character)> {
        let concert = Lie::Concert { group: 1 };
        let kinds = [Lie::Random, Lie::Subtle, Lie::Lazy, concert];
        let liar = |n: u64| {
            let after = if n.is_multiple_of(2) { 0 } else { 20 };
            let (kind, every) = match self {
                Gang::Nobody | Gang::Concert => (concert, 1),
                Gang::Rare => (concert, 10),
                Gang::Mixed => (kinds[(n / 2 % 4) as usize], 1),
            };
            (n * 5, Character::Liar { kind, after, every })
        };
        match self {
            Gang::Nobody => Vec::new(),
            Gang::Concert | Gang::Rare | Gang::Mixed => (0..nodes / 5).map(liar).collect(),
        }
    }
}

/// How much there is to do.
#[derive(Clone, Copy, Debug)]
pub struct Pool {
    /// Units of 64 items for each node, about.
    pub units_each: u64,
    /// Items in the smallest part of a unit that can be computed alone.
    pub grain: u64,
}

/// Two jobs on many nodes, some of whom lie.
pub fn checking(seed: u64, nodes: u64, gang: Gang, verify: Verify, plan: Pool) -> Checking {
    let liars = gang.liars(nodes);
    let Pool { units_each, grain } = plan;
    let job = JobPlan { items: 64 * nodes * units_each, grain, most: 64, ..job_plan(verify) };
    let jobs = vec![JobPlan { at: 2 * SECOND, ..job.clone() }, JobPlan { at: 3 * SECOND, ..job }];
    let scenario = Scenario {
        nodes,
        liars: liars.clone(),
        jobs,
        item_micros: (1_000, 4_000),
        delay: (2_000, 40_000),
        check_every: 100_000,
        in_turn: true,
        ..Scenario::crowd(nodes, 1)
    };
    let report = run_probed(seed, scenario, ()).0;
    let extra = |at: usize| extra(&report, at);
    let found = report.liar_answers.len().max(1) as f64;
    Checking {
        nodes,
        liars: liars.len() as u64,
        units: report.jobs.iter().map(|job| job.units).sum(),
        wrong: report.wrong,
        extra_first: extra(0),
        extra_later: extra(1),
        liar_answers: report.liar_answers.iter().sum::<u64>() as f64 / found,
        liars_left: report.liars_left,
    }
}

fn extra(report: &Report, at: usize) -> f64 {
    let job = &report.jobs[at];
    job.computed as f64 / job.items as f64 - 1.0
}

fn job_plan(verify: Verify) -> JobPlan {
    JobPlan {
        at: 0,
        items: 0,
        grain: 1,
        most: 1,
        lane: Lane::Gpu,
        takes: Footprint::NOTHING,
        strategy: Strategy::Adaptive,
        policy: Policy::checked(verify),
        floats: true,
    }
}
