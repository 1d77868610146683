//! What must hold in every world, seen from outside the scheduler.

use std::collections::{BTreeMap, BTreeSet};

use shoal_kinds::JobSpec;
use shoal_protocol::{Footprint, Identity, JobId, Lane, NodeId, Span, Time, ToNode, Verify};
use shoal_scheduler::{Fact, JobState, Place, Proof, Scheduler};

use crate::device;
use crate::hostile::device_of_key;
use crate::liar::Content;
use crate::report::Report;
use crate::scenario::Scenario;

#[derive(Default)]
pub(crate) struct Oracle {
    networks: u64,
    own: u64,
    /// Liars that say the same are at most so many.
    largest_group: usize,
    specs: BTreeMap<JobId, JobSpec>,
    plans: BTreeMap<JobId, usize>,
    /// Devices by what they are called.
    numbers: BTreeMap<Identity, u64>,
    nodes: BTreeMap<NodeId, u64>,
    /// Merged items by job: start to end and what was merged.
    merged: BTreeMap<JobId, BTreeMap<u64, (u64, Option<Place>)>>,
    /// Confirmations not yet followed by a merge.
    checked: BTreeMap<(JobId, Span), (NodeId, Proof)>,
    ended: BTreeSet<JobId>,
    finished: BTreeMap<JobId, Time>,
    submitted: BTreeMap<JobId, Time>,
    /// Answers a device had given when it was barred.
    barred: BTreeMap<u64, u64>,
    leases: BTreeMap<shoal_scheduler::Conn, Vec<(shoal_protocol::Attempt, JobId, Span)>>,
    units: u64,
    rejected: u64,
    unmerged: u64,
}

impl Oracle {
    pub(crate) fn new(scenario: &Scenario, numbers: BTreeMap<Identity, u64>) -> Oracle {
        Oracle {
            numbers,
            networks: scenario.networks,
            own: scenario.own,
            largest_group: scenario.largest_group(),
            ..Oracle::default()
        }
    }

    pub(crate) fn recorded(&mut self, fact: &Fact, now: Time) {
        match fact {
            Fact::Node { node, identity } => {
                self.nodes.insert(*node, self.number_of(identity));
            }
            Fact::Submitted { spec, .. } if spec.work.takes_crew() => {}
            Fact::Submitted { job, spec, .. } => {
                let plan = spec.name.rsplit(' ').next().and_then(|number| number.parse().ok());
                assert!(self.plans.values().all(|known| Some(*known) != plan), "submitted twice");
                self.plans.insert(*job, plan.expect("a job without its number"));
                self.submitted.insert(*job, now);
                self.specs.insert(*job, (**spec).clone());
            }
            Fact::Checked { job, span, node, proof } => self.check_proof(*job, *span, *node, proof),
            // Rows of a field are merged whole, and are true or not.
            Fact::Merged { job, .. } if !self.specs.contains_key(job) => {}
            Fact::Merged { job, span, node, place } => self.merge(*job, *span, *node, *place),
            Fact::Unmerged { job, .. } if !self.specs.contains_key(job) => {}
            Fact::Unmerged { job, span } => {
                self.unmerged += 1;
                let merged = self.merged.entry(*job).or_default();
                assert!(merged.remove(&span.start).is_some(), "job {job}: {span} was not merged");
            }
            Fact::Rejected { .. } => self.rejected += 1,
            Fact::Finished { job, .. } => {
                if self.specs.contains_key(job) {
                    self.finished.insert(*job, now);
                }
            }
            // What was confirmed and not merged is confirmed no more.
            Fact::Life { .. } => self.checked.clear(),
            Fact::Failed { .. }
            | Fact::Cancelled { .. }
            | Fact::Removed { .. }
            | Fact::Passed { .. }
            | Fact::Class { .. }
            | Fact::Numbered { .. }
            | Fact::Seen { .. }
            | Fact::Trust { .. }
            | Fact::Epoch { .. }
            | Fact::Checkpoint { .. }
            | Fact::Serves { .. }
            | Fact::Unserved { .. }
            | Fact::Replica { .. }
            | Fact::ServiceCrew { .. }
            | Fact::Proven { .. }
            | Fact::Poked { .. }
            | Fact::FailedItems { .. }
            | Fact::Total { .. } => {}
        }
    }

