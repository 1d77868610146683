//! What one more token in a step costs, as measured: little where weights are read from memory for all of them, and nearly
//! a step where computing takes the time.

use shoal_text::STEP_PRICE;

/// Before it is measured: a row in four.
const FIRST: f64 = 0.25;
/// A measurement counts as one of so many: machines have other things to do now and then.
const OF: f64 = 8.0;

#[derive(Debug)]
pub(super) struct Prices {
    /// A step of one token, in microseconds; none was seen yet.
    step: Option<f64>,
    /// What each further one costs, in steps.
    row: f64,
}

impl Prices {
    pub(super) fn new() -> Prices {
        Prices { step: None, row: FIRST }
    }

    /// One more row, where a step costs [`STEP_PRICE`].
    pub(super) fn row(&self) -> u32 {
        (self.row * f64::from(STEP_PRICE)).ceil() as u32
    }

    /// A step of so many tokens took so long: what those behind the first cost, where a step costs [`STEP_PRICE`]. Clocks
    /// may stand still.
    pub(super) fn took(&mut self, tokens: usize, micros: u64) -> Option<u32> {
        let micros = micros as f64;
        if tokens == 1 {
            let step = self.step.unwrap_or(micros);
            // One that was held up says nothing of others.
            self.step = Some(step + (micros.min(2.0 * step) - step) / OF).filter(|it| *it > 0.0);
            return None;
        }
        let more = micros / self.step? - 1.0;
        let row = more / (tokens - 1) as f64;
        self.row += (row.clamp(0.0, 2.0) - self.row) / OF;
        Some((more.max(0.0) * f64::from(STEP_PRICE)) as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_costs_what_was_measured() {
        let mut prices = Prices::new();
        assert_eq!(prices.row(), STEP_PRICE / 4);
        for _ in 0..50 {
            prices.took(1, 1_000);
            prices.took(5, 3_000);
        }
        assert_eq!(prices.row(), STEP_PRICE / 2);
        assert_eq!((prices.took(5, 3_000), prices.took(1, 1_000)), (Some(2 * STEP_PRICE), None));
        // One that is held up changes little, many of them do.
        prices.took(1, 1_000_000);
        prices.took(3, 2_500);
        assert!(prices.row().abs_diff(STEP_PRICE / 2) < 3, "{}", prices.row());
        for _ in 0..50 {
            prices.took(1, 1_000);
            prices.took(5, 5_000);
        }
        assert_eq!(prices.row(), STEP_PRICE);
    }

    #[test]
    fn a_clock_that_stands_still_says_nothing() {
        let mut prices = Prices::new();
        for tokens in [1, 4, 1, 4] {
            prices.took(tokens, 0);
        }
        assert_eq!(prices.row(), STEP_PRICE / 4);
    }
}
