//! How much of a processor the programs took that this one started: a step that takes less than the machine has mostly
//! waits, and others could run beside it.

use std::time::Duration;

/// Processor time of all programs that this process started and that have ended, with those they started.
/// Nothing where the system does not tell.
pub(super) fn of_children() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    ticks(&stat).map_or(Duration::ZERO, |ticks| TICK * ticks)
}

/// What Linux counts in, whatever the processor.
const TICK: Duration = Duration::from_millis(10);

/// The name, in brackets, may hold spaces; behind it the 14th and 15th word are those of children.
fn ticks(stat: &str) -> Option<u32> {
    let mut words = stat.rsplit_once(')')?.1.split_whitespace().skip(13);
    let mut next = || words.next()?.parse::<u32>().ok();
    Some(next()? + next()?)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_name_with_spaces_and_brackets_does_not_confuse() {
        let stat = "12 (a b) c) S 1 12 12 0 -1 4194304 1 2 3 4 5 6 700 80 20 0 1 0 9";
        assert_eq!(ticks(stat), Some(780));
        assert_eq!(ticks("12 (short) S 1"), None);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn what_children_computed_is_counted() {
        let before = of_children();
        let count = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";
        assert!(Command::new("sh").args(["-c", count]).status().is_ok_and(|end| end.success()));
        assert!(of_children() > before);
    }
}
