//! What people see: plain values for pages, the CLI and HTTP.

use alloc::string::String;
use alloc::vec::Vec;
use shoal_kinds::JobSpec;
use shoal_protocol::{Attempt, Caps, Condition, JobId, Lane, Micros, NodeId, PerLane, Span, Time};

use crate::assign::crew::{CrewView, Total};
use crate::fact::Place;
use crate::job::{Job, JobFailure, JobState, Proof};
use crate::peers::{Peer, Seen};
use crate::state::Scheduler;
use crate::unit::Unit;
use crate::verify::{Checked, Trust};

#[derive(Clone, Debug, PartialEq)]
pub struct JobView {
    pub job: JobId,
    pub name: String,
    pub owner: String,
    /// `noop`, `map`, `render` or `exec`.
    pub kind: &'static str,
    pub state: JobState,
    pub items: u64,
    pub items_done: u64,
    /// Of those done: failed by themselves.
    pub items_failed: u64,
    /// Items lent out now.
    pub items_leased: u64,
    pub units_done: u64,
    pub units_leased: u64,
    /// Units that were lent again after a node left, stalled or failed.
    pub retries: u64,
    /// Copies lent because another was late.
    pub speculated: u64,
    /// Units whose answers are being compared.
    pub units_checking: u64,
    /// How the units that are done were checked.
    pub checked: Checked,
    /// Steps of a crew with strangers that nobody could compute again.
    pub unchecked_steps: u64,
    /// What a crew last made of all its rows.
    pub total: Option<Total>,
    pub submitted: Time,
    pub first_lent: Option<Time>,
    pub ended: Option<Time>,
    /// Recent items per second, in thousandths.
    pub milli_rate: u64,
    /// Nodes connected now that could compute this job.
    pub able_nodes: u64,
    pub shares: Vec<Share>,
    pub failure: Option<JobFailure>,
    /// Of a simulation.
    pub crew: Option<CrewView>,
}

/// How much of a job one node did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Share {
    pub node: NodeId,
    pub items: u64,
    pub units: u64,
}

