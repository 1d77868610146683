//! Worlds from seeds: the same twice, and those that once failed, for ever. A few of each sort, because here numbers that
//! run over are caught; hundreds of each run in `cargo xtask test sim`.

use shoal_sim::{
    CrewReport, SwarmPlan, crew, farm, lying_crew, lying_split, run, split, swarm, swarm_of,
};

#[test]
fn the_same_seed_gives_the_same_trace() {
    for seed in 0..10 {
        assert_eq!(run(seed), run(seed), "seed {seed}");
    }
}

/// Seeds that once broke a promise, when nothing else was in a world than farm work and services.
#[test]
fn seeds_that_once_failed() {
    let seeds = [
        1, 27, 31, 66, 68, 79, 102, 136, 137, 162, 169, 210, 226, 314, 1442, 2175, 2777, 4842,
        5196, 5429, 11251, 12820, 126, 195, 429, 474, 3015, 3551, 4527, 4970,
    ];
    for seed in seeds {
        farm(seed);
    }
}

/// Worlds with everything in them that once broke a promise. In the first, three liars that agreed called one honest
/// node wrong after the other; in others a liar checked its friend's rows beside an own node, new keys failed a
/// job or called the first one of their class wrong, or a job waited for a vote that nobody could give.
#[test]
fn worlds_that_once_failed() {
    for seed in [1449, 78, 324, 396, 435, 1245, 2133] {
        assert_eq!(run(seed).honest_rejected, 0, "seed {seed}");
    }
}

#[test]
fn crews_give_the_undisturbed_field_whatever_happens() {
    let totals: u64 = (5..20).chain([3499, 3995]).map(|seed| crew(seed).crew.totals).sum();
    assert!(totals > 0, "some crews make totals: {totals}");
}

#[test]
fn a_crew_with_liars_is_right_or_says_that_nobody_could_check() {
    let reports: Vec<_> = (0..60).map(|seed| lying_crew(seed).crew).collect();
    let sum = |what: fn(&CrewReport) -> u64| reports.iter().map(what).sum::<u64>();
    assert!(sum(|report| report.checks) > 80 && sum(|report| report.lies_found) > 10);
    assert!(sum(|report| report.unchecked) > 0, "some worlds have nobody who could check");
}

#[test]
fn a_split_service_answers_each_request_once_and_rightly_whatever_happens() {
    let reports: Vec<_> = (0..25).chain([77]).map(split).collect();
    let sum = |what: fn(&shoal_sim::Report) -> u64| reports.iter().map(what).sum::<u64>();
    let (together, called) = (sum(|report| report.answered_split), sum(|report| report.split));
    assert!(together > 500 && called > 40, "{together} answers of {called} crews");
    let rounds = sum(|report| report.rounds);
    assert!(rounds > 10_000, "texts had {rounds} turns");
    let resumed = sum(|report| report.resumed);
    assert!(resumed > 20, "{resumed} texts went on where others were lost");
}

#[test]
fn strangers_that_say_other_words_are_found_where_somebody_can_look_and_nobody_else_is() {
    let reports: Vec<_> = (0..40).map(lying_split).collect();
    let sum = |what: fn(&shoal_sim::Report) -> u64| reports.iter().map(what).sum::<u64>();
    let (wrong, found) = (sum(|report| report.wrong_answers), sum(|report| report.lies_found));
    let (again, unchecked) =
        (sum(|report| report.words_again), sum(|report| report.unchecked_answers));
    assert!(wrong > 100 && found > 20, "{wrong} wrong answers, {found} found");
    assert!(again > 2 * found && unchecked > 0, "{again} words again, {unchecked} unchecked");
}

#[test]
fn a_crews_seed_gives_the_same_trace() {
    for seed in 0..5 {
        assert_eq!(crew(seed), crew(seed), "seed {seed}");
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
    let report = swarm_of(SwarmPlan::calm(30, 16), 1).swarm;
    assert_eq!(report.fetched + report.exchanged, 30 * 16);
    assert!(report.fetched < 24, "{report:?}");
}

#[test]
fn devices_that_need_ranges_get_those_and_mostly_from_each_other() {
    let report = swarm_of(SwarmPlan { ranges: 1_000_000, ..SwarmPlan::calm(30, 16) }, 1).swarm;
    assert_eq!(report.fetched + report.exchanged, report.needed);
    assert!(report.fetched < 32, "{report:?}");
}
