//! How the driver starts: the facts are read, and what they speak of is looked for.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use shoal_protocol::{JobId, Time};
use shoal_scheduler::{Fact, JobState, JobView, Scheduler};

use super::Driver;
use super::compare::Comparer;
use super::conns::Conns;
use super::crew::Crews;
use super::effect::Later;
use super::event::Counts;
use super::keyed::Keys;
use super::known::Known;
use super::results::Results;
use super::room::Room;
use super::settle::Journal;
use super::waiting::Waiting;
use crate::clock::Clock;
use crate::faults::Faults;
use crate::health::Health;
use crate::options::OpenError;
use crate::store::blobs::Blobs;
use crate::store::compact::compact;
use crate::store::facts::{Batch, Facts, Stored};
use crate::store::results;
use crate::store::verify;

/// Where the driver finds its things.
pub(crate) struct Places {
    pub(crate) database: PathBuf,
    pub(crate) results: PathBuf,
    pub(crate) kept: PathBuf,
    pub(crate) ballast: PathBuf,
    /// Bytes written after this moment are looked at.
    pub(crate) unsure_since: SystemTime,
}

impl Driver {
    /// Reads the facts and looks whether what they speak of is there.
    pub(crate) fn open(
        places: Places,
        blobs: Blobs,
        mut crews: Crews,
        clock: Clock,
        faults: Faults,
    ) -> Result<Driver, OpenError> {
        let mut facts = Facts::open(&places.database)?;
        compact(&mut facts)?;
        let mut known = Known::default();
        let mut batch = Batch::default();
        let mut scheduler = replay(&facts, &mut known, &mut crews, &mut batch)?;
        for (job, note) in facts.notes()? {
            known.note(job, note);
        }
        known.keep_only(|job| scheduler.spec(job).is_some());
        let bad = |error| OpenError::file(&places.results, error);
        results::sweep(&places.results, |job| scheduler.spec(job).is_some()).map_err(bad)?;
        take_back_torn(&mut scheduler, &mut known, &places, clock.now());
        let bad = |error| OpenError::file(&places.kept, error);
        crews.sweep().map_err(bad)?;
        known.count_again(&scheduler);
        known.begin();
        let seed = getrandom::u64().map_err(|error| OpenError::Random(error.to_string()))?;
        let health = Arc::new(Health::default());
        let is_whole =
            |stored: &Stored| verify::is_whole(&places.results, stored.job, &stored.place);
        let (stored, torn): (Vec<_>, Vec<_>) = facts.stored()?.into_iter().partition(is_whole);
        batch.settled.extend(torn.iter().map(|stored| stored.attempt));
        let mut keys = Keys::default();
        for keyed in facts.keys()? {
            // A build that does not know keys leaves those of jobs that it removes.
            let is_there = scheduler.spec(keyed.job).is_some()
                || scheduler.services().iter().any(|service| service.service == keyed.job);
            if is_there {
                keys.keep(keyed);
            } else {
                batch.unkeyed.push(keyed.key.name);
            }
        }
        Ok(Driver {
            clock,
            seed,
            scheduler,
            journal: Journal::new(facts, batch, Arc::clone(&health), faults),
            later: Later::default(),
            results: Results::new(places.results, stored),
            blobs,
            room: Room::keep(places.ballast, health),
            comparer: Comparer::default(),
            conns: Conns::default(),
            crews,
            keys,
            known,
            waiting: Waiting::default(),
            counts: Counts::default(),
            stopping: false,
        })
    }
}

/// The state that all facts make. Checkpoints that are not there any more are undone by facts of this batch.
fn replay(
    facts: &Facts,
    known: &mut Known,
    crews: &mut Crews,
    batch: &mut Batch,
) -> Result<Scheduler, OpenError> {
    let mut log = facts.log();
    let scheduler = Scheduler::replay(log.by_ref().inspect(|fact| {
        known.learn(fact);
        crews.learn(fact);
    }));
    log.end()?;
    let undone: Vec<Fact> = crews.lost().into_iter().map(begin_again).collect();
    if undone.is_empty() {
        return Ok(scheduler);
    }
    undone.iter().for_each(|fact| crews.learn(fact));
    batch.facts.extend(undone.iter().cloned());
    let mut log = facts.log();
    let scheduler = Scheduler::replay(log.by_ref().chain(undone));
    log.end()?;
    Ok(scheduler)
}

/// A checkpoint's bytes are missing or torn: its simulation goes back to its first state.
fn begin_again(job: JobId) -> Fact {
    tracing::warn!(%job, "a checkpoint is missing or torn: the simulation begins again");
    Fact::Checkpoint { job, step: 0, parts: Vec::new() }
}

/// Hands merged units back whose bytes are missing. Only jobs that could still give a result are looked at.
fn take_back_torn(scheduler: &mut Scheduler, known: &mut Known, places: &Places, now: Time) {
    for JobView { job, state, .. } in scheduler.jobs(now) {
        match state {
            JobState::Running | JobState::Done => {}
            JobState::Failed | JobState::Cancelled => continue,
        }
        let merged = scheduler.merged(job);
        for span in verify::torn(&places.results, job, &merged, places.unsure_since) {
            tracing::warn!(%job, %span, "result bytes are missing or torn: computing them again");
            scheduler.unmerge(job, span);
            known.learn(&Fact::Unmerged { job, span });
        }
    }
}
