//! How many items the next unit holds.

use shoal_protocol::limit::{MAX_UNITS_PER_JOB, TARGET_UNIT};
use shoal_protocol::{Micros, Sizing};

/// A unit may grow this much from one to the next, so that one lucky measurement does no harm.
const GROWTH: u64 = 4;
/// At the end a unit takes this part of a node's fair share of what is left, so that all finish together.
const TAIL_PART: u64 = 2;
/// At the end no unit is cut shorter than this: handing it over would cost more than it evens out.
const SHORTEST: Micros = Micros::from_millis(15);
/// Units each slot gets where sizes are not measured: enough to even out small differences.
const EVEN_UNITS_PER_SLOT: u64 = 8;

/// What is known of a node's work on a job when its next unit is cut.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Progress {
    /// Items per second of one slot, in thousandths, and the size of its last unit; zero before the first.
    pub(crate) milli_rate: u64,
    pub(crate) last_size: u64,
    /// Items nobody works on yet, and the rate of all nodes on the job, in thousandths.
    pub(crate) left: u64,
    pub(crate) total_milli_rate: u64,
}

/// Adaptive: the grain first, then what takes [`TARGET_UNIT`], less at the end.
pub(crate) fn growing_size(sizing: Sizing, items: u64, cap: u64, progress: Progress) -> u64 {
    if progress.last_size == 0 {
        return within(sizing, items, cap, sizing.grain);
    }
    let on_target = scale(progress.milli_rate, TARGET_UNIT.0, 1_000_000_000);
    let grown = on_target.min(progress.last_size.saturating_mul(GROWTH));
    let total = progress.total_milli_rate.max(progress.milli_rate).max(1);
    let fair = scale(progress.left, progress.milli_rate, total) / TAIL_PART;
    let shortest = scale(progress.milli_rate, SHORTEST.0, 1_000_000_000);
    within(sizing, items, cap, grown.min(fair.max(shortest)))
}

/// The same for everybody, scaled by `weight / mean_weight`.
pub(crate) fn even_size(
    sizing: Sizing,
    items: u64,
    cap: u64,
    slots: u64,
    weight: (u64, u64),
) -> u64 {
    let even = items.div_ceil(slots.max(1) * EVEN_UNITS_PER_SLOT);
    within(sizing, items, cap, scale(even, weight.0, weight.1.max(1)))
}

/// Inside the job's bounds and a multiple of its grain, unless even the grain proved too large.
fn within(sizing: Sizing, items: u64, cap: u64, wanted: u64) -> u64 {
    let grain = sizing.grain.max(1);
    if cap < grain {
        let step = sizing.step.max(1);
        return (wanted.min(cap) / step * step).max(step);
    }
    let floor = grain.max(items.div_ceil(MAX_UNITS_PER_JOB)).min(sizing.most.max(grain));
    let wanted = wanted.min(cap).clamp(floor, sizing.most.max(floor));
    (wanted / grain * grain).max(grain)
}

/// `a * b / c` without overflow.
fn scale(a: u64, b: u64, c: u64) -> u64 {
    let wide = u128::from(a) * u128::from(b) / u128::from(c);
    u64::try_from(wide).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZING: Sizing = Sizing { grain: 64, most: 4096, step: 1 };

    fn progress(milli_rate: u64, last_size: u64, left: u64) -> Progress {
        Progress { milli_rate, last_size, left, total_milli_rate: milli_rate }
    }

    #[test]
    fn starts_small_then_grows_to_the_target_time() {
        let size = |p| growing_size(SIZING, 1_000_000, u64::MAX, p);
        assert_eq!(size(progress(0, 0, 1_000_000)), 64);
        // 8000 items a second is 2000 in a quarter of a second, but growth is bounded.
        assert_eq!(size(progress(8_000_000, 64, 1_000_000)), 256);
        assert_eq!(size(progress(8_000_000, 1024, 1_000_000)), 1984);
        assert_eq!(size(progress(u64::MAX, 4096, 1_000_000)), 4096);
    }

    #[test]
    fn shrinks_at_the_end_but_never_below_the_grain() {
        let size =
            |left| growing_size(SIZING, 1_000_000, u64::MAX, progress(8_000_000, 1984, left));
        assert_eq!(size(1000), 448);
        assert_eq!(size(3), 64);
    }

    #[test]
    fn huge_jobs_do_not_shatter() {
        let sizing = Sizing::loose(1, 1 << 40);
        let size = growing_size(sizing, 1 << 40, u64::MAX, progress(0, 0, 1 << 40));
        assert!((1u64 << 40).div_ceil(size) <= MAX_UNITS_PER_JOB);
    }

    #[test]
    fn what_belongs_together_is_never_cut() {
        let sizing = Sizing { grain: 64, most: 4096, step: 16 };
        let size = |cap| growing_size(sizing, 1_000_000, cap, progress(0, 0, 1_000_000));
        assert_eq!([size(40), size(16), size(1)], [32, 16, 16]);
    }

    #[test]
    fn even_units_follow_weights() {
        assert_eq!(even_size(SIZING, 32_768, u64::MAX, 4, (100, 100)), 1024);
        assert_eq!(even_size(SIZING, 32_768, u64::MAX, 4, (200, 100)), 2048);
    }
}
