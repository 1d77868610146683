//! What the driver does for crews beside the scheduler: it mints their tokens, tells the relay of their members,
//! looks after the bytes of their checkpoints, and knows who may send pictures of what.

use std::collections::BTreeSet;
use std::sync::Arc;

use shoal_kinds::SimWork;
use shoal_protocol::swarm::BLOBS;
use shoal_protocol::{
    BlobRef, CrewId, CrewSay, CrewTask, Enlist, Epoch, FromNode, Hash, JobId, Micros, NodeId,
    PublicKey, Time, ToNode,
};
use shoal_scheduler::{Conn, Fact, Input, Scheduler};
use shoal_seal::{Claims, Rights, mint};

use super::Driver;
use super::event::{CrewEvent, GridSeat};
use super::parts::Parts;
use crate::fields::Fields;
use crate::ice::Ice;
use crate::keys::Signer;
use crate::relay::Relay;
use crate::store::blobs::Blobs;

/// A crew with checkpoints gets new ones twice a day; one without would have to begin again, so it has a week.
/// Whoever leaves a crew loses its token's worth with the next epoch, long before.
const TOKEN_LASTS: Micros = Micros::from_secs(7 * 24 * 3600);
/// Buffers of a simulation or a service: its channels. 0 is the link's own.
const WORK_BUFFERS: (u32, u32) = (1, 15);

pub(crate) struct Crews {
    signer: Arc<Signer>,
    /// STUN and TURN servers.
    ice: Ice,
    kept: Blobs,
    fields: Arc<Fields>,
    parts: Parts,
    /// Knows who may send frames to whom.
    relay: Relay,
    /// Crews of which the relay knows members.
    routed: BTreeSet<CrewId>,
    /// Fields that members send pictures of.
    watched: BTreeSet<JobId>,
}

impl Crews {
    pub(crate) fn new(
        signer: Arc<Signer>,
        ice: Ice,
        kept: Blobs,
        fields: Arc<Fields>,
        relay: Relay,
    ) -> Crews {
        let (parts, routed, watched) = (Parts::default(), BTreeSet::new(), BTreeSet::new());
        Crews { signer, ice, kept, fields, parts, relay, routed, watched }
    }

    pub(super) fn learn(&mut self, fact: &Fact) {
        self.parts.learn(fact);
    }

    /// Where parts of checkpoints are.
    pub(super) fn kept(&self) -> Blobs {
        self.kept.clone()
    }

    pub(super) fn key(&self) -> PublicKey {
        self.signer.public()
    }

    /// Jobs whose checkpoints are not whole on the disk.
    pub(super) fn lost(&self) -> Vec<JobId> {
        self.parts.lost(|blob| self.has(blob))
    }

    /// Drops what is stored and no checkpoint needs.
    pub(super) fn sweep(&self) -> std::io::Result<()> {
        self.kept.retain(|hash| self.parts.needs(hash))
    }

    pub(super) fn len(&self) -> u64 {
        self.routed.len() as u64
    }

    /// The job is gone.
    pub(super) fn forget(&mut self, job: JobId) {
        self.watched.remove(&job);
        self.fields.forget(job);
    }

    fn has(&self, blob: &BlobRef) -> bool {
        self.kept.find(blob.hash).ok().flatten() == Some(*blob)
    }

    /// Parts of checkpoints that somebody does not need any more; perhaps others do, or the same crew needs them to
    /// check rows.
    pub(super) fn discard(&self, scheduler: &Scheduler, blobs: &[BlobRef]) {
        let needs = |hash: Hash| self.parts.needs(hash) || scheduler.needs_part(hash);
        let over = blobs.iter().filter(|blob| !needs(blob.hash));
        over.for_each(|blob| self.kept.remove(blob.hash));
    }

    /// Who may send frames to whom. At once: members hear of it only after the commit, so that none speaks
    /// too early.
    /// Gives back what was stored by those who are no members any more.
    pub(super) fn route(
        &mut self,
        crew: CrewId,
        epoch: Epoch,
        members: &[(NodeId, Conn)],
    ) -> Vec<BlobRef> {
        self.relay.route(crew, epoch, members);
        if members.is_empty() {
            self.routed.remove(&crew);
        } else {
            self.routed.insert(crew);
        }
        let stays = |conn: Conn| members.iter().any(|(_, member)| *member == conn);
        self.parts.forget_unsaid(|of, conn| of == crew && !stays(conn))
    }

    /// Whether it changed that somebody looks at a field: then whether somebody does now.
    fn watch(&mut self, job: JobId) -> Option<bool> {
        let on = self.fields.is_watched(job);
        let changed = if on { self.watched.insert(job) } else { self.watched.remove(&job) };
        changed.then_some(on)
    }

