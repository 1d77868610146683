//! The one native binary `shoal`: coordinator, native node and client. It wires `shoal-coordinator`,
//! `shoal-host` and its own client; deciding is the business of `shoal-scheduler` and `shoal-node`.

mod answers;
mod args;
mod arrays;
mod client;
mod fail;
mod fetch;
mod folder;
mod interrupt;
mod kept;
mod keys;
mod npy;
mod out_files;
mod picture;
mod place;
mod receipt;
mod show;
mod sight;
mod tensors;
mod verbs;

use std::io::IsTerminal;
use std::process::ExitCode;

use clap::Parser;
use clap::error::ErrorKind;
use tokio::runtime::{Builder, Runtime};
use tracing_subscriber::EnvFilter;

use args::{OnnxWorker, Shoal, Verb};
use fail::Fail;

fn main() -> ExitCode {
    let args = match Shoal::try_parse() {
        Ok(args) => args,
        Err(error) => return usage(&error),
    };
    shoal_host::tls::install_provider();
    if matches!(args.verb, Verb::GpuWorker) {
        return ended(shoal_host::run_worker().map_err(Fail::from), args.json);
    }
    if matches!(args.verb, Verb::LlmWorker) {
        return ended(shoal_host::run_llm_worker().map_err(Fail::from), args.json);
    }
    if let Verb::OnnxWorker(OnnxWorker { library, threads }) = &args.verb {
        let ran = shoal_host::run_onnx_worker(library, *threads);
        return ended(ran.map_err(Fail::from), args.json);
    }
    log();
    let json = args.json;
    let runtime = match runtime(&args.verb) {
        Ok(runtime) => runtime,
        Err(error) => {
            return Fail::world("internal", format!("cannot start: {error}")).report(json);
        }
    };
    let outcome = runtime.block_on(verbs::run(args));
    // A blocked read of stdin or a file must not hold up the end.
    runtime.shutdown_background();
    ended(outcome, json)
}

fn ended(outcome: Result<(), Fail>, json: bool) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(fail) => fail.report(json),
    }
}

/// A coordinator serves with all cores. Clients and nodes wait for one connection at a time, which
/// is quickest without handing it between threads; what blocks or computes has threads of its own.
fn runtime(verb: &Verb) -> std::io::Result<Runtime> {
    let serves = matches!(verb, Verb::Up(_) | Verb::Serve(_));
    let mut builder =
        if serves { Builder::new_multi_thread() } else { Builder::new_current_thread() };
    builder.enable_all().build()
}

/// Help and wrong usage. Whoever asked for JSON gets it here too.
fn usage(error: &clap::Error) -> ExitCode {
    let is_help = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
    let wants_json = std::env::args().take_while(|word| word != "--").any(|word| word == "--json");
    if is_help || !wants_json {
        let _ = error.print();
        return ExitCode::from(if is_help { 0 } else { 2 });
    }
    let text = error.render().to_string();
    let message = text.trim().trim_start_matches("error: ");
    Fail::Input { code: "usage".into(), message: message.into() }.report(true)
}

/// Warnings go to stderr; `SHOAL_LOG=debug` tells more. The system's check of certificates logs
/// each one it does not know as an error, which a coordinator's own never is.
fn log() {
    let filter = EnvFilter::try_from_env("SHOAL_LOG")
        .unwrap_or_else(|_| EnvFilter::new("warn,rustls_platform_verifier=off"));
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .without_time()
        .try_init();
}