#[derive(Clone, Debug, PartialEq)]
pub struct NodeView {
    pub node: NodeId,
    pub caps: Caps,
    pub paused: bool,
    pub joined: Time,
    /// Units lent to it now.
    pub leases: u64,
    /// Of those, how many it said it is computing.
    pub running: u64,
    /// Job of one running unit.
    pub job: Option<JobId>,
    /// Measured items per second, in thousandths, on the job above or the last one.
    pub milli_rate: u64,
    /// That rate in percent of the best it ever had on the job: what heat, power saving or a hidden page
    /// leave of it.
    pub pace_percent: u8,
    pub condition: Condition,
    /// Between it and the coordinator, as far as measured.
    pub round_trip: Option<Micros>,
    /// The operator's own.
    pub trusted: bool,
    /// What its answers were worth.
    pub trust: PerLane<Trust>,
    /// Share of the last seconds it computed, in percent of its slots.
    pub load: u8,
    pub units_done: u64,
    pub units_failed: u64,
    /// Bytes of blobs it gave to other nodes, as those say.
    pub gave: u64,
    /// How many nodes say that it gave them other bytes than it should.
    pub gave_wrong: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnitView {
    pub span: Span,
    pub state: UnitState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnitState {
    /// Not yet cut into units, or waiting to be lent again.
    Waiting,
    Leased {
        node: NodeId,
        attempt: Attempt,
        since: Time,
    },
    Done {
        node: NodeId,
    },
}

/// A node that is remembered and not here.
#[derive(Clone, Debug, PartialEq)]
pub struct LeftView {
    pub node: NodeId,
    pub seen: Seen,
    pub trust: PerLane<Trust>,
}

impl Scheduler {
    pub fn spec(&self, job: JobId) -> Option<&JobSpec> {
        self.jobs.get(&job).map(|job| &job.spec)
    }

    pub fn job(&self, now: Time, job: JobId) -> Option<JobView> {
        self.jobs.get(&job).map(|known| self.view_job(now, job, known))
    }

    /// All jobs, newest first.
    pub fn jobs(&self, now: Time) -> Vec<JobView> {
        self.jobs.iter().rev().map(|(id, job)| self.view_job(now, *id, job)).collect()
    }

    /// How many jobs run.
    pub fn open_jobs(&self) -> usize {
        self.jobs.running().len()
    }

    pub fn nodes(&self, now: Time) -> Vec<NodeView> {
        self.peers.iter().map(|(node, peer)| self.view_node(now, *node, peer)).collect()
    }

    /// Those that are remembered and not here, by number.
    pub fn gone(&self) -> Vec<LeftView> {
        let left = self.register.all_seen().filter(|(node, _)| !self.peers.contains_key(node));
        left.map(|(node, seen)| self.left_view(node, seen)).collect()
    }

    fn left_view(&self, node: NodeId, seen: &Seen) -> LeftView {
        let trust = PerLane::from_fn(|lane| self.trust.of(node, lane));
        LeftView { node, seen: seen.clone(), trust }
    }

    /// Units of a job in order; neighbours of one state and node are shown as one. At most `most`.
    pub fn units(&self, job: JobId, most: usize) -> Vec<UnitView> {
        let Some(job) = self.jobs.get(&job) else { return Vec::new() };
        let waiting = job.waiting.spans();
        let waiting = waiting.map(|span| UnitView { span, state: UnitState::Waiting });
        let flying = job.units.values().map(|unit| self.view_unit(unit));
        let done = job.merged.iter().map(|(start, merged)| UnitView {
            span: Span::new(*start, merged.len),
            state: UnitState::Done { node: merged.node },
        });
        let mut units: Vec<_> = waiting.chain(flying).chain(done).collect();
        units.sort_by_key(|unit| unit.span.start);
        units.dedup_by(|next, kept| {
            let same = next.state == kept.state && kept.span.end() == next.span.start;
            kept.span.len += if same { next.span.len } else { 0 };
            same
        });
        units.truncate(most);
        units
    }

    fn view_unit(&self, unit: &Unit) -> UnitView {
        let first = unit.copies.first();
        let loan = first.and_then(|copy| Some((copy.attempt, self.loans.get(&copy.attempt)?)));
        let state = match loan {
            None => UnitState::Waiting,
            Some((attempt, loan)) => {
                UnitState::Leased { node: loan.node, attempt, since: loan.since }
            }
        };
        UnitView { span: unit.span, state }
    }

    /// Merged units of a job in order with where their bytes are.
    pub fn merged(&self, job: JobId) -> Vec<(Span, Option<Place>)> {
        let Some(job) = self.jobs.get(&job) else { return Vec::new() };
        let merged = job.merged.iter();
        merged.map(|(start, unit)| (Span::new(*start, unit.len), unit.place)).collect()
    }

    /// Why merged units of a job are believed, where anybody was asked.
    pub fn proofs(&self, job: JobId) -> Vec<(Span, Proof)> {
        let Some(job) = self.jobs.get(&job) else { return Vec::new() };
        let proofs = job.proofs.iter().filter_map(|(start, proof)| {
            let merged = job.merged.get(start)?;
            Some((Span::new(*start, merged.len), proof.clone()))
        });
        proofs.collect()
    }

    /// What a node's answers of a kind were worth so far.
    pub fn trust_of(&self, node: NodeId, lane: Lane) -> Trust {
        self.trust.of(node, lane)
    }

    /// A node's name as last said, also of one that left.
    pub fn node_name(&self, node: NodeId) -> Option<&str> {
        self.register.name(node)
    }

    fn view_job(&self, now: Time, id: JobId, job: &Job) -> JobView {
        // Nobody asks who could run an ended job, and pages list many of those.
        let running = job.state == JobState::Running;
        let able = self.peers.values().filter(|peer| peer.suits(job));
        let shares = job.shares.iter().map(|(node, tally)| Share {
            node: *node,
            items: tally.items,
            units: tally.units,
        });
        JobView {
            job: id,
            name: job.spec.name.clone(),
            owner: job.spec.owner.clone(),
            kind: job.spec.work.name(),
            state: job.state,
            items: job.spec.items,
            items_done: job.items_done,
            items_failed: job.items_failed,
            items_leased: job.items_leased(),
            units_done: job.merged.len() as u64,
            units_leased: job.units_leased,
            retries: job.retries,
            speculated: job.speculated,
            units_checking: job.units.values().filter(|unit| unit.ballot.is_some()).count() as u64,
            checked: job.proofs.of(job.merged.len()),
            unchecked_steps: job.unchecked,
            total: job.total.clone(),
            submitted: job.submitted,
            first_lent: job.first_lent,
            ended: job.ended,
            milli_rate: job.meter.milli_rate(now),
            able_nodes: if running { able.count() as u64 } else { 0 },
            shares: shares.collect(),
            failure: job.failure.clone(),
            crew: self.crew_of(id).and_then(|crew| self.view_crew(now, crew)),
        }
    }

    fn view_node(&self, now: Time, node: NodeId, peer: &Peer) -> NodeView {
        let running = peer.loans().iter().filter_map(|attempt| self.loans.get(attempt));
        let running = running.filter(|loan| loan.running.is_some());
        let job =
            peer.loans().first().and_then(|attempt| self.loans.get(attempt)).map(|loan| loan.job);
        let pace = job.or(peer.last_job).and_then(|job| peer.paces.get(&job));
        let slots = u64::from(peer.caps.cpu_slots).max(1);
        let busy_percent = peer.busy.milli_rate(now) / (10_000_000 * slots);
        NodeView {
            node,
            caps: peer.caps.clone(),
            paused: peer.paused,
            joined: peer.joined,
            leases: peer.loans().len() as u64,
            running: running.count() as u64,
            job,
            milli_rate: pace.map_or(0, |pace| pace.all_slots()),
            pace_percent: pace.map_or(100, |pace| pace.percent()),
            condition: peer.condition,
            round_trip: peer.round_trip,
            trusted: peer.trusted,
            trust: PerLane::from_fn(|lane| self.trust.of(node, lane)),
            load: busy_percent.min(100) as u8,
            units_done: peer.units_done,
            units_failed: peer.units_failed,
            gave: self.swarms.given_by(node),
            gave_wrong: self.swarms.accusers_of(node) as u64,
        }
    }
}
