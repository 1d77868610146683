//! The suites, cheapest first.

use std::process::Command;
use std::time::Duration;

use super::again::again_if_few_fail;
use super::arm;
use super::aside;
use super::count::{Counts, counted};
use super::rust;
use crate::shell::{For, Outcome, cargo, command, root, run, shoal, target};
use crate::stamp::{Stamp, files_below};
use crate::venv::Venv;
use crate::{fuzz, outside, setup, sim, tidy, types as made_types};

/// What must be built before a suite can run; each includes those before it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Needs {
    Nothing,
    /// The browser part, which the coordinator embeds.
    Pages,
    /// Programs and kernels that others published.
    Outside,
    /// `shoal` itself.
    Binary,
}

pub(super) struct Suite {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    pub(super) needs: Needs,
    pub(super) pace: Pace,
    pub(super) run: fn() -> Outcome<Counts>,
}

/// What a suite mostly does with its time.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Pace {
    /// Says in moments what is wrong, or compiles with all cores: alone, and before the others.
    Alone,
    /// Computes: it can take what the others leave.
    Computes,
    /// Starts processes and browsers, and mostly waits for them.
    Waits,
}

/// Seeds the simulation tries on every commit; more run with `cargo xtask sim --seeds N`.
const SIM_SEEDS: &str = "200";
/// Worlds with a crew among them; more with `cargo xtask sim --crews N`.
const SIM_CREWS: &str = "300";
/// Worlds in which devices keep a service ready together; more with `cargo xtask sim --splits N`.
const SIM_SPLITS: &str = "100";
/// Worlds in which some of those say other words; more with `cargo xtask sim --lying-splits N`.
const SIM_LYING_SPLITS: &str = "60";
/// Worlds in which devices exchange a blob; more with `cargo xtask sim --swarms N`.
const SIM_SWARMS: &str = "100";

pub(super) const SUITES: &[Suite] = &[
    Suite {
        name: "fmt",
        about: "rustfmt has nothing to say",
        needs: Needs::Nothing,
        pace: Pace::Alone,
        run: fmt,
    },
    Suite {
        name: "tidy",
        about: "the house rules",
        needs: Needs::Nothing,
        pace: Pace::Alone,
        run: house_rules,
    },
    Suite {
        name: "pure",
        about: "protocol, kinds, api, seal, onnx, gguf, text, scheduler, node, peer, sim",
        needs: Needs::Nothing,
        pace: Pace::Computes,
        run: pure,
    },
    Suite {
        name: "sim",
        about: "the simulated world",
        needs: Needs::Nothing,
        pace: Pace::Computes,
        run: simulated,
    },
    Suite {
        name: "fuzz",
        about: "hostile input, briefly",
        needs: Needs::Nothing,
        pace: Pace::Computes,
        run: fuzzed,
    },
    Suite {
        name: "types",
        about: "TypeScript's compiler; what is made of Rust is not stale",
        needs: Needs::Pages,
        pace: Pace::Alone,
        run: types,
    },
    Suite {
        name: "arm",
        about: "language models on ARM, by qemu",
        needs: Needs::Nothing,
        pace: Pace::Alone,
        run: arm::run_all,
    },
    Suite {
        name: "shells",
        about: "engine, coordinator, host, cli",
        needs: Needs::Binary,
        pace: Pace::Waits,
        run: shells,
    },
    Suite {
        name: "clippy",
        about: "no warnings",
        needs: Needs::Pages,
        pace: Pace::Alone,
        run: clippy,
    },
    Suite {
        name: "web",
        about: "SDK, pages, conformance",
        needs: Needs::Binary,
        pace: Pace::Waits,
        run: web,
    },
    Suite {
        name: "e2e",
        about: "tabs and machines together",
        needs: Needs::Binary,
        pace: Pace::Waits,
        run: e2e,
    },
];

/// Silence after which a suite hangs: cold, cargo may compile for long before it says a word.
const WITH_BUILD: Duration = Duration::from_secs(25 * 60);
/// No file of browser tests takes nearly as long. One that does is ended, and the next one begins.
const BROWSER_FILE: Duration = Duration::from_secs(8 * 60);

/// A test of `pool` that takes two minutes whatever the machine does. It runs beside all others.
const LONG: (&str, &str) =
    ("pool", "survive::a_client_brings_the_right_answers_home_while_everybody_else_is_killed");

/// Tests of processes, or files of browser tests, at a time: they take about half of a core each, and mostly wait.
fn that_wait() -> usize {
    rust::cores() + 1
}

