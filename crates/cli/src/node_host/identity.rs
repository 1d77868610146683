//! Who this node is: a key kept in the data folder, one for each process that runs from it.

use std::fs::{self, File, TryLockError};
use std::path::Path;
use std::process::Command;

use shoal_protocol::{Identity, PublicKey};

use crate::fail::Fail;
use crate::keys::{self, Key, Old};

/// Nodes that may run from one data folder at a time.
const MAX_NODES_PER_FOLDER: usize = 64;

/// A key and the lock that keeps another process from taking it too.
pub(crate) struct Kept {
    pub(crate) key: Key,
    /// 1 for the first node of this folder, 2 for one that runs beside it, …
    pub(crate) number: usize,
    _lock: File,
}

impl Kept {
    pub(crate) fn identity(&self) -> Identity {
        let PublicKey(bytes) = self.key.public();
        Identity(bytes)
    }
}

/// Takes the first identity of the folder that no other process uses, making it if need be.
pub(crate) fn take(data: &Path) -> Result<Kept, Fail> {
    fs::create_dir_all(data).map_err(|error| cannot(data, &error))?;
    for number in 1..=MAX_NODES_PER_FOLDER {
        let path = data.join(file_name(number));
        let mut file = keys::open(&path).map_err(|error| cannot(&path, &error))?;
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => continue,
            // A file system without locks: better two nodes with one name than none.
            Ok(()) | Err(TryLockError::Error(_)) => {}
        }
        let key = keys::read_or_make(&path, &mut file, Old::Replaced)?;
        return Ok(Kept { key, number, _lock: file });
    }
    Err(Fail::world(
        "too_many_nodes",
        format!("{MAX_NODES_PER_FOLDER} nodes run from {} already", data.display()),
    ))
}

/// The nodes that ever ran from this folder, as others know them.
pub(crate) fn known(data: &Path) -> Vec<PublicKey> {
    let key = |number| keys::look(&data.join(file_name(number)));
    (1..=MAX_NODES_PER_FOLDER).map_while(key).collect()
}

fn file_name(number: usize) -> String {
    if number == 1 { "identity".into() } else { format!("identity-{number}") }
}

fn cannot(path: &Path, error: &std::io::Error) -> Fail {
    Fail::world(
        "data_folder",
        format!("cannot use {}: {}", path.display(), crate::fail::plain(error)),
    )
}

/// What people call this machine.
pub(crate) fn host_name() -> String {
    let from_file = || fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let from_command = || String::from_utf8(Command::new("hostname").output().ok()?.stdout).ok();
    let name = from_file().or_else(from_command).unwrap_or_default();
    let name = name.trim();
    if name.is_empty() { "a machine without a name".into() } else { name.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_is_kept_and_never_shared() {
        let data = std::env::temp_dir().join(format!("shoal-identity-{}", std::process::id()));
        let first = take(&data).expect("an identity");
        let beside = take(&data).expect("another identity");
        assert_ne!(first.identity(), beside.identity());
        assert_eq!((first.number, beside.number), (1, 2));
        let was = first.identity();
        drop(first);
        assert_eq!(take(&data).expect("an identity").identity(), was);
        fs::remove_dir_all(&data).expect("removed");
    }
}