    /// A device was found out for good after so many answers.
    pub(crate) fn barred(&mut self, device: u64, answers: u64) {
        self.barred.entry(device).or_insert(answers);
    }

    /// Nobody is lent a second copy of items it has.
    pub(crate) fn sent(&mut self, message: &ToNode, live: Option<&Scheduler>) {
        let (ToNode::Lend(leases), Some(live)) = (message, live) else { return };
        for lease in leases {
            let Some(conn) = live.holder(lease.attempt) else { continue };
            let held = self.leases.entry(conn).or_default();
            held.retain(|(attempt, ..)| live.lease(*attempt).is_some());
            for (_, job, span) in held.iter() {
                let apart = span.end() <= lease.span.start || lease.span.end() <= span.start;
                assert!(*job != lease.job || apart, "{conn:?} holds {span} twice");
            }
            held.push((lease.attempt, lease.job, lease.span));
        }
    }

    pub(crate) fn ended(&mut self, job: JobId) {
        assert!(self.ended.insert(job), "job {job} was delivered twice");
    }

    /// The durable state must be what the facts say.
    pub(crate) fn compare(&self, live: &Scheduler, facts: &[Fact], now: Time) {
        let replayed = Scheduler::replay(facts.iter().cloned());
        replayed.check();
        let parts = |of: &Scheduler| {
            let services = of.services().into_iter().map(|service| {
                let stages = service.split.map(|split| split.stages).unwrap_or_default();
                stages.iter().map(|stage| (stage.node, stage.parts)).collect::<Vec<_>>()
            });
            services.collect::<Vec<_>>()
        };
        assert_eq!(parts(live), parts(&replayed), "who keeps services ready together");
        for job in live.jobs(now) {
            let again = replayed.job(now, job.job).expect("a job got lost in replay");
            assert_eq!(
                (job.state, job.items_done),
                (again.state, again.items_done),
                "job {}",
                job.job
            );
            assert_eq!(live.receipt(job.job), replayed.receipt(job.job), "job {}", job.job);
            let lane = self.specs.get(&job.job).map_or(Lane::Gpu, |spec| spec.needs.lane);
            for node in self.nodes.keys() {
                assert_eq!(live.trust_of(*node, lane), replayed.trust_of(*node, lane));
            }
        }
    }

    pub(crate) fn all_finished(&self, live: &Scheduler, now: Time, may_fail: bool) {
        let own = live.jobs(now).into_iter().filter(|job| self.specs.contains_key(&job.job));
        for job in own {
            let merged = self.merged.get(&job.job);
            let done: u64 = merged.into_iter().flatten().map(|(start, (end, _))| end - start).sum();
            match job.state {
                JobState::Done => assert_eq!(done, job.items, "job {} is not whole", job.job),
                JobState::Failed if may_fail => {}
                JobState::Failed | JobState::Cancelled | JobState::Running => {
                    panic!("job {} ended as {:?}: {:?}", job.job, job.state, job.failure)
                }
            }
        }
    }

    pub(crate) fn fill(&self, report: &mut Report) {
        report.units = self.units;
        report.rejected = self.rejected;
        report.unmerged = self.unmerged;
        for (job, plan) in &self.plans {
            let merged = self.merged.get(job).into_iter().flatten();
            let wrong = merged.clone().filter(|(start, (end, place))| {
                let span = Span::new(**start, end - **start);
                place.is_some_and(|place| Content::read(&place.hash).is_wrong(span))
            });
            let entry = &mut report.jobs[*plan];
            entry.units = merged.clone().count() as u64;
            entry.wrong = wrong.count() as u64;
            entry.submitted = self.submitted[job].0;
            entry.done = self.finished.get(job).map_or(0, |time| time.0);
            report.wrong += entry.wrong;
        }
    }

