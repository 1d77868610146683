//! What is in the world of a seed. Most have farm work, many a crew or two, some a swarm, some a service; all have
//! faults. A world with only one of them is drawn by [`farm`], [`crew`], [`lying_crew`], [`split`], [`lying_split`] and
//! [`swarm`].

use shoal_protocol::Strategy;

use crate::crew::CrewPlan;
use crate::random::Random;
use crate::report::Report;
use crate::scenario::{Faults, Links, Scenario};
use crate::staged::SplitPlan;
use crate::swarm::SwarmPlan;
use crate::world::run_probed;

/// One world in so many is a crowd: it takes as long as many small ones.
const CROWD_EVERY: u64 = 64;
/// One in so many has devices that talk and talk.
const FLOOD_EVERY: u64 = 5;
/// One in so many has a service that is asked.
const SERVED_EVERY: u64 = 4;
/// In one devices have little memory and jobs take some of it.
const NARROW_EVERY: u64 = 4;
/// In one world in so many somebody wants jobs to fail.
const BESIEGED_EVERY: u64 = 3;
/// Beside so many honest voices somebody may lie who wants jobs to fail: most of them are there at any time.
const KNOW_BETTER: u64 = 8;
/// One in so many has one or more crews, and one in so many a swarm: their numbers have no factor in common with the
/// others, so that everything meets everything.
const CREWED_EVERY: u64 = 7;
const CREWED: u64 = 4;
const SWARMED_EVERY: u64 = 11;
/// Hostile devices may make everything take twice as long, and this much longer: the first verdicts wait for nodes
/// that nobody knows yet, and faults fall on other moments.
const SIEGE_COSTS: u64 = 90_000_000;
/// Where nothing goes wrong the coordinator gives less than so many copies of a blob, in hundredths.
const COPIES: u64 = 160;

/// Whether a service's requests go round and round is of another chance, so that worlds in which they do not are the
/// same as ever.
const ROUNDS: u64 = 0x7e47;

/// Runs a world drawn from the seed to its end; panics where a promise is broken.
pub fn run(seed: u64) -> Report {
    let mut scenario = farm_of(seed);
    let mut random = Random::new(seed ^ 0x0a11);
    let crowded = scenario.nodes >= 1_000;
    if seed % CREWED_EVERY < CREWED {
        add_crews(&mut scenario, &mut random);
    }
    if seed % SWARMED_EVERY == 5 && !crowded {
        let devices = random.range(2, 9).min(scenario.nodes) as usize;
        scenario.swarm = Some(SwarmPlan::random(&mut random, devices));
    }
    if scenario.calls > 0 {
        // Of another chance, so that worlds without it are the same as ever.
        let mut random = Random::new(seed ^ 0x5711);
        let split = random.chance(700_000);
        let plan = split.then(|| SplitPlan::random(&mut random, scenario.nodes));
        scenario.split = plan.map(|plan| plan.maybe_rounds(&mut Random::new(seed ^ ROUNDS)));
    }
    if scenario.has_links() {
        scenario.links = Links::random(&mut random);
        scenario.faults = scenario.faults.with_links(&mut random);
    }
    run_besieged(seed, scenario)
}

/// The same with farm work and services only.
pub fn farm(seed: u64) -> Report {
    run_besieged(seed, farm_of(seed))
}

/// A world in which a few devices compute a field together, and nothing else.
pub fn crew(seed: u64) -> Report {
    let mut random = Random::new(seed ^ 0xc4e3);
    let devices = random.range(1, 7);
    run_probed(seed, crew_alone(&mut random, devices, 12), ()).0
}

/// The same with strangers who lie: the field is right, or the job says that some steps were not checked.
pub fn lying_crew(seed: u64) -> Report {
    let mut random = Random::new(seed ^ 0x11e5);
    let devices = random.range(2, 7);
    let mut scenario = crew_alone(&mut random, devices, 5);
    scenario.own = random.range(0, devices);
    let liars = random.range(1, devices + 1);
    add_spoilers(&mut scenario, liars, &mut random);
    run_probed(seed, scenario, ()).0
}

