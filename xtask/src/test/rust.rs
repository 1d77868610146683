//! Rust's tests: cargo builds them, and the programs it made run here, where they can run side by side and say how long
//! each test took.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use super::count::{Counts, counted};
use super::lanes::in_lanes;
use crate::shell::{Outcome, command, output};

/// Tests of one crate or of one file in its `tests`.
pub(super) struct Program {
    path: PathBuf,
    /// The package's folder, where cargo would run it.
    folder: PathBuf,
}

/// No test takes nearly as long. A program that says nothing for that long hangs.
pub(super) const SILENCE: Duration = Duration::from_secs(10 * 60);

/// What `cargo test` with these words would run, but for the examples in the documentation.
pub(super) fn build(cargo: &mut Command) -> Outcome<Vec<Program>> {
    let said = output(cargo.args(["--no-run", "--message-format=json-render-diagnostics"]))?;
    let messages = said.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    Ok(messages.filter_map(|message| program(&message)).collect())
}

fn program(message: &Value) -> Option<Program> {
    let is_test = message["profile"]["test"].as_bool()?;
    let path = PathBuf::from(message["executable"].as_str()?);
    let folder = Path::new(message["manifest_path"].as_str()?).parent()?.to_path_buf();
    is_test.then_some(Program { path, folder })
}

impl Program {
    /// Whether it is the tests of that crate or that file.
    pub(super) fn is(&self, name: &str) -> bool {
        let file = self.path.file_name().and_then(|file| file.to_str()).unwrap_or_default();
        file.rsplit_once('-').is_some_and(|(stem, _)| stem == name)
    }

    /// With `threads` at a time, and of those `only` these if they are named.
    pub(super) fn command(&self, threads: usize, only: Option<&[String]>) -> Command {
        let mut test = command(&self.path);
        // The pinned compiler's runner tells times only if it is asked for what is not stable.
        test.env("RUSTC_BOOTSTRAP", "1").args(["-Zunstable-options", "--report-time"]);
        test.current_dir(&self.folder).env("CARGO_MANIFEST_DIR", &self.folder);
        test.arg(format!("--test-threads={threads}")).stdin(Stdio::null());
        if let Some(names) = only {
            test.arg("--exact").args(names);
        }
        test
    }
}

/// Tests of pure code, as many at a time as there are cores, and the examples in the documentation.
pub(super) fn pure(
    programs: &[Program],
    documentation: &mut Command,
    tell: impl Fn(&mut Command),
) -> Outcome<Counts> {
    let commands = programs.iter().map(|each| {
        let mut test = each.command(1, None);
        tell(&mut test);
        test
    });
    let mut counts = in_lanes(cores(), SILENCE, commands)?.counts;
    counts += counted(documentation, SILENCE)?;
    Ok(counts)
}

pub(super) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_tests_are_run() {
        let message = |test: bool| {
            let profile = json!({ "test": test });
            json!({ "executable": "/t/a-b-07", "manifest_path": "/p/Cargo.toml", "profile": profile })
        };
        assert!(program(&message(false)).is_none());
        assert!(program(&json!({ "reason": "build-finished" })).is_none());
        let test = program(&message(true));
        assert!(test.as_ref().is_some_and(|test| test.is("a-b") && !test.is("a") && !test.is("b")));
        let test = test.map(|test| (test.path, test.folder));
        assert_eq!(test, Some((PathBuf::from("/t/a-b-07"), PathBuf::from("/p"))));
    }
}
