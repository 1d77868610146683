//! Results that come by HTTP: where each may be written, and which one counts.

use shoal_protocol::{Attempt, JobId};
use shoal_scheduler::Conn;

use super::Driver;
use super::event::{ReserveError, Reserved};
use crate::store::facts::Stored;
use crate::store::place::is_full;
use crate::store::results::Region;
use shoal_kinds::Shape;

/// Regions one attempt may take. Each transfer has its own, so that one that is still under way cannot
/// change what another stored; without an end a node could make the file grow for ever.
const MAX_REGIONS: u32 = 8;

impl Driver {
    pub(super) fn reserve(
        &mut self,
        conn: Conn,
        job: JobId,
        attempt: Attempt,
        size: u64,
    ) -> Result<Reserved, ReserveError> {
        let lease = self.scheduler.lease(attempt).filter(|(lent, _)| *lent == job);
        let (_, span) = lease.ok_or(ReserveError::NotLent)?;
        let spec = self.scheduler.spec(job).ok_or(ReserveError::NotLent)?;
        if self.scheduler.holder(attempt) != Some(conn) {
            return Err(ReserveError::NotHolder);
        }
        if let Some(stored) = self.stored.get(&attempt) {
            return Err(ReserveError::Stored(stored.place));
        }
        let runs = match spec.work.form().shape(span, &spec.limits) {
            Shape::Exact(expected) if size != expected => {
                return Err(ReserveError::Size { expected });
            }
            Shape::Runs { most, .. } if size > most => return Err(ReserveError::TooLarge { most }),
            Shape::Exact(_) => None,
            Shape::Runs { runs, .. } => Some(runs),
        };
        if self.ballast.is_full() {
            self.put_off(conn, attempt);
            return Err(ReserveError::Full);
        }
        match self.region(job, attempt, size) {
            Ok(region) => Ok(Reserved { region, runs }),
            Err(ReserveError::Disk(error)) if is_full(&error) => {
                self.put_off(conn, attempt);
                Err(ReserveError::Full)
            }
            Err(error) => Err(error),
        }
    }

    /// The first result of an attempt counts; one that nobody waits for any more is not kept.
    pub(super) fn keep(&mut self, stored: Stored) {
        let attempt = stored.attempt;
        if self.scheduler.lease(attempt).is_some() && !self.stored.contains_key(&attempt) {
            self.stored.insert(attempt, stored);
            self.batch.stored.push(stored);
        }
    }

    fn region(&mut self, job: JobId, attempt: Attempt, size: u64) -> Result<Region, ReserveError> {
        let begun = self.begun.get(&attempt).copied().unwrap_or(0);
        if begun >= MAX_REGIONS {
            return Err(ReserveError::TooOften);
        }
        let region = self.results.reserve(job, size).map_err(ReserveError::Disk)?;
        self.begun.insert(attempt, begun + 1);
        Ok(region)
    }
}
