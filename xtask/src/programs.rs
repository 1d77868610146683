//! The example WASI programs: an own small workspace, because they build for another target.

use std::path::{Path, PathBuf};

use crate::shell::{Outcome, cargo, root, run, write};
use crate::stamp::Stamp;

const FOLDER: &str = "examples/programs";

/// Builds `examples/programs/target/NAME.wasm` for every program.
pub(crate) fn build() -> Outcome {
    let folder = root().join(FOLDER);
    let stamp = Stamp::of("programs", &[FOLDER, "rust-toolchain.toml"])?;
    if stamp.is_fresh(&[folder.join("target/primes.wasm"), folder.join("target/greet.wasm")]) {
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
    // A short path to type: the nested one is cargo's business.
    for file in files_ending(&target.join("wasm32-wasip1/release"), "wasm")? {
        copy_to(&target, &file)?;
    }
    for file in files_ending(&folder, "wat")? {
        let wasm = wat::parse_file(&file).map_err(|error| error.to_string())?;
        let name = file.with_extension("wasm");
        write(&target.join(name.file_name().unwrap_or_default()), wasm)?;
    }
    stamp.keep()
}

fn files_ending(folder: &Path, end: &str) -> Outcome<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let paths = entries.flatten().map(|entry| entry.path());
    Ok(paths.filter(|path| path.extension().is_some_and(|extension| extension == end)).collect())
}

fn copy_to(folder: &Path, file: &Path) -> Outcome {
    let to = folder.join(file.file_name().unwrap_or_default());
    std::fs::copy(file, &to).map_err(|error| format!("{}: {error}", file.display()))?;
    Ok(())
}
