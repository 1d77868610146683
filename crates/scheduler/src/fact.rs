//! What is durable. Replaying all facts in order gives back jobs, nodes' numbers and merged units;
//! loans and connections are not facts: they die with the process.

use alloc::boxed::Box;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};
use shoal_kinds::{Figures, JobSpec, ServiceSpec};
use shoal_protocol::{
    CheckpointPart, Epoch, Hash, Identity, JobId, Lane, NodeId, Poke, Span, Time,
};

use crate::Output;
use crate::assign::crew::{Checkpoint, Total};
use crate::job::{Job, JobFailure, JobState, Proof};
use crate::peers::Seen;
use crate::state::Scheduler;
use crate::verify::Trust;

/// Append new kinds at the end: the position is the format on disk.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Fact {
    /// The coordinator started for the `life`-th time.
    Life {
        life: u32,
    },
    /// A node joined for the first time.
    Node {
        node: NodeId,
        identity: Identity,
    },
    Submitted {
        job: JobId,
        at: Time,
        spec: Box<JobSpec>,
    },
    /// A unit's result is merged. Never recorded twice for one item, unless unmerged in between.
    Merged {
        job: JobId,
        span: Span,
        node: NodeId,
        place: Option<Place>,
    },
    Finished {
        job: JobId,
        at: Time,
    },
    Failed {
        job: JobId,
        at: Time,
        failure: JobFailure,
    },
    Cancelled {
        job: JobId,
        at: Time,
    },
    Removed {
        job: JobId,
    },
    /// A merged unit's bytes were found missing or torn, or somebody who stood for it is not believed any
    /// more; it is computed again.
    Unmerged {
        job: JobId,
        span: Span,
    },
    /// Others gave the same answer as `node`. Comes before the unit's `Merged`, or later if it was looked at
    /// again. All who agreed for the first time earn trust.
    Checked {
        job: JobId,
        span: Span,
        node: NodeId,
        proof: Proof,
    },
    /// Units merged from here on were merged at about this time.
    Passed {
        at: Time,
    },
    /// A node's numeric class was found out or changed.
    Class {
        node: NodeId,
        class: u64,
    },
    /// A node's answer was wrong: it loses its trust for this kind of work.
    Rejected {
        job: JobId,
        span: Span,
        node: NodeId,
        /// All who contradict it compute in other numeric classes: perhaps it only rounds differently where
        /// little differences grow. It is believed no more than a new node, but not barred.
        rounds: bool,
    },
    /// What a node's answers were worth up to here, so that older facts may be dropped.
    Trust {
        node: NodeId,
        lane: Lane,
        streak: u32,
        wrong: u32,
    },
    /// A crew was called together anew.
    Epoch {
        job: JobId,
        epoch: Epoch,
    },
    /// All rows of a simulation after so many steps are stored.
    Checkpoint {
        job: JobId,
        step: u64,
        parts: Vec<CheckpointPart>,
    },
    /// A poke over a simulation's field counts for this step. One for each step, unless the simulation went
    /// back to its beginning.
    Poked {
        job: JobId,
        step: u64,
        poke: Poke,
    },
    /// Somebody asked for a service.
    Serves {
        service: JobId,
        spec: Box<ServiceSpec>,
    },
    Unserved {
        service: JobId,
    },
    /// A node keeps a service ready, or does not any more.
    Replica {
        service: JobId,
        node: NodeId,
        on: bool,
    },
    /// A simulation's rows up to this step are believed; so many steps of strangers among them nobody could
    /// compute again.
    Proven {
        job: JobId,
        step: u64,
        unchecked: u64,
    },
    /// What a crew made of all its rows after so many steps; nothing if what was made is not believed any more.
    Total {
        job: JobId,
        step: u64,
        numbers: Figures,
    },
    /// Nodes keep a service ready together, by rank, each with some of its parts; nobody does any more, if there are
    /// none.
    ServiceCrew {
        service: JobId,
        epoch: Epoch,
        seats: Vec<(NodeId, Span)>,
    },
    /// Numbers up to this node's may have been given: none is given again, also where no fact tells of its node.
    Numbered {
        node: NodeId,
    },
    /// A node as it is remembered when it leaves, or from its first answer that counts on.
    Seen {
        node: NodeId,
        seen: Seen,
    },
    /// Some items of a merged unit failed by themselves, or left more than their answers. Comes behind the unit's `Merged`.
    FailedItems {
        job: JobId,
        span: Span,
        failed: Failed,
    },
}

/// Where a unit's bytes are in its job's results file, and their hash, so that a torn write shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    pub offset: u64,
    pub size: u64,
    pub hash: Hash,
    /// `Merged` does not say it, which is older: [`Fact::FailedItems`] does.
    #[serde(skip)]
    pub failed: Failed,
}

/// Items of a unit that failed by themselves, on every node alike, or left more than their answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failed {
    /// Only those that failed.
    pub items: u32,
    /// What says how they ended, and what the others left, behind the answers.
    pub bytes: u64,
}

impl Scheduler {
    /// The durable state after these facts. [`crate::Input::Start`] must come next.
    pub fn replay(facts: impl IntoIterator<Item = Fact>) -> Scheduler {
        let mut scheduler = Scheduler::new();
        for fact in facts {
            scheduler.apply(&fact);
        }
        scheduler.jobs.count_open();
        scheduler.jobs.each_running(Job::count_unaudited);
        scheduler
    }

    /// After replay, before `Start`: a merged unit's bytes turned out to be missing or torn, so its
    /// items must be computed again.
    pub fn unmerge(&mut self, job: JobId, span: Span) {
        let Some(known) = self.jobs.get(&job) else { return };
        // What a crew computes is computed together or not at all.
        let spans: Vec<_> = match known.farmed {
            true => [span].into(),
            false => known.merged.iter().map(|(start, unit)| Span::new(*start, unit.len)).collect(),
        };
        for span in spans {
            let fact = Fact::Unmerged { job, span };
            self.apply(&fact);
            self.outputs.push_back(Output::Record(fact));
        }
        self.jobs.count_open();
    }

