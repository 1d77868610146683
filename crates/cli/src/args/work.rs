//! The verbs that bring work: what they run, over what, and within which limits.

use std::path::PathBuf;

use clap::builder::{RangedI64ValueParser, RangedU64ValueParser};
use clap::{Args, ValueEnum};
use shoal_protocol::Edge;

use super::{PolicyArgs, Server, help};

/// How a job is split and what it may use
#[derive(Debug, Args)]
pub(crate) struct JobArgs {
    /// What the job is called [default: the kernel's or program's file name]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Items in every unit, instead of as many as suit each node
    #[arg(long, value_name = "N", value_parser = items())]
    pub(crate) unit: Option<u64>,
    /// Who gets how much
    #[arg(long, value_name = "HOW", value_enum)]
    pub(crate) strategy: Option<StrategyArg>,
    /// Seconds one unit (exec: one run) may take
    #[arg(long, value_name = "S", default_value_t = 30.0)]
    pub(crate) limit_seconds: f64,
    #[command(flatten)]
    pub(crate) policy: PolicyArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum StrategyArg {
    /// Units sized by measured speed, so that all finish together
    Adaptive,
    /// Units of one size, to every node in turn
    RoundRobin,
    /// Units in proportion to the speed a node declared
    Weight,
}

impl StrategyArg {
    pub(crate) fn name(self) -> &'static str {
        match self {
            StrategyArg::Adaptive => "adaptive",
            StrategyArg::RoundRobin => "round-robin",
            StrategyArg::Weight => "weight",
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
    /// .npy files, or plain little-endian numbers with --raw
    #[arg(value_name = "INPUT")]
    pub(crate) inputs: Vec<PathBuf>,
    /// Where the result goes; with --reduce it may be left out, and numbers are printed
    #[arg(short, long, value_name = "FILE", required_unless_present = "reduce")]
    pub(crate) output: Option<PathBuf>,
    /// Bring the outputs of all items together: sum, min, max, mean, or a file with
    /// `fn combine(a: T, b: T) -> T`
    #[arg(long, value_name = "HOW")]
    pub(crate) reduce: Option<String>,
    /// Inputs are plain numbers of this type
    #[arg(long, value_name = "TYPE", value_parser = ["f32", "i32", "u32", "f16"])]
    pub(crate) raw: Option<String>,
    /// An input every unit gets all of, by its name in the kernel or its position from 0; may
    /// repeat
    #[arg(long, value_name = "INPUT")]
    pub(crate) whole: Vec<String>,
    /// Array elements each item reads of an input: N for all, or NAME=N; may repeat
    #[arg(long, value_name = "N", value_parser = per_item)]
    pub(crate) in_per: Vec<(Option<String>, u32)>,
    /// Elements beyond its own that an item may look at, on either side: N for all inputs, or NAME=N; may
    /// repeat [default: found in the kernel]
    #[arg(long, value_name = "N", value_parser = overlap)]
    pub(crate) overlap: Vec<(Option<String>, u32)>,
    /// What an item reads before the first and behind the last element
    #[arg(long, value_name = "RULE", value_enum, default_value_t = EdgeArg::Clamp)]
    pub(crate) edge: EdgeArg,
    /// Array elements each item writes
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = from_one())]
    pub(crate) out_per: u32,
    /// Items to compute, when no input is split over them
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
    /// The array goes round: behind the last element comes the first
    Wrap,
    /// The array is reflected: behind the last element comes the last, then the one before it
    Mirror,
}

impl EdgeArg {
    pub(crate) fn name(self) -> &'static str {
        match self {
            EdgeArg::Clamp => "clamp",
            EdgeArg::Wrap => "wrap",
            EdgeArg::Mirror => "mirror",
        }
    }
}

impl From<EdgeArg> for Edge {
    fn from(edge: EdgeArg) -> Edge {
        match edge {
            EdgeArg::Clamp => Edge::Clamp,
            EdgeArg::Wrap => Edge::Wrap,
            EdgeArg::Mirror => Edge::Mirror,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct KernelArgs {
    /// A member of the kernel's parameter block; a vector as x,y,z; may repeat
    #[arg(long = "param", value_name = "NAME=VALUE", value_parser = name_and_value)]
    pub(crate) params: Vec<(String, String)>,
    /// The entry point, if the file has several
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
    /// Where the picture goes (.png)
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// Samples per pixel, given to the kernel as `samples`
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
    /// A wasm32-wasip1 program
    #[arg(value_name = "MODULE.wasm")]
    pub(crate) module: PathBuf,
    /// Run once for each of these
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Run once for each line of stdin
    #[arg(long, conflicts_with = "files")]
    pub(crate) lines: bool,
    /// Lines given to one run
    #[arg(long, value_name = "N", requires = "lines", value_parser = from_one())]
    pub(crate) batch: Option<u32>,
    /// With files: the folder their answers go to. Otherwise: the file, instead of stdout
    #[arg(short, long, value_name = "PATH")]
    pub(crate) output: Option<PathBuf>,
    /// A folder the program finds, read-only, as /data
    #[arg(long, value_name = "DIR")]
    pub(crate) folder: Option<PathBuf>,
    /// An environment variable; may repeat
    #[arg(long, value_name = "NAME=VALUE", value_parser = name_and_value)]
    pub(crate) env: Vec<(String, String)>,
    /// Let the program see the real time and real random numbers
    #[arg(long)]
    pub(crate) clock: bool,
    /// MiB of memory one run may take
    #[arg(long, value_name = "MIB", default_value_t = 256, value_parser = mebibytes())]
    pub(crate) limit_memory: u64,
    /// MiB one run may print
    #[arg(long, value_name = "MIB", default_value_t = 16, value_parser = mebibytes())]
    pub(crate) limit_output: u64,
    #[command(flatten)]
    pub(crate) job: JobArgs,
    #[command(flatten)]
    pub(crate) server: Server,
    /// The program's arguments
    #[arg(last = true, value_name = "ARGS")]
    pub(crate) args: Vec<String>,
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

fn per_item(text: &str) -> Result<(Option<String>, u32), String> {
    match overlap(text) {
        Ok((_, 0)) | Err(_) => Err("expected a count from 1, or NAME=COUNT".into()),
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