const PURE: [&str; 15] = [
    "shoal-protocol",
    "shoal-kinds",
    "shoal-api",
    "shoal-seal",
    "shoal-onnx",
    "shoal-gguf",
    "shoal-text",
    "shoal-vision",
    "shoal-scheduler",
    "shoal-node",
    "shoal-peer",
    "shoal-turn",
    "shoal-app",
    "shoal-sim",
    "xtask",
];
/// What the tests of `shoal-onnx` and `shoal-text` read: models, and ONNX's own cases.
const MODELS: [&str; 6] = ["blazeface", "yolov8n", "mobilenetv2", "ppocr", "onnx", "smollm2"];
/// Planning is a feature, because nodes do without it; the example kind is one, because users do.
const ALL_OF_KINDS: [&str; 2] = ["--features", "shoal-kinds/plan,shoal-kinds/count"];
const SHELLS: &[&str] = &["shoal-engine", "shoal-coordinator", "shoal-host", "shoal"];
/// What benchmarks run beside Shoal.
const BENCHES: &[&str] = &["xtask-direct", "xtask-relay", "xtask-swarm"];
/// Where the conformance cases lie, made ready for a browser.
const PREPARED: &str = "prepared";
/// Programs of others that talk to a coordinator.
const CLIENTS: Venv = Venv {
    name: "clients-venv",
    packages: &["tritonclient[http]==2.73.0", "openai==3.51.0", "schemathesis==4.32.5"],
};
/// Where builds for tabs go, by the instructions they use.
const TAB_SIMD: [(&str, &str); 2] =
    [("simd128", "+simd128"), ("relaxed-simd", "+simd128,+relaxed-simd")];
/// What makes models smaller for `shoal model quantize`.
const QUANTIZER: Venv =
    Venv { name: "quantize-venv", packages: &["onnxruntime==1.31.1", "onnx==1.23.2"] };
/// Crates with a lock of their own.
const APART: [&str; 3] = ["crates/browser", "examples/programs", "fuzz"];

fn fmt() -> Outcome<Counts> {
    run(cargo().args(["fmt", "--all", "--check"]))?;
    for folder in APART {
        run(cargo().current_dir(root().join(folder)).args(["fmt", "--check"]))?;
    }
    Ok(Counts::ONE)
}

fn house_rules() -> Outcome<Counts> {
    tidy::run(&[])?;
    Ok(Counts::ONE)
}

fn pure() -> Outcome<Counts> {
    outside::fetch_some(&MODELS)?;
    let cargo = |words: &[&str]| {
        let mut cargo = cargo_on(words, &PURE);
        cargo.args(ALL_OF_KINDS);
        cargo
    };
    let programs = rust::build(&mut cargo(&["test", "--quiet"]))?;
    let mut documentation = cargo(&["test", "--quiet", "--no-fail-fast", "--doc"]);
    let env = |test: &mut Command| {
        test.env("SHOAL_OUTSIDE", outside::folder()).env("SHOAL_REQUIRE_ALL", "1");
    };
    rust::pure(&programs, &mut documentation, env)
}

fn simulated() -> Outcome<Counts> {
    let mut counts = counted(sim::simulator().args(["--seeds", SIM_SEEDS]), WITH_BUILD)?;
    counts += counted(sim::simulator().args(["--crews", SIM_CREWS]), WITH_BUILD)?;
    counts += counted(sim::simulator().args(["--splits", SIM_SPLITS]), WITH_BUILD)?;
    counts += counted(sim::simulator().args(["--lying-splits", SIM_LYING_SPLITS]), WITH_BUILD)?;
    counts += counted(sim::simulator().args(["--swarms", SIM_SWARMS]), WITH_BUILD)?;
    Ok(counts)
}

/// About three seconds each; more run with `cargo xtask fuzz`.
fn fuzzed() -> Outcome<Counts> {
    let passed = fuzz::brief(|name| match name {
        "codec" | "npy" => 200_000,
        "onnx" | "gguf" | "tensors" => 100_000,
        "wasm" => 2_000,
        _ => 8_000,
    })?;
    Ok(Counts { passed, ..Counts::default() })
}

fn shells() -> Outcome<Counts> {
    QUANTIZER.install()?;
    let prepared = prepared()?;
    let words = ["test", "--release", "--quiet"];
    let programs = rust::build(cargo_on(&words, SHELLS).args(For::Tests.features()))?;
    let command = |program: &rust::Program, only: Option<&[String]>| {
        let mut test = program.command(that_wait(), only);
        environment(&mut test);
        test
    };
    // One program at a time.
    let most = || {
        again_if_few_fail(1, rust::SILENCE, |only| {
            let rest = |program| {
                let mut test = command(program, only);
                test.args(["--skip", LONG.1]);
                test
            };
            programs.iter().map(rest).collect()
        })
    };
    let (long, most) = std::thread::scope(|scope| {
        let long = scope.spawn(|| {
            // Where the system cannot put it behind the others, it runs among them.
            aside::give_way();
            again_if_few_fail(1, rust::SILENCE, |_| {
                let of = programs.iter().filter(|program| program.is(LONG.0));
                of.map(|program| command(program, Some(&[LONG.1.to_owned()]))).collect()
            })
        });
        let most = most();
        let broke = |_| Err(format!("{} could not be run", LONG.1));
        (long.join().unwrap_or_else(broke), most)
    });
    let (long, mut counts) = (long?, most?);
    if long.passed + long.failed != 1 {
        return Err(format!("there is no test `{}` in `{}`", LONG.1, LONG.0));
    }
    counts += long;
    let mut documentation = cargo_on(&["test", "--release", "--quiet", "--doc"], SHELLS);
    counts += counted(documentation.args(For::Tests.features()), WITH_BUILD)?;
    prepared.keep()?;
    Ok(counts)
}

