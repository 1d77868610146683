//! Inputs that all units of a kernel need whole are on the shelf before the first of them begins: the GPU process
//! only looks there.

use std::sync::Arc;

use shoal_kinds::InputSplit;
use shoal_node::JobInfo;
use shoal_protocol::share::{is_shared, pieces_of};
use shoal_protocol::{Attempt, BlobRef, JobId, Lease, PieceSet};

use super::super::Host;

impl Host<'_> {
    /// Begins a unit of a kernel, now or when its inputs are here.
    pub(in super::super) fn begin_on_gpu(&mut self, lease: Lease, info: &Arc<JobInfo>) {
        if let Some(sharing) = &mut self.sharing
            && sharing.laid.insert(lease.job)
        {
            for blob in needed_whole(info) {
                self.share_seek(blob, &PieceSet::full(pieces_of(&blob)));
            }
        }
        let waits = self.is_waiting_for(info);
        match (&mut self.sharing, &mut self.gpu) {
            (Some(sharing), _) if waits => sharing.units.push((lease, Arc::clone(info))),
            (_, Some(gpu)) => gpu.run(lease, info),
            (_, None) => {}
        }
    }

    fn is_waiting_for(&self, info: &JobInfo) -> bool {
        let Some(sharing) = &self.sharing else { return false };
        let comes = |blob: BlobRef| sharing.waiting.get(&blob.hash);
        needed_whole(info).any(|blob| comes(blob).is_some_and(|coming| coming.needs.is_full()))
    }

    /// A blob came, or will not: units that waited for it alone begin.
    pub(super) fn begin_laid_out(&mut self) {
        let Some(sharing) = &mut self.sharing else { return };
        for (lease, info) in std::mem::take(&mut sharing.units) {
            self.begin_on_gpu(lease, &info);
        }
    }

    pub(in super::super) fn share_abort(&mut self, attempt: Attempt) {
        if let Some(sharing) = &mut self.sharing {
            sharing.units.retain(|(lease, _)| lease.attempt != attempt);
        }
    }

    pub(in super::super) fn share_forget(&mut self, job: JobId) {
        if let Some(sharing) = &mut self.sharing {
            sharing.laid.remove(&job);
        }
    }
}

fn needed_whole(info: &JobInfo) -> impl Iterator<Item = BlobRef> {
    let whole = info.work.feeds().iter().filter(|feed| feed.split == InputSplit::Whole);
    whole.map(|feed| feed.blob).filter(is_shared)
}
