//! The example WASI programs: an own small workspace, because they build for another target.

use crate::shell::{Outcome, cargo, root, run};
use crate::stamp::Stamp;

const FOLDER: &str = "examples/programs";

/// Builds `examples/programs/target/NAME.wasm` for every program.
pub(crate) fn build() -> Outcome {
    let folder = root().join(FOLDER);
    let stamp = Stamp::of("programs", &[FOLDER, "rust-toolchain.toml"])?;
    if stamp.is_fresh(&[folder.join("target/primes.wasm")]) {
        return Ok(());
    }
    println!("programs: {FOLDER}");
    let target = folder.join("target");
    run(cargo()
        .current_dir(&folder)
        .args(["build", "--quiet", "--release", "--target", "wasm32-wasip1"])
        .env("CARGO_TARGET_DIR", &target)
        .env_remove("RUSTFLAGS")
        .env_remove("CARGO_ENCODED_RUSTFLAGS"))?;
    let built = target.join("wasm32-wasip1/release");
    let entries = std::fs::read_dir(&built).map_err(|e| format!("{}: {e}", built.display()))?;
    for entry in entries {
        let file = entry.map_err(|error| format!("{}: {error}", built.display()))?.path();
        if let (Some(name), Some("wasm")) =
            (file.file_name(), file.extension().and_then(|extension| extension.to_str()))
        {
            // A short path to type: the nested one is cargo's business.
            std::fs::copy(&file, target.join(name))
                .map_err(|error| format!("{}: {error}", file.display()))?;
        }
    }
    stamp.keep()
}
