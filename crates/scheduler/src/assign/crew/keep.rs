//! Checkpoints, and the end: the state after the last step is merged as one.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use shoal_protocol::{Attempt, BlobRef, CheckpointPart, CrewId, Epoch, Hash, JobId, Span, Time};

use super::{Base, Check, Final, Seat};
use crate::Output;
use crate::fact::{Fact, Place};
use crate::state::{Conn, Scheduler};

/// Checkpoints one member may have under way: it stores two at a time, and the next may overtake the news.
const MAX_ARRIVING: usize = 3;

impl Scheduler {
    /// A member's rows of a checkpoint are stored.
    pub(super) fn checkpointed(
        &mut self,
        now: Time,
        id: CrewId,
        at: usize,
        step: u64,
        part: CheckpointPart,
    ) {
        let Some(known) = self.crew_job(id) else { return };
        let (job, old) = (known.id, known.checkpoint.step);
        let Some(crew) = self.crews.get_mut(&id) else { return };
        let seat = &crew.seats[at];
        let due = crew.keep_every > 0 && step.is_multiple_of(crew.keep_every);
        // The state after the last step is the result, and no checkpoint.
        let due = due && step > old && step < crew.plan.steps;
        let fits =
            part.rows == seat.rows && part.blob.size == crew.plan.problem.kept_bytes(part.rows);
        let has = |parts: &BTreeMap<u64, CheckpointPart>| parts.contains_key(&part.rows.start);
        let again = crew.arriving.get(&step).is_some_and(has);
        let open = crew.arriving.values().filter(|parts| has(parts)).count();
        if !due || !fits || again || open >= MAX_ARRIVING {
            self.drop_parts(id, [part.blob].into());
            return;
        }
        let parts = crew.arriving.entry(step).or_default();
        parts.insert(part.rows.start, part);
        if parts.len() < crew.seats.len() {
            return;
        }
        let parts: Vec<_> = crew.arriving.remove(&step).unwrap_or_default().into_values().collect();
        let later = crew.arriving.split_off(&step);
        let earlier = core::mem::replace(&mut crew.arriving, later);
        let over: Vec<_> =
            earlier.into_values().flat_map(|parts| parts.into_values()).map(|p| p.blob).collect();
        // Past this step nothing of what went wrong before counts.
        (crew.failures, crew.failed_on) = (0, Vec::new());
        self.mark_time(now);
        self.record(Fact::Checkpoint { job, step, parts: parts.clone() });
        let Some(known) = self.crew_job_mut(id) else { return };
        let before = Base::new(&known.checkpoint);
        (known.checkpoint.step, known.checkpoint.parts) = (step, parts);
        known.checkpoint.pokes = known.checkpoint.pokes.split_off(&step);
        self.drop_parts(id, over);
        self.stored_whole(now, id, before);
        self.improve(now, id);
    }

    /// Parts nobody needs; never one that is in the checkpoint, whose bytes may be the same.
    pub(super) fn drop_parts(&mut self, id: CrewId, mut blobs: Vec<BlobRef>) {
        if let Some(known) = self.crew_job(id) {
            let needed =
                |blob: &BlobRef| known.checkpoint.parts.iter().any(|p| p.blob.hash == blob.hash);
            blobs.retain(|blob| !needed(blob));
        }
        if let Some(crew) = self.crews.get(&id) {
            let coming = |blob: &BlobRef| {
                let mut parts = crew.arriving.values().flat_map(|parts| parts.values());
                let unproven = crew.unproven();
                parts.any(|part| part.blob.hash == blob.hash)
                    || unproven.iter().any(|needed| needed.hash == blob.hash)
            };
            blobs.retain(|blob| !coming(blob));
        }
        if !blobs.is_empty() {
            self.outputs.push_back(Output::Drop(blobs));
        }
    }

    /// Whether some crew needs these bytes to check rows, or to go back to where it is sure.
    pub fn needs_part(&self, hash: Hash) -> bool {
        self.crews.values().any(|crew| crew.unproven().iter().any(|blob| blob.hash == hash))
    }

    /// The job and rows of a crew's attempt, and who has it.
    pub(crate) fn crew_lease(&self, attempt: Attempt) -> Option<(JobId, Span, Conn)> {
        let (id, seat) = self.seat_with(attempt)?;
        Some((self.job_of(id)?, seat.rows, self.conn_of(seat.node)?))
    }

    fn seat_with(&self, attempt: Attempt) -> Option<(CrewId, &Seat)> {
        let mut seats =
            self.crews.iter().flat_map(|(id, crew)| crew.seats.iter().map(|s| (*id, s)));
        seats.find(|(_, seat)| seat.attempt == attempt)
    }

    /// A member's rows of the final state are here.
    pub(crate) fn final_rows(
        &mut self,
        now: Time,
        conn: Conn,
        attempt: Attempt,
        place: Option<Place>,
    ) {
        let Some((id, seat)) = self.seat_with(attempt) else { return };
        let (rows, holder) = (seat.rows, self.conn_of(seat.node));
        if holder != Some(conn) {
            return;
        }
        let Some(crew) = self.crews.get_mut(&id) else { return };
        let Some(seat) = crew.seats.iter_mut().find(|seat| seat.attempt == attempt) else { return };
        seat.heard = now;
        let node = seat.node;
        // Rows that are being checked are not swapped for others.
        if crew.finals.contains_key(&rows.start) {
            return;
        }
        crew.finals.insert(rows.start, Final { rows, node, place });
        crew.moved.1 = now;
        self.conclude(now, id);
    }

    /// The last step's rows are the job's result.
    pub(super) fn merge_finals(&mut self, now: Time, id: CrewId) {
        let Some(crew) = self.crews.get_mut(&id) else { return };
        let (job, finals) = (crew.job, core::mem::take(&mut crew.finals));
        for Final { rows, node, place } in finals.into_values() {
            let fresh = self.jobs.get_mut(&job).is_some_and(|job| job.waiting.take(rows));
            if fresh {
                self.merge_unit(now, job, rows, node, place, None);
            }
        }
        self.finish_if_whole(now, job);
    }

    /// The job is over, one way or another.
    pub(crate) fn end_crews(&mut self, job: JobId) {
        let crews = self.jobs.get_mut(&job).map(|job| core::mem::take(&mut job.crews));
        crews.unwrap_or_default().into_iter().for_each(|id| self.end_crew(job, id));
    }

    fn end_crew(&mut self, job: JobId, id: CrewId) {
        self.dismiss_but(id, &[]);
        self.close_route(id);
        let check = self.end_check(id);
        let Some(crew) = self.crews.remove(&id) else { return };
        let mut over = crew.unproven();
        over.extend(check.iter().flat_map(Check::rows_kept));
        let arriving = crew.arriving.into_values().flat_map(|parts| parts.into_values());
        over.extend(arriving.map(|part| part.blob));
        if let Some(known) = self.jobs.get_mut(&job) {
            over.extend(known.checkpoint.parts.drain(..).map(|part| part.blob));
            known.checkpoint.step = 0;
            known.checkpoint.pokes.clear();
            known.past = crew.changes;
        }
        if !over.is_empty() {
            self.outputs.push_back(Output::Drop(over));
        }
    }

    pub(super) fn close_route(&mut self, id: CrewId) {
        let epoch = self.crews.get(&id).map_or(Epoch(0), |crew| crew.epoch);
        self.outputs.push_back(Output::Route { crew: id, epoch, members: Vec::new() });
    }
}
