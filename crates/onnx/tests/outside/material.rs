//! Where the material lies.

use std::path::{Path, PathBuf};

/// The folder, or `None` if there is none and none is required.
pub(crate) fn folder() -> Option<PathBuf> {
    let folder = std::env::var_os("SHOAL_OUTSIDE").map(PathBuf::from).filter(|it| it.is_dir());
    let is_required = std::env::var("SHOAL_REQUIRE_ALL").is_ok_and(|it| it == "1");
    assert!(
        folder.is_some() || !is_required,
        "SHOAL_REQUIRE_ALL=1, but SHOAL_OUTSIDE names no folder"
    );
    folder
}

pub(crate) fn read(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
