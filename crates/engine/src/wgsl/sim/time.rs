//! How fast a simulation is here: what a crew's rows are shared out by.

use shoal_kinds::TRIAL_STEPS;
use shoal_protocol::{Failure, Micros, Span, Time};

use super::SimProgram;

/// Enough was seen after this long.
const ENOUGH: Micros = Micros::from_millis(300);

pub(super) async fn time(
    program: &SimProgram,
    now: impl Fn() -> Time,
) -> Result<(u64, Micros), Failure> {
    let work = program.work();
    let rows = work.trial_rows();
    let mut band = program.open(Span::new(0, rows), false).await?;
    band.init().await?;
    // The first step makes memory and finds out how far the passes reach.
    let mut edges = band.edges().await?;
    edges = band.step(0, edges.bottom(), edges.top(), None).await?;
    band.settle().await?;
    let start = now();
    let mut steps = 0;
    while steps < TRIAL_STEPS && (steps == 0 || now() - start < ENOUGH) {
        steps += 1;
        edges = band.step(steps, edges.bottom(), edges.top(), None).await?;
    }
    band.settle().await?;
    let took = Micros((now() - start).0 / steps);
    Ok((rows * u64::from(work.width), took.max(Micros(1))))
}
