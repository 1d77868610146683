//! Hostile input for everything that reads strangers' bytes: the targets in `fuzz/`, on the pinned
//! compiler. Coverage needs no nightly, and the fuzzer itself is a library; `cargo fuzz` works as well,
//! and adds the address sanitizer.

mod seeds;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use crate::setup;
use crate::shell::{
    self, Outcome, cargo, command, make_dir, not_started, output, root, shown, target,
};

pub(crate) const TARGETS: [&str; 9] =
    ["codec", "gguf", "http", "npy", "onnx", "tensors", "wasm", "wgsl", "words"];

/// What `cargo fuzz` gives the compiler, but for the sanitizer.
const COVERAGE: &str = "-Cpasses=sancov-module \
    -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares \
    --cfg fuzzing";

/// What the coordinator's threads have, in KiB: deep recursion must show here too.
const STACK_KIB: u32 = 2048;
/// One input. The slowest known takes half a second in an instrumented build.
const TIMEOUT: &str = "-timeout=20";
const SECONDS: &str = "60";
/// The end of what a fuzzer says: the panic, where it was, and the input.
const SHOWN_LINES: usize = 60;

/// By hand: some or all targets, for a while, with what earlier runs learned.
pub(crate) fn run(args: &[String]) -> Outcome {
    let (names, seconds, replayed) = parse(args)?;
    build()?;
    for name in names {
        let corpus = folder("corpus", name);
        seeds::write(name, &corpus)?;
        let mut fuzzer = fuzzer(name)?;
        match &replayed {
            Some(file) => fuzzer.arg(file),
            None => fuzzer.arg(format!("-max_total_time={seconds}")).arg(&corpus),
        };
        println!("== {name}");
        shell::run(&mut fuzzer).map_err(|error| advice(name, &error))?;
    }
    Ok(())
}

fn parse(args: &[String]) -> Outcome<(Vec<&str>, &str, Option<PathBuf>)> {
    let (mut names, mut seconds, mut replayed) = (Vec::new(), SECONDS, None);
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--seconds" => {
                let given = args.next().filter(|given| given.parse::<u32>().is_ok());
                seconds = given.ok_or("--seconds takes a number")?;
            }
            "--replay" => {
                let file = args.next().ok_or("--replay takes a file")?;
                let file = std::path::absolute(file).map_err(|error| format!("{file}: {error}"))?;
                replayed = Some(file);
            }
            name if TARGETS.contains(&name) => names.push(name),
            other => {
                let known = TARGETS.join(", ");
                return Err(format!(
                    "fuzz takes --seconds N, --replay FILE and targets ({known}), not `{other}`"
                ));
            }
        }
    }
    if names.is_empty() {
        if replayed.is_some() {
            return Err("which target is the file for?".into());
        }
        names.extend(TARGETS);
    }
    Ok((names, seconds, replayed))
}

/// For every commit: all that once failed, then the same few thousand inputs each time, so that a commit
/// which changed nothing does not fail. Gives how many targets and files held.
pub(crate) fn brief(runs: impl Fn(&str) -> u32) -> Outcome<u64> {
    build()?;
    let mut held = 0;
    for name in TARGETS {
        let known = known(name)?;
        for file in &known {
            quietly(fuzzer(name)?.arg(file))?;
        }
        let corpus = target().join("fuzz/brief").join(name);
        let _ = std::fs::remove_dir_all(&corpus);
        seeds::write(name, &corpus)?;
        let start = Instant::now();
        let mut fuzzer = fuzzer(name)?;
        fuzzer.args(["-seed=1", &format!("-runs={}", runs(name))]).arg(&corpus);
        quietly(&mut fuzzer).map_err(|error| advice(name, &error))?;
        let (old, new, took) = (known.len(), runs(name), start.elapsed().as_secs_f64());
        println!("{name}: {old} old inputs, {new} new ones ({took:.1} s)");
        held += 1 + old as u64;
    }
    Ok(held)
}

/// A fuzzer talks a lot; what it says matters only if something breaks.
fn quietly(fuzzer: &mut Command) -> Outcome {
    let done = fuzzer.output().map_err(|error| not_started(fuzzer, &error))?;
    if done.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&done.stderr);
    let lines: Vec<&str> = said.lines().collect();
    eprintln!("{}", lines[lines.len().saturating_sub(SHOWN_LINES)..].join("\n"));
    Err(format!("`{}` ended with {}", shown(fuzzer), done.status))
}

/// Inputs that once failed, by name.
fn known(name: &str) -> Outcome<Vec<PathBuf>> {
    let folder = folder("regressions", name);
    let mut files = Vec::new();
    if folder.exists() {
        crate::stamp::files_below(&folder, &mut files)?;
    }
    files.sort();
    Ok(files)
}

fn build() -> Outcome {
    setup::for_fuzzing()?;
    let mut build = cargo();
    build.current_dir(root().join("fuzz")).env("RUSTFLAGS", COVERAGE);
    build.args(["build", "--quiet", "--release", "--target", &host()?]);
    shell::run(build.arg("--target-dir").arg(target().join("fuzz")))
}

/// Naming the target keeps build scripts and macros free of coverage.
fn host() -> Outcome<String> {
    let told = output(command("rustc").arg("-vV"))?;
    let host = told.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(String::from).ok_or_else(|| format!("rustc names no host in `{told}`"))
}

/// One target's program, in a shell that gives it a small stack, told where to put what breaks it.
fn fuzzer(name: &str) -> Outcome<Command> {
    let artifacts = folder("artifacts", name);
    make_dir(&artifacts)?;
    let program = target().join("fuzz").join(host()?).join("release").join(name);
    let mut fuzzer = command("sh");
    fuzzer.args(["-c", &format!("ulimit -s {STACK_KIB}; exec \"$0\" \"$@\"")]).arg(program);
    fuzzer
        .args([TIMEOUT, "-print_funcs=0"])
        .arg(format!("-artifact_prefix={}/", artifacts.display()));
    Ok(fuzzer)
}

fn folder(kind: &str, name: &str) -> PathBuf {
    root().join("fuzz").join(kind).join(name)
}

fn advice(name: &str, error: &str) -> String {
    let kept = Path::new("fuzz/artifacts").join(name);
    format!(
        "{error}\nThe input is in {}. See it again: cargo xtask fuzz {name} --replay FILE\n\
         Once it is fixed, keep the file in fuzz/regressions/{name}.",
        kept.display()
    )
}
