//! The verbs that bring work: what they run, over what, and within which limits.

use std::path::PathBuf;

use clap::builder::{RangedI64ValueParser, RangedU64ValueParser};
use clap::{Args, ValueEnum};
use shoal_api::{EdgeJson, StrategyJson};
use shoal_kinds::Edge;
use shoal_protocol::Hash;

use super::{PolicyArgs, Server, help};
use crate::client::OnInterrupt;

/// How a job is split and what it may use
#[derive(Debug, Args)]
pub(crate) struct JobArgs {
    /// The job's name [default: the file name of the kernel or program]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Items in every unit [default: sized for each node]
    #[arg(long, value_name = "N", value_parser = items())]
    pub(crate) unit: Option<u64>,
    /// How units are sized and shared out
    #[arg(long, value_name = "HOW", value_enum)]
    pub(crate) strategy: Option<StrategyArg>,
    /// Seconds one unit (exec: one run) may take
    #[arg(long, value_name = "S", default_value_t = 30.0)]
    pub(crate) limit_seconds: f64,
    #[command(flatten)]
    pub(crate) stay: StayArgs,
    #[command(flatten)]
    pub(crate) policy: PolicyArgs,
}

/// For whom a job runs, and what becomes of it when this command ends before it
#[derive(Clone, Debug, Args)]
pub(crate) struct StayArgs {
    /// Who the job runs for, as donors see it [default: your user name]
    #[arg(long, value_name = "NAME")]
    pub(crate) owner: Option<String>,
    /// Submit the job, print its number and exit; `shoal watch JOB -o FILE` fetches the result
    #[arg(long)]
    pub(crate) detach: bool,
    /// What Ctrl-C does while the job runs
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = OnInterrupt::Ask)]
    pub(crate) on_interrupt: OnInterrupt,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum StrategyArg {
    /// Units sized by measured speed, so that all nodes finish together
    Adaptive,
    /// Units of one size, given to the nodes in turn
    RoundRobin,
    /// Units in proportion to the speed a node declared
    Weight,
}

impl From<StrategyArg> for StrategyJson {
    fn from(strategy: StrategyArg) -> StrategyJson {
        match strategy {
            StrategyArg::Adaptive => StrategyJson::Adaptive,
            StrategyArg::RoundRobin => StrategyJson::RoundRobin,
            StrategyArg::Weight => StrategyJson::Weight,
        }
    }
}

/// Run a WGSL kernel over the elements of arrays
#[derive(Debug, Args)]
#[command(
    after_help = help::MAP
)]
pub(crate) struct Map {
    /// The kernel: one `var<storage, read>` array per input, one `var<storage, read_write>` output
    #[arg(value_name = "KERNEL.wgsl")]
    pub(crate) kernel: PathBuf,
    /// .npy files, arrays in .npz files (FILE.npz or FILE.npz:NAME), files of raw little-endian numbers with --raw, or - for stdin
    #[arg(value_name = "INPUT")]
    pub(crate) inputs: Vec<PathBuf>,
    /// Where to save the result. Without it a summary is printed, or with --reduce the numbers
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// If the job fails or is cancelled, save what is done: the rest is NaN, or 0 for integers
    #[arg(long, requires = "output", conflicts_with = "reduce")]
    pub(crate) partial: bool,
    /// Combine the outputs of all items: sum, min, max, mean, or a file with
    /// `fn combine(a: T, b: T) -> T`
    #[arg(long, value_name = "HOW", conflicts_with = "detach")]
    pub(crate) reduce: Option<String>,
    /// The inputs are files of raw numbers of this type
    #[arg(long, value_name = "TYPE", value_parser = ["f32", "i32", "u32", "f16"])]
    pub(crate) raw: Option<String>,
    /// Give every unit the whole of this input: its name in the kernel, or its position counted from 0; may be
    /// repeated
    #[arg(long, value_name = "INPUT")]
    pub(crate) whole: Vec<String>,
    /// Elements that each item reads from an input: N for all inputs, or NAME=N; may be repeated
    #[arg(long, value_name = "N", value_parser = per_item)]
    pub(crate) in_per: Vec<(Option<String>, u32)>,
    /// How many elements to either side of its own an item may read: N for all inputs, or NAME=N; may be
    /// repeated [default: found in the kernel]
    #[arg(long, value_name = "N", value_parser = overlap)]
    pub(crate) overlap: Vec<(Option<String>, u32)>,
    /// What an item reads before the first and after the last element
    #[arg(long, value_name = "RULE", value_enum, default_value_t = EdgeArg::Clamp)]
    pub(crate) edge: EdgeArg,
    /// Elements that each item writes
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = from_one())]
    pub(crate) out_per: u32,
    /// Number of items, if no input is split
    #[arg(long, value_name = "N")]
    pub(crate) items: Option<u64>,
    #[command(flatten)]
    pub(crate) kernel_args: KernelArgs,
    #[command(flatten)]
    pub(crate) job: JobArgs,
    #[command(flatten)]
    pub(crate) server: Server,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum EdgeArg {
    /// The first or the last element
    Clamp,
    /// The array wraps around: after the last element comes the first
    Wrap,
    /// The array is mirrored: after the last element comes the last again, then the one before it
    Mirror,
}

