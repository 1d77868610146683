//! Shoal against its peers, in one run on one machine: only the ratio means something.

use crate::shell::Outcome;

pub(crate) fn run(args: &[String]) -> Outcome {
    Err(format!("there is no benchmark {args:?}"))
}
