//! The verbs that look at a pool, and at what it can show.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use shoal_protocol::PublicKey;

use super::lend::public_key;
use super::{Server, StderrArg, help};

/// List jobs, newest first
#[derive(Debug, Args)]
#[command(after_help = help::JOBS)]
pub(crate) struct Jobs {
    #[command(flatten)]
    pub(crate) server: Server,
}

/// List the devices in the pool
#[derive(Debug, Args)]
#[command(after_help = help::NODES)]
pub(crate) struct Nodes {
    /// Also list devices that computed here and are not connected
    #[arg(long)]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) server: Server,
}

/// Follow a job until it ends
#[derive(Debug, Args)]
#[command(
    after_help = help::WATCH
)]
pub(crate) struct Watch {
    #[arg(value_name = "JOB")]
    pub(crate) job: u64,
    /// Save the result here when the job has ended, as `shoal result` does
    #[arg(short, long, value_name = "PATH")]
    pub(crate) output: Option<PathBuf>,
    /// If the job fails or is cancelled, save what is done of it
    #[arg(long, requires = "output")]
    pub(crate) partial: bool,
    #[command(flatten)]
    pub(crate) server: Server,
}

/// Fetch the result of a finished job
#[derive(Debug, Args)]
#[command(after_help = help::RESULT)]
pub(crate) struct Fetch {
    #[arg(value_name = "JOB")]
    pub(crate) job: u64,
    /// Where to save it: a file, or a folder for many outputs [default: stdout, for text]
    #[arg(short, long, value_name = "PATH")]
    pub(crate) output: Option<PathBuf>,
    /// The folder for files that a program left in /out, as DIR/NAME.out/ [default: the folder of -o, if it is one]
    #[arg(long, value_name = "DIR")]
    pub(crate) out_files: Option<PathBuf>,
    /// What becomes of what a program wrote to stderr
    #[arg(long, value_name = "WHICH", default_value = "few", value_enum)]
    pub(crate) stderr: StderrArg,
    /// Of a job that failed or was cancelled, save what is done; the exit code is still 1
    #[arg(long, requires = "output")]
    pub(crate) partial: bool,
    #[command(flatten)]
    pub(crate) server: Server,
}

/// Remove finished jobs and their results
#[derive(Debug, Args)]
#[command(after_help = help::RM)]
pub(crate) struct Rm {
    #[arg(value_name = "JOB", required_unless_present = "older", conflicts_with = "older")]
    pub(crate) jobs: Vec<u64>,
    /// Remove all jobs that ended longer ago than this, such as 12h or 7d
    #[arg(long, value_name = "TIME", value_parser = age)]
    pub(crate) older: Option<Duration>,
    /// Also remove jobs that are still running: stop them first
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) server: Server,
}

/// Stop a job
#[derive(Debug, Args)]
#[command(after_help = help::CANCEL)]
pub(crate) struct Cancel {
    #[arg(value_name = "JOB")]
    pub(crate) job: u64,
    #[command(flatten)]
    pub(crate) server: Server,
}

/// Explain in plain words what happened to a job, an item or a node, and why; or which nodes keep a model or service ready
#[derive(Debug, Args)]
#[command(after_help = help::EXPLAIN)]
pub(crate) struct Explain {
    /// A job, an item of one (JOB/ITEM), a node (node:N), or a model or service by its name
    #[arg(value_name = "JOB|JOB/ITEM|node:N|MODEL", value_parser = subject)]
    pub(crate) subject: Subject,
    #[command(flatten)]
    pub(crate) server: Server,
}

/// What is to be explained.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    Job(u64),
    Item {
        job: u64,
        item: u64,
    },
    Node(u64),
    /// Models are services; `service:NAME` names one that looks like a number.
    Service(String),
}

/// Fetch the signed receipt of a finished job: who computed what, and who checked it
#[derive(Debug, Args)]
#[command(after_help = help::RECEIPT)]
pub(crate) struct Receipt {
    #[arg(value_name = "JOB")]
    pub(crate) job: u64,
    /// Where to save the receipt [default: stdout]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) server: Server,
}

/// Check a receipt offline, and check files against it
#[derive(Debug, Args)]
#[command(after_help = help::VERIFY)]
pub(crate) struct Verify {
    #[arg(value_name = "RECEIPT")]
    pub(crate) receipt: PathBuf,
    /// The coordinator's public key [default: the key of the coordinator in the data folder]
    #[arg(long, value_name = "HEX", value_parser = public_key)]
    pub(crate) key: Option<PublicKey>,
    /// The job's result: an .npy file, a .png file or raw bytes
    #[arg(long, value_name = "FILE")]
    pub(crate) result: Option<PathBuf>,
    /// The kernel or program that ran
    #[arg(long, value_name = "FILE")]
    pub(crate) code: Option<PathBuf>,
    /// An input: an .npy file or raw bytes; may be repeated
    #[arg(long = "input", value_name = "FILE")]
    pub(crate) inputs: Vec<PathBuf>,
}

/// A number and a unit.
fn age(text: &str) -> Result<Duration, String> {
    let units = [('s', 1), ('m', 60), ('h', 3_600), ('d', 86_400), ('w', 7 * 86_400)];
    let found = units.into_iter().find_map(|(unit, seconds)| {
        let count: u64 = text.strip_suffix(unit)?.parse().ok()?;
        count.checked_mul(seconds)
    });
    found
        .map(Duration::from_secs)
        .ok_or_else(|| "expected a number and a unit, such as 30m, 12h, 7d or 2w".into())
}

fn subject(text: &str) -> Result<Subject, String> {
    let number = |text: &str| text.parse::<u64>().ok();
    let found = match (text.strip_prefix("node:"), text.split_once('/')) {
        (Some(node), _) => number(node).map(Subject::Node),
        (None, Some((job, item))) => {
            number(job).zip(number(item)).map(|(job, item)| Subject::Item { job, item })
        }
        (None, None) => number(text).map(Subject::Job).or_else(|| service(text)),
    };
    found.ok_or_else(|| {
        "expected a job (12), an item of one (12/3400), a node (node:3) or the name of a model"
            .into()
    })
}

fn service(text: &str) -> Option<Subject> {
    let name = text.strip_prefix("service:").unwrap_or(text);
    // As the coordinator takes them, so that the name needs no escapes in a path.
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let fits = !name.is_empty() && !name.starts_with('-') && name.chars().all(plain);
    fits.then(|| Subject::Service(name.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_has_a_unit() {
        assert_eq!(age("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(age("7d"), Ok(Duration::from_secs(7 * 86_400)));
        for bad in ["", "7", "d", "-1d", "1.5h", "7 d", "99999999999999999999w"] {
            assert!(age(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_subject_is_a_job_an_item_a_node_or_a_service() {
        assert_eq!(subject("12"), Ok(Subject::Job(12)));
        assert_eq!(subject("12/0"), Ok(Subject::Item { job: 12, item: 0 }));
        assert_eq!(subject("node:3"), Ok(Subject::Node(3)));
        let named = |name: &str| Ok(Subject::Service(name.into()));
        assert_eq!(subject("smollm2-q4.1"), named("smollm2-q4.1"));
        assert_eq!(subject("service:12"), named("12"));
        for bad in ["", "a b", "service:", "a?b", "1/", "/1", "node:", "node:x", "1/2/3", "-1"] {
            assert!(subject(bad).is_err(), "{bad}");
        }
    }
}
