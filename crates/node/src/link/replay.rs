//! Which frames were heard already. Each sequence number is taken once; what is older than the window
//! could be a copy, so it is not taken either.

/// Frames that may come late and still count. Two paths of different length mix up a window of chunks
/// and its acknowledgements; this is four of them.
const WINDOW: u64 = 1024;
const WORDS: usize = WINDOW as usize / 64;

#[derive(Clone, Debug, Default)]
pub(super) struct Replay {
    /// One more than the newest sequence number heard.
    end: u64,
    /// Bit `sequence % WINDOW`: heard, for the last `WINDOW` numbers before `end`.
    heard: [u64; WORDS],
}

impl Replay {
    /// Whether this frame is new; from now on it is not.
    pub(super) fn take(&mut self, sequence: u64) -> bool {
        if sequence == u64::MAX || sequence.saturating_add(WINDOW) < self.end {
            return false;
        }
        if sequence >= self.end {
            let passed = (sequence + 1 - self.end).min(WINDOW);
            for skipped in sequence + 1 - passed..=sequence {
                self.set(skipped, false);
            }
            self.end = sequence + 1;
        }
        let known = self.heard[place(sequence)] & bit(sequence) != 0;
        self.set(sequence, true);
        !known
    }

    fn set(&mut self, sequence: u64, heard: bool) {
        let word = &mut self.heard[place(sequence)];
        *word = if heard { *word | bit(sequence) } else { *word & !bit(sequence) };
    }
}

fn place(sequence: u64) -> usize {
    (sequence % WINDOW) as usize / 64
}

fn bit(sequence: u64) -> u64 {
    1 << (sequence % 64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_taken_once_in_any_order() {
        let mut replay = Replay::default();
        for sequence in [0, 5, 3, 4, 1, 2, 700, 6] {
            assert!(replay.take(sequence), "{sequence} is new");
            assert!(!replay.take(sequence), "{sequence} is not");
        }
    }

    #[test]
    fn what_is_too_old_is_not_taken() {
        let mut replay = Replay::default();
        assert!(replay.take(5_000));
        assert!(!replay.take(5_000 - WINDOW));
        assert!(replay.take(5_001 - WINDOW));
    }

    #[test]
    fn the_window_moves_on_clean() {
        let mut replay = Replay::default();
        (0..3 * WINDOW).for_each(|sequence| assert!(replay.take(sequence)));
        assert!(replay.take(10 * WINDOW));
        (9 * WINDOW + 1..10 * WINDOW).for_each(|sequence| assert!(replay.take(sequence)));
        assert!(!replay.take(u64::MAX), "no number comes after it");
    }
}
