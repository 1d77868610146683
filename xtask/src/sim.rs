//! The simulated world, in release: a debug build checks thousands of nodes too slowly to be tried often.

use crate::shell::{Outcome, cargo, run as run_command};

/// Everything after the verb goes to the runner.
pub(crate) fn run(args: &[String]) -> Outcome {
    run_command(
        cargo().args(["run", "--quiet", "--release", "--package", "xtask-sim", "--"]).args(args),
    )
}

pub(crate) fn seeds(count: u64) -> Outcome {
    run(&["--seeds".into(), count.to_string()])
}
