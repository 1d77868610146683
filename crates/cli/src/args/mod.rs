//! The command line: every verb, flag and example in one place.

mod help;
mod work;

pub(crate) use work::{Exec, JobArgs, KernelArgs, Map, Render};

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::builder::styling::{AnsiColor, Styles};
use clap::{Args, Parser, Subcommand};

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Cyan.on_default().bold())
    .usage(AnsiColor::Cyan.on_default().bold())
    .literal(AnsiColor::Green.on_default());

#[derive(Debug, Parser)]
#[command(
    name = "shoal",
    version,
    styles = STYLES,
    about = "Turns the devices people already have into one computer.",
    after_help = help::SHOAL
)]
pub(crate) struct Shoal {
    #[command(subcommand)]
    pub(crate) verb: Verb,

    /// Answer with JSON on stdout, and with JSON errors on stderr
    #[arg(long, global = true, display_order = 900)]
    pub(crate) json: bool,

    /// Where this machine keeps its pool, keys and identity [default: the platform's data folder]
    #[arg(
        long,
        global = true,
        value_name = "DIR",
        env = "SHOAL_DATA",
        hide_env_values = true,
        display_order = 901
    )]
    pub(crate) data: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    Up(Up),
    Serve(Serve),
    Join(Join),
    Map(Map),
    Render(Render),
    Exec(Exec),
    Jobs(Jobs),
    Nodes(Nodes),
    Watch(Watch),
    Cancel(Cancel),
    Noop(Noop),
    #[command(hide = true)]
    GpuWorker,
}

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
    #[command(flatten)]
    pub(crate) lend: Lend,
}

#[derive(Debug, Args)]
pub(crate) struct Listen {
    /// Address and port to listen on; port 0 takes any free one
    #[arg(long, value_name = "ADDR", default_value = "0.0.0.0:7420")]
    pub(crate) listen: SocketAddr,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct Lend {
    /// Run no kernels on this machine's GPU
    #[arg(long)]
    pub(crate) no_gpu: bool,
    /// Programs run at a time; 0 for none [default: all cores]
    #[arg(long, value_name = "N")]
    pub(crate) cpus: Option<u16>,
    /// What others call this machine [default: its host name]
    #[arg(long = "node-name", value_name = "NAME")]
    pub(crate) node_name: Option<String>,
}

/// Which coordinator a client verb talks to
#[derive(Clone, Debug, Args)]
pub(crate) struct Server {
    /// The coordinator [default: the one running on this machine]
    #[arg(long, value_name = "URL", env = "SHOAL_URL", hide_env_values = true)]
    pub(crate) url: Option<String>,
    /// Its API key
    #[arg(long, value_name = "KEY", env = "SHOAL_KEY", hide_env_values = true)]
    pub(crate) key: Option<String>,
}

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

/// Run units without content: measures what the pool itself costs
#[derive(Debug, Args)]
#[command(
    hide = true,
    after_help = help::NOOP
)]
pub(crate) struct Noop {
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub(crate) items: u64,
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = work::items())]
    pub(crate) unit: u64,
    /// Jobs one after the other over one connection
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = work::from_one())]
    pub(crate) repeat: u32,
    #[command(flatten)]
    pub(crate) server: Server,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Shoal::command().debug_assert();
    }

    #[test]
    fn every_verb_shows_an_example() {
        for verb in
            Shoal::command().get_subcommands().filter(|verb| verb.get_name() != "gpu-worker")
        {
            let help = verb.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.contains("shoal"), "{} has no example", verb.get_name());
        }
    }
}
