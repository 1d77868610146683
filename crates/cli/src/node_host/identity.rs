//! Who this node is: 16 random bytes kept in the data folder, one set per process that runs from
//! it.

use std::fs::{self, File, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::Path;
use std::process::Command;

use shoal_protocol::Identity;

use crate::fail::Fail;

/// Nodes that may run from one data folder at a time.
const MAX_NODES_PER_FOLDER: usize = 64;

/// An identity and the lock that keeps another process from taking it too.
pub(crate) struct Kept {
    pub(crate) identity: Identity,
    /// 1 for the first node of this folder, 2 for one that runs beside it, …
    pub(crate) number: usize,
    _lock: File,
}

/// Takes the first identity of the folder that no other process uses, making it if need be.
pub(crate) fn take(data: &Path) -> Result<Kept, Fail> {
    fs::create_dir_all(data).map_err(|error| cannot(data, &error))?;
    for number in 1..=MAX_NODES_PER_FOLDER {
        let name = if number == 1 { "identity".into() } else { format!("identity-{number}") };
        let path = data.join(name);
        let mut file = open(&path).map_err(|error| cannot(&path, &error))?;
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => continue,
            // A file system without locks: better two nodes with one name than none.
            Ok(()) | Err(TryLockError::Error(_)) => {}
        }
        let identity = read_or_make(&mut file).map_err(|error| cannot(&path, &error))?;
        return Ok(Kept { identity, number, _lock: file });
    }
    Err(Fail::world(
        "too_many_nodes",
        format!("{MAX_NODES_PER_FOLDER} nodes run from {} already", data.display()),
    ))
}

fn open(path: &Path) -> std::io::Result<File> {
    let mut options = File::options();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

fn read_or_make(file: &mut File) -> std::io::Result<Identity> {
    let mut text = String::new();
    // Anything but 32 hex digits, such as a write cut short by a crash, is made anew.
    if file.read_to_string(&mut text).is_ok()
        && let Some(identity) = parse(text.trim())
    {
        return Ok(identity);
    }
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(std::io::Error::other)?;
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    file.set_len(0)?;
    file.rewind()?;
    file.write_all(hex.as_bytes())?;
    Ok(Identity(bytes))
}

fn parse(hex: &str) -> Option<Identity> {
    let bytes: Option<Vec<u8>> = (0..hex.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(hex.get(at..at + 2)?, 16).ok())
        .collect();
    bytes?.try_into().ok().map(Identity)
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
        assert_ne!(first.identity, beside.identity);
        assert_eq!((first.number, beside.number), (1, 2));
        let was = first.identity;
        drop(first);
        assert_eq!(take(&data).expect("an identity").identity, was);
        fs::remove_dir_all(&data).expect("removed");
    }
}
