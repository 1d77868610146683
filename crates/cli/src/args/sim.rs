//! The verb that brings a simulation.

use std::path::PathBuf;

use clap::Args;
use shoal_kinds::Reduce;

use super::work::{from_one, items, name_and_value, size};
use super::{PolicyArgs, Server, StayArgs, help};

/// Run a simulation on a grid that several nodes compute together
#[derive(Debug, Args)]
#[command(after_help = help::SIM)]
pub(crate) struct Sim {
    /// A WGSL module with `state` and `next` arrays of cells and a parameter block; each entry point is a pass
    #[arg(value_name = "KERNEL.wgsl")]
    pub(crate) kernel: PathBuf,
    /// Width and height in cells
    #[arg(long, value_name = "WxH", value_parser = size)]
    pub(crate) grid: (u32, u32),
    /// Number of steps to compute
    #[arg(long, value_name = "N", value_parser = items())]
    pub(crate) steps: u64,
    /// Rows above and below that all passes of one step together read [default: what the file says]
    #[arg(long, value_name = "ROWS", value_parser = from_one())]
    pub(crate) halo: Option<u32>,
    /// The passes of a step and how often each runs, such as advect,jacobi*10 [default: what the file says]
    #[arg(long, value_name = "PASSES")]
    pub(crate) passes: Option<String>,
    /// Set a member of the kernel's parameter block; write a vector as x,y,z; may be repeated
    #[arg(long = "param", value_name = "NAME=VALUE", value_parser = name_and_value)]
    pub(crate) params: Vec<(String, String)>,
    /// Use exactly N nodes [default: as many as make the job fastest]
    #[arg(long, value_name = "N", value_parser = from_one())]
    pub(crate) members: Option<u32>,
    /// Steps between two checkpoints; 0 for none [default: a checkpoint about every five seconds]
    #[arg(long, value_name = "N")]
    pub(crate) keep_every: Option<u64>,
    /// When a neighbour's edge is late, guess it and continue; wrong guesses are recomputed
    #[arg(long)]
    pub(crate) speculate: bool,
    /// At every checkpoint and at the end, print the sum, min, max or mean of all cells, for each number of a cell
    #[arg(long, value_name = "sum|min|max|mean", value_parser = reduce)]
    pub(crate) reduce: Option<Reduce>,
    /// The first state: an .npy file with one number, or a list of numbers, for each cell [default: what the
    /// kernel's `init` makes, or zeros]
    #[arg(long, value_name = "FILE.npy")]
    pub(crate) first: Option<PathBuf>,
    /// Where to save the last state; a name that ends in .npy gets a header
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Where to save a picture of the last state (.png)
    #[arg(long, value_name = "FILE")]
    pub(crate) picture: Option<PathBuf>,
    /// The job's name [default: the kernel's file name]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Seconds one step may take
    #[arg(long, value_name = "S", default_value_t = 30.0)]
    pub(crate) limit_seconds: f64,
    #[command(flatten)]
    pub(crate) stay: StayArgs,
    #[command(flatten)]
    pub(crate) policy: PolicyArgs,
    #[command(flatten)]
    pub(crate) server: Server,
}

fn reduce(text: &str) -> Result<Reduce, String> {
    Reduce::named(text).ok_or_else(|| String::from("expected sum, min, max or mean"))
}
