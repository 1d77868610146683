//! What the coordinator's shell does for crews: it takes simulations, mints tokens, relays frames, keeps the parts of
//! checkpoints and compares rows.

use std::collections::{BTreeMap, BTreeSet};

use ed25519_dalek::{Signer, SigningKey};
use shoal_protocol::swarm::BLOBS;
use shoal_protocol::{
    BlobRef, CrewId, CrewTask, Enlist, Epoch, Hash, Header, JobId, Micros, NodeId, Poke, PublicKey,
    Signature, Verify, frame,
};
use shoal_scheduler::{Conn, Fact, Input, RequestId, Rows};
use shoal_seal::{Claims, Rights, mint};

use super::device::bytes;
use super::engine::Blobs;
use super::{CrewEvent, CrewPlan};
use crate::clockwork::Wire;
use crate::random::Random;
use crate::world::{Event, Probe, World};

/// Requests for simulations: beyond all jobs'.
const REQUESTS: u64 = 1 << 41;

/// What the coordinator's shell and the devices' engines have of all crews.
pub(crate) struct Crews {
    key: SigningKey,
    /// Who may send frames to whom; dies with the coordinator.
    pub(crate) routes: BTreeMap<CrewId, (Epoch, BTreeMap<NodeId, Conn>)>,
    /// The device that each node is.
    pub(super) called: BTreeMap<NodeId, usize>,
    /// Direct channels that are open.
    pub(super) channels: BTreeSet<(CrewId, usize, usize)>,
    pub(super) blobs: Blobs,
    /// Those of them that are results, and not dropped with parts of checkpoints that are the same.
    pub(super) results: BTreeSet<Hash>,
    /// Somebody who spoils rows was asked to check others', for what it did else: liars may vouch for each other.
    pub(super) liar_checks: bool,
    /// Which simulation a job is, and the pokes that counted in it, by step.
    pub(super) jobs: BTreeMap<JobId, usize>,
    pub(super) pokes: BTreeMap<JobId, BTreeMap<u64, Poke>>,
}

impl Crews {
    pub(crate) fn new(random: &mut Random) -> Crews {
        Crews {
            key: SigningKey::from_bytes(&bytes(random)),
            routes: BTreeMap::new(),
            called: BTreeMap::new(),
            channels: BTreeSet::new(),
            blobs: Blobs::new(),
            liar_checks: false,
            results: BTreeSet::new(),
            jobs: BTreeMap::new(),
            pokes: BTreeMap::new(),
        }
    }

    pub(crate) fn coordinator(&self) -> PublicKey {
        PublicKey(self.key.verifying_key().to_bytes())
    }

    /// A device is gone, and its channels with it.
    pub(crate) fn forget(&mut self, device: usize) {
        self.channels.retain(|(_, a, b)| *a != device && *b != device);
    }

    fn sign(&self, statement: &[u8]) -> Signature {
        Signature::new(&self.key.sign(statement).to_bytes())
    }

    pub(crate) fn has(&self, job: JobId) -> bool {
        self.jobs.contains_key(&job)
    }

    /// Simulations that the coordinator has taken.
    pub(crate) fn submitted(&self) -> usize {
        self.jobs.len()
    }

    pub(crate) fn job_of(&self, plan: usize) -> Option<JobId> {
        self.jobs.iter().find(|(_, known)| **known == plan).map(|(job, _)| *job)
    }

    pub(crate) fn recorded(&mut self, fact: &Fact) {
        match fact {
            Fact::Submitted { job, spec, .. } if spec.work.takes_crew() => {
                let plan = spec.name.rsplit(' ').next().and_then(|number| number.parse().ok());
                let plan = plan.expect("a simulation without its number");
                assert!(self.job_of(plan).is_none(), "submitted twice");
                self.jobs.insert(*job, plan);
            }
            Fact::Poked { job, step, poke } => {
                // A crew that went back has the same ones again.
                let before = self.pokes.entry(*job).or_default().insert(*step, *poke);
                let same = before.is_none_or(|before| before == *poke);
                assert!(same, "two pokes for step {step}");
            }
            Fact::Node { .. }
            | Fact::Submitted { .. }
            | Fact::Checked { .. }
            | Fact::Merged { .. }
            | Fact::FailedItems { .. }
            | Fact::Unmerged { .. }
            | Fact::Rejected { .. }
            | Fact::Finished { .. }
            | Fact::Life { .. }
            | Fact::Failed { .. }
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
            | Fact::Total { .. } => {}
        }
    }

    pub(crate) fn drop_parts(&mut self, blobs: &[BlobRef]) {
        let over = blobs.iter().filter(|blob| !self.results.contains(&blob.hash));
        over.for_each(|blob| drop(self.blobs.remove(&blob.hash)));
    }

    fn read(&self, rows: &[Rows]) -> Option<Vec<u8>> {
        let parts = rows.iter().map(|rows| match rows {
            Rows::Stored(blob) => self.blobs.get(&blob.hash),
            Rows::Result(place) => self.blobs.get(&place.hash),
        });
        Some(parts.collect::<Option<Vec<_>>>()?.into_iter().flatten().copied().collect())
    }
}

