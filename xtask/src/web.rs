//! The browser part: Rust to wasm32, its JavaScript glue, then the pages and the SDK.

use std::path::{Path, PathBuf};

use wasm_bindgen_cli_support::Bindgen;

use crate::shell::{For, Outcome, cargo, command, make_dir, read, root, run, target};
use crate::stamp::Stamp;

/// A Wasm module of a tab. Apart, so that a tab loads each only when it needs it.
struct Module {
    /// The folder that its glue goes to.
    name: &'static str,
    /// The cargo feature, and what its files are called.
    feature: &'static str,
    /// What cargo is told beside that.
    config: &'static [&'static str],
}

const fn module(name: &'static str) -> Module {
    Module { name, feature: name, config: &[] }
}

/// Its engine must be fast rather than small. The other engines have libraries for what takes long.
const FAST: &str = "profile.release.package.shoal-engine.opt-level=3";
/// Instructions that not every browser has. They come behind those that the crate's own folder names.
const RELAXED: &str =
    r#"target.wasm32-unknown-unknown.rustflags=["-C","target-feature=+relaxed-simd"]"#;

const MODULES: [Module; 9] = [
    module("brain"),
    module("crew"),
    module("files"),
    module("gpu"),
    Module { name: "llm", feature: "llm", config: &[FAST] },
    Module { name: "llm-relaxed", feature: "llm", config: &[FAST, RELAXED] },
    module("llm-gpu"),
    module("onnx"),
    module("vision"),
];

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

impl Module {
    fn wasm_file(&self) -> String {
        format!("{}_bg.wasm", self.feature)
    }
}

/// Builds `web/dist` if anything it is made from changed, or if it was made for others.
pub(crate) fn build(whom: For) -> Outcome {
    let more = match whom {
        For::Users => "",
        For::Tests => ",count",
    };
    let generated = root().join("web/sdk/generated");
    let glue: Vec<PathBuf> =
        MODULES.iter().map(|it| generated.join(it.name).join(it.wasm_file())).collect();
    let stamp = Stamp::of("wasm", &RUST_INPUTS)?.with(more);
    if !stamp.is_fresh(&glue) {
        for module in &MODULES {
            wasm(module, more, &generated.join(module.name))?;
        }
        // Workers have one glue for both.
        let glue = |name: &str| read(&generated.join(name).join("llm.js"));
        if glue("llm")? != glue("llm-relaxed")? {
            return Err("the modules `llm` and `llm-relaxed` do not have the same glue".into());
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
fn wasm(module: &Module, more: &str, out: &Path) -> Outcome {
    let Module { name, feature, config } = module;
    println!("web: {name}");
    // Other flags would make everything anew each time.
    let apart = if config.contains(&RELAXED) { "web/relaxed" } else { "web" };
    let folder = target().join(apart);
    run(cargo()
        .current_dir(root().join("crates/browser"))
        .args(config.iter().flat_map(|set| ["--config", set]))
        .args(["build", "--release", "--lib", "--target", "wasm32-unknown-unknown"])
        .args(["--no-default-features", "--features"])
        .arg(format!("{feature}{more}"))
        .env("CARGO_TARGET_DIR", &folder)
        .env_remove("RUSTFLAGS")
        .env_remove("CARGO_ENCODED_RUSTFLAGS"))?;
    let built = folder.join("wasm32-unknown-unknown/release/shoal_browser.wasm");
    make_dir(out)?;
    Bindgen::new()
        .input_path(&built)
        .out_name(feature)
        // A sixth of a module's bytes, which every tab would fetch, for names in a stack trace.
        .remove_name_section(true)
        .web(true)
        .map(|bindgen| bindgen.typescript(true).omit_default_module_path(false))
        .and_then(|bindgen| bindgen.generate(out))
        .map_err(|error| format!("wasm-bindgen on {}: {error:#}", built.display()))
}
