//! Conformance material that others published: fetched when tests need it, kept, never committed.

use std::path::PathBuf;

use crate::shell::{Outcome, target};

/// Where the material lies, one folder per package.
pub(crate) fn folder() -> PathBuf {
    target().join("outside")
}

pub(crate) fn fetch() -> Outcome {
    Ok(())
}
