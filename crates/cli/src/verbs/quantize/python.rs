//! The Python that has onnxruntime's quantiser.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::fail::Fail;
use crate::verbs::Context;

const SCRIPT: &str = include_str!("quantize.py");
/// What it needs.
const PACKAGES: [&str; 2] = ["onnxruntime", "onnx"];
/// Shoal's own environment, in the data folder.
const FOLDER: &str = "quantize-python";
/// Lines of a failed script that are shown: what went wrong comes last.
const LAST_LINES: usize = 3;

pub(super) struct Python(PathBuf);

/// The one that is named, Shoal's own if it was made, or the one that is there.
pub(super) fn find(context: &Context, named: Option<&Path>, install: bool) -> Result<Python, Fail> {
    let own = context.data_folder()?.join(FOLDER);
    let inside = own.join(if cfg!(windows) { "Scripts/python.exe" } else { "bin/python" });
    if install {
        make(&own, &inside)?;
    }
    let python = match named {
        Some(path) => path.to_owned(),
        None if inside.exists() => inside,
        None => "python3".into(),
    };
    let imports = "import numpy, onnx, onnxruntime.quantization";
    let asked = Command::new(&python).args(["-c", imports]).output();
    if asked.is_ok_and(|answer| answer.status.success()) {
        return Ok(Python(python));
    }
    let python = python.display();
    Err(Fail::Input {
        code: "no_quantizer".into(),
        message: format!(
            "{python} cannot quantize models: install what does it with `{python} -m pip install {}`, name another \
             Python with --python, or let Shoal make an environment of its own with --install",
            PACKAGES.join(" ")
        ),
    })
}

fn make(folder: &Path, inside: &Path) -> Result<(), Fail> {
    eprintln!("installing {} into {}", PACKAGES.join(" and "), folder.display());
    run(Command::new("python3").args(["-m", "venv"]).arg(folder))?;
    run(Command::new(inside).args(["-m", "pip", "install", "--quiet"]).args(PACKAGES)).map(drop)
}

impl Python {
    /// Runs the script: what it says last.
    pub(super) fn quantize(&self, asked: &Value) -> Result<Value, Fail> {
        let text = run(Command::new(&self.0).args(["-c", SCRIPT]).arg(asked.to_string()))?;
        let last = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
        serde_json::from_str(last).map_err(|error| {
            failed(&self.0.display().to_string(), &format!("it said {last:?}: {error}"))
        })
    }
}

/// What a command prints.
fn run(command: &mut Command) -> Result<String, Fail> {
    let name = command.get_program().to_string_lossy().into_owned();
    let done = command.output().map_err(|error| failed(&name, &error.to_string()))?;
    if done.status.success() {
        return Ok(String::from_utf8_lossy(&done.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&done.stderr);
    let mut lines: Vec<&str> = said.lines().rev().take(LAST_LINES).collect();
    lines.reverse();
    Err(failed(&name, &lines.join("\n")))
}

fn failed(name: &str, why: &str) -> Fail {
    Fail::world("quantizer_failed", format!("{name} failed: {why}"))
}
