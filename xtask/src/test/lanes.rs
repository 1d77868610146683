//! Several test programs at a time: those that start processes and browsers mostly wait, for a silence to be noticed
//! or a page to load, and meanwhile others can run.

use std::collections::VecDeque;
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::count::{Told, told};
use crate::shell::Outcome;

/// Runs them in this order, so many at a time, and adds up what they told. What each said is printed when it has ended,
/// so that two do not talk into each other. One that could not run is an error, but the others run first.
pub(super) fn in_lanes(
    lanes: usize,
    silence: Duration,
    commands: impl IntoIterator<Item = Command>,
) -> Outcome<Told> {
    let waiting: Mutex<VecDeque<Command>> = Mutex::new(commands.into_iter().collect());
    let all = Mutex::new((Told::default(), Vec::new()));
    let lane = || {
        loop {
            let next = waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
            let Some(mut command) = next else { return };
            let mut said = String::new();
            let result = told(&mut command, silence, |line| {
                said.push_str(line);
                said.push('\n');
            });
            let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
            print!("{said}");
            match result {
                Ok(told) => all.0 += told,
                Err(fault) => all.1.push(fault),
            }
        }
    };
    std::thread::scope(|scope| (0..lanes).for_each(|_| drop(scope.spawn(lane))));
    let (told, faults) = all.into_inner().unwrap_or_else(PoisonError::into_inner);
    if faults.is_empty() { Ok(told) } else { Err(faults.join("\n")) }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    const SILENCE: Duration = Duration::from_secs(60);

    fn script(text: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", text]);
        command
    }

    #[test]
    fn what_waits_lets_others_run() {
        let begun = Instant::now();
        let scripts = (0..6).map(|_| script("sleep 0.5; echo '# pass 2'"));
        let told = in_lanes(6, SILENCE, scripts).unwrap_or_default();
        assert_eq!(told.counts.passed, 12);
        assert!(begun.elapsed() < Duration::from_secs(3), "one after another");
    }

    #[test]
    fn a_program_that_breaks_does_not_keep_others_from_running() {
        let folder = std::env::temp_dir().join(format!("xtask-lanes-{}", std::process::id()));
        let later = script(&format!("mkdir {}; echo '# pass 1'", folder.display()));
        let fault = in_lanes(1, SILENCE, [script("exit 3"), later]);
        assert!(fault.is_err_and(|fault| fault.contains("exit status: 3")));
        assert!(std::fs::remove_dir(&folder).is_ok(), "the second one ran");
    }
}
