//! A job's folder on this machine's disk: which file is where. Its files are read when a program reads them.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::files::{Errno, Shared};

/// Files of it that a run keeps open: programs read one or two at a time.
const KEPT_OPEN: usize = 8;

/// The files that all runs of a job find in `/data`. The shell lays them out and removes them later.
pub struct Folder {
    shared: Arc<Shared>,
    root: PathBuf,
    names: Vec<String>,
}

impl Folder {
    /// Of files below `root`, by name (with `/` between folders) and size.
    pub fn new(root: &Path, files: Vec<(String, u64)>) -> Folder {
        let shared = Shared::new(files.iter().map(|(name, size)| (name.as_str(), *size)));
        let names = files.into_iter().map(|(name, _)| name).collect();
        Folder { shared: Arc::new(shared), root: root.to_owned(), names }
    }

    pub(super) fn shared(&self) -> Arc<Shared> {
        self.shared.clone()
    }
}

/// The folder as one run has it.
pub(super) struct Opened {
    folder: Arc<Folder>,
    /// Those read last, the last one behind.
    files: Vec<(u32, File)>,
}

impl Opened {
    pub(super) fn new(folder: Arc<Folder>) -> Opened {
        Opened { folder, files: Vec::new() }
    }

    pub(super) fn read(&mut self, file: u32, from: u64, into: &mut [u8]) -> Result<(), Errno> {
        let open = match self.files.iter().position(|(known, _)| *known == file) {
            Some(at) => self.files.remove(at).1,
            None => {
                let name = self.folder.names.get(file as usize).ok_or(Errno::IO)?;
                File::open(self.folder.root.join(name)).map_err(|_| Errno::IO)?
            }
        };
        let read = (&open).seek(SeekFrom::Start(from)).and_then(|_| (&open).read_exact(into));
        if self.files.len() == KEPT_OPEN {
            self.files.remove(0);
        }
        self.files.push((file, open));
        read.map_err(|_| Errno::IO)
    }
}