impl<P: Probe> World<P> {
    pub(crate) fn plan_crews(&mut self) {
        for (plan, crew) in self.scenario.crews.clone().into_iter().enumerate() {
            self.at(crew.at, Event::Crew(CrewEvent::Submit(plan)));
            for _ in 0..crew.pokes {
                let at = crew.at + self.random.range(500_000, crew.pokes_until);
                self.at(at, Event::Crew(CrewEvent::Poke(plan)));
            }
        }
    }

    pub(crate) fn submit_crew(&mut self, plan: usize) {
        if self.scheduler.is_none() || self.crews.job_of(plan).is_some() {
            return;
        }
        let CrewPlan { grid, members, keep_every, speculate, checked, .. } =
            self.scenario.crews[plan];
        let mut spec = grid.spec(members, keep_every, speculate);
        spec.name = format!("field {plan}");
        if checked {
            spec.policy.verify = Verify::Adaptive;
        }
        self.give(Input::Submit { request: RequestId(REQUESTS + plan as u64), spec });
    }

    /// Whoever wanted a simulation and found nobody asks again.
    pub(crate) fn submit_crews_again(&mut self) {
        for plan in 0..self.scenario.crews.len() {
            let due = self.scenario.crews[plan].at <= self.now.0;
            if due && self.crews.job_of(plan).is_none() {
                self.at(self.now.0 + 1, Event::Crew(CrewEvent::Submit(plan)));
            }
        }
    }

    /// Gives a member the token of its place.
    pub(crate) fn seal_order(&mut self, enlist: &mut Enlist) {
        let (buffers, rights) = match &enlist.task {
            CrewTask::Sim(task) => {
                let again = if enlist.rank == 0 { task.pokes.len() } else { 0 };
                self.report.crew.pokes_again += again as u64;
                ((1, 15), Rights::WRITE)
            }
            CrewTask::Stage(_) => ((1, 15), Rights::WRITE),
            CrewTask::Talk => ((0, u32::MAX), Rights::ALL),
            CrewTask::Swarm => ((u32::from(BLOBS), u32::from(BLOBS)), Rights::READ),
        };
        let holder = enlist.members[usize::from(enlist.rank)].node;
        let (crew, epoch, until) = (enlist.crew, enlist.epoch, u64::MAX);
        let claims = Claims { crew, epoch, holder, buffers, rights, until };
        let secret = bytes(&mut self.random);
        enlist.token = mint(|statement| self.crews.sign(statement), &claims, secret);
    }

    pub(crate) fn route(&mut self, crew: CrewId, epoch: Epoch, members: Vec<(NodeId, Conn)>) {
        match members.is_empty() {
            true => drop(self.crews.routes.remove(&crew)),
            false => {
                drop(self.crews.routes.insert(crew, (epoch, members.into_iter().collect())));
            }
        }
    }

    /// A frame on its way to the relay keeps its place among what the device says.
    pub(super) fn pass_to_relay(&mut self, at: usize, bytes: Vec<u8>) {
        let delay = self.delay();
        let device = &self.devices[at];
        let Some(conn) = device.conn.filter(|_| self.now >= device.cut_until) else { return };
        let Some(socket) = self.sockets.get_mut(&conn) else { return };
        socket.from_node = socket.from_node.max(self.now + delay);
        let due = socket.from_node;
        self.at(due.0, Event::Crew(CrewEvent::ToRelay(conn, bytes)));
    }

    /// The relay looks at nothing but the header.
    pub(crate) fn relay(&mut self, conn: Conn, bytes: Vec<u8>) {
        if self.scheduler.is_none() || !self.sockets.contains_key(&conn) {
            return;
        }
        let Ok((header, _)) = frame::split(&bytes) else { panic!("no frame") };
        let Header { source, destination, crew, epoch, .. } = header;
        let Some((now, members)) = self.crews.routes.get(&crew) else { return };
        if epoch != *now || members.get(&source) != Some(&conn) {
            self.report.crew.stale += 1;
            return;
        }
        let Some(to) = members.get(&destination).copied() else { return };
        self.report.crew.relayed += 1;
        let ((low, high), links) = (self.scenario.delay, self.scenario.links);
        let (delay, jitter) = (Micros(low), Micros(high - low));
        let wire = Wire { delay, jitter, lost: links.lost, doubled: links.doubled };
        for late in wire.copies(&mut self.random) {
            let due = self.now + late;
            self.at(due.0, Event::Crew(CrewEvent::FromRelay(to, bytes.clone())));
        }
    }

    pub(crate) fn compare_rows(&mut self, crew: CrewId, a: &[Rows], b: &[Rows]) {
        let same = self.crews.read(a).zip(self.crews.read(b)).map(|(a, b)| a == b);
        assert!(same.is_some(), "rows that are to be compared are gone");
        self.report.crew.checks += 1;
        self.report.crew.lies_found += u64::from(same == Some(false));
        let (due, life) = (self.now + self.delay(), self.life);
        self.at(due.0, Event::Crew(CrewEvent::Compared { life, crew, same }));
    }
}
