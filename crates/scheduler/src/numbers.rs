//! Where numbers come from: those that are never given twice, and those that are drawn. Chance comes from the seed that
//! the shell gives at each start, so that the same inputs give the same outputs; nodes cannot foresee it.

use shoal_protocol::{Attempt, CrewId, JobId};

/// Numbers of crews begin here, so that nobody takes one for a job's, and still fit a JavaScript number.
const FIRST_CREW: u64 = 1 << 40;
/// Bits left for counting within one life of the coordinator. A crew's number dies with it: members forget their
/// crews when they greet the next life, and only epochs go on.
const COUNT_BITS: u32 = 20;

#[derive(Default)]
pub(crate) struct Numbers {
    /// Counts starts of the coordinator; the high part of every attempt.
    life: u32,
    last_attempt: u32,
    /// Of jobs and services.
    last_job: u64,
    /// Counts crews and pairs of this process.
    last_crew: u64,
}

impl Numbers {
    pub(crate) fn life(&self) -> u32 {
        self.life
    }

    pub(crate) fn begin_life(&mut self, life: u32) {
        (self.life, self.last_attempt) = (life, 0);
    }

    /// The next lending; none if this life has no numbers left.
    pub(crate) fn next_attempt(&mut self) -> Option<Attempt> {
        self.last_attempt = self.last_attempt.checked_add(1)?;
        Some(Attempt::new(self.life, self.last_attempt))
    }

    /// Lendings of this life so far.
    pub(crate) fn attempts(&self) -> u32 {
        self.last_attempt
    }

    /// Whether an attempt was lent before, in this life or another.
    pub(crate) fn was_given(&self, attempt: Attempt) -> bool {
        attempt < Attempt::new(self.life, self.last_attempt.saturating_add(1))
    }

    pub(crate) fn next_job(&mut self) -> JobId {
        self.last_job += 1;
        JobId(self.last_job)
    }

    /// Replayed.
    pub(crate) fn recall_job(&mut self, job: JobId) {
        self.last_job = self.last_job.max(job.0);
    }

    /// A number no crew had before, in this or any other life of the coordinator.
    pub(crate) fn next_crew(&mut self) -> CrewId {
        self.last_crew += 1;
        CrewId(FIRST_CREW + (u64::from(self.life) << COUNT_BITS) + self.last_crew)
    }
}

/// SplitMix64.
#[derive(Clone, Debug, Default)]
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) fn new(seed: u64) -> Chance {
        Chance(seed)
    }

    pub(crate) fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// A number below `end`, which is at least 1.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.draw() % end.max(1)
    }

    /// True `of` times in `total`.
    pub(crate) fn hits(&mut self, of: u64, total: u64) -> bool {
        self.below(total) < of
    }
}
