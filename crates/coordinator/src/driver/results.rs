//! Results of units: the files they are written to, and those that came by HTTP and wait for their node's `Done`.
//! For these it is said where each may be written, and which one counts.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use shoal_kinds::Shape;
use shoal_protocol::{Attempt, JobId};
use shoal_scheduler::{Conn, Place};

use super::Driver;
use super::event::{ReserveError, Reserved, Writer};
use super::settle::Journal;
use crate::store::facts::Stored;
use crate::store::place::{is_full, read_exact_at, write_all_at};
use crate::store::results::{self, Region, ResultFiles};
use crate::store::send::Extent;

/// Regions one attempt may take. Each transfer has its own, so that one that is still under way cannot
/// change what another stored; without an end a node could make the file grow for ever.
const MAX_REGIONS: usize = 8;
/// How often stored results whose unit is no longer lent are looked for.
const SWEEP: Duration = Duration::from_secs(30);

pub(super) struct Results {
    files: ResultFiles,
    /// Those that came by HTTP and wait for their `Done`. The journal has the same list.
    stored: HashMap<Attempt, Stored>,
    /// Where results began to be written.
    begun: HashMap<Attempt, Vec<Extent>>,
    sweep_at: Instant,
}

impl Results {
    /// With those that were stored before the last stop.
    pub(super) fn new(dir: PathBuf, stored: impl IntoIterator<Item = Stored>) -> Results {
        let stored = stored.into_iter().map(|stored| (stored.attempt, stored)).collect();
        let sweep_at = Instant::now() + SWEEP;
        Results { files: ResultFiles::new(dir), stored, begun: HashMap::new(), sweep_at }
    }

    pub(super) fn dir(&self) -> &Path {
        self.files.dir()
    }

    /// Writes bytes to a job's file; says where they begin.
    pub(super) fn write(&mut self, job: JobId, bytes: &[u8]) -> io::Result<u64> {
        let region = self.files.reserve(job, bytes.len() as u64)?;
        write_all_at(&region.file, bytes, region.offset)?;
        Ok(region.offset)
    }

    /// The first bytes of a result that is there.
    pub(super) fn read(&self, job: JobId, offset: u64, size: u64) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; usize::try_from(size).map_err(io::Error::other)?];
        if size > 0 {
            read_exact_at(&File::open(results::path(self.dir(), job))?, &mut bytes, offset)?;
        }
        Ok(bytes)
    }

    /// A result begins to come: where it may be written.
    fn begin(
        &mut self,
        job: JobId,
        attempt: Attempt,
        size: u64,
        writer: Writer,
    ) -> Result<Region, ReserveError> {
        if self.begun.get(&attempt).is_some_and(|begun| begun.len() >= MAX_REGIONS) {
            return Err(ReserveError::TooOften);
        }
        let region = self.files.reserve(job, size).map_err(ReserveError::Disk)?;
        if writer == Writer::Beside {
            // Regions follow each other, so this never cuts off what others write.
            region.file.set_len(region.offset + size).map_err(ReserveError::Disk)?;
        }
        let part = Extent { offset: region.offset, len: size };
        self.begun.entry(attempt).or_default().push(part);
        Ok(region)
    }

    /// A place that was given to an attempt before.
    fn begun(
        &mut self,
        job: JobId,
        attempt: Attempt,
        part: Extent,
    ) -> Result<Region, ReserveError> {
        if !self.begun.get(&attempt).is_some_and(|begun| begun.contains(&part)) {
            return Err(ReserveError::NotPlaced);
        }
        let file = self.files.file(job).map_err(ReserveError::Disk)?;
        Ok(Region { file, offset: part.offset })
    }

    /// Where an attempt's result is, if it came by HTTP.
    fn stored(&self, attempt: Attempt) -> Option<Place> {
        self.stored.get(&attempt).map(|stored| stored.place)
    }

    /// The first result of an attempt counts.
    fn keep(&mut self, stored: Stored, journal: &mut Journal) {
        self.stored.entry(stored.attempt).or_insert_with(|| {
            journal.stored(stored);
            stored
        });
    }

    /// Its node announced it: from now on it is merged, or of no use.
    pub(super) fn take(&mut self, attempt: Attempt, journal: &mut Journal) -> Option<Place> {
        let stored = self.stored.remove(&attempt)?;
        journal.settled(attempt);
        Some(stored.place)
    }

    /// The job has ended: nothing more is written.
    pub(super) fn close(&mut self, job: JobId) {
        self.files.close(job);
    }

    pub(super) fn remove(&mut self, job: JobId) {
        self.files.remove(job);
    }

    /// When to look again for results that nobody waits for.
    pub(super) fn sweep_at(&self) -> Instant {
        self.sweep_at
    }

    /// Forgets those whose units are no longer lent, if it is time to look for them.
    fn sweep(&mut self, now: Instant, is_lent: impl Fn(Attempt) -> bool, journal: &mut Journal) {
        if self.sweep_at > now {
            return;
        }
        self.sweep_at = now + SWEEP;
        self.begun.retain(|attempt, _| is_lent(*attempt));
        for (attempt, _) in self.stored.extract_if(|attempt, _| !is_lent(*attempt)) {
            journal.settled(attempt);
        }
    }
}

