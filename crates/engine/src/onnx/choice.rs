//! Which of two engines is faster for a model: both are timed, a few runs each, in turn.

/// Runs of each engine that are timed. The first is slower than the others; the best one counts.
pub(super) const RUNS: u32 = 3;
/// Nobody waits longer than this for an engine to be timed: a slow model is run once.
const LONG_MICROS: u64 = 2_000_000;

/// One of two engines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    BuiltIn,
    Second,
}

/// What is known of both, and which one is kept to.
#[derive(Default)]
pub struct Choice {
    built_in: Trial,
    second: Trial,
    chosen: Option<Which>,
}

#[derive(Default)]
struct Trial {
    runs: u32,
    took: u64,
    best: Option<u64>,
}

impl Trial {
    fn is_over(&self) -> bool {
        self.runs >= RUNS || (self.runs > 0 && self.took >= LONG_MICROS)
    }
}

impl Choice {
    /// There is only one.
    pub(super) fn only(which: Which) -> Choice {
        Choice { chosen: Some(which), ..Choice::default() }
    }

    /// Which one runs next: the one that was timed less, then the faster one.
    pub(super) fn next(&self) -> Which {
        let fewer = || match (self.built_in.is_over(), self.second.is_over()) {
            (false, true) => Which::BuiltIn,
            (true, false) => Which::Second,
            _ if self.built_in.runs < self.second.runs => Which::BuiltIn,
            _ => Which::Second,
        };
        self.chosen.unwrap_or_else(fewer)
    }

    /// None as long as nothing is decided.
    pub fn chosen(&self) -> Option<Which> {
        self.chosen
    }

    /// What a run took; none if it gave no answer. Says whether that decides it.
    pub fn took(&mut self, which: Which, micros: Option<u64>) -> bool {
        let trial = match which {
            Which::BuiltIn => &mut self.built_in,
            Which::Second => &mut self.second,
        };
        trial.runs += 1;
        if let Some(micros) = micros {
            trial.took = trial.took.saturating_add(micros);
            trial.best = Some(trial.best.map_or(micros, |best| best.min(micros)));
        }
        if self.chosen.is_some() || !self.built_in.is_over() || !self.second.is_over() {
            return false;
        }
        self.chosen = match (self.built_in.best, self.second.best) {
            (Some(built_in), Some(second)) if second < built_in => Some(Which::Second),
            (None, Some(_)) => Some(Which::Second),
            (Some(_), _) => Some(Which::BuiltIn),
            // Neither answered any of these: the next requests tell more.
            (None, None) => {
                *self = Choice::default();
                None
            }
        };
        self.chosen.is_some()
    }

    /// Whether one of them was timed often enough.
    pub fn is_timed(&self, which: Which) -> bool {
        match which {
            Which::BuiltIn => self.built_in.is_over(),
            Which::Second => self.second.is_over(),
        }
    }

    /// What a run takes at best: by the built-in engine, by the other.
    pub fn best(&self) -> (Option<u64>, Option<u64>) {
        (self.built_in.best, self.second.best)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Times all runs until it is decided.
    fn chosen(built_in: Option<u64>, second: Option<u64>) -> (Which, u32) {
        let mut choice = Choice::default();
        for runs in 1..100 {
            let which = choice.next();
            let micros = if which == Which::BuiltIn { built_in } else { second };
            if choice.took(which, micros) {
                return (choice.next(), runs);
            }
        }
        panic!("never decided");
    }

    #[test]
    fn the_faster_one_is_kept_to_after_a_few_runs_of_each() {
        assert_eq!(chosen(Some(900), Some(400)), (Which::Second, 6));
        assert_eq!(chosen(Some(400), Some(900)), (Which::BuiltIn, 6));
        assert_eq!(chosen(Some(400), Some(400)).0, Which::BuiltIn);
    }

    #[test]
    fn one_that_cannot_answer_is_not_chosen_and_slow_ones_run_once() {
        assert_eq!(chosen(None, Some(400)).0, Which::Second);
        assert_eq!(chosen(Some(400), None).0, Which::BuiltIn);
        assert_eq!(chosen(Some(3 * LONG_MICROS), Some(LONG_MICROS)), (Which::Second, 2));
    }

    #[test]
    fn where_neither_answers_nothing_is_decided() {
        let mut choice = Choice::default();
        for _ in 0..20 {
            let which = choice.next();
            assert!(!choice.took(which, None));
        }
        assert_eq!(choice.chosen(), None);
    }
}
