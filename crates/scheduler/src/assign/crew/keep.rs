//! Checkpoints, and the end: the state after the last step is merged as one.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use shoal_protocol::{Attempt, BlobRef, Epoch, JobId, KeptPart, Span, Time};

use super::{Final, crew_of};
use crate::Output;
use crate::fact::{Fact, Place};
use crate::state::{Conn, Scheduler};

/// Checkpoints one member may have under way: it stores two at a time, and the next may overtake the news.
const MAX_ARRIVING: usize = 3;

impl Scheduler {
    /// A member's rows of a checkpoint are stored.
    pub(super) fn kept(&mut self, now: Time, job: JobId, at: usize, step: u64, part: KeptPart) {
        let Some(known) = self.jobs.get(&job) else { return };
        let old = known.kept.step;
        let (row, steps) = self.sim(job).map_or((0, 0), |sim| (sim.row_bytes(), sim.steps));
        let Some(crew) = self.crews.get_mut(&job) else { return };
        let seat = &crew.seats[at];
        let due = crew.keep_every > 0 && step.is_multiple_of(crew.keep_every);
        let due = due && step > old && step <= steps;
        let fits = part.rows == seat.rows && part.blob.size == part.rows.len.saturating_mul(row);
        let has = |parts: &BTreeMap<u64, KeptPart>| parts.contains_key(&part.rows.start);
        let again = crew.arriving.get(&step).is_some_and(has);
        let open = crew.arriving.values().filter(|parts| has(parts)).count();
        if !due || !fits || again || open >= MAX_ARRIVING {
            self.drop_parts(job, [part.blob].into());
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
        let mut over: Vec<_> =
            earlier.into_values().flat_map(|parts| parts.into_values()).map(|p| p.blob).collect();
        // Past this step nothing of what went wrong before counts.
        (crew.failures, crew.failed_on) = (0, Vec::new());
        self.mark_time(now);
        self.record(Fact::Kept { job, step, parts: parts.clone() });
        if let Some(known) = self.jobs.get_mut(&job) {
            let before = core::mem::replace(&mut known.kept.parts, parts);
            known.kept.step = step;
            known.kept.strokes = known.kept.strokes.split_off(&step);
            over.extend(before.iter().map(|part| part.blob));
        }
        self.drop_parts(job, over);
        self.improve(now, job);
    }

    /// Parts nobody needs; never one that is in the checkpoint, whose bytes may be the same.
    pub(super) fn drop_parts(&mut self, job: JobId, mut blobs: Vec<BlobRef>) {
        if let Some(known) = self.jobs.get(&job) {
            let needed = |blob: &BlobRef| known.kept.parts.iter().any(|p| p.blob.hash == blob.hash);
            blobs.retain(|blob| !needed(blob));
        }
        if let Some(crew) = self.crews.get(&job) {
            let coming = |blob: &BlobRef| {
                let mut parts = crew.arriving.values().flat_map(|parts| parts.values());
                parts.any(|part| part.blob.hash == blob.hash)
            };
            blobs.retain(|blob| !coming(blob));
        }
        if !blobs.is_empty() {
            self.outputs.push_back(Output::Drop(blobs));
        }
    }

    /// The job and rows of a crew's attempt, and who has it.
    pub(crate) fn crew_lease(&self, attempt: Attempt) -> Option<(JobId, Span, Conn)> {
        let mut seats =
            self.crews.iter().flat_map(|(job, crew)| crew.seats.iter().map(|s| (*job, s)));
        let (job, seat) = seats.find(|(_, seat)| seat.attempt == attempt)?;
        Some((job, seat.rows, self.conn_of(seat.node)?))
    }

    /// A member's rows of the final state are here.
    pub(crate) fn final_rows(
        &mut self,
        now: Time,
        conn: Conn,
        attempt: Attempt,
        place: Option<Place>,
    ) {
        let Some((job, rows, holder)) = self.crew_lease(attempt) else { return };
        if holder != conn {
            return;
        }
        let Some(crew) = self.crews.get_mut(&job) else { return };
        let Some(seat) = crew.seats.iter_mut().find(|seat| seat.attempt == attempt) else { return };
        seat.heard = now;
        let node = seat.node;
        crew.finals.insert(rows.start, Final { rows, node, place });
        crew.moved.1 = now;
        if crew.finals.len() < crew.seats.len() {
            return;
        }
        let finals = core::mem::take(&mut crew.finals);
        for Final { rows, node, place } in finals.into_values() {
            let fresh = self.jobs.get_mut(&job).is_some_and(|job| job.waiting.take(rows));
            if fresh {
                self.merge_unit(now, job, rows, node, place, None);
            }
        }
        self.finish_if_whole(now, job);
    }

    /// The job is over, one way or another.
    pub(crate) fn end_crew(&mut self, job: JobId) {
        if !self.crews.contains_key(&job) {
            return;
        }
        self.dismiss_but(job, &[]);
        self.close_route(job);
        let Some(crew) = self.crews.remove(&job) else { return };
        let arriving = crew.arriving.into_values().flat_map(|parts| parts.into_values());
        let mut over: Vec<_> = arriving.map(|part| part.blob).collect();
        if let Some(known) = self.jobs.get_mut(&job) {
            over.extend(known.kept.parts.drain(..).map(|part| part.blob));
            known.kept.step = 0;
            known.kept.strokes.clear();
            known.past = crew.changes;
        }
        self.drop_parts(job, over);
    }

    pub(super) fn close_route(&mut self, job: JobId) {
        let epoch = self.jobs.get(&job).map_or(Epoch(0), |job| job.kept.epoch);
        let (crew, members) = (crew_of(job), Vec::new());
        self.outputs.push_back(Output::Route { crew, epoch, members });
    }
}
