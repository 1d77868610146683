//! The browser part: Rust to wasm32, its JavaScript glue, then the pages and the SDK.

use std::path::{Path, PathBuf};

use wasm_bindgen_cli_support::Bindgen;

use crate::shell::{For, Outcome, cargo, command, make_dir, root, run, target};
use crate::stamp::Stamp;

/// The Wasm modules of a tab, by cargo feature. Apart, so that a tab loads each only when it needs it.
const MODULES: [&str; 6] = ["brain", "crew", "gpu", "llm", "onnx", "vision"];

/// Modules whose engine must be fast rather than small. The others with an engine have a library for what takes long.
const FAST: [(&str, &str); 1] = [("llm", "profile.release.package.shoal-engine.opt-level=3")];

const RUST_INPUTS: [&str; 12] = [
    "Cargo.toml",
    "rust-toolchain.toml",
    "crates/protocol",
    "crates/kinds",
    "crates/onnx",
    "crates/gguf",
    "crates/text",
    "crates/vision",
    "crates/seal",
    "crates/node",
    "crates/engine",
    "crates/browser",
];

const PAGE_INPUTS: [&str; 5] =
    ["web/sdk", "web/app", "web/build.mjs", "web/package-lock.json", "examples/cifar10"];

/// Builds `web/dist` if anything it is made from changed, or if it was made for others.
pub(crate) fn build(whom: For) -> Outcome {
    let more = match whom {
        For::Users => "",
        For::Tests => ",count",
    };
    let generated = root().join("web/sdk/generated");
    let glue: Vec<PathBuf> =
        MODULES.iter().map(|name| generated.join(name).join(format!("{name}_bg.wasm"))).collect();
    let stamp = Stamp::of("wasm", &RUST_INPUTS)?.with(more);
    if !stamp.is_fresh(&glue) {
        for module in MODULES {
            wasm(module, more, &generated.join(module))?;
        }
        stamp.keep()?;
    }

    let stamp = Stamp::of("pages", &[&RUST_INPUTS[..], &PAGE_INPUTS[..]].concat())?.with(more);
    let dist = root().join("web/dist");
    if stamp.is_fresh(&[dist.join("index.html"), dist.join("join.html"), dist.join("assets")]) {
        return Ok(());
    }
    run(command("node").current_dir(root().join("web")).arg("build.mjs"))?;
    stamp.keep()
}

/// One module: nested cargo with its own target folder, so that it never waits for the outer one and
/// keeps its own features. Flags for other targets would break it: its own are in its folder.
fn wasm(module: &str, more: &str, out: &Path) -> Outcome {
    println!("web: {module}");
    let folder = target().join("web");
    let fast = FAST.iter().filter(|(name, _)| *name == module);
    run(cargo()
        .current_dir(root().join("crates/browser"))
        .args(fast.flat_map(|(_, set)| ["--config", set]))
        .args(["build", "--release", "--lib", "--target", "wasm32-unknown-unknown"])
        .args(["--no-default-features", "--features"])
        .arg(format!("{module}{more}"))
        .env("CARGO_TARGET_DIR", &folder)
        .env_remove("RUSTFLAGS")
        .env_remove("CARGO_ENCODED_RUSTFLAGS"))?;
    let built = folder.join("wasm32-unknown-unknown/release/shoal_browser.wasm");
    make_dir(out)?;
    Bindgen::new()
        .input_path(&built)
        .out_name(module)
        // A sixth of a module's bytes, which every tab would fetch, for names in a stack trace.
        .remove_name_section(true)
        .web(true)
        .map(|bindgen| bindgen.typescript(true).omit_default_module_path(false))
        .and_then(|bindgen| bindgen.generate(out))
        .map_err(|error| format!("wasm-bindgen on {}: {error:#}", built.display()))
}
