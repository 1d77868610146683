//! What is here of a file, and which file on the web it is part of.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use reqwest::Url;
use serde::{Deserialize, Serialize};

use super::shown;
use crate::fail::{Fail, plain};

/// Digits of the address's hash in the file's name: two addresses never share a part by accident.
const DIGITS: usize = 16;

/// Which file the bytes are of, in its server's words. An address is not enough: what is there may change.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Note {
    /// Goes into `If-Range`: a strong ETag, or else the time of the last change.
    pub(super) validator: Option<String>,
    pub(super) total: Option<u64>,
}

pub(super) struct Part {
    pub(super) path: PathBuf,
    pub(super) note: Note,
    /// Bytes that are here.
    pub(super) have: u64,
    file: File,
    /// Held as long as this is: two commands must not write the same file.
    lock: File,
}

impl Part {
    pub(super) fn open(folder: &Path, name: &str, url: &Url) -> Result<Part, Fail> {
        let cannot = |path: &Path, error: &io::Error| {
            let reason = plain(error);
            Fail::world("cannot_write", format!("cannot write {}: {reason}", path.display()))
        };
        fs::create_dir_all(folder).map_err(|error| cannot(folder, &error))?;
        let key = blake3::hash(url.as_str().as_bytes()).to_hex();
        let path = folder.join(format!("{name}-{}.part", &key[..DIGITS]));
        let open = |path: &Path| {
            let mut options = OpenOptions::new();
            let options = options.read(true).write(true).create(true).truncate(false);
            options.open(path).map_err(|error| cannot(path, &error))
        };
        let lock = open(&path.with_added_extension("lock"))?;
        match lock.try_lock() {
            Err(TryLockError::WouldBlock) => {
                let message = format!("another command is fetching {} already", shown(url));
                return Err(Fail::world("busy", message));
            }
            // Not every file system has locks; without them nobody else is looked for.
            Ok(()) | Err(TryLockError::Error(_)) => {}
        }
        let file = open(&path)?;
        let noted = fs::read(note_of(&path)).ok();
        let note: Option<Note> = noted.and_then(|note| serde_json::from_slice(&note).ok());
        let have = file.metadata().map_err(|error| cannot(&path, &error))?.len();
        let mut part = Part { path, note: Note::default(), have, file, lock };
        match note {
            Some(note) if note.total.is_none_or(|total| have <= total) => part.note = note,
            _ => part.begin(Note::default())?,
        }
        part.file.seek(SeekFrom::End(0)).map_err(|error| cannot(&part.path, &error))?;
        Ok(part)
    }

    /// Drops what is here: another file comes.
    pub(super) fn begin(&mut self, note: Note) -> Result<(), Fail> {
        let began = self.file.set_len(0).and_then(|()| self.file.rewind());
        began.map_err(|error| self.failed(&error))?;
        self.have = 0;
        self.note = note;
        // A note is plain data: writing it cannot fail.
        let text = serde_json::to_vec(&self.note).unwrap_or_default();
        fs::write(note_of(&self.path), text).map_err(|error| self.failed(&error))
    }

    pub(super) fn append(&mut self, bytes: &[u8]) -> Result<(), Fail> {
        self.file.write_all(bytes).map_err(|error| self.failed(&error))?;
        self.have += bytes.len() as u64;
        Ok(())
    }

    pub(super) fn remove(self) {
        let Part { path, file, lock, .. } = self;
        // Closed first: Windows deletes no open file.
        drop((file, lock));
        for path in [note_of(&path), path.with_added_extension("lock"), path] {
            let _ = fs::remove_file(path);
        }
    }

    fn failed(&self, error: &io::Error) -> Fail {
        let full = [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded];
        let code = if full.contains(&error.kind()) { "disk_full" } else { "cannot_write" };
        Fail::world(code, format!("cannot write {}: {}", self.path.display(), plain(error)))
    }
}

fn note_of(path: &Path) -> PathBuf {
    path.with_added_extension("json")
}
