//! Who may depend on whom: the table of ARCHITECTURE.md, read off the manifests by `cargo metadata`.

use serde::Deserialize;

use super::Finding;
use crate::shell::{Outcome, cargo, output, root};

/// What a crate may name in its manifest.
enum Rule {
    /// Only these. For the crates that decide: a clock, a socket or a thread cannot slip in.
    Only(&'static [&'static str]),
    /// Anything but these.
    Not(&'static [&'static str]),
}

const RULES: [(&str, Rule); 19] = [
    ("shoal-protocol", Rule::Only(&["bytes", "serde", "postcard", "blake3"])),
    (
        "shoal-kinds",
        Rule::Only(&[
            "shoal-protocol",
            "half",
            "serde",
            "postcard",
            "serde_json",
            "thiserror",
            "utoipa",
        ]),
    ),
    ("shoal-api", Rule::Only(&["shoal-kinds", "serde", "serde_json", "utoipa"])),
    ("shoal-scheduler", Rule::Only(&["shoal-protocol", "shoal-kinds", "serde"])),
    (
        "shoal-seal",
        Rule::Only(&[
            "shoal-protocol",
            "serde",
            "postcard",
            "snow",
            "chacha20poly1305",
            "aws-lc-rs",
            "curve25519-dalek",
            "ed25519-dalek",
        ]),
    ),
    ("shoal-onnx", Rule::Only(&["bytes", "serde", "serde_json", "thiserror"])),
    ("shoal-gguf", Rule::Only(&["bytes", "thiserror"])),
    (
        "shoal-text",
        Rule::Only(&[
            "shoal-gguf",
            "libm",
            "minijinja",
            "minijinja-contrib",
            "postcard",
            "serde",
            "serde_json",
            "thiserror",
            "unicode-general-category",
        ]),
    ),
    ("shoal-vision", Rule::Only(&["font8x8", "libm", "thiserror"])),
    ("shoal-peer", Rule::Only(&["shoal-protocol", "serde", "serde_json", "wgpu"])),
    ("shoal-turn", Rule::Only(&["shoal-protocol", "hmac", "sha1", "md-5"])),
    ("shoal-app", Rule::Only(&["shoal-peer", "serde_json", "getrandom"])),
    ("shoal-node", Rule::Only(&["shoal-protocol", "shoal-kinds", "shoal-seal"])),
    (
        "shoal-sim",
        Rule::Only(&[
            "shoal-protocol",
            "shoal-kinds",
            "shoal-scheduler",
            "shoal-node",
            "shoal-seal",
            "ed25519-dalek",
        ]),
    ),
    (
        "shoal-engine",
        Rule::Not(&[
            "shoal-scheduler",
            "shoal-node",
            "shoal-coordinator",
            "shoal-host",
            "shoal",
            "tokio",
            "axum",
            "reqwest",
            "tokio-tungstenite",
            "rusqlite",
        ]),
    ),
    (
        "shoal-coordinator",
        Rule::Not(&[
            "shoal-node",
            "shoal-engine",
            "shoal-host",
            "shoal",
            "wgpu",
            "naga",
            "wasmtime",
            "wasmparser",
        ]),
    ),
    (
        "shoal-host",
        Rule::Not(&[
            "shoal-scheduler",
            "shoal-coordinator",
            "shoal-browser",
            "shoal-sim",
            "shoal",
            "clap",
            "axum",
            "rusqlite",
        ]),
    ),
    ("shoal", Rule::Not(&["shoal-browser", "shoal-sim"])),
    (
        "shoal-browser",
        Rule::Not(&[
            "shoal-scheduler",
            "shoal-coordinator",
            "shoal-host",
            "shoal",
            "tokio",
            "axum",
            "reqwest",
            "naga",
        ]),
    ),
];

/// Tests may name what they like, but for the simulated world: that is made of whole brains, and only tests of the
/// node, which look at a part of a brain among others of its sort, are made of the same clockwork. Cargo allows this
/// circle because only tests go through it.
const WORLDS: &str = "shoal-sim";
const MADE_OF_WORLDS: &str = "shoal-node";

/// Crates that never come in, by whatever way: two TLS back ends in one binary, and builds that need
/// what a fresh machine lacks.
const NOWHERE: [&str; 3] = ["ring", "openssl-sys", "native-tls"];

/// What is built for machines, and what for tabs: a crate that QUIC would need in a tab is in neither.
const MACHINES: [&str; 4] = [
    "x86_64-unknown-linux-gnu",
    "aarch64-unknown-linux-gnu",
    "aarch64-apple-darwin",
    "x86_64-pc-windows-msvc",
];
const TABS: [&str; 1] = ["wasm32-unknown-unknown"];

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    manifest_path: String,
    dependencies: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
    /// `dev`, `build` or nothing.
    kind: Option<String>,
}

pub(super) fn check() -> Outcome<Vec<Finding>> {
    let mut findings = Vec::new();
    let built = [("Cargo.toml", &MACHINES[..]), ("crates/browser/Cargo.toml", &TABS[..])];
    for (manifest, targets) in built {
        findings.extend(members(manifest)?.iter().flat_map(broken));
        findings.extend(banned(manifest, targets)?);
    }
    Ok(findings)
}

/// Of all that a workspace's build takes in, what never should.
fn banned(manifest: &str, targets: &[&str]) -> Outcome<Vec<Finding>> {
    let mut tree = cargo();
    tree.args(["tree", "--quiet", "--manifest-path", manifest, "--edges", "normal,build"]);
    tree.args(["--prefix", "none", "--format", "{p}"]);
    tree.args(targets.iter().flat_map(|target| ["--target", target]));
    let listed = output(&mut tree)?;
    let taken_in = |name: &&str| listed.lines().any(|line| line.split(' ').next() == Some(*name));
    let found = NOWHERE.into_iter().filter(taken_in).map(|name| Finding {
        file: manifest.into(),
        line: 0,
        text: format!("`{name}` came in: `cargo tree --target all --invert {name}` shows how"),
    });
    Ok(found.collect())
}

fn broken(package: &Package) -> Vec<Finding> {
    let Some((_, rule)) = RULES.iter().find(|(name, _)| *name == package.name) else {
        return Vec::new();
    };
    let wrong = package.dependencies.iter().filter(|edge| match rule {
        _ if edge.kind.as_deref() == Some("dev") => {
            edge.name == WORLDS && package.name != MADE_OF_WORLDS
        }
        Rule::Only(allowed) => !allowed.contains(&edge.name.as_str()),
        Rule::Not(denied) => denied.contains(&edge.name.as_str()),
    });
    let manifest = &package.manifest_path;
    let manifest = manifest.strip_prefix(&format!("{}/", root().display())).unwrap_or(manifest);
    wrong
        .map(|edge| Finding {
            file: manifest.into(),
            line: 0,
            text: format!("`{}` must not know `{}`", package.name, edge.name),
        })
        .collect()
}

/// The packages of a manifest's own workspace.
fn members(manifest: &str) -> Outcome<Vec<Package>> {
    let mut cargo = cargo();
    cargo.args(["metadata", "--quiet", "--format-version=1", "--no-deps"]);
    let json = output(cargo.args(["--manifest-path", manifest]))?;
    let metadata: Metadata =
        serde_json::from_str(&json).map_err(|error| format!("cargo metadata: {error}"))?;
    Ok(metadata.packages)
}
