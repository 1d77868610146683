//! What is done once a batch is durable.

use shoal_protocol::{BlobRef, JobId, Span, Time, Verify};
use shoal_scheduler::{RequestId, SubmitError};

use super::Driver;
use super::event::{Found, Merged, NotTaken, Prefix, Query, Reply, Ticket};
use super::keyed::{Key, Keyed};
use super::waiting::{Asked, ForEnd};
use shoal_api::{JobJson, StateJson};

pub(super) enum Effect {
    /// A job was taken in, now or before.
    Accepted {
        job: JobId,
        ticket: Ticket,
    },
    Refused {
        error: NotTaken,
        ticket: Ticket,
    },
    Ended {
        job: JobId,
    },
    Forget {
        job: JobId,
    },
    /// Tell what the job is like now.
    Show {
        job: JobId,
        reply: Reply<Option<JobJson>>,
    },
    /// Tell what the removed job was like.
    Removed {
        before: Box<Option<JobJson>>,
        reply: Reply<Option<JobJson>>,
    },
    /// Parts of checkpoints that nobody needs any more.
    Drop(Vec<BlobRef>),
    /// A stored result is durable.
    Stored {
        reply: Reply<()>,
    },
    /// A service was taken in, or refused.
    Served {
        result: Result<JobId, NotTaken>,
        reply: Reply<Result<JobId, NotTaken>>,
    },
    /// A service is gone, if there was one.
    Unserved {
        found: bool,
        reply: Reply<bool>,
    },
}

/// What waits for the commit of a batch: its effects, and the questions that came with it.
#[derive(Default)]
pub(super) struct Later {
    effects: Vec<Effect>,
    queries: Vec<Query>,
}

impl Later {
    pub(super) fn push(&mut self, effect: Effect) {
        self.effects.push(effect);
    }

    pub(super) fn ask(&mut self, query: Query) {
        self.queries.push(query);
    }

    /// A place in the effects, for [`Later::drops`].
    pub(super) fn place(&self) -> usize {
        self.effects.len()
    }

    /// Whether the effects from a place on drop a part of a checkpoint.
    pub(super) fn drops(&self, blob: &BlobRef, from: usize) -> bool {
        let said = self.effects.iter().skip(from);
        said.into_iter().any(|e| matches!(e, Effect::Drop(blobs) if blobs.contains(blob)))
    }
}

impl Driver {
    pub(super) fn answered(&mut self, request: RequestId, result: Result<JobId, SubmitError>) {
        let Some(asked) = self.waiting.asked(request) else { return };
        match (asked, result) {
            (Asked::Serve { key, reply }, result) => {
                if let Ok(service) = result {
                    self.keep_key(key, service);
                }
                let result = result.map_err(NotTaken::Scheduler);
                self.later.push(Effect::Served { result, reply });
            }
            (Asked::Submit(ticket), Ok(job)) => {
                self.counts.jobs_submitted += 1;
                if ticket.note != Default::default() {
                    self.journal.note(job, ticket.note.clone());
                }
                self.known.note(job, ticket.note.clone());
                self.keep_key(ticket.key.clone(), job);
                self.later.push(Effect::Accepted { job, ticket });
            }
            (Asked::Submit(ticket), Err(error)) => {
                let error = NotTaken::Scheduler(error);
                self.later.push(Effect::Refused { error, ticket });
            }
        }
    }

    /// Durable together with its job.
    fn keep_key(&mut self, key: Option<Key>, job: JobId) {
        let Some(key) = key else { return };
        let keyed = Keyed { key, job };
        self.journal.key(keyed.clone());
        self.keys.keep(keyed);
    }

    pub(super) fn forget_key(&mut self, job: JobId) {
        if let Some(name) = self.keys.forget(job) {
            self.journal.forget_key(name);
        }
    }

    /// Nobody may still want an answer: then sending fails, and that is fine.
    pub(super) fn perform(&mut self) {
        if self.later.effects.is_empty() {
            return;
        }
        let now = self.clock.now();
        for effect in std::mem::take(&mut self.later.effects) {
            match effect {
                Effect::Accepted { job, ticket } => self.accepted(now, job, ticket),
                Effect::Refused { error, ticket } => {
                    let _ = ticket.answer.send(Err(error));
                }
                Effect::Ended { job } => self.ended(now, job),
                Effect::Forget { job } => self.results.remove(job),
                Effect::Show { job, reply } => {
                    let _ = reply.send(self.job_json(now, job));
                }
                Effect::Removed { before, reply } => {
                    let _ = reply.send(*before);
                }
                Effect::Drop(blobs) => self.crews.discard(&self.scheduler, &blobs),
                Effect::Stored { reply } => {
                    let _ = reply.send(());
                }
                Effect::Served { result, reply } => {
                    let _ = reply.send(result);
                }
                Effect::Unserved { found, reply } => {
                    let _ = reply.send(found);
                }
            }
        }
    }

