//! All jobs, and what is kept of them as lists: who runs, who has something to lend, how many ballots are open. A list
//! changes with its job, here and nowhere else.

use alloc::boxed::Box;
use alloc::collections::btree_map::{BTreeMap, Iter};
use alloc::collections::{BTreeSet, VecDeque};
use shoal_protocol::limit::MAX_ENDED_JOBS;
use shoal_protocol::{JobId, Micros, Span, Time};

use crate::job::{Job, JobState, Turn};
use crate::unit::Unit;
use crate::verify::{Answer, Ballot};

/// How exactly receipts know the time.
const MARK_EVERY: Micros = Micros::from_millis(100);

#[derive(Default)]
pub(crate) struct Jobs {
    jobs: BTreeMap<JobId, Job>,
    running: BTreeSet<JobId>,
    /// Those with items to lend, those to be served first in front.
    ready: BTreeSet<Turn>,
    /// Units whose answers are being compared.
    ballots: usize,
    /// Ballots in which somebody's word lost its weight, to be judged before anything else happens.
    rejudge: VecDeque<(JobId, u64)>,
    /// What the last [`crate::Fact::Passed`] says.
    passed: Time,
}

impl Jobs {
    pub(crate) fn get(&self, id: &JobId) -> Option<&Job> {
        self.jobs.get(id)
    }

    pub(crate) fn get_mut(&mut self, id: &JobId) -> Option<&mut Job> {
        self.jobs.get_mut(id)
    }

    pub(crate) fn contains_key(&self, id: &JobId) -> bool {
        self.jobs.contains_key(id)
    }

    pub(crate) fn iter(&self) -> Iter<'_, JobId, Job> {
        self.jobs.iter()
    }

    pub(crate) fn is_running(&self, id: JobId) -> bool {
        self.jobs.get(&id).is_some_and(|job| job.state == JobState::Running)
    }

    /// Jobs that run, by number.
    pub(crate) fn running(&self) -> &BTreeSet<JobId> {
        &self.running
    }

    pub(crate) fn running_jobs(&self) -> impl Iterator<Item = &Job> {
        self.running.iter().filter_map(|id| self.jobs.get(id))
    }

    pub(crate) fn each_running(&mut self, mut change: impl FnMut(&mut Job)) {
        for id in &self.running {
            if let Some(job) = self.jobs.get_mut(id) {
                change(job);
            }
        }
    }

    /// A new job runs.
    pub(crate) fn begin(&mut self, job: Job) {
        let id = job.id;
        self.jobs.insert(id, job);
        self.running.insert(id);
        self.offer(id);
    }

    /// A job ended: nothing of it is lent any more.
    pub(crate) fn end(&mut self, now: Time, id: JobId, state: JobState) -> Option<&mut Job> {
        let job = self.jobs.get_mut(&id)?;
        job.state = state;
        job.ended = Some(now);
        self.running.remove(&id);
        self.ready.remove(&job.turn(id));
        Some(job)
    }

    pub(crate) fn remove(&mut self, id: JobId) {
        self.jobs.remove(&id);
    }

    /// Ended jobs are kept for a while, not for ever: the one to be forgotten.
    pub(crate) fn one_too_many(&self) -> Option<JobId> {
        if self.jobs.len() - self.running.len() <= MAX_ENDED_JOBS {
            return None;
        }
        // By when they ended: a long job must not go the moment it is done.
        let ended = self.jobs.iter().filter_map(|(id, job)| Some((job.ended?, *id)));
        ended.min().map(|(_, oldest)| oldest)
    }

    /// Part of [`crate::Scheduler::check`]: every list is what the jobs make it.
    pub(crate) fn check(&self) {
        for (id, job) in &self.jobs {
            let running = job.state == JobState::Running;
            assert_eq!(self.running.contains(id), running, "job {id}: open");
            assert!(running || job.units.is_empty(), "job {id} ended with units in flight");
            let ready = self.ready.contains(&job.turn(*id));
            assert!(!ready || running, "job {id} is offered but ended");
            let work = running && job.has_work();
            assert_eq!(ready, work, "job {id} is offered if and only if something is left");
        }
        assert!(self.running.iter().all(|id| self.jobs.contains_key(id)), "open jobs");
        self.running_jobs().for_each(Job::check);
        let ready = self.running_jobs().filter(|job| job.has_work());
        assert_eq!(ready.count(), self.ready.len(), "a job is offered twice");
        let units = self.jobs.values().flat_map(|job| job.units.values());
        let ballots = units.filter(|unit| unit.ballot.is_some());
        assert_eq!(ballots.count(), self.ballots, "ballots");
        assert!(self.rejudge.is_empty(), "ballots not judged");
    }
}

/// What is to be lent.
impl Jobs {
    /// Those with something to lend, those to be served first in front.
    pub(crate) fn ready_jobs(&self) -> impl Iterator<Item = &Job> {
        self.ready.iter().filter_map(|turn| self.jobs.get(&turn.job))
    }