/// A world in which a few devices keep a service ready together, and nothing else.
pub fn split(seed: u64) -> Report {
    let mut random = Random::new(seed ^ 0x5711);
    let devices = random.range(1, 9);
    let mut scenario = quiet(devices);
    let plan = SplitPlan::random(&mut random, devices);
    scenario.split = Some(plan.maybe_rounds(&mut Random::new(seed ^ ROUNDS)));
    scenario.calls = random.range(10, 200);
    scenario.delay = if random.chance(300_000) { (20_000, 60_000) } else { (100, 3_000) };
    scenario.links = Links::random(&mut random);
    let faults = Faults::few(random.range(0, 30), random.range(5_000_000, 30_000_000));
    let (hides, mishaps) = (random.range(0, 3) * 4_000_000, random.range(0, 3) * 20_000);
    scenario.faults = Faults { hides, mishaps, ..faults };
    // Some go on for so long and are asked so much that parts are dealt anew by what was measured.
    let mut longer = Random::new(seed ^ 0x10a9);
    if longer.chance(200_000) {
        scenario.calls = longer.range(200, 800);
        let faults = Faults::few(longer.range(0, 8), longer.range(60_000_000, 120_000_000));
        scenario.faults = Faults { mishaps, ..faults };
    }
    run_probed(seed, scenario, ()).0
}

/// A language model that devices keep ready together or alone. Some of them are strangers', and some of those say other
/// words. Some of the operator's own come only when strangers have parts of it: those have the room to notice.
pub fn lying_split(seed: u64) -> Report {
    let mut random = Random::new(seed ^ 0x11a9);
    let devices = random.range(2, 7);
    let mut scenario = quiet(devices);
    let plan = SplitPlan::random(&mut random, devices);
    let (rounds, bytes) = (random.range(1, 5) as u16, random.range(0, 4_000));
    scenario.split = Some(SplitPlan { rounds, bytes, lied: true, ..plan });
    scenario.own = random.range(1, devices);
    scenario.late = random.range(0, scenario.own + 1);
    let every = [1, 1, 2, 10][random.range(0, 4) as usize];
    let liars = devices - random.range(1, devices - scenario.own + 1)..devices;
    scenario.spoilers = liars.map(|device| (device, every)).collect();
    scenario.calls = random.range(40, 200);
    scenario.links = Links::random(&mut random);
    let until = random.range(5_000_000, 30_000_000);
    let faults = if random.chance(500_000) { random.range(1, 20) } else { 0 };
    // Where nothing goes wrong all may come at once: while one answer is looked at, others come.
    let burst = faults == 0 && random.chance(700_000);
    scenario.faults = Faults::few(faults, if burst { 0 } else { until });
    if faults > 0 {
        let (hides, mishaps) = (random.range(0, 3) * 4_000_000, random.range(0, 3) * 20_000);
        let loss = random.range(0, 3) * 5_000;
        scenario.faults = Faults { hides, mishaps, loss, ..scenario.faults };
    }
    run_probed(seed, scenario, ()).0
}

/// A world in which devices exchange a blob, and nothing else.
pub fn swarm(seed: u64) -> Report {
    let mut random = Random::new(seed ^ 0x5a4e);
    let devices = random.range(2, 12);
    if random.chance(200_000) {
        let plan = SwarmPlan::calm(devices as usize, random.range(9, 17) as u32);
        let report = swarm_of(plan, seed);
        let copies = report.swarm.fetched * 100 / report.swarm.pieces;
        assert!(copies < COPIES, "{copies} % of a copy came from the coordinator: {plan:?}");
        return report;
    }
    let mut scenario = quiet(devices);
    scenario.swarm = Some(SwarmPlan::random(&mut random, devices as usize));
    scenario.delay = if random.chance(300_000) { (20_000, 90_000) } else { scenario.delay };
    scenario.links = Links::random(&mut random);
    let faults = if random.chance(400_000) { random.range(0, 12) } else { 0 };
    scenario.faults = Faults::few(faults, random.range(5_000_000, 45_000_000));
    let scenario = if seed % 3 == 2 { scenario.flooded() } else { scenario };
    run_probed(seed, scenario, ()).0
}

/// The same for a plan of one's own, where nothing else goes wrong.
pub fn swarm_of(plan: SwarmPlan, seed: u64) -> Report {
    let scenario = Scenario { swarm: Some(plan), ..quiet(plan.devices as u64) };
    run_probed(seed, scenario, ()).0
}

