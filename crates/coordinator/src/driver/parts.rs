//! Which bytes of checkpoints somebody still needs. The same bytes may be part of several checkpoints, of
//! several jobs: they go when the last reference goes.

use std::collections::{BTreeMap, VecDeque};

use shoal_protocol::{BlobRef, CheckpointPart, CrewId, Hash, JobId};
use shoal_scheduler::{Conn, Fact};

/// Parts a member may store before it announces one: the next may be on their way while the last is said.
const MAX_UNSAID: usize = 4;

#[derive(Default)]
pub(crate) struct Parts {
    /// The last whole checkpoint of each running job.
    whole: BTreeMap<JobId, Vec<CheckpointPart>>,
    /// Announced parts of checkpoints that are not whole yet, with their steps.
    arriving: BTreeMap<JobId, Vec<(u64, Hash)>>,
    /// Stored and not announced yet.
    unsaid: BTreeMap<(CrewId, Conn), VecDeque<BlobRef>>,
}

impl Parts {
    pub(crate) fn learn(&mut self, fact: &Fact) {
        match fact {
            Fact::Checkpoint { job, step, parts } => {
                self.whole.insert(*job, parts.clone());
                if let Some(arriving) = self.arriving.get_mut(job) {
                    arriving.retain(|(of, _)| of > step);
                }
            }
            // What was under way in the last epoch never becomes whole.
            Fact::Epoch { job, .. } => {
                self.arriving.remove(job);
            }
            Fact::Finished { job, .. }
            | Fact::Failed { job, .. }
            | Fact::Cancelled { job, .. }
            | Fact::Removed { job } => {
                self.whole.remove(job);
                self.arriving.remove(job);
            }
            Fact::Life { .. }
            | Fact::Node { .. }
            | Fact::Submitted { .. }
            | Fact::Merged { .. }
            | Fact::FailedItems { .. }
            | Fact::Unmerged { .. }
            | Fact::Checked { .. }
            | Fact::Passed { .. }
            | Fact::Class { .. }
            | Fact::Numbered { .. }
            | Fact::Seen { .. }
            | Fact::Rejected { .. }
            | Fact::Trust { .. }
            | Fact::Serves { .. }
            | Fact::Unserved { .. }
            | Fact::Replica { .. }
            | Fact::ServiceCrew { .. }
            | Fact::Proven { .. }
            | Fact::Poked { .. }
            | Fact::Total { .. } => {}
        }
    }

    pub(super) fn needs(&self, hash: Hash) -> bool {
        self.whole.values().flatten().any(|part| part.blob.hash == hash)
            || self.arriving.values().flatten().any(|(_, part)| *part == hash)
            || self.unsaid.values().flatten().any(|blob| blob.hash == hash)
    }

    /// Jobs whose checkpoints have parts that are not there.
    pub(super) fn lost(&self, is_there: impl Fn(&BlobRef) -> bool) -> Vec<JobId> {
        let lost = self.whole.iter().filter(|(_, parts)| !parts.iter().all(|p| is_there(&p.blob)));
        lost.map(|(job, _)| *job).collect()
    }

    /// A member stored a part. Gives one back that it never announced.
    pub(super) fn stored(&mut self, crew: CrewId, conn: Conn, blob: BlobRef) -> Option<BlobRef> {
        let unsaid = self.unsaid.entry((crew, conn)).or_default();
        unsaid.push_back(blob);
        if unsaid.len() > MAX_UNSAID { unsaid.pop_front() } else { None }
    }

    /// A member announces a part: whether it is one that it stored.
    pub(super) fn said(&mut self, crew: CrewId, conn: Conn, hash: Hash) -> bool {
        let Some(unsaid) = self.unsaid.get_mut(&(crew, conn)) else { return false };
        let at = unsaid.iter().position(|blob| blob.hash == hash);
        at.and_then(|at| unsaid.remove(at)).is_some()
    }

    /// The scheduler took a part; its checkpoint may be whole already.
    pub(super) fn taken(&mut self, job: JobId, step: u64, hash: Hash) {
        let is_whole =
            |parts: &Vec<CheckpointPart>| parts.iter().any(|part| part.blob.hash == hash);
        if !self.whole.get(&job).is_some_and(is_whole) {
            self.arriving.entry(job).or_default().push((step, hash));
        }
    }

    /// Forgets what was stored and not announced, of a crew or of a connection; gives it back.
    pub(super) fn forget_unsaid(&mut self, is_gone: impl Fn(CrewId, Conn) -> bool) -> Vec<BlobRef> {
        let gone = self.unsaid.extract_if(.., |(crew, conn), _| is_gone(*crew, *conn));
        gone.flat_map(|(_, blobs)| blobs).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shoal_protocol::{Epoch, Span, Time};

    fn part(byte: u8) -> CheckpointPart {
        CheckpointPart { rows: Span::new(0, 4), blob: BlobRef { hash: Hash([byte; 32]), size: 64 } }
    }

    fn kept(job: u64, step: u64, byte: u8) -> Fact {
        Fact::Checkpoint { job: JobId(job), step, parts: vec![part(byte)] }
    }

    #[test]
    fn bytes_are_needed_while_any_checkpoint_has_them() {
        let (mut parts, hash) = (Parts::default(), Hash([1; 32]));
        parts.learn(&kept(1, 10, 1));
        parts.learn(&kept(2, 10, 1));
        parts.learn(&kept(1, 20, 2));
        assert!(parts.needs(hash));
        parts.learn(&Fact::Cancelled { job: JobId(2), at: Time(1) });
        assert!(!parts.needs(hash));
        assert_eq!(parts.lost(|blob| blob.hash == hash), [JobId(1)]);
    }

    #[test]
    fn what_is_under_way_is_needed_until_its_epoch_or_a_later_checkpoint_ends_it() {
        let (mut parts, job, hash) = (Parts::default(), JobId(1), Hash([1; 32]));
        let (crew, conn) = (CrewId(1), Conn(1));
        assert_eq!(parts.stored(crew, conn, part(1).blob), None);
        assert!(parts.said(crew, conn, hash) && !parts.said(crew, conn, hash));
        assert!(!parts.needs(hash));
        parts.taken(job, 10, hash);
        assert!(parts.needs(hash));
        parts.learn(&kept(1, 5, 9));
        assert!(parts.needs(hash));
        parts.learn(&kept(1, 20, 9));
        assert!(!parts.needs(hash));
        parts.taken(job, 30, hash);
        parts.learn(&Fact::Epoch { job, epoch: Epoch(2) });
        assert!(!parts.needs(hash));
    }

    #[test]
    fn a_member_that_announces_nothing_holds_few_parts() {
        let (mut parts, crew, conn) = (Parts::default(), CrewId(1), Conn(1));
        for byte in 1..=4 {
            assert_eq!(parts.stored(crew, conn, part(byte).blob), None);
        }
        assert_eq!(parts.stored(crew, conn, part(5).blob), Some(part(1).blob));
        assert!(!parts.needs(Hash([1; 32])) && parts.needs(Hash([5; 32])));
        assert_eq!(parts.forget_unsaid(|_, of| of == conn).len(), MAX_UNSAID);
        assert!(!parts.needs(Hash([5; 32])));
    }
}
