//! What becomes of a job when whoever submitted it goes away: on purpose, or by Ctrl-C.

use std::io::{BufRead, BufReader, IsTerminal};
use std::path::{Path, PathBuf};

use crate::fail::Fail;

use super::Job;

/// What an interrupt does to a running job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum OnInterrupt {
    /// Ask; without a terminal, cancel the job
    #[default]
    Ask,
    /// Cancel the job
    Cancel,
    /// Leave the job running, and end
    Leave,
}

/// How a verb stays with its job.
#[derive(Clone, Debug, Default)]
pub(crate) struct Manner {
    /// Submits the job and goes.
    pub(crate) detach: bool,
    pub(crate) on_interrupt: OnInterrupt,
    /// Where the result was to go.
    pub(crate) output: Option<PathBuf>,
    /// Flags that lead another command to the same coordinator.
    pub(crate) server: String,
    pub(crate) is_json: bool,
}

impl Manner {
    /// The command that goes on where this one ends.
    pub(crate) fn go_on(&self, verb: &str, job: u64) -> String {
        let output = self.output.as_deref().filter(|path| *path != Path::new("-"));
        let output = output.map(|path| format!(" -o {}", quoted(&path.to_string_lossy())));
        format!("shoal {verb} {job}{}{}", output.unwrap_or_default(), self.server)
    }

    pub(super) fn detached(&self, job: &Job) -> Fail {
        let (id, name) = (job.id, &job.name);
        let message =
            format!("job {id} ({name}) runs; to wait for its result: {}", self.go_on("watch", id));
        Fail::Detached { message, job: serde_json::to_value(job).unwrap_or_default() }
    }

    pub(super) fn left(&self, job: u64) -> Fail {
        let on = self.go_on("watch", job);
        Fail::Interrupted { message: format!("job {job} keeps running; to go on: {on}") }
    }

    /// What an interrupt means for a job. Asks whoever sits at the terminal; answered by nobody, it leaves the job alone.
    pub(super) async fn choose(
        &self,
        job: u64,
        is_order: bool,
        note: impl Fn(&str),
    ) -> OnInterrupt {
        match self.on_interrupt {
            OnInterrupt::Cancel | OnInterrupt::Leave => return self.on_interrupt,
            OnInterrupt::Ask => {}
        }
        let Some(person) = (if is_order || self.is_json { None } else { person() }) else {
            return OnInterrupt::Cancel;
        };
        note(&format!("cancel job {job}? Type y and Enter; only Enter leaves it running"));
        let answer = tokio::task::spawn_blocking(move || {
            let mut line = String::new();
            BufReader::new(person).read_line(&mut line).map(|_| line).unwrap_or_default()
        });
        let answer = answer.await.unwrap_or_default();
        match answer.trim() {
            "y" | "Y" | "yes" => OnInterrupt::Cancel,
            _ => OnInterrupt::Leave,
        }
    }
}

/// The keyboard of whoever sees stderr: stdin may be the program's input.
fn person() -> Option<std::fs::File> {
    if !std::io::stderr().is_terminal() {
        return None;
    }
    std::fs::File::open(if cfg!(windows) { "CONIN$" } else { "/dev/tty" }).ok()
}

/// As a shell takes it for one word.
pub(crate) fn quoted(text: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./:@%+,=".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.into();
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_that_goes_on_can_be_pasted() {
        let manner = |output: &str| Manner { output: Some(output.into()), ..Manner::default() };
        assert_eq!(manner("out.npy").go_on("watch", 3), "shoal watch 3 -o out.npy");
        assert_eq!(manner("my out's").go_on("watch", 3), r"shoal watch 3 -o 'my out'\''s'");
        assert_eq!(manner("-").go_on("result", 3), "shoal result 3");
    }
}
