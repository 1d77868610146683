//! Ray and Dask in a Python environment of their own.

use super::{Plan, figures, number};
use crate::shell::{Outcome, command, root};
use crate::venv::Venv;

/// The newest that fit this Python.
const PEERS: Venv = Venv { name: "bench-venv", packages: &["ray", "distributed", "numba"] };

pub(super) struct Figures {
    pub(super) per_second: f64,
    /// Median seconds from submitting one task to having its result.
    pub(super) round_trip: f64,
    /// Of all answers of the batch.
    pub(super) sum: f64,
}

/// What a task does.
#[derive(Clone, Copy)]
pub(super) enum Task {
    Nothing,
    /// Counts primes, in plain Python.
    Python,
    /// The same, compiled.
    Numba,
}

impl Task {
    /// As the script calls it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Task::Nothing => "noop",
            Task::Python => "python",
            Task::Numba => "numba",
        }
    }
}

/// Makes the environment once; it is some hundred megabytes.
pub(super) fn install(plan: &Plan) -> Outcome {
    if !PEERS.is_ready() {
        plan.say("installing Ray, Dask and numba from PyPI");
    }
    PEERS.install()
}

pub(super) fn measure(which: &str, task: Task, tasks: u64, trips: u64) -> Outcome<Figures> {
    let mut python = command(PEERS.python());
    python.arg(root().join("xtask/src/bench/peers.py")).arg(which);
    python.args([tasks.to_string(), trips.to_string()]).arg(task.name());
    // Ray at its leanest: no telemetry, no tokens between its own processes.
    python.env("RAY_USAGE_STATS_ENABLED", "0").env("RAY_AUTH_MODE", "disabled");
    let found = figures(&mut python)?;
    Ok(Figures {
        per_second: number(&found, "perSecond")?,
        round_trip: number(&found, "roundTrip")?,
        sum: number(&found, "sum")?,
    })
}
