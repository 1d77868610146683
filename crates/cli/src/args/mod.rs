//! The command line: every verb, flag and example in one place.

mod chat;
mod help;
mod lend;
mod look;
mod model;
mod policy;
mod service;
mod sim;
mod work;

pub(crate) use chat::Chat;
pub(crate) use lend::{Join, Lend, Listen, Serve, Talk, Up};
pub(crate) use look::{Cancel, Explain, Fetch, Jobs, Nodes, Receipt, Rm, Subject, Verify, Watch};
pub(crate) use model::{
    ByArg, FitArg, Infer, Model, ModelAdd, ModelQuantize, ModelRm, ModelVerb, Models, NormalizeArg,
    Sight, Task, WireArg,
};
pub(crate) use policy::{PolicyArgs, PriorityArg};
pub(crate) use service::{Ask, Service, ServiceAdd, ServiceRm, ServiceVerb, Services};
pub(crate) use sim::Sim;
pub(crate) use work::{Exec, JobArgs, Map, Render, StayArgs, StderrArg};

use std::path::PathBuf;
use std::time::Duration;

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
    about = "Shoal turns the devices people already have into one computer.",
    after_help = help::SHOAL
)]
pub(crate) struct Shoal {
    #[command(subcommand)]
    pub(crate) verb: Verb,

    /// Print JSON on stdout, and JSON errors on stderr
    #[arg(long, global = true, display_order = 900)]
    pub(crate) json: bool,

    /// Print only errors on stderr: no progress, no notes
    #[arg(long, short, global = true, display_order = 900)]
    pub(crate) quiet: bool,

    /// The folder for this machine's pool, keys and identity [default: the platform's data folder]
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
    Sim(Box<Sim>),
    Service(Service),
    Ask(Ask),
    Services(Services),
    Model(Model),
    Infer(Box<Infer>),
    Chat(Box<Chat>),
    Models(Models),
    Jobs(Jobs),
    Nodes(Nodes),
    Watch(Watch),
    #[command(name = "result")]
    Fetch(Fetch),
    Cancel(Cancel),
    Rm(Rm),
    Explain(Explain),
    Receipt(Receipt),
    Verify(Verify),
    Noop(Noop),
    #[cfg(feature = "count")]
    Count(crate::verbs::count::Count),
    Talk(Talk),
    #[command(name = shoal_host::WORKER, hide = true)]
    GpuWorker,
    #[command(name = shoal_host::LLM_WORKER, hide = true)]
    LlmWorker,
    #[command(name = shoal_host::ONNX_WORKER, hide = true)]
    OnnxWorker(OnnxWorker),
}

/// What a node tells the process that loads ONNX Runtime
#[derive(Debug, Args)]
pub(crate) struct OnnxWorker {
    pub(crate) library: PathBuf,
    pub(crate) threads: usize,
}

/// Which coordinator a client verb talks to
#[derive(Clone, Debug, Args)]
pub(crate) struct Server {
    /// The coordinator's address [default: the coordinator running on this machine]
    #[arg(long, value_name = "URL", env = "SHOAL_URL", hide_env_values = true)]
    pub(crate) url: Option<String>,
    /// The coordinator's API key [default: the key of the coordinator on this machine]
    #[arg(long, value_name = "KEY", env = "SHOAL_KEY", hide_env_values = true)]
    pub(crate) key: Option<String>,
    /// Seconds to wait for a coordinator that does not answer, such as one that restarts [default: 600, or 15 if it never answered]
    #[arg(long, value_name = "S", value_parser = seconds)]
    pub(crate) patience: Option<Duration>,
}

/// Seconds, also parts of one.
fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    seconds.ok_or_else(|| "expected a number of seconds, such as 60".into())
}

/// Run empty units, to measure the overhead of the pool itself
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
    /// Number of jobs to run one after the other over one connection
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
        let command = Shoal::command();
        // Those that a node starts itself are for nobody else.
        let verbs = command.get_subcommands().filter(|verb| !verb.get_name().ends_with("-worker"));
        for verb in verbs {
            let help = verb.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.contains("shoal"), "{} has no example", verb.get_name());
        }
    }
}
