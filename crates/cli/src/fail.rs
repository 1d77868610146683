//! How a command ends when it does not end well: a sentence for people, a code for programs, an
//! exit code.

use std::io;
use std::path::Path;
use std::process::ExitCode;

use serde_json::json;
pub(crate) use shoal_host::plain;

use crate::show;

/// Why a command gave up.
#[derive(Debug)]
pub(crate) enum Fail {
    /// The command line or a file given on it is at fault.
    Input { code: String, message: String },
    /// The job ran and failed, or was cancelled by someone else.
    Job { message: String, stderr: String, job: serde_json::Value },
    /// The job is done, but the program failed on some inputs, of which the user was told.
    Runs { message: String },
    /// The world is at fault: network, disk, a coordinator that is gone.
    World { code: String, message: String },
    /// Ctrl-C.
    Interrupted { message: String },
    /// Ctrl-C, and the job was cancelled.
    Stopped { message: String, job: u64 },
    /// The job was to be submitted and left alone.
    Detached { message: String, job: serde_json::Value },
    /// The terminal has gone: the job goes on, and nobody is left to tell.
    HungUp,
    /// Whoever read our output has gone (`shoal jobs | head`): nobody is left to tell.
    PipeClosed,
}

impl Fail {
    pub(crate) fn input(message: impl Into<String>) -> Fail {
        Fail::Input { code: "bad_input".into(), message: message.into() }
    }

    pub(crate) fn world(code: &str, message: impl Into<String>) -> Fail {
        Fail::World { code: code.into(), message: message.into() }
    }

    /// A file named on the command line could not be read.
    pub(crate) fn reading(path: &Path, error: &io::Error) -> Fail {
        Fail::input(format!("cannot read {}: {}", path.display(), plain(error)))
    }

    /// A device or a pipe where a file with an end is needed.
    pub(crate) fn irregular(path: &Path) -> Fail {
        Fail::input(format!("{} is not a regular file", path.display()))
    }

    /// A result could not be written. Says what became of the output: nothing.
    pub(crate) fn writing(path: &Path, error: &io::Error) -> Fail {
        let code = if is_full(error) { "disk_full" } else { "cannot_write" };
        let reason = plain(error);
        Fail::world(
            code,
            format!("cannot write {}: {reason}; the file is unchanged", path.display()),
        )
    }

    /// Tells the user on stderr and gives the exit code.
    pub(crate) fn report(&self, json: bool) -> ExitCode {
        match self {
            Fail::PipeClosed | Fail::HungUp => {}
            Fail::Detached { message, job } => return detached(json, message, job),
            _ if json => eprintln!("{}", self.as_json()),
            Fail::Job { message, stderr, .. } => {
                eprintln!("error: {}", show::harmless(message));
                if !stderr.trim().is_empty() {
                    let stderr = show::harmless(&indent(stderr.trim_end()));
                    eprintln!("the end of the program's stderr:\n{stderr}");
                }
            }
            Fail::Interrupted { message } | Fail::Stopped { message, .. } => {
                eprintln!("{}", show::harmless(message))
            }
            Fail::Input { message, .. } | Fail::World { message, .. } | Fail::Runs { message } => {
                eprintln!("error: {}", show::harmless(message))
            }
        }
        ExitCode::from(self.exit_code())
    }

    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Fail::Job { .. } | Fail::World { .. } => 1,
            Fail::Input { .. } => 2,
            // As xargs does.
            Fail::Runs { .. } => 123,
            Fail::Interrupted { .. } | Fail::Stopped { .. } => 130,
            Fail::HungUp => 129,
            Fail::PipeClosed | Fail::Detached { .. } => 0,
        }
    }

    /// In a sentence.
    pub(crate) fn message(&self) -> &str {
        match self {
            Fail::Input { message, .. }
            | Fail::World { message, .. }
            | Fail::Runs { message }
            | Fail::Job { message, .. }
            | Fail::Detached { message, .. }
            | Fail::Stopped { message, .. }
            | Fail::Interrupted { message } => message,
            Fail::PipeClosed | Fail::HungUp => "",
        }
    }

    pub(crate) fn as_json(&self) -> serde_json::Value {
        match self {
            Fail::Input { code, message } => json!({"error": {"code": code, "message": message}}),
            Fail::World { code, message } => json!({"error": {"code": code, "message": message}}),
            Fail::Job { message, stderr, job } => json!({
                "error": {"code": "job_failed", "message": message, "stderr": stderr}, "job": job,
            }),
            Fail::Runs { message } => {
                json!({"error": {"code": "runs_failed", "message": message}})
            }
            Fail::Interrupted { message } | Fail::Stopped { message, .. } => {
                json!({"error": {"code": "interrupted", "message": message}})
            }
            Fail::Detached { job, .. } => json!({"job": job}),
            Fail::PipeClosed | Fail::HungUp => serde_json::Value::Null,
        }
    }
}

impl From<shoal_host::Fail> for Fail {
    fn from(fail: shoal_host::Fail) -> Fail {
        match fail {
            shoal_host::Fail::Input { code, message } => Fail::Input { code, message },
            shoal_host::Fail::World { code, message } => Fail::World { code, message },
        }
    }
}

/// What was asked for, so it goes to stdout.
fn detached(json: bool, message: &str, job: &serde_json::Value) -> ExitCode {
    let told = if json { show::json(&json!({"job": job})) } else { show::line(message) };
    ExitCode::from(told.err().map_or(0, |fail| fail.exit_code()))
}

fn indent(text: &str) -> String {
    text.lines().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
}

/// Whether a disk, or what one may use of it, is full.
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_file_is_named_with_the_reason() {
        let error = io::Error::from_raw_os_error(2);
        let fail = Fail::reading(Path::new("data.npy"), &error);
        let Fail::Input { message, .. } = &fail else { panic!("reading is about input") };
        assert_eq!(message, "cannot read data.npy: no such file or directory");
        assert_eq!(fail.exit_code(), 2);
    }

    #[test]
    fn a_full_disk_has_its_own_code() {
        let fail = Fail::writing(Path::new("o"), &io::Error::from(io::ErrorKind::StorageFull));
        assert!(fail.as_json().to_string().contains("disk_full"));
        assert_eq!(fail.exit_code(), 1);
    }
}
