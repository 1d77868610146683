//! Results: one file for each job, to which units' bytes are appended in the order they come. Regions
//! are reserved first, so that several units can be written at once.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use shoal_protocol::JobId;

/// Files kept open at a time, well below the usual limit of 1024 for a process.
const MAX_OPEN: usize = 128;

pub(crate) struct ResultFiles {
    dir: PathBuf,
    open: HashMap<JobId, Arc<File>>,
    /// Where the next region of a job begins.
    ends: HashMap<JobId, u64>,
}

/// Part of a results file that belongs to one unit.
#[derive(Clone, Debug)]
pub(crate) struct Region {
    pub(crate) file: Arc<File>,
    pub(crate) offset: u64,
}

impl ResultFiles {
    pub(crate) fn new(dir: PathBuf) -> ResultFiles {
        ResultFiles { dir, open: HashMap::new(), ends: HashMap::new() }
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Room for `size` bytes. What was reserved and never written stays a hole.
    pub(crate) fn reserve(&mut self, job: JobId, size: u64) -> io::Result<Region> {
        let file = self.file(job)?;
        let end = match self.ends.get_mut(&job) {
            Some(end) => end,
            None => self.ends.entry(job).or_insert(file.metadata()?.len()),
        };
        let offset = *end;
        *end += size;
        Ok(Region { file, offset })
    }

    /// The job has ended: nothing more is written.
    pub(crate) fn close(&mut self, job: JobId) {
        self.open.remove(&job);
        self.ends.remove(&job);
    }

    pub(crate) fn remove(&mut self, job: JobId) {
        self.close(job);
        // A job without results has no file; one that stays now goes at the next start.
        let _ = fs::remove_file(path(&self.dir, job));
    }

    /// The file of a job, open.
    pub(crate) fn file(&mut self, job: JobId) -> io::Result<Arc<File>> {
        if let Some(file) = self.open.get(&job) {
            return Ok(file.clone());
        }
        if self.open.len() >= MAX_OPEN {
            self.open.clear();
        }
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let file = Arc::new(options.open(path(&self.dir, job))?);
        self.open.insert(job, file.clone());
        Ok(file)
    }
}

/// Where a job's results are.
pub(crate) fn path(dir: &Path, job: JobId) -> PathBuf {
    dir.join(name(job))
}

/// The name of a job's file.
pub(crate) fn name(job: JobId) -> String {
    format!("{job}.log")
}

/// Removes the files of jobs that no longer exist.
pub(crate) fn sweep(dir: &Path, exists: impl Fn(JobId) -> bool) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        let stem = path.file_stem().and_then(|stem| stem.to_str());
        let job = stem.and_then(|stem| stem.parse().ok()).map(JobId);
        if job.is_some_and(|job| !exists(job)) {
            fs::remove_file(path)?;
        }
    }
    Ok(())
}
