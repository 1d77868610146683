//! The keys in a data folder by their files' names.

use std::path::Path;

use shoal_host::keys::{Key, look};
pub(crate) use shoal_host::keys::{from_file, hash, is_signed, short};
use shoal_protocol::PublicKey;

use crate::fail::{Fail, plain};

/// The submitter's key in the data folder.
const SUBMITTER: &str = "submitter.key";
/// The coordinator's, if one was started from the folder.
const COORDINATOR: &str = "coordinator.key";

/// Whoever submits from this folder.
pub(crate) fn submitter(data: &Path) -> Result<Key, Fail> {
    std::fs::create_dir_all(data).map_err(|error| {
        let message = format!("cannot use {}: {}", data.display(), plain(&error));
        Fail::world("data_folder", message)
    })?;
    Ok(from_file(&data.join(SUBMITTER))?)
}

/// The public half of the key of a coordinator that was started from this folder.
pub(crate) fn coordinator(data: &Path) -> Option<PublicKey> {
    look(&data.join(COORDINATOR)).map(|key| key.public())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_submitter_is_the_same_again() {
        let data = std::env::temp_dir().join(format!("shoal-keys-{}", std::process::id()));
        let first = submitter(&data).expect("a key").public();
        assert_eq!(submitter(&data).expect("a key").public(), first);
        assert_eq!(coordinator(&data), None);
        std::fs::write(data.join(SUBMITTER), "notes").expect("something else");
        assert!(matches!(submitter(&data), Err(Fail::Input { .. })), "it is somebody's");
        std::fs::remove_dir_all(&data).expect("removed");
    }
}