    /// What all nodes' answers were worth so far, as facts: they say it all again after older ones were dropped.
    pub fn trust_facts(&self) -> impl Iterator<Item = Fact> {
        self.trust.iter().map(|(node, lane, Trust { streak, wrong })| Fact::Trust {
            node,
            lane,
            streak,
            wrong,
        })
    }

    /// How all nodes were last seen, as facts, for the same reason.
    pub fn seen_facts(&self) -> impl Iterator<Item = Fact> {
        self.register.all_seen().map(|(node, seen)| Fact::Seen { node, seen: seen.clone() })
    }

    fn apply(&mut self, fact: &Fact) {
        let passed = self.jobs.passed();
        match fact {
            Fact::Life { life } => self.begin_life(*life),
            Fact::Node { node, identity } => self.register.recall(*node, *identity),
            Fact::Submitted { job, at, spec } => {
                self.numbers.recall_job(*job);
                self.jobs.recall(Job::new(*job, (**spec).clone(), *at));
            }
            Fact::Merged { job, span, node, place } => {
                self.register.count_unit(*node);
                if let Some(job) = self.jobs.get_mut(job)
                    && job.waiting.take(*span)
                {
                    job.merge(passed, *span, *node, *place);
                }
            }
            Fact::Finished { job, at } => self.apply_end(*job, *at, JobState::Done),
            Fact::Failed { job, at, failure } => {
                self.apply_end(*job, *at, JobState::Failed);
                if let Some(job) = self.jobs.get_mut(job) {
                    job.failure = Some(failure.clone());
                }
            }
            Fact::Cancelled { job, at } => self.apply_end(*job, *at, JobState::Cancelled),
            Fact::Removed { job } => self.jobs.remove(*job),
            Fact::Unmerged { job, span } => self.apply_unmerged(*job, *span),
            Fact::Checked { job, span, node, proof } => {
                self.apply_checked(*job, *span, *node, proof);
            }
            Fact::Passed { at } => self.jobs.recall_passed(*at),
            Fact::Numbered { node } => self.register.recall_numbered(*node),
            Fact::Seen { node, seen } => self.register.recall_seen(*node, seen.clone()),
            Fact::Class { node, class } => self.register.recall_class(*node, *class),
            Fact::Rejected { job, node, rounds, .. } => {
                self.apply_rejected(*job, *node, *rounds);
            }
            Fact::Trust { node, lane, streak, wrong } => {
                let trust = Trust { streak: *streak, wrong: *wrong };
                self.trust.recall(*node, *lane, trust);
            }
            Fact::Epoch { job, epoch } => {
                if let Some(job) = self.jobs.get_mut(job) {
                    job.checkpoint.epoch = *epoch;
                    job.recall_epoch(passed, *epoch);
                }
            }
            Fact::Checkpoint { job, step, parts } => self.apply_checkpoint(*job, *step, parts),
            Fact::Serves { service, spec } => self.apply_serves(*service, spec),
            Fact::Unserved { service } => self.apply_unserved(*service),
            Fact::Replica { service, node, on } => self.apply_replica(*service, *node, *on),
            Fact::ServiceCrew { service, epoch, seats } => self.apply_crew(*service, *epoch, seats),
            Fact::Poked { job, step, poke } => self.apply_poke(*job, *step, *poke),
            Fact::Proven { job, step, unchecked } => self.apply_proven(*job, *step, *unchecked),
            Fact::FailedItems { job, span, failed } => self.apply_failed(*job, *span, *failed),
            Fact::Total { job, step, numbers } => {
                if let Some(job) = self.jobs.get_mut(job) {
                    job.total = Total::new(*step, numbers.clone());
                }
            }
        }
    }

    pub(crate) fn begin_life(&mut self, life: u32) {
        self.numbers.begin_life(life);
        self.jobs.begin_life();
    }

    fn apply_unmerged(&mut self, job: JobId, span: Span) {
        if let Some(job) = self.jobs.get_mut(&job) {
            job.unmerge(span);
        }
    }

    fn apply_failed(&mut self, job: JobId, span: Span, failed: Failed) {
        if let Some(job) = self.jobs.get_mut(&job) {
            job.recall_failed(span, failed);
        }
    }

    fn apply_checkpoint(&mut self, job: JobId, step: u64, parts: &[CheckpointPart]) {
        let passed = self.jobs.passed();
        if let Some(job) = self.jobs.get_mut(&job) {
            (job.checkpoint.step, job.checkpoint.parts) = (step, parts.to_vec());
            job.checkpoint.pokes = job.checkpoint.pokes.split_off(&step);
            job.recall_kept(passed, step);
        }
    }

    fn apply_poke(&mut self, job: JobId, step: u64, poke: Poke) {
        if let Some(job) = self.jobs.get_mut(&job) {
            job.checkpoint.pokes.insert(step, poke);
        }
    }

    fn apply_proven(&mut self, job: JobId, step: u64, unchecked: u64) {
        if let Some(job) = self.jobs.get_mut(&job) {
            (job.proven, job.unchecked) = (step, unchecked);
        }
    }

    fn apply_end(&mut self, job: JobId, at: Time, state: JobState) {
        if let Some(job) = self.jobs.get_mut(&job) {
            job.state = state;
            job.ended = Some(at);
            // A crew's checkpoints end with its job.
            job.checkpoint = Checkpoint { epoch: job.checkpoint.epoch, ..Checkpoint::default() };
        }
    }
}
