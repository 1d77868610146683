//! What a browser cannot make for itself, written where `SHOAL_PREPARED` says: programs as
//! binaries, kernels as work that passed the intake.

use std::fs;
use std::path::PathBuf;

use shoal_protocol::Work;

use crate::case::Case;

/// `NAME/work.json`: `{"items", "work"}` with the work as the protocol has it, the same as nodes get it
/// (`NAME/work.bin`), and `NAME/input-N.bin`.
pub(crate) fn write_work(case: &Case, items: u64, work: &Work, inputs: &[Vec<u8>]) {
    let Some(folder) = folder(case) else {
        return;
    };
    let json = serde_json::json!({ "items": items, "work": work });
    fs::write(folder.join("work.json"), json.to_string()).unwrap();
    fs::write(folder.join("work.bin"), postcard::to_allocvec(work).unwrap()).unwrap();
    for (at, input) in inputs.iter().enumerate() {
        fs::write(folder.join(format!("input-{at}.bin")), input).unwrap();
    }
}

/// `NAME/work.bin`, the work as nodes get it, and `NAME/first.bin`, the first state if the case gives one.
pub(crate) fn write_sim(case: &Case, work: &Work, first: Option<&[u8]>) {
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