    /// From the first submission to the last end, or to now while anything runs.
    pub(crate) fn busy(&self, now: Time) -> (Time, Time) {
        let from = self.submitted.values().min().copied().unwrap_or(now);
        let last = self.finished.values().max().copied();
        let over = self.finished.len() == self.submitted.len();
        (from, last.filter(|_| over).unwrap_or(now))
    }

    pub(crate) fn units(&self) -> u64 {
        self.units
    }

    pub(crate) fn answers_when_barred(&self, device: u64) -> Option<u64> {
        self.barred.get(&device).copied()
    }

    /// Jobs the coordinator has taken.
    pub(crate) fn submitted(&self) -> usize {
        self.plans.len()
    }

    pub(crate) fn knows(&self, plan: usize) -> bool {
        self.plans.values().any(|known| *known == plan)
    }

    /// What a unit of a job takes while it runs.
    pub(crate) fn takes(&self, job: JobId) -> Footprint {
        self.specs.get(&job).map_or(Footprint::NOTHING, |spec| spec.needs.takes)
    }

    pub(crate) fn plan_of(&self, job: JobId) -> Option<usize> {
        self.plans.get(&job).copied()
    }

    pub(crate) fn number_of(&self, identity: &Identity) -> u64 {
        self.numbers.get(identity).copied().unwrap_or_else(|| device::number_of(identity))
    }

    pub(crate) fn device_of(&self, node: NodeId) -> u64 {
        self.nodes.get(&node).copied().unwrap_or(u64::MAX)
    }

    /// Where a device connects from.
    pub(crate) fn network(&self, device: u64) -> u64 {
        if self.networks == 0 { 0 } else { device_of_key(device) % self.networks + 1 }
    }

    fn check_proof(&mut self, job: JobId, span: Span, node: NodeId, proof: &Proof) {
        let voices: Vec<_> = core::iter::once(&node).chain(&proof.by).collect();
        let devices: BTreeSet<_> = voices.iter().map(|node| self.device_of(**node)).collect();
        assert_eq!(devices.len(), voices.len(), "job {job}: somebody voted twice on {span}");
        let verify = self.specs[&job].policy.verify;
        let votes = match verify {
            Verify::Quorum { votes } => usize::from(votes),
            Verify::None | Verify::Spot { .. } | Verify::Adaptive => 2,
        };
        assert!(
            !proof.sure || proof.vouched || voices.len() >= votes,
            "job {job}: {span} has too few votes: {proof:?}"
        );
        let merged = self.merged.get(&job).is_some_and(|merged| merged.contains_key(&span.start));
        let strangers = devices.iter().filter(|device| **device >= self.own);
        let networks: BTreeSet<_> = strangers.clone().map(|device| self.network(*device)).collect();
        // Later confirmations come with those from before, of whom nobody knows the network any more.
        assert!(
            merged || self.networks == 0 || networks.len() == strangers.count(),
            "job {job}: one network voted twice on {span}"
        );
        self.checked.insert((job, span), (node, proof.clone()));
    }

    fn merge(&mut self, job: JobId, span: Span, node: NodeId, place: Option<Place>) {
        self.units += 1;
        let proof = self.checked.remove(&(job, span)).filter(|(first, _)| *first == node);
        let wrong = place.is_some_and(|place| Content::read(&place.hash).is_wrong(span));
        if let Verify::Quorum { votes } = self.specs[&job].policy.verify {
            let voices = proof.map_or(1, |(_, proof)| proof.by.len() + 1);
            assert!(voices >= usize::from(votes), "job {job}: {span} merged without its quorum");
            let safe = self.largest_group < usize::from(votes);
            assert!(!wrong || !safe, "job {job}: {span} is wrong and was merged by a quorum");
        }
        let merged = self.merged.entry(job).or_default();
        let before = merged.range(..=span.start).next_back();
        let before = before.is_none_or(|(_, (end, _))| *end <= span.start);
        let after = merged.range(span.start..).next().is_none_or(|(start, _)| *start >= span.end());
        assert!(before && after, "job {job}: items {span} were merged twice");
        merged.insert(span.start, (span.end(), place));
    }
}
