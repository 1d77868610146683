//! Counting tests from what test runners print, while a person still sees every line.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use super::family;
use super::slow::{Slowest, timed};
use crate::shell::{Outcome, not_started, shown};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    /// Of those that passed: failed at first, and passed when run again.
    pub(crate) shaky: u64,
    pub(crate) slowest: Slowest,
}

impl Counts {
    /// One check that held.
    pub(crate) const ONE: Counts =
        Counts { passed: 1, failed: 0, shaky: 0, slowest: Slowest::NONE };
}

impl std::ops::AddAssign for Counts {
    fn add_assign(&mut self, other: Counts) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.shaky += other.shaky;
        self.slowest.add(other.slowest);
    }
}

/// What a test runner told.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Told {
    pub(super) counts: Counts,
    /// What failed, as its runner takes it: a test's name for cargo, a file for Node.
    pub(super) failures: BTreeSet<String>,
}

impl std::ops::AddAssign for Told {
    fn add_assign(&mut self, other: Told) {
        self.counts += other.counts;
        self.failures.extend(other.failures);
    }
}

/// Runs a test runner, prints its lines as they come and adds up its counts. A runner that fails
/// without having counted a failure (a test that did not compile, say) is an error, and so is one that
/// says nothing for `silence`: it hangs, and is ended with all that it started.
pub(crate) fn counted(command: &mut Command, silence: Duration) -> Outcome<Counts> {
    told(command, silence, |line| println!("{line}")).map(|told| told.counts)
}

/// The same, and which tests failed. Its lines are not printed but given to `show`, except those of Rust's runner about
/// tests that passed: there are thousands.
pub(super) fn told(
    command: &mut Command,
    silence: Duration,
    show: impl FnMut(&str),
) -> Outcome<Told> {
    let mut child =
        command.stdout(Stdio::piped()).spawn().map_err(|error| not_started(command, &error))?;
    let mut told = Told::default();
    let lines = child.stdout.take().map(lines_of);
    let hung = lines.is_some_and(|lines| !add_up(&lines, &mut child, silence, &mut told, show));
    if hung {
        println!("nothing was said for {} s; still running:", silence.as_secs());
        family::end(child.id());
    }
    let status = child.wait().map_err(|error| format!("`{}`: {error}", shown(command)))?;
    if hung {
        return Err(format!("`{}` hung; {} passed before", shown(command), told.counts.passed));
    }
    if !status.success() && told.counts.failed == 0 {
        return Err(format!("`{}` ended with {status}", shown(command)));
    }
    Ok(told)
}

/// A program's lines, read by a thread, so that one can stop waiting for them.
fn lines_of(stdout: ChildStdout) -> Receiver<String> {
    let (said, heard) = sync_channel(64);
    std::thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            if said.send(line).is_err() {
                return;
            }
        }
    });
    heard
}

/// Whether the program came to its end. Something it left behind may still hold its output open: that is
/// not waited for.
fn add_up(
    lines: &Receiver<String>,
    child: &mut Child,
    silence: Duration,
    told: &mut Told,
    mut show: impl FnMut(&str),
) -> bool {
    let mut heard = Instant::now();
    loop {
        match lines.recv_timeout(Duration::from_secs(1)) {
            Ok(line) => {
                heard = Instant::now();
                told.counts += of_line(&line);
                told.failures.extend(failed_in(&line).map(str::to_owned));
                if !(line.starts_with("test ")
                    && timed(&line).is_some()
                    && line.contains(" ... ok"))
                {
                    show(&line);
                }
            }
            Err(RecvTimeoutError::Disconnected) => return true,
            Err(RecvTimeoutError::Timeout) if matches!(child.try_wait(), Ok(Some(_))) => {
                return true;
            }
            Err(RecvTimeoutError::Timeout) if heard.elapsed() > silence => return false,
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

/// What a line says: `test result: ok. 3 passed; 0 failed; …` of cargo, `3 passed, 0 failed` of the
/// simulator, `ℹ pass 3` or `# fail 1` of Node.
fn of_line(line: &str) -> Counts {
    let mut counts = Counts { slowest: Slowest::of_line(line), ..Counts::default() };
    let cargo = line.split_once("test result: ").map(|(_, rest)| rest);
    if let Some(rest) = cargo.or_else(|| line.ends_with(" failed").then_some(line)) {
        for part in rest.split([';', '.', ',']) {
            let mut words = part.split_whitespace();
            match (words.next().and_then(|n| n.parse().ok()), words.next()) {
                (Some(n), Some("passed")) => counts.passed = n,
                (Some(n), Some("failed")) => counts.failed = n,
                (Some(_) | None, _) => {}
            }
        }
        return counts;
    }
    let mut words = line.split_whitespace();
    if !matches!(words.next(), Some("#" | "ℹ")) {
        return counts;
    }
    match (words.next(), words.next().and_then(|n| n.parse().ok()), words.next()) {
        (Some("pass"), Some(n), None) => counts.passed = n,
        (Some("fail" | "cancelled"), Some(n), None) => counts.failed = n,
        (Some(_) | None, _, _) => {}
    }
    counts
}

/// The failed test a line names: `---- NAME stdout ----` of cargo, `test at FILE:12:3` of Node.
fn failed_in(line: &str) -> Option<&str> {
    let cargo = line.strip_prefix("---- ").and_then(|rest| rest.strip_suffix(" stdout ----"));
    let node = || line.strip_prefix("test at ")?.split(':').next();
    cargo.or_else(node)
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::time::Duration;

    use super::{counted, failed_in, of_line};

    fn check(line: &str, passed: u64, failed: u64) {
        let counts = of_line(line);
        assert_eq!((counts.passed, counts.failed), (passed, failed), "{line}");
    }

    #[test]
    fn counts_what_cargo_says() {
        check("test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 3 filtered out", 12, 0);
        check("test result: FAILED. 4 passed; 2 failed; 0 ignored; 0 measured", 4, 2);
        check("test tests::result ... ok", 0, 0);
    }

    #[test]
    fn counts_what_the_simulator_says() {
        check("199 passed, 1 failed", 199, 1);
        check("seed 7 failed", 0, 0);
    }

    #[test]
    fn counts_what_node_says() {
        check("ℹ pass 7", 7, 0);
        check("# fail 2", 0, 2);
        check("ℹ cancelled 1", 0, 1);
        check("# pass the salt", 0, 0);
        check("ℹ tests 9", 0, 0);
    }

    #[test]
    fn names_what_failed() {
        assert_eq!(failed_in("---- radio::far::talk stdout ----"), Some("radio::far::talk"));
        assert_eq!(failed_in("test at e2e/donor.test.mjs:48:1"), Some("e2e/donor.test.mjs"));
        assert_eq!(failed_in("test radio::far::talk ... ok"), None);
    }

    #[test]
    fn a_runner_that_hangs_is_ended_with_what_it_started() {
        let mut hangs = Command::new("sh");
        hangs.args(["-c", "echo '# pass 2'; sleep 3600 & sleep 3600"]);
        let fault = counted(&mut hangs, Duration::from_secs(1));
        assert!(fault.is_err_and(|fault| fault.ends_with("hung; 2 passed before")));
    }

    #[test]
    fn what_a_runner_left_behind_is_not_waited_for() {
        let mut leaves = Command::new("sh");
        leaves.args(["-c", "echo '# pass 2'; sleep 20 &"]);
        let counts = counted(&mut leaves, Duration::from_secs(3600));
        assert_eq!(counts.map(|counts| (counts.passed, counts.failed)), Ok((2, 0)));
    }
}
