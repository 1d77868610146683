//! What the driver knows of jobs beside the scheduler: notes, when they changed, and lists of merged units for
//! whoever looks at pictures and results.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use shoal_kinds::plan::Note;
use shoal_protocol::{JobId, ToNode};
use shoal_scheduler::{Fact, JobState, Scheduler};
use tokio::sync::watch;

use super::event::{Counts, Merged};
use super::index::Index;

/// Ended jobs whose lists of units are kept at hand.
const MAX_KEPT: usize = 16;

#[derive(Default)]
pub(super) struct Known {
    jobs: HashMap<JobId, Job>,
    version: u64,
    /// Whether anything changed since the last turn.
    changed: bool,
    /// Tells everybody which version it is.
    versions: watch::Sender<u64>,
    indexes: HashMap<JobId, Index>,
    results: HashMap<JobId, Merged>,
    merged_units: u64,
    checked_units: u64,
    rejected: u64,
    taken_back: u64,
    /// Changes of crews' membership.
    epochs: u64,
    /// Jobs of which units were taken back, so that their bytes must be counted again.
    recount: BTreeSet<JobId>,
}

#[derive(Default)]
struct Job {
    note: Note,
    ended: bool,
    /// Version of the last change.
    version: u64,
    /// Bytes of all merged units, without what says how failed runs ended and what the others left.
    bytes: u64,
    /// Bytes of that.
    left: u64,
    /// Merged units that are not believed any more, ever.
    taken_back: u64,
    /// What the file or line at fault is called, once somebody looked it up.
    input: Option<String>,
}

impl Known {
    pub(super) fn learn(&mut self, fact: &Fact) {
        match fact {
            Fact::Merged { job: id, span, place, .. } => {
                let job = touch(&mut self.jobs, &mut self.changed, *id, self.version);
                job.bytes += place.map_or(0, |place| place.size);
                self.merged_units += 1;
                if let Some(index) = self.indexes.get_mut(id) {
                    index.add((*span, *place));
                }
            }
            Fact::FailedItems { job: id, failed, .. } => {
                let job = touch(&mut self.jobs, &mut self.changed, *id, self.version);
                job.bytes = job.bytes.saturating_sub(failed.bytes);
                job.left += failed.bytes;
            }
            Fact::Submitted { job, .. } => {
                touch(&mut self.jobs, &mut self.changed, *job, self.version).ended = false;
            }
            Fact::Unmerged { job, span } => {
                let known = touch(&mut self.jobs, &mut self.changed, *job, self.version);
                known.ended = false;
                known.taken_back += 1;
                self.taken_back += 1;
                self.recount.insert(*job);
                self.results.remove(job);
                if let Some(index) = self.indexes.get_mut(job) {
                    index.take_back(*span);
                }
            }
            Fact::Checked { job, proof, .. } => {
                touch(&mut self.jobs, &mut self.changed, *job, self.version);
                // The word of the operator's own node alone is no check.
                self.checked_units += u64::from(!proof.by.is_empty());
            }
            Fact::Rejected { job, .. } => {
                touch(&mut self.jobs, &mut self.changed, *job, self.version);
                self.rejected += 1;
            }
            Fact::Finished { job, .. } | Fact::Failed { job, .. } | Fact::Cancelled { job, .. } => {
                touch(&mut self.jobs, &mut self.changed, *job, self.version).ended = true;
            }
            Fact::Epoch { job, .. } => {
                touch(&mut self.jobs, &mut self.changed, *job, self.version);
                self.epochs += 1;
            }
            Fact::Checkpoint { job, .. }
            | Fact::Proven { job, .. }
            | Fact::Poked { job, .. }
            | Fact::Total { job, .. } => {
                touch(&mut self.jobs, &mut self.changed, *job, self.version);
            }
            // The driver is told by an output of its own, and asks for the note then.
            Fact::Removed { .. } => self.changed = true,
            Fact::Serves { .. }
            | Fact::Unserved { .. }
            | Fact::Replica { .. }
            | Fact::ServiceCrew { .. } => {
                self.changed = true;
            }
            Fact::Life { .. }
            | Fact::Node { .. }
            | Fact::Class { .. }
            | Fact::Numbered { .. }
            | Fact::Seen { .. }
            | Fact::Trust { .. }
            | Fact::Passed { .. } => {
                self.changed = true;
            }
        }
    }

    /// Lending changes what is shown of a job.
    pub(super) fn told(&mut self, message: &ToNode) {
        self.changed = true;
        let ToNode::Lend(leases) = message else { return };
        let mut last = None;
        for lease in leases {
            if last != Some(lease.job) {
                touch(&mut self.jobs, &mut self.changed, lease.job, self.version);
                last = Some(lease.job);
            }
        }
    }

    /// Something about a job changed that is no fact.
    pub(super) fn note_job(&mut self, job: JobId) {
        if let Some(job) = self.jobs.get_mut(&job) {
            self.changed = true;
            job.version = self.version;
        }
    }

    /// Nodes came, went or gave units back: every running job may look different now.
    pub(super) fn note_running(&mut self) {
        self.changed = true;
        for job in self.jobs.values_mut().filter(|job| !job.ended) {
            job.version = self.version;
        }
    }

