//! The end of a batch: its facts are made durable, however long that takes, and only then anybody knows.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use shoal_kinds::plan::Note;
use shoal_protocol::{Attempt, JobId};
use shoal_scheduler::Fact;

use super::Driver;
use super::keyed::Keyed;
use super::room::Room;
use crate::faults::{Fault, Faults, Point};
use crate::health::Health;
use crate::options::RunError;
use crate::store::facts::{Batch, Facts, StoreError, Stored};

/// How long to wait before facts that could not be written are tried again.
const RETRY: Duration = Duration::from_millis(200);

/// What is durable, and what this batch makes durable.
pub(super) struct Journal {
    facts: Facts,
    batch: Batch,
    /// Told when facts cannot be written.
    health: Arc<Health>,
    faults: Faults,
    /// Time spent on commits.
    micros: u64,
}

/// How making a batch durable ended.
enum Committed {
    Durable,
    /// There was nothing to write.
    Empty,
    /// The coordinator must stop before it could be written.
    GivenUp,
}

impl Journal {
    /// With what the first batch begins with.
    pub(super) fn new(facts: Facts, batch: Batch, health: Arc<Health>, faults: Faults) -> Journal {
        Journal { facts, batch, health, faults, micros: 0 }
    }

    pub(super) fn record(&mut self, fact: Fact) {
        self.batch.facts.push(fact);
    }

    pub(super) fn note(&mut self, job: JobId, note: Note) {
        self.batch.notes.push((job, note));
    }

    /// A job's note is of no use any more.
    pub(super) fn forget_note(&mut self, job: JobId) {
        self.batch.forgotten.push(job);
    }

    pub(super) fn key(&mut self, keyed: Keyed) {
        self.batch.keys.push(keyed);
    }

    /// The job of a key is gone.
    pub(super) fn forget_key(&mut self, name: String) {
        self.batch.unkeyed.push(name);
    }

    pub(super) fn stored(&mut self, stored: Stored) {
        self.batch.stored.push(stored);
    }

    /// A stored result is merged, or of no use any more.
    pub(super) fn settled(&mut self, attempt: Attempt) {
        self.batch.settled.push(attempt);
    }

    pub(super) fn health(&self) -> Arc<Health> {
        Arc::clone(&self.health)
    }

    /// Time spent on commits so far, in microseconds.
    pub(super) fn micros(&self) -> u64 {
        self.micros
    }

    fn commit(&mut self, room: &mut Room) -> Result<Committed, RunError> {
        if self.batch.is_empty() {
            return Ok(Committed::Empty);
        }
        let began = Instant::now();
        loop {
            if self.health.is_given_up() {
                tracing::error!(
                    "stopping without facts that could not be written; nobody was told of them"
                );
                return Ok(Committed::GivenUp);
            }
            let written = match self.faults.at(Point::Decided) {
                Fault::None => self.facts.write(&self.batch),
                Fault::Busy => Err(StoreError::Busy("the database is locked".into())),
            };
            match written {
                Ok(()) => break,
                Err(StoreError::Busy(why)) => {
                    tracing::error!("facts wait until they can be written: {why}");
                    self.health.set_stuck(Some(why));
                    thread::sleep(RETRY);
                }
                Err(StoreError::Full) => {
                    if !room.release() {
                        tracing::error!("the disk is full: facts wait until there is room");
                        thread::sleep(RETRY);
                    }
                }
                Err(StoreError::Broken(message)) => {
                    let path = self.facts.path().into();
                    return Err(RunError::Store { path, message });
                }
            }
        }
        self.batch.clear();
        self.health.set_stuck(None);
        self.faults.at(Point::Written);
        let took = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.micros = self.micros.saturating_add(took);
        Ok(Committed::Durable)
    }

    /// Everybody knows of the batch.
    fn told(&self) {
        self.faults.at(Point::Told);
    }
}

impl Driver {
    /// Makes the batch durable, then lets everybody know.
    pub(super) fn settle(&mut self) -> Result<(), RunError> {
        let durable = match self.journal.commit(&mut self.room)? {
            Committed::Durable => true,
            Committed::Empty => false,
            // Nobody may hear of what is not durable.
            Committed::GivenUp => {
                self.stopping = true;
                return Ok(());
            }
        };
        self.conns.flush();
        self.known.count_again(&self.scheduler);
        self.known.turn();
        self.perform();
        self.answer_queries();
        if durable {
            self.journal.told();
        }
        Ok(())
    }
}