impl Driver {
    pub(super) fn reserve(
        &mut self,
        conn: Conn,
        job: JobId,
        attempt: Attempt,
        size: u64,
        writer: Writer,
    ) -> Result<Reserved, ReserveError> {
        let runs = self.expected(conn, job, attempt, size)?;
        if self.room.is_full() {
            self.put_off(conn, attempt);
            return Err(ReserveError::Full);
        }
        match self.results.begin(job, attempt, size, writer) {
            Ok(region) => Ok(Reserved { region, runs }),
            Err(ReserveError::Disk(error)) if is_full(&error) => {
                self.put_off(conn, attempt);
                Err(ReserveError::Full)
            }
            Err(error) => Err(error),
        }
    }

    /// A result was written by its node: where that is, if it was to be there.
    pub(super) fn placed(
        &mut self,
        conn: Conn,
        job: JobId,
        attempt: Attempt,
        part: Extent,
    ) -> Result<Reserved, ReserveError> {
        let runs = self.expected(conn, job, attempt, part.len)?;
        let region = self.results.begun(job, attempt, part)?;
        Ok(Reserved { region, runs })
    }

    /// Whether a result of that size is waited for; for exec, of how many runs, and most bytes that one may leave.
    fn expected(
        &self,
        conn: Conn,
        job: JobId,
        attempt: Attempt,
        size: u64,
    ) -> Result<Option<(u64, u64)>, ReserveError> {
        let lease = self.scheduler.lease(attempt).filter(|(lent, _)| *lent == job);
        let (_, span) = lease.ok_or(ReserveError::NotLent)?;
        let spec = self.scheduler.spec(job).ok_or(ReserveError::NotLent)?;
        if self.scheduler.holder(attempt) != Some(conn) {
            return Err(ReserveError::NotHolder);
        }
        if let Some(place) = self.results.stored(attempt) {
            return Err(ReserveError::Stored(place));
        }
        match spec.work.form().shape(span, &spec.limits) {
            Shape::Exact(expected) if size != expected => Err(ReserveError::Size { expected }),
            Shape::Runs { most, .. } if size > most => Err(ReserveError::TooLarge { most }),
            Shape::Exact(_) => Ok(None),
            Shape::Runs { runs, output, .. } => Ok(Some((runs, output))),
        }
    }

    /// A result is stored; one that nobody waits for any more is not kept.
    pub(super) fn keep(&mut self, stored: Stored) {
        if self.scheduler.lease(stored.attempt).is_some() {
            self.results.keep(stored, &mut self.journal);
        }
    }

    pub(super) fn sweep_results(&mut self) {
        let scheduler = &self.scheduler;
        let is_lent = |attempt| scheduler.lease(attempt).is_some();
        self.results.sweep(Instant::now(), is_lent, &mut self.journal);
    }
}
