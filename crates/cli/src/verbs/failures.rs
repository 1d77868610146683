//! Inputs on which a program failed: told to the user, saved to a file, and run again from such a file.

use std::collections::BTreeSet;
use std::path::Path;

use bytes::Bytes;
use shoal_api::FailureJson;

use crate::client::{Client, Job, Sink, Source};
use crate::fail::Fail;
use crate::show;

/// So many are told in the terminal; files have all of them.
const TOLD: usize = 20;
/// Lines of stderr that are shown of each.
const STDERR_LINES: usize = 5;

/// What a job's program failed on, where it failed.
pub(super) async fn of(client: &Client, job: &Job) -> Result<Vec<FailureJson>, Fail> {
    match job.items_failed {
        0 => Ok(Vec::new()),
        _ => client.failures(job.id).await,
    }
}

/// How a command ends that fetched the answers of the others.
pub(super) fn verdict(failures: &[FailureJson], job: &Job) -> Result<(), Fail> {
    match failures.len() {
        0 => Ok(()),
        count => Err(Fail::Runs {
            message: format!("the program failed on {count} of {} inputs", job.items),
        }),
    }
}

/// Lists the failures on stderr.
pub(super) fn tell(failures: &[FailureJson], file: Option<&Path>) {
    for failure in failures.iter().take(TOLD) {
        let input = name(failure);
        eprintln!("{}: {}", show::harmless(&input), show::harmless(&failure.message));
        let lines: Vec<_> = failure.stderr.trim_end().lines().collect();
        for line in &lines[lines.len().saturating_sub(STDERR_LINES)..] {
            eprintln!("    {}", show::harmless(line));
        }
    }
    if let Some(more @ 1..) = failures.len().checked_sub(TOLD) {
        let place = match file {
            Some(file) => format!("{} lists all of them", file.display()),
            None => "--json lists all of them".into(),
        };
        eprintln!("and {more} more: {place}");
    }
}

/// Writes them as lines of JSON; an empty file says that there were none.
pub(super) fn save(failures: &[FailureJson], file: &Path) -> Result<(), Fail> {
    let mut sink = Sink::create(file)?;
    for failure in failures {
        let text = serde_json::to_string(failure)
            .map_err(|error| Fail::world("internal", format!("cannot write JSON: {error}")))?;
        sink.write(text.as_bytes())?;
        sink.write(b"\n")?;
    }
    sink.finish()
}

fn name(failure: &FailureJson) -> String {
    failure.input.clone().unwrap_or_else(|| format!("item {}", failure.item))
}

/// The inputs that a file lists.
pub(super) struct Only {
    items: BTreeSet<u64>,
    names: BTreeSet<String>,
}

impl Only {
    pub(super) fn read(path: &Path) -> Result<Only, Fail> {
        let text = std::fs::read_to_string(path).map_err(|error| Fail::reading(path, &error))?;
        let mut only = Only { items: BTreeSet::new(), names: BTreeSet::new() };
        for (number, line) in (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty()) {
            let failure: FailureJson = serde_json::from_str(line).map_err(|error| {
                let path = path.display();
                Fail::input(format!(
                    "{path}, line {number}: expected a failed input as --failures writes it: {error}"
                ))
            })?;
            only.items.insert(failure.item);
            only.names.extend(failure.input);
        }
        match only.items.is_empty() {
            true => Err(Fail::input(format!("{} lists no inputs: nothing to do", path.display()))),
            false => Ok(only),
        }
    }

    /// The files that are listed.
    pub(super) fn files(
        &self,
        files: Vec<(String, Source)>,
    ) -> Result<Vec<(String, Source)>, Fail> {
        let found: Vec<_> =
            files.into_iter().filter(|(name, _)| self.names.contains(name)).collect();
        if found.len() == self.names.len() {
            return Ok(found);
        }
        let found: BTreeSet<_> = found.iter().map(|(name, _)| name).collect();
        let missing = self.names.iter().find(|name| !found.contains(name));
        Err(Fail::input(format!(
            "--only lists {}, which is none of the files given: give the same files as before",
            missing.map_or("a file", String::as_str)
        )))
    }

    /// The lines of the runs that are listed, and which runs of the whole text they are.
    pub(super) fn lines(&self, text: &[u8], per_run: u32) -> Result<(Bytes, Vec<u64>), Fail> {
        let (mut kept, mut runs, mut run) = (Vec::new(), Vec::new(), 0);
        let lines: Vec<_> = text.split_inclusive(|byte| *byte == b'\n').collect();
        for lines in lines.chunks(per_run as usize) {
            if self.items.contains(&run) {
                lines.iter().for_each(|line| kept.extend_from_slice(line));
                runs.push(run);
            }
            run += 1;
        }
        if runs.len() == self.items.len() {
            return Ok((kept.into(), runs));
        }
        let last = self.items.last().map_or(0, |item| item + 1);
        Err(Fail::input(format!(
            "--only lists run {last}, but stdin has lines for {run} runs: give the same lines as before"
        )))
    }
}

/// Gives items the numbers and names that they have among all lines.
pub(super) fn renumber(failures: &mut [FailureJson], runs: &[u64], per_run: u32) {
    for failure in failures {
        let Some(run) = usize::try_from(failure.item).ok().and_then(|at| runs.get(at)) else {
            continue;
        };
        failure.item = *run;
        failure.input = Some(lines(*run, per_run));
    }
}

/// What the lines of a run are called, among all lines.
pub(super) fn lines(run: u64, per_run: u32) -> String {
    let first = run * u64::from(per_run) + 1;
    match per_run {
        1 => format!("line {first}"),
        _ => format!("lines {first} to {}", first + u64::from(per_run) - 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn only(items: &[u64]) -> Only {
        Only { items: items.iter().copied().collect(), names: BTreeSet::new() }
    }

    #[test]
    fn listed_runs_keep_their_lines_and_their_numbers() {
        let (text, runs) = only(&[0, 2]).lines(b"a\nb\nc\nd\ne", 2).expect("there");
        assert_eq!((&text[..], runs.as_slice()), (&b"a\nb\ne"[..], &[0, 2][..]));
        let failure = |item| FailureJson {
            item,
            input: Some("line 1".into()),
            exit_code: Some(3),
            limit: None,
            message: String::new(),
            stderr: String::new(),
        };
        let mut failures = [failure(1)];
        renumber(&mut failures, &runs, 2);
        let named = failures[0].input.as_deref();
        assert_eq!((failures[0].item, named), (2, Some("lines 5 to 6")));
    }

    #[test]
    fn other_inputs_than_before_are_refused() {
        assert!(only(&[3]).lines(b"a\nb\nc\n", 1).is_err());
        let of = Only { items: [0].into(), names: ["a.txt".to_owned()].into() };
        let Err(fail) = of.files(Vec::new()) else { panic!("a.txt is not there") };
        assert!(fail.message().contains("a.txt"), "{}", fail.message());
    }
}
