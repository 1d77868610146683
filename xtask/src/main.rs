//! The one developer entry. It builds, checks and measures by calling other tools; it decides nothing about Shoal.
#![allow(clippy::print_stdout, reason = "a command-line tool talks on stdout")]

mod bench;
mod fuzz;
mod outside;
mod programs;
mod setup;
mod shell;
mod sim;
mod stamp;
mod test;
mod tidy;
mod types;
mod up;
mod venv;
mod web;

use std::process::ExitCode;

use shell::{For, Outcome};

const USAGE: &str = "\
usage: cargo xtask VERB

  up [ARGS]            build everything, then run `shoal up ARGS`
  test [SUITE]...      build and check everything, or only the named suites (--list names them)
  bench NAME           measure: BENCHES;
                       --json prints only the result, --rounds N repeats it N times, --no-build takes what is built
  sim                  the real scheduler in a simulated world; --seeds N tries N seeds, --seed S one of them
  fuzz [TARGET]...     hostile input for readers of strangers' bytes:
                       TARGETS;
                       --seconds N for each (60), --replay FILE tries one input again
  web                  build the browser part into web/dist
  types                make the SDK's types and constants of those in Rust
  programs             build the example WASI programs
  outside              fetch the conformance material that others published
  tidy [--ratchet]     check the house rules; --ratchet lowers the recorded lengths to today's
  setup                install what `test` needs and this machine lacks";

/// Names stand where they are used, so that this list is never an old one.
fn usage() -> String {
    let benches = bench::names().join(", ");
    USAGE.replace("BENCHES", &wrapped(&benches)).replace("TARGETS", &fuzz::TARGETS.join(", "))
}

/// Lines of names, below the first one.
fn wrapped(names: &str) -> String {
    let mut text = String::new();
    let mut column = 33;
    for name in names.split_inclusive(' ') {
        if column + name.len() > 110 {
            text.truncate(text.trim_end().len());
            text.push_str("\n                       ");
            column = 23;
        }
        text.push_str(name);
        column += name.len();
    }
    text
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("xtask: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &[String]) -> Outcome {
    let Some((verb, rest)) = args.split_first() else {
        return Err(format!("a verb is missing\n\n{}", usage()));
    };
    match verb.as_str() {
        "up" => up::run(rest),
        "test" => test::run(rest),
        "bench" => bench::run(rest),
        "fuzz" => fuzz::run(rest),
        "sim" => sim::run(rest),
        "web" => setup::for_building().and_then(|()| web::build(For::Users)),
        "programs" => setup::wasm_targets().and_then(|()| programs::build()),
        "outside" => outside::fetch(),
        "tidy" => tidy::run(rest),
        "types" => types::run(rest),
        "setup" => setup::for_testing(),
        "help" | "-h" | "--help" => {
            println!("{}", usage());
            Ok(())
        }
        other => Err(format!("there is no verb `{other}`\n\n{}", usage())),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_help_names_every_benchmark_and_every_fuzzed_reader() {
        let usage = super::usage();
        let words: Vec<&str> = usage.split([' ', ',', ';', '\n']).collect();
        for name in super::bench::names().into_iter().chain(super::fuzz::TARGETS) {
            assert!(words.contains(&name), "{name} is missing in\n{usage}");
        }
        assert!(!usage.contains("BENCHES") && !usage.contains("TARGETS"), "{usage}");
        assert!(usage.lines().all(|line| line.len() <= 120), "{usage}");
    }
}
