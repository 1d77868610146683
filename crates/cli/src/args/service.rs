//! `shoal service`, `services` and `ask`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{Server, help, work};

/// Start or end a service: a program that nodes keep ready for requests
#[derive(Debug, Args)]
#[command(after_help = help::SERVICE)]
pub(crate) struct Service {
    #[command(subcommand)]
    pub(crate) what: ServiceVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ServiceVerb {
    Add(Box<ServiceAdd>),
    Rm(ServiceRm),
}

/// Start a service
#[derive(Debug, Args)]
#[command(after_help = help::SERVICE)]
pub(crate) struct ServiceAdd {
    /// What clients call it: letters, digits, "-", "_" and "."
    pub(crate) name: String,
    /// A wasm32-wasip1 program, or a wasm32-wasip2 component, which only machines run: a request is its stdin, the answer its stdout
    pub(crate) module: PathBuf,
    /// Who it runs for, as donors see it [default: your user name]
    #[arg(long, value_name = "NAME")]
    pub(crate) owner: Option<String>,
    /// Number of nodes that keep it ready while there is memory
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) least: u16,
    /// Number of nodes that may keep it ready when requests are waiting
    #[arg(long, value_name = "N", default_value_t = 4)]
    pub(crate) most: u16,
    /// Seconds without work after which a node above --least is released
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub(crate) idle: u64,
    /// Let other people's nodes serve it too; nobody checks their answers
    #[arg(long)]
    pub(crate) strangers: bool,
    /// Set an environment variable; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = work::name_and_value)]
    pub(crate) env: Vec<(String, String)>,
    /// Let the program see the real time and real random numbers
    #[arg(long)]
    pub(crate) clock: bool,
    /// Seconds that one request may take to compute
    #[arg(long, value_name = "SECONDS", default_value_t = 30.0)]
    pub(crate) limit_seconds: f64,
    #[command(flatten)]
    pub(crate) server: Server,
    /// Arguments for the program
    #[arg(last = true, value_name = "ARGS")]
    pub(crate) args: Vec<String>,
}

/// End a service
#[derive(Debug, Args)]
#[command(after_help = help::SERVICE)]
pub(crate) struct ServiceRm {
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) server: Server,
}

/// List services and the nodes that keep them ready
#[derive(Debug, Args)]
#[command(after_help = help::SERVICES)]
pub(crate) struct Services {
    #[command(flatten)]
    pub(crate) server: Server,
}

/// Ask a service: stdin or a file is the request, the answer goes to stdout
#[derive(Debug, Args)]
#[command(after_help = help::ASK)]
pub(crate) struct Ask {
    /// The service's name
    pub(crate) name: String,
    /// The request [default: stdin]
    pub(crate) file: Option<PathBuf>,
    /// Seconds to wait for the answer
    #[arg(long, value_name = "SECONDS", default_value_t = 30.0)]
    pub(crate) deadline: f64,
    #[command(flatten)]
    pub(crate) server: Server,
}
