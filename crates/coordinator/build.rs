//! Makes sure the folder of built web files exists, so that a clone without them compiles and a later
//! `cargo xtask web` is noticed.

fn main() {
    let dist = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web/dist");
    // A read-only checkout cannot have it made; the pages then say how to build them.
    let _ = std::fs::create_dir_all(&dist);
    println!("cargo:rerun-if-changed={}", dist.display());
}
