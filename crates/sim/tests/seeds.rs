//! Worlds from seeds: the same twice, and those that once failed, for ever.

use shoal_sim::{SwarmPlan, crew, run, swarm, swarm_of};

#[test]
fn the_same_seed_gives_the_same_trace() {
    for seed in 0..10 {
        assert_eq!(run(seed), run(seed), "seed {seed}");
    }
}

#[test]
fn promises_hold_in_many_worlds() {
    for seed in 0..60 {
        run(seed);
    }
}

/// Seeds that once broke a promise.
#[test]
fn seeds_that_once_failed() {
    let seeds = [
        1, 27, 31, 66, 68, 79, 102, 136, 137, 162, 169, 210, 226, 314, 1442, 2175, 2777, 4842,
        5196, 5429, 11251, 12820, 126, 195, 429, 474,
    ];
    for seed in seeds {
        run(seed);
    }
}

#[test]
fn crews_give_the_undisturbed_field_whatever_happens() {
    for seed in (0..40).chain([3499, 3995]) {
        crew(seed);
    }
}

#[test]
fn a_crews_seed_gives_the_same_trace() {
    for seed in 0..5 {
        assert_eq!(crew(seed), crew(seed), "seed {seed}");
    }
}

#[test]
fn in_a_swarm_everybody_ends_with_the_right_bytes() {
    for seed in 0..60 {
        swarm(seed);
    }
}

#[test]
fn a_swarms_seed_gives_the_same_trace() {
    for seed in 0..5 {
        assert_eq!(swarm(seed), swarm(seed), "seed {seed}");
    }
}

#[test]
fn thirty_nodes_cost_the_coordinator_little_more_than_one_copy() {
    let report = swarm_of(SwarmPlan::calm(30, 16), 1);
    assert_eq!(report.fetched + report.exchanged, 30 * 16);
    assert!(report.fetched < 24, "{report:?}");
}