impl From<EdgeArg> for EdgeJson {
    fn from(edge: EdgeArg) -> EdgeJson {
        match edge {
            EdgeArg::Clamp => EdgeJson::Clamp,
            EdgeArg::Wrap => EdgeJson::Wrap,
            EdgeArg::Mirror => EdgeJson::Mirror,
        }
    }
}

impl From<EdgeArg> for Edge {
    fn from(edge: EdgeArg) -> Edge {
        EdgeJson::from(edge).into()
    }
}

#[derive(Debug, Args)]
pub(crate) struct KernelArgs {
    /// Set a member of the kernel's parameter block; write a vector as x,y,z; may be repeated
    #[arg(long = "param", value_name = "NAME=VALUE", value_parser = name_and_value)]
    pub(crate) params: Vec<(String, String)>,
    /// The entry point to run, if the file has several
    #[arg(long, value_name = "NAME")]
    pub(crate) entry: Option<String>,
}

/// Run a WGSL kernel over the tiles of a picture
#[derive(Debug, Args)]
#[command(after_help = help::RENDER)]
pub(crate) struct Render {
    #[arg(value_name = "KERNEL.wgsl")]
    pub(crate) kernel: PathBuf,
    /// Width and height in pixels
    #[arg(long, value_name = "WxH", value_parser = size)]
    pub(crate) size: (u32, u32),
    /// Where to save the picture (.png)
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// If the job fails or is cancelled, save what is done: the rest is transparent
    #[arg(long)]
    pub(crate) partial: bool,
    /// Samples per pixel; the kernel gets the number as `samples`
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = from_one())]
    pub(crate) samples: u32,
    /// Width and height of one tile in pixels
    #[arg(long, value_name = "N", value_parser = from_one())]
    pub(crate) tile: Option<u32>,
    #[command(flatten)]
    pub(crate) kernel_args: KernelArgs,
    #[command(flatten)]
    pub(crate) job: JobArgs,
    #[command(flatten)]
    pub(crate) server: Server,
}

/// Run a WASI program over many inputs
#[derive(Debug, Args)]
#[command(
    after_help = help::EXEC
)]
pub(crate) struct Exec {
    /// A wasm32-wasip1 program, or a wasm32-wasip2 component, which only machines run
    #[arg(value_name = "MODULE.wasm")]
    pub(crate) module: PathBuf,
    /// Run once for each of these files
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Run once for each line of stdin
    #[arg(long, conflicts_with = "files")]
    pub(crate) lines: bool,
    /// Number of lines for each run
    #[arg(long, value_name = "N", requires = "lines", value_parser = from_one())]
    pub(crate) batch: Option<u32>,
    /// With files: the folder for their outputs; otherwise: the file to write to instead of stdout
    #[arg(short, long, value_name = "PATH")]
    pub(crate) output: Option<PathBuf>,
    /// The folder for files that the program leaves in /out, as DIR/NAME.out/ [default: the folder of -o, with files]
    #[arg(long, value_name = "DIR")]
    pub(crate) out_files: Option<PathBuf>,
    /// What becomes of what the program writes to stderr
    #[arg(long, value_name = "WHICH", default_value = "few", value_enum)]
    pub(crate) stderr: StderrArg,
    /// A folder that the program can read as /data
    #[arg(long, value_name = "DIR")]
    pub(crate) folder: Option<PathBuf>,
    /// Set an environment variable; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = name_and_value)]
    pub(crate) env: Vec<(String, String)>,
    /// Let the program see the real time and real random numbers
    #[arg(long)]
    pub(crate) clock: bool,
    /// Memory that one run may use, in MiB; programs that can open files need up to 64 MiB more, for /tmp and /out
    #[arg(long, value_name = "MIB", default_value_t = 256, value_parser = mebibytes())]
    pub(crate) limit_memory: u64,
    /// Output that one run may write, in MiB, with the files that it leaves in /out
    #[arg(long, value_name = "MIB", default_value_t = 16, value_parser = mebibytes())]
    pub(crate) limit_output: u64,
    /// End the job at the first input on which the program fails
    #[arg(long)]
    pub(crate) stop_on_error: bool,
    /// Exit codes that do not count as failures, separated by commas: 0,10,20 for SAT solvers
    #[arg(
        long,
        value_name = "CODES",
        value_delimiter = ',',
        default_value = "0",
        allow_negative_numbers = true
    )]
    pub(crate) ok_exit: Vec<i32>,
    /// Run the program up to N more times on an input on which it fails, each time with other random numbers
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=100))]
    pub(crate) retry: u32,
    /// Write the failed inputs to this file, as one line of JSON each
    #[arg(long, value_name = "FILE")]
    pub(crate) failures: Option<PathBuf>,
    /// Run only on the inputs listed in a file that --failures wrote; give the same inputs as for that run
    #[arg(long, value_name = "FILE")]
    pub(crate) only: Option<PathBuf>,
    /// Record finished inputs in this file. If it exists, run only inputs that are missing from it, or whose program,
    /// arguments, environment or content changed; give it again after an interruption
    #[arg(long, value_name = "FILE", conflicts_with_all = ["only", "detach"])]
    pub(crate) resume: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) job: JobArgs,
    #[command(flatten)]
    pub(crate) server: Server,
    /// Arguments for the program
    #[arg(last = true, value_name = "ARGS")]
    pub(crate) args: Vec<String>,
}

