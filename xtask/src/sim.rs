//! The simulated world, in release: a debug build checks thousands of nodes too slowly to be tried often.

use std::process::Command;

use crate::shell::{self, Outcome, cargo};

/// Everything after the verb goes to the simulator.
pub(crate) fn run(args: &[String]) -> Outcome {
    shell::run(simulator().args(args))
}

/// The simulator, to be given its own words.
pub(crate) fn simulator() -> Command {
    let mut simulator = cargo();
    simulator.args(["run", "--quiet", "--release", "--package", "shoal-sim", "--"]);
    simulator
}
