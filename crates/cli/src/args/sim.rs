//! The verb that brings a simulation.

use std::path::PathBuf;

use clap::Args;

use super::work::{from_one, items, name_and_value, size};
use super::{PolicyArgs, Server, help};

/// Run a simulation on a grid that several nodes compute together
#[derive(Debug, Args)]
#[command(after_help = help::SIM)]
pub(crate) struct Sim {
    /// One WGSL module: `state` and `next` arrays of cells, a parameter block, a pass for each entry point
    #[arg(value_name = "KERNEL.wgsl")]
    pub(crate) kernel: PathBuf,
    /// Width and height in cells
    #[arg(long, value_name = "WxH", value_parser = size)]
    pub(crate) grid: (u32, u32),
    #[arg(long, value_name = "N", value_parser = items())]
    pub(crate) steps: u64,
    /// Rows above and below that one step reads, over all its passes [default: what the file says]
    #[arg(long, value_name = "ROWS", value_parser = from_one())]
    pub(crate) halo: Option<u32>,
    /// The passes of a step and how often each runs, as advect,jacobi*10 [default: what the file says]
    #[arg(long, value_name = "PASSES")]
    pub(crate) passes: Option<String>,
    /// A member of the kernel's parameter block; a vector as x,y,z; may repeat
    #[arg(long = "param", value_name = "NAME=VALUE", value_parser = name_and_value)]
    pub(crate) params: Vec<(String, String)>,
    /// Exactly so many nodes [default: as many as make it fastest]
    #[arg(long, value_name = "N", value_parser = from_one())]
    pub(crate) members: Option<u32>,
    /// Steps between two checkpoints; 0 for none [default: what a few seconds bring]
    #[arg(long, value_name = "N")]
    pub(crate) keep_every: Option<u64>,
    /// Go on with guessed edges where true ones are late, and correct what was guessed wrong
    #[arg(long)]
    pub(crate) speculate: bool,
    /// The first state: an .npy with a number, or a list of them, for each cell [default: what the kernel's `init`
    /// makes, or zeros]
    #[arg(long, value_name = "FILE.npy")]
    pub(crate) first: Option<PathBuf>,
    /// Where the last state goes; with .npy it gets a header
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Where the last picture of the field goes (.png)
    #[arg(long, value_name = "FILE")]
    pub(crate) picture: Option<PathBuf>,
    /// What the job is called [default: the kernel's file name]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Seconds one step may take
    #[arg(long, value_name = "S", default_value_t = 30.0)]
    pub(crate) limit_seconds: f64,
    #[command(flatten)]
    pub(crate) policy: PolicyArgs,
    #[command(flatten)]
    pub(crate) server: Server,
}
