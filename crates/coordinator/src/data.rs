//! The data folder: who may use it and where things are in it.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::options::OpenError;

/// Blobs, by the first two digits of their hashes.
pub(crate) const BLOBS: &str = "blobs";
/// A log for each job.
pub(crate) const RESULTS: &str = "results";

/// The folder, held by an exclusive lock for as long as this lives; the system drops the lock when the
/// process dies, however it dies.
pub(crate) struct DataFolder {
    root: PathBuf,
    _lock: File,
}

impl DataFolder {
    pub(crate) fn open(root: &Path) -> Result<DataFolder, OpenError> {
        make_private_dir(root).map_err(|error| OpenError::file(root, error))?;
        let path = root.join("lock");
        let lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .map_err(|error| OpenError::file(&path, error))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(OpenError::Locked { path: root.into() }),
            Err(TryLockError::Error(error)) => return Err(OpenError::file(&path, error)),
        }
        let folder = DataFolder { root: root.into(), _lock: lock };
        for dir in [folder.blobs(), folder.kept(), folder.results()] {
            fs::create_dir_all(&dir).map_err(|error| OpenError::file(dir, error))?;
        }
        Ok(folder)
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.root.join("shoal.db")
    }

    pub(crate) fn blobs(&self) -> PathBuf {
        self.root.join(BLOBS)
    }

    /// Checkpoints of simulations.
    pub(crate) fn kept(&self) -> PathBuf {
        self.root.join("kept")
    }

    pub(crate) fn results(&self) -> PathBuf {
        self.root.join(RESULTS)
    }

    /// Space kept back so that facts can still be written when the disk is full.
    pub(crate) fn ballast(&self) -> PathBuf {
        self.root.join("ballast")
    }

    pub(crate) fn key(&self) -> PathBuf {
        self.root.join("key")
    }

    pub(crate) fn token(&self) -> PathBuf {
        self.root.join("token")
    }

    /// The secret half of the key that receipts are signed with.
    pub(crate) fn signing_key(&self) -> PathBuf {
        self.root.join("coordinator.key")
    }

    pub(crate) fn certificate(&self) -> PathBuf {
        self.root.join("cert.pem")
    }

    pub(crate) fn certificate_key(&self) -> PathBuf {
        self.root.join("cert.key")
    }

    /// Tells clients on this machine where the coordinator is.
    pub(crate) fn running(&self) -> PathBuf {
        self.root.join("running.json")
    }
}

/// Writes a file that only its owner may read: all of it or, after a crash, none of it.
pub(crate) fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let draft = path.with_extension("new");
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(&draft)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&draft, path)
}

fn make_private_dir(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)?;
    close_to_others(path)
}

/// A folder that was there before may be open to others. One of another owner is theirs to close, and one
/// that is meant to be shared, like `/tmp`, stays so.
#[cfg(unix)]
fn close_to_others(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let mut permissions = fs::metadata(path)?.permissions();
    let (is_closed, is_shared) =
        (permissions.mode() & 0o077 == 0, permissions.mode() & 0o1000 != 0);
    if is_closed || is_shared {
        return Ok(());
    }
    permissions.set_mode(0o700);
    match fs::set_permissions(path, permissions) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            tracing::warn!(
                "others may look into {}: only its owner can change that",
                path.display()
            );
            Ok(())
        }
        changed => changed,
    }
}

#[cfg(not(unix))]
fn close_to_others(_path: &Path) -> io::Result<()> {
    Ok(())
}