    fn accepted(&mut self, now: Time, job: JobId, ticket: Ticket) {
        let Ticket { accepted, answer, wait, .. } = ticket;
        let _ = accepted.send(job);
        if wait && self.known.runs(job) {
            self.waiting.submitter(job, answer);
        } else if let Some(view) = self.job_json(now, job) {
            let _ = answer.send(Ok(view));
        }
    }

    fn ended(&mut self, now: Time, job: JobId) {
        self.results.close(job);
        self.comparer.forget(job);
        let late = self.scheduler.job(now, job).map_or(0, |view| view.speculated);
        self.counts.late_copies += late;
        let Some(ForEnd { askers, submitters }) = self.waiting.ended(job) else { return };
        let view = self.job_json(now, job);
        for asker in askers {
            let _ = asker.send(view.clone());
        }
        for submitter in submitters {
            if let Some(view) = &view {
                let _ = submitter.send(Ok(view.clone()));
            }
        }
    }

    pub(super) fn answer_queries(&mut self) {
        if self.later.queries.is_empty() {
            return;
        }
        let now = self.clock.now();
        for query in std::mem::take(&mut self.later.queries) {
            self.answer(now, query);
        }
    }

    fn answer(&mut self, now: Time, query: Query) {
        match query {
            Query::Job { job, reply } => {
                let _ = reply.send(self.job_json(now, job));
            }
            Query::JobEnd { job, reply } => match self.job_json(now, job) {
                Some(view) if view.state == StateJson::Running => self.waiting.asker(job, reply),
                view => {
                    let _ = reply.send(view);
                }
            },
            Query::Jobs { since, reply } => {
                let jobs = self.known.changed_since(since);
                let jobs = jobs.into_iter().filter_map(|job| self.job_json(now, job)).collect();
                let _ = reply.send((jobs, self.known.version()));
            }
            Query::Services { reply } => {
                let _ = reply.send(self.services_json());
            }
            Query::Model { name, reply } => {
                let found = self.scheduler.service_of(&name);
                let model = found.and_then(|(spec, it)| Some((spec.work.model()?.clone(), it)));
                let _ = reply.send(model);
            }
            Query::Language { name, reply } => {
                let found = self.scheduler.service_of(&name);
                let model = found.and_then(|(spec, it)| Some((spec.work.language()?.clone(), it)));
                let _ = reply.send(model);
            }
            Query::Nodes { reply } => {
                let _ = reply.send(self.nodes_json(now));
            }
            Query::Taken { key, reply } => {
                let _ = reply.send(self.keys.find(&key));
            }
            Query::Left { reply } => {
                let _ = reply.send(self.left_json());
            }
            Query::Units { job, reply } => {
                let _ = reply.send(self.units_json(job));
            }
            Query::Merged { job, reply } => {
                let _ = reply.send(self.merged(now, job));
            }
            Query::Segment { job, item, reply } => {
                let _ = reply.send(self.find(job, item));
            }
            Query::Prefix { job, from, most, reply } => {
                let _ = reply.send(self.prefix(job, from, most));
            }
            Query::Log { job, from, reply } => {
                let _ = reply.send(self.log(job, from));
            }
            Query::Seat { crew, epoch, conn, reply } => {
                let _ = reply.send(self.seat(crew, epoch, conn));
            }
            Query::Explain { what, reply } => {
                let _ = reply.send(self.explain(now, what));
            }
            Query::ExplainService { name, reply } => {
                let _ = reply.send(self.explain_service(now, &name));
            }
            Query::Receipt { job, reply } => {
                let _ = reply.send(self.proven(now, job));
            }
            Query::Counts { reply } => {
                let _ = reply.send(self.counts_now());
            }
        }
    }

    fn log(&mut self, job: JobId, from: usize) -> (Vec<Span>, usize) {
        let index = self.known.index(&self.scheduler, job);
        index.map_or((Vec::new(), from), |index| index.log(from))
    }

    fn prefix(&mut self, job: JobId, from: u64, most: usize) -> Option<Prefix> {
        let taken_back = self.known.taken_back(job);
        let index = self.known.index(&self.scheduler, job)?;
        Some(Prefix { spec: index.spec(), segments: index.row(from, most), taken_back })
    }

    fn find(&mut self, job: JobId, item: u64) -> Option<Found> {
        let runs = self.known.runs(job);
        let index = self.known.index(&self.scheduler, job)?;
        let spec = index.spec();
        let unsure = runs && spec.policy.verify != Verify::None;
        Some(Found { spec, segment: index.find(item), unsure })
    }

    pub(super) fn merged(&mut self, now: Time, job: JobId) -> Option<Merged> {
        if let Some(merged) = self.known.ended_results(job) {
            return Some(merged);
        }
        let state = self.scheduler.job(now, job)?.state;
        let spec = self.scheduler.spec(job)?.clone().into();
        let segments = self.scheduler.merged(job).into();
        let note = self.known.note_of(job).cloned().unwrap_or_default();
        let merged = Merged { spec, state, segments, note };
        self.known.keep_results(job, &merged);
        Some(merged)
    }
}
