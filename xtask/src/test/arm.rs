//! Language models on ARM: the engine's tests, built for processors that this machine does not have and run on two that
//! qemu plays, one with dot products and one without. Models must give the bits that they give here.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::count::{Counts, counted};
use super::rust::SILENCE;
use crate::setup;
use crate::shell::{Outcome, cargo, command, output, root, run, target};

/// What qemu plays, and the instructions that models must be computed with there.
const PROCESSORS: [(&str, &str); 2] = [("cortex-a53", "neon"), ("neoverse-n1", "neon-dotprod")];
/// A model of each architecture.
const MODELS: [&str; 4] = ["llama", "qwen2", "qwen3", "gemma3"];
/// Enough that matrices meet one row of numbers, and several.
const WORDS: [&str; 4] = ["--prompt", "37", "--follow", "6"];
/// The tests of what computes: its parts, and whole models against numpy and against themselves.
const TESTS: [&str; 2] = ["llm::", "tiny::"];
/// A hash function's own code for ARM is C, which would need a compiler for ARM.
const FEATURES: &str = "llm,blake3/no_neon";

pub(super) fn run_all() -> Outcome<Counts> {
    if !setup::for_arm()? {
        return Ok(Counts::default());
    }
    let tests = ["--quiet", "--lib", "--test", "llm"];
    run(on_arm("test").args(tests).arg("--no-run"))?;
    let mut counts = Counts::default();
    for (processor, _) in PROCESSORS {
        println!("on {processor}:");
        let mut tested = on_arm("test");
        tested.args(tests).arg("--").args(TESTS).env("QEMU_CPU", processor);
        counts += counted(&mut tested, SILENCE)?;
    }
    run(on_arm("build").args(["--quiet", "--example", "llm-speed"]))?;
    let words = ["build", "--release", "--quiet", "--package", "shoal-engine", "--features", "llm"];
    run(cargo().args(words).args(["--example", "llm-speed"]))?;
    for model in MODELS {
        same_bits(model)?;
        counts += Counts::ONE;
    }
    Ok(counts)
}

/// Cargo, building the engine for ARM, with a linker that Rust brings.
fn on_arm(verb: &str) -> Command {
    let mut cargo = cargo();
    cargo.args([verb, "--release", "--package", "shoal-engine", "--features", FEATURES]);
    cargo.args(["--target", setup::ARM_TARGET]);
    let setting = format!("CARGO_TARGET_{}", setup::ARM_TARGET.to_uppercase().replace('-', "_"));
    cargo.env(format!("{setting}_LINKER"), "rust-lld");
    cargo.env(format!("{setting}_RUNNER"), setup::ARM_RUNNER);
    cargo
}

/// Fails unless the model gives the same numbers on all processors, each with its fastest instructions.
fn same_bits(model: &str) -> Outcome {
    let model = root().join(format!("conformance/llm/{model}.gguf"));
    let (_, wanted) = computed(&mut command(program(&target())), &model, &["--kernel", "plain"])?;
    for (processor, instructions) in PROCESSORS {
        let mut there = command(setup::ARM_RUNNER);
        there.env("QEMU_CPU", processor).arg(program(&target().join(setup::ARM_TARGET)));
        let (kernel, bits) = computed(&mut there, &model, &[])?;
        if kernel != instructions || bits != wanted {
            return Err(format!(
                "{} on {processor}: {bits} by {kernel}, not {wanted} by {instructions}",
                model.display()
            ));
        }
    }
    Ok(())
}

fn program(target: &Path) -> PathBuf {
    target.join("release/examples/llm-speed")
}

/// Which instructions computed a model, and what its numbers come to.
fn computed(program: &mut Command, model: &Path, more: &[&str]) -> Outcome<(String, String)> {
    let said = output(program.arg(model).args(WORDS).args(more))?;
    let found: serde_json::Value = serde_json::from_str(&said)
        .map_err(|error| format!("llm-speed said {}: {error}", said.trim()))?;
    let text = |name: &str| found[name].as_str().unwrap_or_default().to_owned();
    Ok((text("kernel"), text("bits")))
}
