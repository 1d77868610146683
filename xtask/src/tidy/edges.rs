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

const RULES: [(&str, Rule); 8] = [
    ("shoal-protocol", Rule::Only(&["serde", "postcard"])),
    ("shoal-scheduler", Rule::Only(&["shoal-protocol", "serde"])),
    ("shoal-node", Rule::Only(&["shoal-protocol"])),
    ("shoal-sim", Rule::Only(&["shoal-protocol", "shoal-scheduler", "shoal-node"])),
    (
        "shoal-engine",
        Rule::Not(&[
            "shoal-scheduler",
            "shoal-node",
            "shoal-coordinator",
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
            "shoal",
            "wgpu",
            "naga",
            "wasmtime",
            "wasmparser",
        ]),
    ),
    ("shoal", Rule::Not(&["shoal-browser", "shoal-sim"])),
    (
        "shoal-browser",
        Rule::Not(&[
            "shoal-scheduler",
            "shoal-coordinator",
            "shoal",
            "tokio",
            "axum",
            "reqwest",
            "naga",
        ]),
    ),
];

/// Crates that never come in, by whatever way: two TLS back ends in one binary, and builds that need
/// what a fresh machine lacks.
const NOWHERE: [&str; 3] = ["ring", "openssl-sys", "native-tls"];

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
    let mut packages = metadata("Cargo.toml", true)?;
    packages.extend(metadata("crates/browser/Cargo.toml", true)?);
    let mut findings: Vec<Finding> = packages.iter().flat_map(broken).collect();
    for lock in ["Cargo.toml", "crates/browser/Cargo.toml"] {
        let all = metadata(lock, false)?;
        let banned = all.iter().filter(|package| NOWHERE.contains(&package.name.as_str()));
        findings.extend(banned.map(|package| Finding {
            file: lock.into(),
            line: 0,
            text: format!("`{}` came in: `cargo tree --invert {0}` shows how", package.name),
        }));
    }
    Ok(findings)
}

fn broken(package: &Package) -> Vec<Finding> {
    let Some((_, rule)) = RULES.iter().find(|(name, _)| *name == package.name) else {
        return Vec::new();
    };
    let named = package.dependencies.iter().filter(|edge| edge.kind.as_deref() != Some("dev"));
    let wrong = named.filter(|edge| match rule {
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

/// The packages behind a manifest: only its workspace's own, or all that its build takes in.
fn metadata(manifest: &str, own_only: bool) -> Outcome<Vec<Package>> {
    if !root().join(manifest).exists() {
        return Err(format!("{manifest} is missing"));
    }
    let mut cargo = cargo();
    cargo.args(["metadata", "--quiet", "--format-version=1", "--manifest-path", manifest]);
    if own_only {
        cargo.arg("--no-deps");
    }
    let json = output(&mut cargo)?;
    let metadata: Metadata =
        serde_json::from_str(&json).map_err(|error| format!("cargo metadata: {error}"))?;
    Ok(metadata.packages)
}
