//! How far the second engine is relied on: how long a run may take, how often it may break. It is the code of
//! others, in a process or a Worker of its own, which may hang or end at any moment; the built-in engine answers
//! meanwhile. Decided once, for machines and tabs.

use std::time::Duration;

/// Times that it may break before it is left alone: what breaks so often breaks again.
const MOST_BREAKS: u32 = 3;
/// A run that takes so many times as long for its bytes as the slowest one before hangs.
const TIMES: u32 = 10;
/// But nothing hangs before this: a device that is busy with other work holds a run up as long.
const LEAST: Duration = Duration::from_secs(5);

/// What is known of its runs, and of its ends.
#[derive(Default)]
pub struct Reliance {
    /// What the slowest run took for each of its bytes, in seconds.
    slowest: Option<f64>,
    breaks: u32,
}

impl Reliance {
    /// How long a run of so many bytes may take; `most` as long as nothing is known, and never more.
    pub fn limit(&self, bytes: usize, most: Duration) -> Duration {
        let Some(slowest) = self.slowest else { return most };
        let usual = Duration::from_secs_f64((slowest * bytes as f64).min(most.as_secs_f64()));
        (usual * TIMES).max(LEAST).min(most)
    }

    /// It answered a request of so many bytes.
    pub fn took(&mut self, took: Duration, bytes: usize) {
        let each = took.as_secs_f64() / bytes.max(1) as f64;
        self.slowest = Some(self.slowest.map_or(each, |slowest| slowest.max(each)));
    }

    /// It ended, or did not answer in time and was ended.
    pub fn broke(&mut self) {
        self.breaks = self.breaks.saturating_add(1);
    }

    /// Whether it may be started once more.
    pub fn goes_on(&self) -> bool {
        self.breaks < MOST_BREAKS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_hangs_that_takes_far_longer_for_its_bytes_than_any_before() {
        let most = Duration::from_secs(60);
        let mut reliance = Reliance::default();
        assert_eq!(reliance.limit(1_000, most), most, "nothing is known");
        reliance.took(Duration::from_millis(100), 1_000);
        reliance.took(Duration::from_secs(1), 1_000);
        assert_eq!(reliance.limit(1_000, most), Duration::from_secs(10));
        assert_eq!(reliance.limit(100, most), LEAST);
        assert_eq!(reliance.limit(100_000, most), most);
        assert_eq!(reliance.limit(100, Duration::from_secs(2)), Duration::from_secs(2));
    }

    #[test]
    fn what_breaks_again_and_again_is_left_alone() {
        let mut reliance = Reliance::default();
        for _ in 0..MOST_BREAKS {
            assert!(reliance.goes_on());
            reliance.broke();
        }
        assert!(!reliance.goes_on());
    }
}
