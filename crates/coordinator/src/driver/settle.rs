//! The end of a batch: its facts are made durable, however long that takes, and only then anybody knows.

use std::thread;
use std::time::{Duration, Instant};

use super::{Driver, SWEEP};
use crate::faults::{Fault, Point};
use crate::options::RunError;
use crate::store::facts::StoreError;

/// How long to wait before facts that could not be written are tried again.
const RETRY: Duration = Duration::from_millis(200);

/// How making a batch durable ended.
enum Committed {
    Durable,
    /// The coordinator must stop before it could be written.
    GivenUp,
}

impl Driver {
    /// Makes the batch durable, then lets everybody know.
    pub(super) fn settle(&mut self) -> Result<(), RunError> {
        let durable = !self.batch.is_empty();
        if durable {
            match self.commit()? {
                Committed::Durable => self.batch.clear(),
                // Nobody may hear of what is not durable.
                Committed::GivenUp => {
                    self.stopping = true;
                    return Ok(());
                }
            }
        }
        self.outbox.flush();
        self.known.count_again(&self.scheduler);
        if self.known.turn() {
            self.changed.send_replace(self.known.version());
        }
        self.perform();
        self.answer_queries();
        if durable {
            self.faults.at(Point::Told);
        }
        Ok(())
    }

    fn commit(&mut self) -> Result<Committed, RunError> {
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
                    if !self.ballast.release() {
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
        self.health.set_stuck(None);
        self.faults.at(Point::Written);
        let took = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.counts.commit_micros = self.counts.commit_micros.saturating_add(took);
        Ok(Committed::Durable)
    }

    pub(super) fn keep_house(&mut self) {
        let now = Instant::now();
        if self.ballast.retry_at().is_some_and(|at| at <= now) {
            self.ballast.restore();
            self.take_up();
        }
        if self.sweep_at > now {
            return;
        }
        self.sweep_at = now + SWEEP;
        let scheduler = &self.scheduler;
        self.begun.retain(|attempt, _| scheduler.lease(*attempt).is_some());
        let settled = &mut self.batch.settled;
        self.stored.retain(|attempt, _| {
            let live = scheduler.lease(*attempt).is_some();
            if !live {
                settled.push(*attempt);
            }
            live
        });
    }
}