/// The conformance cases as a browser takes them, written by the native run of the same cases.
fn prepared() -> Outcome<Stamp> {
    Stamp::of("prepared", &["conformance", "crates/engine", "crates/protocol", "crates/kinds"])
}

/// In release, so that the heavy build scripts (C libraries) of the real build are used again.
fn clippy() -> Outcome<Counts> {
    let deny = ["--", "--deny", "warnings"];
    let words = ["clippy", "--quiet", "--all-targets", "--release"];
    run(cargo_on(&words[..3], &PURE).args(ALL_OF_KINDS).args(deny))?;
    let shells = [SHELLS, BENCHES].concat();
    run(cargo_on(&words, &shells).args(For::Tests.features()).args(deny))?;
    Ok(Counts::ONE)
}

fn types() -> Outcome<Counts> {
    made_types::check()?;
    run(command("npm").current_dir(root().join("web")).args(["run", "--silent", "check"]))?;
    Ok(Counts::ONE)
}

fn web() -> Outcome<Counts> {
    let stamp = prepared()?;
    if !stamp.is_fresh(&[target().join(PREPARED)]) {
        let words = ["test", "--release", "--quiet", "--test", "conformance"];
        run(environment(cargo_on(&words, SHELLS).args(For::Tests.features())))?;
        stamp.keep()?;
    }
    // A native application that shares buffers with pages.
    let words = ["build", "--release", "--quiet", "--example", "share"];
    run(&mut cargo_on(&words, &["shoal-app"]))?;
    language_models()?;
    node(&["tests", "app/tests"])
}

/// The engine of language models as tabs run it and as this machine does, each a program of its own.
fn language_models() -> Outcome {
    let words = ["build", "--release", "--quiet", "--package", "shoal-engine"];
    let example = ["--features", "llm", "--example", "llm-speed"];
    run(cargo().args(words).args(example))?;
    for (name, features) in TAB_SIMD {
        let flags = format!("-C target-feature={features}");
        let mut build = cargo();
        build.args(words).args(example).args(["--target", "wasm32-wasip1", "--target-dir"]);
        run(build.arg(target().join(name)).env("RUSTFLAGS", flags))?;
    }
    Ok(())
}

fn e2e() -> Outcome<Counts> {
    CLIENTS.install()?;
    node(&["e2e"])
}

/// Each file starts a pool and browsers of its own; none knows of another.
fn node(folders: &[&str]) -> Outcome<Counts> {
    let files = test_files(folders)?;
    again_if_few_fail(that_wait(), BROWSER_FILE + BROWSER_FILE / 2, |only| {
        let command = |file: &String| {
            let mut node = command("node");
            node.current_dir(root().join("web"))
                .args(["--test", "--test-concurrency=1", "--test-reporter=spec"])
                .arg(format!("--test-timeout={}", BROWSER_FILE.as_millis()))
                .arg(file);
            environment(&mut node);
            node
        };
        only.unwrap_or(&files).iter().map(command).collect()
    })
}

/// Node 20 does not expand patterns itself.
fn test_files(folders: &[&str]) -> Outcome<Vec<String>> {
    let base = root().join("web");
    let mut files = Vec::new();
    for folder in folders {
        files_below(&base.join(folder), &mut files)?;
    }
    let mut names: Vec<String> = files
        .iter()
        .filter_map(|file| file.strip_prefix(&base).ok()?.to_str().map(String::from))
        .filter(|name| name.ends_with(".test.mjs"))
        .collect();
    names.sort();
    if names.is_empty() { Err(format!("no tests in {folders:?}")) } else { Ok(names) }
}

/// Tells tests where things are, since a target folder may be anywhere.
fn environment(test: &mut Command) -> &mut Command {
    if let Some(chromium) = setup::chromium() {
        test.env("CHROMIUM", chromium);
    }
    test.env("SHOAL_BIN", shoal())
        .env("SHOAL_SHARE", target().join("release/examples/share"))
        .env("SHOAL_LLM_SPEED", target())
        .env("SHOAL_CLIENTS", CLIENTS.python())
        .env("SHOAL_QUANTIZER", QUANTIZER.python())
        .env("SHOAL_OUTSIDE", outside::folder())
        .env("SHOAL_REQUIRE_ALL", "1")
        .env("SHOAL_PREPARED", target().join(PREPARED))
}

/// Cargo with these words, on these packages.
fn cargo_on(words: &[&str], packages: &[&str]) -> Command {
    let mut cargo = cargo();
    cargo.args(words);
    for package in packages {
        cargo.args(["--package", package]);
    }
    cargo
}
