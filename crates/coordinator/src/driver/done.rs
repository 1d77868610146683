//! A node's `Done`: its inline bytes are written, those sent before are found, and the scheduler is told.

use shoal_kinds::Form;
use shoal_kinds::form::Runs;
use shoal_protocol::{Attempt, Failure, Finished, FromNode, Hash, JobId, Span, Time, UnitOutput};
use shoal_scheduler::{Arrived, Conn, Failed, Input, Place};

use super::Driver;
use crate::store::place::is_full;

/// Inline results of one job in one message, written at once.
struct Gathered {
    job: JobId,
    bytes: Vec<u8>,
    /// Positions of their entries in the list for the scheduler.
    entries: std::ops::Range<usize>,
}

impl Driver {
    pub(super) fn done(&mut self, now: Time, conn: Conn, finished: Vec<Finished>) {
        let mut results = Vec::with_capacity(finished.len());
        let mut failed = Vec::new();
        let mut gathered: Option<Gathered> = None;
        for Finished { attempt, took, output } in finished {
            let place = match self.place(conn, attempt, output, results.len(), &mut gathered) {
                Ok(place) => place,
                Err(Unplaced::Next(bytes, job, of_it)) => {
                    self.write(conn, gathered.take(), &mut results, &mut failed);
                    let entries = results.len()..results.len();
                    let mut next = Gathered { job, bytes: Vec::new(), entries };
                    let place = next.add(&bytes, of_it);
                    gathered = Some(next);
                    place
                }
                Err(Unplaced::Wrong(message)) => {
                    failed.push((attempt, message));
                    continue;
                }
                Err(Unplaced::Full) => {
                    self.put_off(conn, attempt);
                    continue;
                }
            };
            results.push(Arrived { attempt, took, place });
        }
        self.write(conn, gathered, &mut results, &mut failed);
        self.counts.units_failed += failed.len() as u64;
        if !results.is_empty() {
            self.handle(now, Input::Done { conn, results });
        }
        for (attempt, message) in failed {
            let failure = Failure::Internal { message };
            let message = FromNode::Failed { attempt, failure };
            self.handle(now, Input::Said { conn, message });
        }
    }

    /// Where a result is or will be; for gathered ones the offset still counts from the gathering.
    fn place(
        &mut self,
        conn: Conn,
        attempt: Attempt,
        output: UnitOutput,
        entry: usize,
        gathered: &mut Option<Gathered>,
    ) -> Result<Option<Place>, Unplaced> {
        // The scheduler ignores answers of attempts that are not lent to who gives them, so their bytes
        // are not kept.
        if self.scheduler.holder(attempt) != Some(conn) {
            return Ok(None);
        }
        let Some((job, span)) = self.scheduler.lease(attempt) else { return Ok(None) };
        let Some(spec) = self.scheduler.spec(job) else { return Ok(None) };
        match output {
            UnitOutput::Inline(bytes) => {
                if let Some(fault) = spec.work.form().shape(span, &spec.limits).fault(&bytes) {
                    return Err(Unplaced::Wrong(fault));
                }
                if bytes.is_empty() {
                    return Ok(None);
                }
                // What room there is now is for facts.
                if self.room.is_full() {
                    return Err(Unplaced::Full);
                }
                let failed = failed_in(&spec.work.form(), span, &bytes, bytes.len() as u64);
                match gathered {
                    Some(gathered) if gathered.job == job && gathered.entries.end == entry => {
                        Ok(gathered.add(&bytes, failed))
                    }
                    _ => Err(Unplaced::Next(bytes, job, failed)),
                }
            }
            UnitOutput::Stored { hash, size } => {
                match self.results.take(attempt, &mut self.journal) {
                    Some(place) if place.hash == hash && place.size == size => {
                        let head = spec.work.form().head_bytes(span);
                        let lengths = self.results.read(job, place.offset, head);
                        let lengths = lengths.map_err(|error| {
                            Unplaced::Wrong(format!("the result stored cannot be read: {error}"))
                        })?;
                        let failed = failed_in(&spec.work.form(), span, &lengths, size);
                        Ok(Some(Place { failed, ..place }))
                    }
                    Some(_) => {
                        Err(Unplaced::Wrong("the result stored is not the one announced".into()))
                    }
                    None => Err(Unplaced::Wrong("the result announced was not stored".into())),
                }
            }
        }
    }

    /// Writes what stands in the place of items that nobody could compute.
    pub(super) fn write_instead(&mut self, job: JobId, span: Span, bytes: &[u8]) -> Option<Place> {
        let spec = self.scheduler.spec(job).filter(|_| !self.room.is_full())?;
        let size = bytes.len() as u64;
        let failed = failed_in(&spec.work.form(), span, bytes, size);
        let written = self.results.write(job, bytes);
        let written = written.inspect_err(|error| {
            tracing::error!(%job, "the coordinator could not keep that {span} failed: {error}");
        });
        let hash = Hash(*blake3::hash(bytes).as_bytes());
        Some(Place { offset: written.ok()?, size, hash, failed })
    }

    fn write(
        &mut self,
        conn: Conn,
        gathered: Option<Gathered>,
        results: &mut Vec<Arrived>,
        failed: &mut Vec<(Attempt, String)>,
    ) {
        let Some(Gathered { job, bytes, entries }) = gathered else { return };
        match self.results.write(job, &bytes) {
            Ok(start) => {
                for result in &mut results[entries] {
                    if let Some(place) = &mut result.place {
                        place.offset += start;
                    }
                }
            }
            Err(error) if is_full(&error) => {
                for lost in results.drain(entries) {
                    self.put_off(conn, lost.attempt);
                }
            }
            Err(error) => {
                let message = format!("the coordinator could not keep the result: {error}");
                tracing::error!(%job, "{message}");
                let lost = results.drain(entries);
                failed.extend(lost.map(|result| (result.attempt, message.clone())));
            }
        }
    }
}

enum Unplaced {
    /// Does not follow what is gathered: begin anew with it.
    Next(Vec<u8>, JobId, Failed),
    Wrong(String),
    /// There is no room for it now.
    Full,
}

/// Items that failed by themselves or left more than their answers, by the lengths at the start of a result.
fn failed_in(form: &Form<'_>, span: Span, bytes: &[u8], size: u64) -> Failed {
    let head = usize::try_from(form.head_bytes(span)).unwrap_or(0);
    let runs = Runs(bytes.get(..head).unwrap_or_default());
    let items = runs.failed().count() as u32;
    let any = runs.noted().next().is_some();
    let bytes = if any { size.saturating_sub(runs.answers().end) } else { 0 };
    Failed { items, bytes }
}

impl Gathered {
    fn add(&mut self, bytes: &[u8], failed: Failed) -> Option<Place> {
        let offset = self.bytes.len() as u64;
        self.bytes.extend_from_slice(bytes);
        self.entries.end += 1;
        let hash = Hash(*blake3::hash(bytes).as_bytes());
        Some(Place { offset, size: bytes.len() as u64, hash, failed })
    }
}
