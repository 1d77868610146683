//! `bench farm`: units without content, against Ray's and Dask's tasks.

use super::peers::{self, Task};
use super::pool::Pool;
use super::report::{Report, Wanted, least, most};
use super::{Plan, build, figures, number};
use crate::shell::Outcome;

/// Long enough that starting up does not show, for each at its own pace.
const UNITS: u64 = 300_000;
const RAY_TASKS: u64 = 10_000;
const DASK_TASKS: u64 = 4_000;
const ROUND_TRIPS: u64 = 300;

#[derive(Default)]
struct Ours {
    per_second: Vec<f64>,
    round_trip: Vec<f64>,
    /// Milliseconds of coordinator processor time for each unit.
    cpu: Vec<f64>,
}

pub(super) fn run(plan: &Plan) -> Outcome<Report> {
    build(plan)?;
    peers::install(plan)?;
    let (mut ours, mut ray, mut dask) = (Ours::default(), Vec::new(), Vec::new());
    for round in 1..=plan.rounds {
        plan.say(&format!("round {round}: Shoal, Ray, Dask"));
        measure(&mut ours)?;
        ray.push(peers::measure("ray", Task::Nothing, RAY_TASKS, ROUND_TRIPS)?);
        dask.push(peers::measure("dask", Task::Nothing, DASK_TASKS, ROUND_TRIPS)?);
    }
    let rates =
        |peer: &[peers::Figures]| most(&peer.iter().map(|f| f.per_second).collect::<Vec<_>>());
    let trips =
        |peer: &[peers::Figures]| least(&peer.iter().map(|f| f.round_trip).collect::<Vec<_>>());
    let (per_second, round_trip) = (most(&ours.per_second), least(&ours.round_trip));
    let mut report = Report::new("farm", plan.rounds);
    report.ours("unitsPerSecond", per_second);
    report.ours("roundTripMillis", round_trip * 1e3);
    report.ours("coordinatorCpuMillisPerUnit", least(&ours.cpu));
    report.peer("rayTasksPerSecond", rates(&ray));
    report.peer("daskTasksPerSecond", rates(&dask));
    report.peer("rayRoundTripMillis", trips(&ray) * 1e3);
    report.peer("daskRoundTripMillis", trips(&dask) * 1e3);
    report.ratio("unitsPerSecondToRay", per_second / rates(&ray), Wanted::AtLeast(20.0));
    report.ratio("unitsPerSecondToDask", per_second / rates(&dask), Wanted::AtLeast(20.0));
    report.ratio("roundTripToRay", round_trip / trips(&ray), Wanted::AtMost(0.2));
    report.judge("coordinatorCpuMillisPerUnit", least(&ours.cpu), Wanted::AtMost(0.1));
    report.note("two native nodes over loopback, every merged unit durable before it counts; units of one item");
    report.note("peers: two workers, tasks submitted in one batch, defaults otherwise");
    Ok(report)
}

fn measure(ours: &mut Ours) -> Outcome {
    let mut pool = Pool::start()?;
    for _ in 0..2 {
        pool.add_node(&["--no-gpu", "--cpus", "1"])?;
    }
    let units = UNITS.to_string();
    figures(&mut pool.client(&["noop", "--items", "1000", "--json"]))?;
    let before = pool.coordinator_cpu();
    let batch = figures(&mut pool.client(&["noop", "--items", &units, "--json"]))?;
    if let (Some(before), Some(after)) = (before, pool.coordinator_cpu()) {
        ours.cpu.push((after - before) * 1e3 / UNITS as f64);
    }
    ours.per_second.push(UNITS as f64 / number(&batch, "seconds")?);
    let trips = ROUND_TRIPS.to_string();
    let single =
        figures(&mut pool.client(&["noop", "--items", "1", "--repeat", &trips, "--json"]))?;
    ours.round_trip.push(number(&single, "p50Millis")? / 1e3);
    Ok(())
}
