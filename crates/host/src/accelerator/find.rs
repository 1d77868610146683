//! Which library is loaded: the one the donor names, or one that the system has installed for everybody.

use std::path::{Path, PathBuf};

/// Where only administrators write, so that nobody else can have their code loaded.
const SYSTEM: [&str; 5] = [
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
    "/usr/local/lib",
];
const NAME: &str = "libonnxruntime.so";

/// What the donor says about ONNX Runtime.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Accelerate {
    /// Whatever the system has.
    #[default]
    Found,
    /// This library.
    Library(PathBuf),
    /// Only the built-in engine.
    Never,
}

impl Accelerate {
    /// The library, if there is one.
    pub(super) fn library(&self) -> Option<PathBuf> {
        match self {
            Accelerate::Never => None,
            Accelerate::Library(path) => Some(std::path::absolute(path).unwrap_or(path.clone())),
            Accelerate::Found => {
                let mut known = SYSTEM.iter().map(|folder| Path::new(folder).join(NAME));
                known.find(|path| path.is_file())
            }
        }
    }
}
