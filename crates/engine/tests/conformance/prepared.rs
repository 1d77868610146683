//! What a browser cannot make for itself, written where `SHOAL_PREPARED` says: programs as
//! binaries, kernels as work that passed the intake.

use std::fs;
use std::path::PathBuf;

use serde_json::json;
use shoal_kinds::{InputSplit, Kind};

use crate::case::Case;

/// `NAME/work.json`: `{"items", "kind", "inputs", "render"}`, the work as nodes get it (`NAME/work.bin`), and
/// `NAME/input-N.bin`.
pub(crate) fn write_work(case: &Case, items: u64, work: &Kind, inputs: &[Vec<u8>]) {
    let Some(folder) = folder(case) else {
        return;
    };
    let inputs_json = work.feeds().iter().map(|feed| match feed.split {
        InputSplit::PerItem { bytes, reach } => json!({ "perItem": bytes, "reach": reach }),
        InputSplit::Whole => json!({}),
    });
    let inputs_json: Vec<_> = inputs_json.collect();
    let (kind, render) = (work.name(), work.shown().render);
    let json = json!({ "items": items, "kind": kind, "inputs": inputs_json, "render": render });
    fs::write(folder.join("work.json"), json.to_string()).unwrap();
    fs::write(folder.join("work.bin"), postcard::to_allocvec(work).unwrap()).unwrap();
    for (at, input) in inputs.iter().enumerate() {
        fs::write(folder.join(format!("input-{at}.bin")), input).unwrap();
    }
}

/// `NAME/work.bin`, the work as nodes get it, and `NAME/first.bin`, the first state if the case gives one.
pub(crate) fn write_sim(case: &Case, work: &Kind, first: Option<&[u8]>) {
    let Some(folder) = folder(case) else {
        return;
    };
    fs::write(folder.join("work.bin"), postcard::to_allocvec(work).unwrap()).unwrap();
    if let Some(first) = first {
        fs::write(folder.join("first.bin"), first).unwrap();
    }
}

/// `NAME/program.wasm`.
pub(crate) fn write_program(case: &Case, wasm: &[u8]) {
    if let Some(folder) = folder(case) {
        fs::write(folder.join("program.wasm"), wasm).unwrap();
    }
}

fn folder(case: &Case) -> Option<PathBuf> {
    let folder = PathBuf::from(std::env::var_os("SHOAL_PREPARED")?).join(&case.name);
    fs::create_dir_all(&folder).unwrap();
    Some(folder)
}