    /// Says again whether a job has anything to lend.
    pub(crate) fn offer(&mut self, id: JobId) {
        let Some(job) = self.jobs.get(&id) else { return };
        if job.state == JobState::Running && job.has_work() {
            self.ready.insert(job.turn(id));
        } else {
            self.ready.remove(&job.turn(id));
        }
    }

    /// Says again whether a unit wants a copy lent. Whether it wants a voter.
    pub(crate) fn note_unit(&mut self, id: JobId, start: u64) -> bool {
        let Some(job) = self.jobs.get_mut(&id) else { return false };
        job.note_unit(start);
        let votes = job.votes.contains(&start);
        self.offer(id);
        votes
    }

    /// Makes an item of a unit that nobody has a unit of its own.
    pub(crate) fn single_out(&mut self, id: JobId, start: u64, item: u64) -> bool {
        let done = self.jobs.get_mut(&id).is_some_and(|job| job.single_out(start, item));
        if done {
            self.note_unit(id, item);
        }
        done
    }

    /// Books time lent, which moves a job back among those with something to lend.
    pub(crate) fn serve(&mut self, id: JobId, expected: Micros) -> Option<&mut Job> {
        let job = self.jobs.get_mut(&id)?;
        let ready = self.ready.remove(&job.turn(id));
        job.serve(expected);
        if ready {
            self.ready.insert(job.turn(id));
        }
        Some(job)
    }
}

/// Answers that are compared.
impl Jobs {
    pub(crate) fn has_ballots(&self) -> bool {
        self.ballots > 0
    }

    /// Puts an answer beside others.
    pub(crate) fn put_answer(&mut self, now: Time, id: JobId, start: u64, answer: Answer) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        let Some(unit) = job.units.get_mut(&start) else { return };
        self.ballots += usize::from(unit.ballot.is_none());
        let ballot = unit.ballot.get_or_insert_with(|| Box::new(Ballot::new(now)));
        let node = answer.node;
        ballot.answers.push(answer);
        ballot.seeks = 0;
        job.part_begins(node);
    }

    /// Puts in a unit with the answers of those who have a part in it already.
    pub(crate) fn put_ballot(&mut self, id: JobId, span: Span, ballot: Ballot) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        job.put_unit(Unit {
            ballot: Some(Box::new(ballot)),
            ..Unit::new(span, Default::default())
        });
        self.ballots += 1;
    }

    /// Takes a unit's answers out.
    pub(crate) fn take_ballot(&mut self, id: JobId, start: u64) -> Option<(Span, Ballot)> {
        let job = self.jobs.get_mut(&id)?;
        let unit = job.units.get_mut(&start)?;
        let span = unit.span;
        let ballot = *unit.ballot.take()?;
        ballot.answers.iter().for_each(|answer| job.part_ends(answer.node));
        self.ballots -= 1;
        Some((span, ballot))
    }

    /// A unit is settled.
    pub(crate) fn drop_unit(&mut self, id: JobId, start: u64) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        let unit = job.drop_unit(start);
        self.ballots -= usize::from(unit.is_some_and(|unit| unit.ballot.is_some()));
        self.offer(id);
    }

    /// All units of a job that ended are settled.
    pub(crate) fn drop_units(&mut self, id: JobId) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        self.ballots -= job.units.values().filter(|unit| unit.ballot.is_some()).count();
        job.units.clear();
        job.roll = None;
        job.wanting.clear();
        job.aside.clear();
        job.votes.clear();
        job.items_idle = 0;
        job.late = None;
    }

    pub(crate) fn judge_later(&mut self, id: JobId, start: u64) {
        self.rejudge.push_back((id, start));
    }

    pub(crate) fn next_to_judge(&mut self) -> Option<(JobId, u64)> {
        self.rejudge.pop_front()
    }
}

/// Time, and what facts give back.
impl Jobs {
    /// When what is merged now was merged, as far as receipts tell.
    pub(crate) fn passed(&self) -> Time {
        self.passed
    }

    pub(crate) fn recall_passed(&mut self, at: Time) {
        self.passed = at;
    }

    /// Says whether so much time passed that it must be recorded.
    pub(crate) fn pass(&mut self, now: Time) -> bool {
        let marks = now > self.passed + MARK_EVERY || now < self.passed;
        if marks {
            self.passed = now;
        }
        marks
    }

    /// Replayed: whether it still runs is known after the last fact.
    pub(crate) fn recall(&mut self, job: Job) {
        self.jobs.insert(job.id, job);
    }

    /// Replayed: a job ended, or runs again because something of it is lost.
    pub(crate) fn count_open(&mut self) {
        let open = self.jobs.iter().filter(|(_, job)| job.state == JobState::Running);
        self.running = open.map(|(id, _)| *id).collect();
        let ready = self.running_jobs().filter(|job| job.has_work());
        self.ready = ready.map(|job| job.turn(job.id)).collect();
    }

    /// A check of a unit whose merge did not become durable in the life before counts for nothing.
    pub(crate) fn begin_life(&mut self) {
        for job in self.jobs.values_mut() {
            job.proofs.retain(|start| job.merged.contains_key(&start));
        }
    }
}
