//! Ray and Dask in a Python environment of their own.

use std::path::PathBuf;

use super::{Plan, figures, number};
use crate::shell::{Outcome, command, root, run, target, write};

/// What is installed: both from PyPI, the newest that fits this Python.
const PACKAGES: [&str; 2] = ["ray", "distributed"];

pub(super) struct Figures {
    pub(super) per_second: f64,
    /// Median seconds from submitting one task to having its result.
    pub(super) round_trip: f64,
}

fn venv() -> PathBuf {
    target().join("bench-venv")
}

/// Makes the environment once; it is some hundred megabytes.
pub(super) fn install(plan: &Plan) -> Outcome {
    let ready = venv().join("shoal-ready");
    if ready.exists() {
        return Ok(());
    }
    plan.say("installing Ray and Dask from PyPI");
    run(command("python3").args(["-m", "venv"]).arg(venv()))?;
    run(command(venv().join("bin/pip")).args(["install", "--quiet"]).args(PACKAGES))?;
    write(&ready, PACKAGES.join("\n"))
}

pub(super) fn measure(which: &str, tasks: u64, trips: u64) -> Outcome<Figures> {
    let mut python = command(venv().join("bin/python"));
    python.arg(root().join("xtask/src/bench/peers.py")).arg(which);
    python.args([tasks.to_string(), trips.to_string()]);
    // Ray at its leanest: no telemetry, no tokens between its own processes.
    python.env("RAY_USAGE_STATS_ENABLED", "0").env("RAY_AUTH_MODE", "disabled");
    let found = figures(&mut python)?;
    Ok(Figures {
        per_second: number(&found, "perSecond")?,
        round_trip: number(&found, "roundTrip")?,
    })
}
