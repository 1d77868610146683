//! Running other programs, and where things are.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What went wrong is for a person to read, so it is text.
pub(crate) type Outcome<T = ()> = Result<T, String>;

/// The repository. Asked for at run time first: a kept target folder may hold a binary of another clone.
pub(crate) fn root() -> PathBuf {
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    manifest.parent().map(Path::to_path_buf).unwrap_or(manifest)
}

/// Where cargo puts what it builds.
pub(crate) fn target() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(dir) => root().join(dir),
        None => root().join("target"),
    }
}

/// The release binary, built by [`build_shoal`].
pub(crate) fn shoal() -> PathBuf {
    target().join("release").join(format!("shoal{}", std::env::consts::EXE_SUFFIX))
}

/// Whom a build is for. Both are built into the same places, so the last one counts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum For {
    Users,
    /// With the example kind of CONTRIBUTING.md.
    Tests,
}

impl For {
    /// What cargo is told when it builds the shells.
    pub(crate) fn features(self) -> &'static [&'static str] {
        match self {
            For::Users => &[],
            For::Tests => &["--features", "shoal/count"],
        }
    }
}

pub(crate) fn build_shoal(whom: For) -> Outcome {
    run(cargo().args(["build", "--release", "--package", "shoal"]).args(whom.features()))
}

/// A command that runs in the repository.
pub(crate) fn command(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(program);
    command.current_dir(root());
    command
}

/// Cargo, free of what an outer `cargo run` said about its own package.
pub(crate) fn cargo() -> Command {
    let mut cargo = command(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    for (key, _) in std::env::vars_os() {
        let name = key.to_string_lossy();
        if name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") {
            cargo.env_remove(&key);
        }
    }
    cargo
}

/// Runs to the end with this process's own input and output; anything but success is an error that
/// names the command.
pub(crate) fn run(command: &mut Command) -> Outcome {
    let status = command.status().map_err(|error| not_started(command, &error))?;
    if status.success() { Ok(()) } else { Err(format!("`{}` ended with {status}", shown(command))) }
}

/// Runs to the end and gives back what it printed on stdout.
pub(crate) fn output(command: &mut Command) -> Outcome<String> {
    let out =
        command.stderr(Stdio::inherit()).output().map_err(|error| not_started(command, &error))?;
    if !out.status.success() {
        return Err(format!("`{}` ended with {}", shown(command), out.status));
    }
    Ok(String::from_utf8_lossy(&out.stdout).into_owned())
}

pub(crate) fn not_started(command: &Command, error: &std::io::Error) -> String {
    format!("`{}` could not start: {error}", shown(command))
}

/// The command as one would type it.
pub(crate) fn shown(command: &Command) -> String {
    let mut text = command.get_program().to_string_lossy().into_owned();
    for arg in command.get_args() {
        text.push(' ');
        text.push_str(&arg.to_string_lossy());
    }
    text
}

/// Where a program is in `PATH`.
pub(crate) fn which(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|dir| dir.join(program)).find(|file| file.is_file())
}

pub(crate) fn read(path: &Path) -> Outcome<String> {
    std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

pub(crate) fn write(path: &Path, bytes: impl AsRef<[u8]>) -> Outcome {
    if let Some(parent) = path.parent() {
        make_dir(parent)?;
    }
    std::fs::write(path, bytes).map_err(|error| format!("{}: {error}", path.display()))
}

pub(crate) fn make_dir(path: &Path) -> Outcome {
    std::fs::create_dir_all(path).map_err(|error| format!("{}: {error}", path.display()))
}
