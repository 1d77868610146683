//! A second try for tests of real processes and browsers: on a busy machine one in thousands fails now and then.
//! Tests of pure code get none, since nothing there depends on the machine.

use std::process::Command;
use std::time::Duration;

use super::count::{Counts, Told};
use super::lanes::in_lanes;
use crate::shell::Outcome;

/// With more failures than this something is broken, and a second try would only take time.
const FEW: u64 = 4;

/// Runs what `runner` makes, so many at a time. If few tests fail, runs those once more, alone: `runner` is then given what
/// to run. Who passes then counts as passed, and as shaky, and is named.
pub(super) fn again_if_few_fail(
    lanes: usize,
    silence: Duration,
    runner: impl Fn(Option<&[String]>) -> Vec<Command>,
) -> Outcome<Counts> {
    let first = in_lanes(lanes, silence, runner(None))?;
    if !is_worth_it(&first) {
        return Ok(first.counts);
    }
    let names: Vec<String> = first.failures.iter().cloned().collect();
    println!("run again: {}", names.join(", "));
    let second = in_lanes(1, silence, runner(Some(&names)))?;
    Ok(both(first.counts, &second))
}

fn is_worth_it(first: &Told) -> bool {
    (1..=FEW).contains(&first.counts.failed) && !first.failures.is_empty()
}

/// A file of browser tests is run again as a whole, so the second run may count more tests than had failed.
/// If it counts none, the first one stands.
fn both(first: Counts, second: &Told) -> Counts {
    if second.counts.passed == 0 {
        return first;
    }
    let failed = second.counts.failed.min(first.failed);
    let shaky = first.failed - failed;
    Counts { passed: first.passed + shaky, failed, shaky, ..first }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Tests that fail as the two scripts say.
    /// How many passed, failed and passed the second time.
    fn check(first: &'static str, second: &'static str) -> (u64, u64, u64) {
        let runner = |only: Option<&[String]>| {
            let mut command = Command::new("sh");
            command.args(["-c", if only.is_some() { second } else { first }]);
            vec![command]
        };
        let counts = again_if_few_fail(1, Duration::from_secs(20), runner).unwrap_or_default();
        (counts.passed, counts.failed, counts.shaky)
    }

    const ONE_FAILS: &str = "echo 'test at a.mjs:1:1'; echo '# pass 5'; echo '# fail 1'; exit 1";

    #[test]
    fn what_passes_at_second_try_is_called_shaky() {
        let counts = check(ONE_FAILS, "echo '# pass 3'; echo '# fail 0'");
        assert_eq!(counts, (6, 0, 1));
    }

    #[test]
    fn what_fails_twice_has_failed() {
        assert_eq!(check(ONE_FAILS, ONE_FAILS), (5, 1, 0));
    }

    #[test]
    fn a_second_try_that_ran_nothing_says_nothing() {
        assert_eq!(check(ONE_FAILS, "true"), (5, 1, 0));
    }

    #[test]
    fn many_failures_are_not_tried_again() {
        let many = "echo 'test at a.mjs:1:1'; echo '# pass 5'; echo '# fail 9'; exit 1";
        assert_eq!(check(many, "echo '# pass 9'"), (5, 9, 0));
    }

    #[test]
    fn only_what_failed_runs_again() {
        let of = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let counts = Counts { passed: 1, failed: 2, ..Counts::default() };
        let told = Told { counts, failures: of(&["a", "b"]) };
        assert!(is_worth_it(&told));
        let unnamed = Told { failures: BTreeSet::new(), ..told };
        assert!(!is_worth_it(&unnamed));
    }
}