/// Jobs, services and everything that goes wrong for them.
fn farm_of(seed: u64) -> Scenario {
    let mut random = Random::new(seed);
    let crowded = seed % CROWD_EVERY == CROWD_EVERY - 1;
    let besieged = seed.is_multiple_of(BESIEGED_EVERY);
    let mut scenario = Scenario::random(&mut random, crowded, besieged);
    harden(&mut scenario, &mut Random::new(seed ^ 0xc1a5));
    let flooded = seed % FLOOD_EVERY == FLOOD_EVERY - 2;
    let mut scenario = if flooded { scenario.flooded() } else { scenario };
    // Nobody checks who answers for a service: not where some want it to fail.
    let served = seed % SERVED_EVERY == 1 && !crowded && !besieged;
    scenario.calls = if served { random.range(10, 200) } else { 0 };
    let narrow = seed % NARROW_EVERY == NARROW_EVERY - 2;
    if narrow { scenario.narrow(&mut Random::new(seed ^ 0x6e0)) } else { scenario }
}

/// Hostile devices claim classes of honest ones, and some lie. Of another chance, so that worlds without them are the
/// same as ever.
fn harden(scenario: &mut Scenario, random: &mut Random) {
    let (nodes, networks) = (scenario.nodes, scenario.networks);
    let voices = if networks == 0 { nodes } else { nodes.min(networks) };
    let may_lie = scenario.liars.is_empty() && voices >= KNOW_BETTER;
    for enemy in &mut scenario.enemies {
        *enemy = enemy.harder(nodes, may_lie, random);
    }
}

/// Beside hostile devices everything ends as well, and not much later.
fn run_besieged(seed: u64, scenario: Scenario) -> Report {
    if scenario.enemies.is_empty() || scenario.nodes >= 1_000 {
        return run_probed(seed, scenario, ()).0;
    }
    // Where everybody gets as many units, all wait for whoever is slow, and small changes for another one.
    let in_turns = scenario.jobs.iter().any(|job| job.strategy == Strategy::RoundRobin);
    let peace = Scenario { enemies: Vec::new(), ..scenario.clone() };
    let alone = run_probed(seed, peace, ()).0.virtual_micros;
    let report = run_probed(seed, scenario, ()).0;
    let took = report.virtual_micros;
    assert!(
        in_turns || took < 2 * alone + SIEGE_COSTS,
        "beside hostile devices {took} us, alone {alone} us"
    );
    report
}

/// Simulations beside whatever else there is.
fn add_crews(scenario: &mut Scenario, random: &mut Random) {
    for _ in 0..[1, 1, 1, 2][random.range(0, 4) as usize] {
        let mut crew = CrewPlan::random(random, scenario.nodes);
        crew.at = random.range(0, 3_000_000);
        // Whoever is found to lie gets no seat: a crew that waits for so many would wait for ever.
        crew.members = if scenario.liars.is_empty() { crew.members } else { 0 };
        scenario.crews.push(crew);
    }
    if random.chance(200_000) && scenario.nodes >= 2 {
        let liars = random.range(1, (scenario.nodes / 2).min(4) + 1);
        add_spoilers(scenario, liars, random);
        // Rows of devices that round differently prove nothing.
        scenario.classes = [1, crate::device::CLASSES][random.range(0, 2) as usize];
    }
}

/// The last devices spoil their rows, which somebody checks then.
fn add_spoilers(scenario: &mut Scenario, count: u64, random: &mut Random) {
    // Whoever lies only after it was right ten times is found out by chance.
    let every = random.range(1, 11);
    let liars = scenario.nodes - count..scenario.nodes;
    scenario.spoilers = liars.filter(|n| *n >= scenario.own).map(|n| (n, every)).collect();
    for crew in &mut scenario.crews {
        (crew.members, crew.checked) = (0, true);
    }
}

fn crew_alone(random: &mut Random, devices: u64, most_faults: u64) -> Scenario {
    let mut scenario = quiet(devices);
    let plan = CrewPlan::random(random, devices);
    scenario.delay = if random.chance(300_000) { (20_000, 60_000) } else { (100, 3_000) };
    scenario.links = Links::random(random);
    let work = plan.work(devices);
    // Faults come while there is something to disturb, and some before and after.
    let until = 1_000_000 + random.range(work, 3 * work + 1);
    scenario.faults = Faults::few(random.range(0, most_faults), until);
    scenario.crews = vec![plan];
    scenario
}

/// Devices with nothing to do, and nothing goes wrong.
fn quiet(nodes: u64) -> Scenario {
    let links = Links { lost: 0, doubled: 0, direct: 1_000_000, direct_lives: u64::MAX / 4 };
    let calm = Scenario::crowd(nodes, 1);
    Scenario { jobs: Vec::new(), delay: (500, 5_000), check_every: 1, classes: 1, links, ..calm }
}
