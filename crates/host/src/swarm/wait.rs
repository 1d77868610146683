//! Who waits for which pieces of a blob. A thread goes on as soon as its own pieces are on the shelf, whatever
//! else of the blob is still coming for others. Inputs that all units of a kernel need whole are on the shelf before
//! the first of them begins, because the GPU process only looks there.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use shoal_kinds::InputSplit;
use shoal_node::JobInfo;
use shoal_protocol::swarm::{is_shared, pieces_of};
use shoal_protocol::{Attempt, BlobRef, Hash, JobId, Lease, PieceSet};

use super::super::Host;
use super::Sharing;
use super::clerks::{DiskOrder, FetchOrder};

#[derive(Default)]
pub(super) struct Waits {
    /// Blobs of which something is being got, and the threads that wait for them.
    coming: BTreeMap<Hash, Coming>,
    /// Units of kernels that wait for blobs that come.
    units: Vec<(Lease, Arc<JobInfo>)>,
    /// Jobs whose blobs were sought.
    laid: BTreeSet<JobId>,
}

/// A blob of which something is being got.
struct Coming {
    /// All that was asked for.
    needs: PieceSet,
    /// Threads, and what each waits for.
    waiters: Vec<(PieceSet, SyncSender<bool>)>,
}

impl Waits {
    fn seeks(&self, blob: Hash, needs: &PieceSet) -> bool {
        self.coming.get(&blob).is_some_and(|coming| coming.needs.covers(needs))
    }

    fn seek(&mut self, blob: BlobRef, needs: &PieceSet) {
        let none = || Coming { needs: PieceSet::new(pieces_of(&blob)), waiters: Vec::new() };
        let coming = self.coming.entry(blob.hash).or_insert_with(none);
        coming.needs = coming.needs.with(needs);
    }

    /// Those whose pieces are all among these. Who needs the whole waits until it was checked.
    fn served(&mut self, blob: Hash, has: &PieceSet) -> Vec<SyncSender<bool>> {
        let Some(coming) = self.coming.get_mut(&blob) else { return Vec::new() };
        let there = |(needs, _): &mut (PieceSet, _)| !needs.is_full() && has.covers(needs);
        coming.waiters.extract_if(.., there).map(|(_, reply)| reply).collect()
    }

    /// Whether all that was asked for is among these. A whole that is needed is not here before it was checked.
    fn is_all(&self, blob: Hash, has: &PieceSet) -> bool {
        let coming = self.coming.get(&blob).filter(|coming| !coming.needs.is_full());
        coming.is_some_and(|coming| has.covers(&coming.needs))
    }

    /// It came, or will not.
    fn over(&mut self, blob: Hash) -> Vec<SyncSender<bool>> {
        let waiters = self.coming.remove(&blob).map(|coming| coming.waiters);
        waiters.unwrap_or_default().into_iter().map(|(_, reply)| reply).collect()
    }

    /// Whether units of this job have to wait.
    fn keep_waiting(&self, info: &JobInfo) -> bool {
        let comes = |blob: BlobRef| self.coming.get(&blob.hash);
        needed_whole(info).any(|blob| comes(blob).is_some_and(|coming| coming.needs.is_full()))
    }
}

impl Sharing {
    /// Those whose pieces are all here go on when they are stored.
    pub(super) fn answer_parts(&mut self, blob: Hash) {
        let Some(has) = self.swarms.has(blob) else { return };
        let there = self.waits.served(blob, has);
        if !there.is_empty() {
            // If that cannot be ordered they hear no answer, and fetch for themselves.
            self.clerks.disk(DiskOrder::Answer(there));
        }
    }

    fn is_all_here(&self, blob: Hash) -> bool {
        self.swarms.has(blob).is_some_and(|has| self.waits.is_all(blob, has))
    }
}

impl Host<'_> {
    pub(super) fn swarm_need(&mut self, blob: BlobRef, needs: PieceSet, reply: SyncSender<bool>) {
        self.swarm_seek(blob, &needs);
        let here = self.sharing.as_ref().is_none_or(|sharing| sharing.shelf.holds(blob, &needs));
        let sharing = self.sharing.as_mut();
        match sharing.and_then(|sharing| sharing.waits.coming.get_mut(&blob.hash)) {
            Some(coming) if !here => coming.waiters.push((needs, reply)),
            // It is here already, or nothing is exchanged: whoever asked looks.
            Some(_) | None => drop(reply.send(true)),
        }
    }

    /// Sees to it that these pieces are on the shelf; until then the blob is coming.
    fn swarm_seek(&mut self, blob: BlobRef, needs: &PieceSet) {
        let Some(sharing) = &mut self.sharing else { return };
        if sharing.waits.seeks(blob.hash, needs) || sharing.shelf.holds(blob, needs) {
            return;
        }
        if sharing.clerks.fetch(FetchOrder::Prepare { blob, needs: needs.clone() }) {
            sharing.waits.seek(blob, needs);
        }
    }

    /// Pieces are on the shelf. Others may have been asked for meanwhile: those are waited for.
    pub(super) fn swarm_settled(&mut self, blob: Hash) {
        if self.sharing.as_ref().is_some_and(|sharing| sharing.is_all_here(blob)) {
            self.swarm_answer(blob, true);
        }
    }

    /// Whoever waits fetches it from the coordinator if it is not there.
    pub(super) fn swarm_answer(&mut self, blob: Hash, there: bool) {
        let Some(sharing) = &mut self.sharing else { return };
        for reply in sharing.waits.over(blob) {
            let _ = reply.send(there);
        }
        // Units that waited for it alone begin.
        for (lease, info) in std::mem::take(&mut sharing.waits.units) {
            self.begin_on_gpu(lease, &info);
        }
    }

    /// Begins a unit of a kernel, now or when its inputs are here.
    pub(in super::super) fn begin_on_gpu(&mut self, lease: Lease, info: &Arc<JobInfo>) {
        if let Some(sharing) = &mut self.sharing
            && sharing.waits.laid.insert(lease.job)
        {
            for blob in needed_whole(info) {
                self.swarm_seek(blob, &PieceSet::full(pieces_of(&blob)));
            }
        }
        match &mut self.sharing {
            Some(sharing) if sharing.waits.keep_waiting(info) => {
                sharing.waits.units.push((lease, Arc::clone(info)));
            }
            Some(_) | None => self.lanes.run_on_gpu(lease, info),
        }
    }

    pub(in super::super) fn swarm_abort(&mut self, attempt: Attempt) {
        if let Some(sharing) = &mut self.sharing {
            sharing.waits.units.retain(|(lease, _)| lease.attempt != attempt);
        }
    }

    pub(in super::super) fn swarm_forget(&mut self, job: JobId) {
        if let Some(sharing) = &mut self.sharing {
            sharing.waits.laid.remove(&job);
        }
    }
}

fn needed_whole(info: &JobInfo) -> impl Iterator<Item = BlobRef> {
    let whole = info.work.feeds().iter().filter(|feed| feed.split == InputSplit::Whole);
    whole.map(|feed| feed.blob).filter(is_shared)
}