    /// What the coordinator's shell adds to a call.
    fn fill(&self, now: Time, enlist: &mut Enlist) {
        let (crew, epoch) = (enlist.crew, enlist.epoch);
        let (buffers, rights) = match &enlist.task {
            CrewTask::Sim(_) | CrewTask::Stage(_) => (WORK_BUFFERS, Rights::WRITE),
            CrewTask::Talk => ((0, u32::MAX), Rights::ALL),
            CrewTask::Swarm => ((u32::from(BLOBS), u32::from(BLOBS)), Rights::READ),
        };
        let Some(holder) = enlist.members.get(usize::from(enlist.rank)) else { return };
        enlist.ice = self.ice.told(now, holder.node);
        let until = (now + TOKEN_LASTS).0;
        let claims = Claims { crew, epoch, holder: holder.node, buffers, rights, until };
        let mut secret = [0; 32];
        match getrandom::fill(&mut secret) {
            Ok(()) => enlist.token = mint(|words| self.signer.sign(words), &claims, secret),
            // Without a token nobody listens to it: the crew will say so.
            Err(error) => tracing::error!("no random bytes for a token: {error}"),
        }
    }
}

impl Driver {
    /// A message with what only the shell knows.
    pub(super) fn completed(&self, mut message: ToNode) -> ToNode {
        if let ToNode::Enlist(enlist) = &mut message {
            self.crews.fill(self.clock.now(), enlist);
        }
        message
    }

    pub(super) fn take_crew(&mut self, now: Time, event: CrewEvent) {
        match event {
            CrewEvent::Said { conn, crew, epoch, say } => {
                self.crew_said(now, conn, crew, epoch, say);
            }
            CrewEvent::Kept { crew, epoch, conn, blob, reply } => {
                let is_member = self.scheduler.member(crew, epoch, conn).is_some();
                let over = match is_member {
                    true => self.crews.parts.stored(crew, conn, blob),
                    false => Some(blob),
                };
                self.crews.discard(&self.scheduler, over.as_slice());
                let _ = reply.send(is_member);
            }
            CrewEvent::NoRoom => self.room.lacks(),
            CrewEvent::Poke { job, poke } => self.handle(now, Input::Poke { job, poke }),
            CrewEvent::Watch { job } => {
                if let Some(on) = self.crews.watch(job) {
                    self.handle(now, Input::Watch { job, on });
                }
            }
        }
    }

    /// Where a connection sits in a crew; in its present epoch if none is named.
    pub(super) fn seat(&self, crew: CrewId, epoch: Option<Epoch>, conn: Conn) -> Option<GridSeat> {
        let (job, rows) = match epoch {
            Some(epoch) => self.scheduler.member(crew, epoch, conn)?,
            None => self.scheduler.in_crew(crew, conn)?,
        };
        let sim = self.sim(job)?;
        let (width, height, row_bytes) = (sim.width, sim.height, sim.row_bytes());
        Some(GridSeat { job, rows, row_bytes, width, height })
    }

    pub(super) fn sim(&self, job: JobId) -> Option<&SimWork> {
        self.scheduler.spec(job)?.work.sim()
    }

    fn crew_said(&mut self, now: Time, conn: Conn, crew: CrewId, epoch: Epoch, say: CrewSay) {
        let kept = match &say {
            CrewSay::Checkpoint { step, part } => Some((*step, *part)),
            CrewSay::Auditioned { .. }
            | CrewSay::Progress { .. }
            | CrewSay::Slow { .. }
            | CrewSay::Bad { .. }
            | CrewSay::Failed { .. }
            | CrewSay::Meet { .. }
            | CrewSay::Leave
            | CrewSay::Poked { .. }
            | CrewSay::Total { .. }
            | CrewSay::Loaded
            | CrewSay::Staged(_) => None,
        };
        if let Some((_, part)) = &kept {
            let is_own = self.crews.parts.said(crew, conn, part.blob.hash);
            if self.scheduler.member(crew, epoch, conn).is_none() || !self.crews.has(&part.blob) {
                tracing::warn!(%crew, conn = conn.0, rows = %part.rows, "a part of a checkpoint is announced that is not there, or too late");
                // Of bytes that others stored a stranger may say what it likes.
                let over = is_own.then_some(part.blob);
                return self.crews.discard(&self.scheduler, over.as_slice());
            }
        }
        if let Some(job) = self.scheduler.job_of(crew) {
            self.known.note_job(job);
        }
        // What a checker stores is compared and goes: no checkpoint will have it.
        let checks = self.scheduler.is_check(crew);
        let before = self.later.place();
        self.handle(now, Input::Said { conn, message: FromNode::Crew { crew, epoch, say } });
        if let Some((step, part)) = kept
            && !checks
            && let Some((job, _)) = self.scheduler.member(crew, epoch, conn)
            && !self.later.drops(&part.blob, before)
        {
            self.crews.parts.taken(job, step, part.blob.hash);
        }
    }
}
