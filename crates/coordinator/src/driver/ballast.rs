//! A few megabytes kept back on the disk. When facts no longer fit, they are given up, so that what was
//! promised can still be written; nothing new is taken in until they could be kept back again.

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::health::Health;

/// Room for minutes of facts of a busy coordinator and for SQLite's own files.
const BALLAST_BYTES: usize = 4 << 20;
/// Room there must be beside it before the disk counts as free again: else the next result would fill it.
const SPARE_BYTES: usize = 4 << 20;
/// How often to look whether there is room again.
const RETRY: Duration = Duration::from_secs(1);

pub(crate) struct Ballast {
    path: PathBuf,
    /// Shared with whoever takes things in.
    health: Arc<Health>,
    retry_at: Option<Instant>,
}

impl Ballast {
    pub(crate) fn keep(path: PathBuf, health: Arc<Health>) -> Ballast {
        let mut ballast = Ballast { path, health, retry_at: None };
        ballast.restore();
        ballast
    }

    /// Gives the room up; `false` if it was given up before.
    pub(crate) fn release(&mut self) -> bool {
        self.health.set_full(true);
        self.retry_at = Some(Instant::now() + RETRY);
        fs::remove_file(&self.path).is_ok()
    }

    pub(crate) fn retry_at(&self) -> Option<Instant> {
        self.retry_at
    }

    pub(crate) fn is_full(&self) -> bool {
        self.health.is_full()
    }

    /// Takes the room back, if there is some.
    pub(crate) fn restore(&mut self) {
        let kept = match fs::metadata(&self.path) {
            Ok(meta) if meta.len() == BALLAST_BYTES as u64 => Ok(()),
            _ => self.write(),
        };
        if kept.is_err() {
            let _ = fs::remove_file(&self.path);
        }
        self.health.set_full(kept.is_err());
        self.retry_at = kept.is_err().then(|| Instant::now() + RETRY);
    }

    fn write(&self) -> io::Result<()> {
        let mut file = fs::File::create(&self.path)?;
        // Not zeros: some file systems keep those without taking room.
        file.write_all(&vec![0xA5; BALLAST_BYTES + SPARE_BYTES])?;
        file.set_len(BALLAST_BYTES as u64)?;
        file.sync_data()
    }
}
