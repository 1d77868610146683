//! Who waits for which pieces of a blob. A thread goes on as soon as its own pieces are on the shelf, whatever
//! else of the blob is still coming for others.

use std::sync::mpsc::SyncSender;

use shoal_protocol::share::pieces_of;
use shoal_protocol::{BlobRef, Hash, PieceSet};

use super::super::Host;
use super::Sharing;
use super::clerks::{DiskOrder, FetchOrder};

/// A blob of which something is being got.
pub(super) struct Coming {
    /// All that was asked for.
    pub(super) needs: PieceSet,
    /// Threads, and what each waits for.
    waiters: Vec<(PieceSet, SyncSender<bool>)>,
}

impl Sharing {
    /// Those whose pieces are all here go on when they are stored. Who needs the whole waits until it was checked.
    pub(super) fn answer_parts(&mut self, blob: Hash) {
        let (Some(coming), Some(has)) = (self.waiting.get_mut(&blob), self.share.has(blob)) else {
            return;
        };
        let there = |(needs, _): &mut (PieceSet, _)| !needs.is_full() && has.covers(needs);
        let there: Vec<_> = coming.waiters.extract_if(.., there).map(|(_, reply)| reply).collect();
        if !there.is_empty() {
            // If that cannot be ordered they hear no answer, and fetch for themselves.
            self.clerks.disk(DiskOrder::Answer(there));
        }
    }

    /// A whole that is needed is not here before it was checked.
    fn is_all_here(&self, blob: Hash) -> bool {
        let (coming, has) = (self.waiting.get(&blob), self.share.has(blob));
        let here = |(coming, has): (&Coming, &PieceSet)| has.covers(&coming.needs);
        coming.filter(|coming| !coming.needs.is_full()).zip(has).is_some_and(here)
    }
}

impl Host<'_> {
    pub(super) fn share_need(&mut self, blob: BlobRef, needs: PieceSet, reply: SyncSender<bool>) {
        self.share_seek(blob, &needs);
        let here = self.sharing.as_ref().is_none_or(|sharing| sharing.shelf.holds(blob, &needs));
        let sharing = self.sharing.as_mut();
        match sharing.and_then(|sharing| sharing.waiting.get_mut(&blob.hash)) {
            Some(coming) if !here => coming.waiters.push((needs, reply)),
            // It is here already, or nothing is exchanged: whoever asked looks.
            Some(_) | None => drop(reply.send(true)),
        }
    }

    /// Sees to it that these pieces are on the shelf; until then the blob is in `waiting`.
    pub(super) fn share_seek(&mut self, blob: BlobRef, needs: &PieceSet) {
        let Some(sharing) = &mut self.sharing else { return };
        let coming = sharing.waiting.get(&blob.hash);
        let sought = coming.is_some_and(|coming| coming.needs.covers(needs));
        if sought || sharing.shelf.holds(blob, needs) {
            return;
        }
        if sharing.clerks.fetch(FetchOrder::Prepare { blob, needs: needs.clone() }) {
            let none = || Coming { needs: PieceSet::new(pieces_of(&blob)), waiters: Vec::new() };
            let coming = sharing.waiting.entry(blob.hash).or_insert_with(none);
            coming.needs = coming.needs.with(needs);
        }
    }

    /// Pieces are on the shelf. Others may have been asked for meanwhile: those are waited for.
    pub(super) fn share_settled(&mut self, blob: Hash) {
        if self.sharing.as_ref().is_some_and(|sharing| sharing.is_all_here(blob)) {
            self.share_answer(blob, true);
        }
    }

    /// Whoever waits fetches it from the coordinator if it is not there.
    pub(super) fn share_answer(&mut self, blob: Hash, there: bool) {
        let Some(sharing) = &mut self.sharing else { return };
        for (_, reply) in sharing.waiting.remove(&blob).into_iter().flat_map(|all| all.waiters) {
            let _ = reply.send(there);
        }
        self.begin_laid_out();
    }
}