/// What becomes of the stderr of runs that did not fail; each run keeps the last 2 KiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum StderrArg {
    /// The first 20 lines are shown at the end
    Few,
    /// All lines are shown as they come, each with its input's name
    All,
    /// Each run's goes to DIR/NAME.stderr, that of failed runs too
    Files,
    /// Nothing is shown
    None,
}

/// A count of at least one.
pub(super) fn from_one() -> RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(1..)
}

pub(super) fn items() -> RangedU64ValueParser<u64> {
    clap::value_parser!(u64).range(1..)
}

/// WebAssembly addresses 4 GiB, no more.
fn mebibytes() -> RangedU64ValueParser<u64> {
    clap::value_parser!(u64).range(1..=4096)
}

pub(super) fn name_and_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.into(), value.into())),
        _ => Err("expected NAME=VALUE".into()),
    }
}

pub(super) fn sha256(text: &str) -> Result<Hash, String> {
    let digits = text.to_ascii_lowercase();
    digits.parse().map_err(|_| "expected the 64 hexadecimal digits of a SHA-256".into())
}

pub(super) fn name_and_shape(text: &str) -> Result<(String, Vec<u64>), String> {
    let (name, shape) = name_and_value(text)?;
    let shape: Result<Vec<u64>, _> = shape.split('x').map(str::parse).collect();
    let shape = shape.map_err(|_| "expected NAME=SHAPE, such as image=1x3x224x224")?;
    Ok((name, shape))
}

fn per_item(text: &str) -> Result<(Option<String>, u32), String> {
    match overlap(text) {
        Ok((_, 0)) | Err(_) => Err("expected a count of at least 1, or NAME=COUNT".into()),
        counted => counted,
    }
}

/// Of all inputs, or of one.
fn overlap(text: &str) -> Result<(Option<String>, u32), String> {
    let (name, count) = match text.split_once('=') {
        Some((name, count)) => (Some(name.to_owned()), count),
        None => (None, text),
    };
    let count = count.parse().map_err(|_| "expected a count, or NAME=COUNT".to_owned())?;
    Ok((name, count))
}

pub(super) fn size(text: &str) -> Result<(u32, u32), String> {
    let parse = || {
        let (width, height) = text.split_once(['x', 'X', '×'])?;
        Some((width.trim().parse().ok()?, height.trim().parse().ok()?))
    };
    match parse() {
        Some((width, height)) if width > 0 && height > 0 => Ok((width, height)),
        _ => Err("expected WIDTHxHEIGHT, such as 1280x720".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_counts() {
        assert_eq!(size("1280x720"), Ok((1280, 720)));
        assert!(size("1280").is_err() && size("0x5").is_err() && size("-1x5").is_err());
        assert_eq!(per_item("4"), Ok((None, 4)));
        assert_eq!(per_item("b=4"), Ok((Some("b".into()), 4)));
        assert!(per_item("0").is_err() && per_item("b=").is_err());
    }
}