    /// Says whether there was a note on disk.
    pub(super) fn forget(&mut self, job: JobId) -> bool {
        let known = self.jobs.remove(&job);
        self.indexes.remove(&job);
        self.results.remove(&job);
        self.changed = true;
        known.is_some_and(|job| job.note != Note::default())
    }

    /// After the facts were read: from now on changes are counted. The first version is 1, so that
    /// asking for what changed since 0 gives everything.
    pub(super) fn begin(&mut self) {
        self.version = 1;
    }

    /// After units were taken back: counts the bytes of those that are left.
    pub(super) fn count_again(&mut self, scheduler: &Scheduler) {
        for id in std::mem::take(&mut self.recount) {
            let Some(job) = self.jobs.get_mut(&id) else { continue };
            let places = scheduler.merged(id).into_iter().filter_map(|(_, place)| place);
            (job.bytes, job.left) = (0, 0);
            for place in places {
                job.bytes += place.size - place.failed.bytes;
                job.left += place.failed.bytes;
            }
        }
    }

    pub(super) fn runs(&self, job: JobId) -> bool {
        self.jobs.get(&job).is_some_and(|job| !job.ended)
    }

    pub(super) fn keep_only(&mut self, exists: impl Fn(JobId) -> bool) {
        self.jobs.retain(|job, _| exists(*job));
    }

    /// Ends a batch; everybody is told if anything changed in it.
    pub(super) fn turn(&mut self) {
        if std::mem::take(&mut self.changed) {
            self.version += 1;
            self.versions.send_replace(self.version);
        }
    }

    /// Rises whenever something changed.
    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.versions.subscribe()
    }

    /// Everything up to before this version has been seen by whoever asks now.
    pub(super) fn version(&self) -> u64 {
        self.version
    }

    /// Jobs that changed in or after a version, newest first.
    pub(super) fn changed_since(&self, version: u64) -> Vec<JobId> {
        let changed = self.jobs.iter().filter(|(_, job)| job.version >= version);
        let mut changed: Vec<_> = changed.map(|(id, _)| *id).collect();
        changed.sort_unstable_by(|a, b| b.cmp(a));
        changed
    }

    /// Says what was counted here.
    pub(super) fn count(&self, counts: &mut Counts) {
        counts.jobs = self.jobs.len() as u64;
        counts.jobs_open = self.jobs.values().filter(|job| !job.ended).count() as u64;
        counts.units_merged = self.merged_units;
        counts.units_checked = self.checked_units;
        counts.answers_rejected = self.rejected;
        counts.units_taken_back = self.taken_back;
        counts.epochs = self.epochs;
    }

    pub(super) fn note(&mut self, job: JobId, note: Note) {
        touch(&mut self.jobs, &mut self.changed, job, self.version).note = note;
    }

    pub(super) fn note_of(&self, job: JobId) -> Option<&Note> {
        self.jobs.get(&job).map(|job| &job.note)
    }

    pub(super) fn bytes(&self, job: JobId) -> u64 {
        self.jobs.get(&job).map_or(0, |job| job.bytes)
    }

    /// Of how failed runs ended and what the others left.
    pub(super) fn bytes_left(&self, job: JobId) -> u64 {
        self.jobs.get(&job).map_or(0, |job| job.left)
    }

    pub(super) fn taken_back(&self, job: JobId) -> u64 {
        self.jobs.get(&job).map_or(0, |job| job.taken_back)
    }

    pub(super) fn input(&self, job: JobId) -> Option<&str> {
        self.jobs.get(&job).and_then(|job| job.input.as_deref())
    }

    pub(super) fn set_input(&mut self, job: JobId, input: String) {
        if let Some(job) = self.jobs.get_mut(&job) {
            job.input = Some(input);
        }
    }

    /// The job's units by place and time, listed when first asked for and kept up from then on.
    pub(super) fn index(&mut self, scheduler: &Scheduler, job: JobId) -> Option<&Index> {
        if !self.jobs.contains_key(&job) {
            return None;
        }
        if self.indexes.len() > MAX_KEPT {
            // Only those that change no more: whoever follows a running job counts on its order.
            let jobs = &self.jobs;
            self.indexes.retain(|other, _| {
                *other == job || jobs.get(other).is_some_and(|known| !known.ended)
            });
        }
        match self.indexes.entry(job) {
            Entry::Occupied(known) => Some(known.into_mut()),
            Entry::Vacant(place) => {
                let spec = Arc::new(scheduler.spec(job)?.clone());
                Some(place.insert(Index::new(spec, scheduler.merged(job))))
            }
        }
    }

    pub(super) fn ended_results(&self, job: JobId) -> Option<Merged> {
        self.results.get(&job).cloned()
    }

    pub(super) fn keep_results(&mut self, job: JobId, merged: &Merged) {
        if merged.state == JobState::Running {
            return;
        }
        if self.results.len() >= MAX_KEPT {
            self.results.clear();
        }
        let kept = Merged { segments: Arc::clone(&merged.segments), ..merged.clone() };
        self.results.insert(job, kept);
    }
}

fn touch<'a>(
    jobs: &'a mut HashMap<JobId, Job>,
    changed: &mut bool,
    job: JobId,
    version: u64,
) -> &'a mut Job {
    *changed = true;
    let job = jobs.entry(job).or_default();
    job.version = version;
    job
}
