//! The verbs that bring a coordinator or a node.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use shoal_node::Rules;
use shoal_protocol::{PublicKey, sign};

use super::help;

/// Start a coordinator and a node on this machine, run one small job, print how to join
#[derive(Debug, Args)]
#[command(
    after_help = help::UP
)]
pub(crate) struct Up {
    #[command(flatten)]
    pub(crate) listen: Listen,
    #[command(flatten)]
    pub(crate) lend: Lend,
    /// Lend nothing of this machine
    #[arg(long)]
    pub(crate) no_node: bool,
    /// Skip the small job that shows that it works
    #[arg(long)]
    pub(crate) no_demo: bool,
}

/// Start a coordinator alone
#[derive(Debug, Args)]
#[command(after_help = help::SERVE)]
pub(crate) struct Serve {
    #[command(flatten)]
    pub(crate) listen: Listen,
}

/// Lend this machine to a coordinator
#[derive(Debug, Args)]
#[command(
    after_help = help::JOIN
)]
pub(crate) struct Join {
    /// The join link `shoal up` prints
    #[arg(value_name = "URL")]
    pub(crate) url: String,
    /// This machine is the operator's own, and what it computes is believed: shows the API key in
    /// SHOAL_KEY, or in --key-file
    #[arg(long)]
    pub(crate) own: bool,
    /// The same with the API key in this file
    #[arg(long, value_name = "FILE")]
    pub(crate) key_file: Option<PathBuf>,
    /// The same with this API key, which others on this machine can see in the list of processes
    #[arg(long, value_name = "KEY", conflicts_with_all = ["own", "key_file"])]
    pub(crate) key: Option<String>,
    #[command(flatten)]
    pub(crate) lend: Lend,
}

/// Talk to other nodes and measure the links to them, as told by lines of its input
#[derive(Debug, Args)]
#[command(
    hide = true,
    after_help = help::TALK
)]
pub(crate) struct Talk {
    /// The join link `shoal up` prints
    #[arg(value_name = "URL")]
    pub(crate) url: String,
    /// Through the coordinator only, never directly
    #[arg(long)]
    pub(crate) no_direct: bool,
    /// Carry for the application that started this, over its input and output; the crate `shoal-app` speaks to it
    #[arg(long)]
    pub(crate) pipe: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Listen {
    /// Address and port to listen on; port 0 takes any free one
    #[arg(long, value_name = "ADDR", default_value = "0.0.0.0:7420")]
    pub(crate) listen: SocketAddr,
    /// A reverse proxy on this machine stands in front: believe its X-Forwarded-For
    #[arg(long)]
    pub(crate) proxy: bool,
    /// A STUN server that tells nodes how they look from outside, `stun:HOST:PORT`; may repeat
    #[arg(long, value_name = "URL", value_parser = stun)]
    pub(crate) stun: Vec<String>,
    /// A TURN server for tabs that nobody reaches: `turn:HOST:PORT USER PASSWORD`, in quotes; may repeat
    #[arg(long, value_name = "URL USER PASSWORD", value_parser = turn)]
    pub(crate) turn: Vec<String>,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct Lend {
    /// Run no kernels on this machine's GPU
    #[arg(long)]
    pub(crate) no_gpu: bool,
    /// Talk to other nodes through the coordinator only, never directly
    #[arg(long)]
    pub(crate) no_direct: bool,
    /// Programs run at a time; 0 for none [default: all cores]
    #[arg(long, value_name = "N")]
    pub(crate) cpus: Option<u16>,
    /// What others call this machine [default: its host name]
    #[arg(long = "node-name", value_name = "NAME")]
    pub(crate) node_name: Option<String>,
    /// Run only code signed with this key; may repeat
    #[arg(long, value_name = "KEY", value_parser = public_key)]
    pub(crate) only: Vec<PublicKey>,
    /// Never run code signed with this key; may repeat
    #[arg(long, value_name = "KEY", value_parser = public_key)]
    pub(crate) never: Vec<PublicKey>,
    /// Pause on battery below this charge; 0 never pauses
    #[arg(long, value_name = "PERCENT", default_value_t = 30, value_parser = percent())]
    pub(crate) battery_below: u8,
}

impl Lend {
    /// For whom this machine works.
    pub(crate) fn rules(&self) -> Rules {
        Rules { only: self.only.clone(), never: self.never.clone() }
    }
}

pub(super) fn public_key(text: &str) -> Result<PublicKey, String> {
    text.parse().map_err(|_| sign::NotAKey.to_string())
}

fn stun(text: &str) -> Result<String, String> {
    let is_url = ["stun:", "stuns:"].iter().any(|scheme| text.starts_with(scheme));
    match is_url && !text.contains(char::is_whitespace) {
        true => Ok(text.into()),
        false => Err("expected stun:HOST:PORT".into()),
    }
}

fn turn(text: &str) -> Result<String, String> {
    let is_url = ["turn:", "turns:"].iter().any(|scheme| text.starts_with(scheme));
    match is_url && text.split_whitespace().count() == 3 {
        true => Ok(text.into()),
        false => Err("expected `turn:HOST:PORT USER PASSWORD`".into()),
    }
}

fn percent() -> clap::builder::RangedI64ValueParser<u8> {
    clap::value_parser!(u8).range(0..=100)
}
