//! Who this node is: a key kept in the data folder, one for each process that runs from it. No pool sees
//! that key: each sees one made of it and the pool's address, so that what a node earned in one pool cannot
//! be claimed by another pool that passes on its challenges.

use std::fs::{self, File, TryLockError};
use std::path::Path;
use std::process::Command;

use shoal_protocol::{Identity, PublicKey};

use super::pools;
use crate::fail::Fail;
use crate::keys::{self, Key, Old};

/// Nodes that may run from one data folder at a time.
const MAX_NODES_PER_FOLDER: usize = 64;

/// A key and the lock that keeps another process from taking it too.
pub(crate) struct HeldKey {
    pub(crate) key: Key,
    /// 1 for the first node of this folder, 2 for one that runs beside it, …
    pub(crate) number: usize,
    _lock: File,
}

impl HeldKey {
    pub(crate) fn identity(&self) -> Identity {
        let PublicKey(bytes) = self.key.public();
        Identity(bytes)
    }

    /// Where this node keeps blobs of this pool: of no other one, whose operator could ask for them.
    pub(crate) fn shelf(&self) -> String {
        let Identity([a, b, c, d, ..]) = self.identity();
        format!("shelf-{}-{a:02x}{b:02x}{c:02x}{d:02x}", self.number)
    }
}

/// Takes the first identity of the folder that no other process uses, making it if need be: as the pool at
/// `base` knows it.
pub(crate) fn take(data: &Path, base: &str) -> Result<HeldKey, Fail> {
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
        return Ok(HeldKey { key: key.within(base), number, _lock: file });
    }
    Err(Fail::world(
        "too_many_nodes",
        format!("{MAX_NODES_PER_FOLDER} nodes run from {} already", data.display()),
    ))
}

/// The nodes that ever ran from this folder, as the pools they joined know them.
pub fn known(data: &Path) -> Vec<PublicKey> {
    let key = |number| keys::look(&data.join(file_name(number)));
    let own: Vec<Key> = (1..=MAX_NODES_PER_FOLDER).map_while(key).collect();
    let bases = pools::bases(data);
    bases.iter().flat_map(|base| own.iter().map(|key| key.within(base).public())).collect()
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
        let (here, there) = ("https://one.example", "https://two.example");
        let take = |base| take(&data, base).expect("an identity");
        let first = take(here);
        let beside = take(here);
        assert_ne!(first.identity(), beside.identity());
        assert_eq!((first.number, beside.number), (1, 2));
        let was = first.identity();
        drop(first);
        let elsewhere = take(there);
        assert_ne!(elsewhere.identity(), was, "another pool sees somebody else");
        assert_eq!(elsewhere.number, 1);
        let other = elsewhere.key.public();
        drop(elsewhere);
        assert_eq!(take(here).identity(), was);
        assert_eq!(known(&data), [], "it joined none yet");
        pools::check(&data, there, &PublicKey([1; 32])).expect("seen first");
        assert_eq!(known(&data), [other, beside_at(&data, there)]);
        fs::write(data.join("identity"), "0123456789abcdef0123456789abcdef").expect("an older one");
        assert_ne!(take(here).identity(), was, "replaced by a key");
        fs::write(data.join("identity"), "notes").expect("something else");
        assert!(super::take(&data, here).is_err());
        fs::remove_dir_all(&data).expect("removed");
    }

    fn beside_at(data: &Path, base: &str) -> PublicKey {
        keys::look(&data.join(file_name(2))).expect("a key").within(base).public()
    }
}
