//! A few numbers that say how a whole field is doing: for each number of a cell its sum, least, most or mean over
//! all cells.
//!
//! The order is fixed and does not depend on who has which rows: each member folds each of its rows from left to
//! right, in f64; then all rows are folded from the first to the last. So the same field has the same total, bit
//! for bit, however a crew is cut.

use alloc::vec;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

use super::SimWork;

/// Numbers of a cell that are folded at most: one of each goes from every row to rank 0 at a checkpoint.
pub const MAX_REDUCED: u32 = 64;

/// Numbers that a field's cells come to, as users see them. Others carry them; nothing is decided by them.
pub type Figures = Vec<f64>;

/// What becomes of all cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum Reduce {
    Sum,
    Min,
    Max,
    Mean,
}

impl Reduce {
    pub const ALL: [Reduce; 4] = [Reduce::Sum, Reduce::Min, Reduce::Max, Reduce::Mean];

    pub fn name(self) -> &'static str {
        match self {
            Reduce::Sum => "sum",
            Reduce::Min => "min",
            Reduce::Max => "max",
            Reduce::Mean => "mean",
        }
    }

    pub fn named(name: &str) -> Option<Reduce> {
        Reduce::ALL.into_iter().find(|reduce| reduce.name() == name)
    }

    /// Of each row by itself, so many numbers as a cell has. `bytes` are whole rows.
    pub fn rows(self, work: &SimWork, bytes: &[u8]) -> Figures {
        let row = (work.row_bytes() as usize).max(4);
        let number = number_of(&work.scalar);
        let lanes = work.lanes as usize;
        let rows = bytes.chunks_exact(row).flat_map(|row| {
            let (words, _) = row.as_chunks::<4>();
            self.fold(lanes, words.iter().map(|word| number(*word)))
        });
        rows.collect()
    }

    /// Of the whole field, from what came of its rows, in order.
    pub fn total(self, work: &SimWork, rows: &[f64]) -> Figures {
        let mut total = self.fold(work.lanes as usize, rows.iter().copied());
        if self == Reduce::Mean {
            let cells = f64::from(work.width) * f64::from(work.height);
            total.iter_mut().for_each(|number| *number /= cells);
        }
        total
    }

    /// `lanes` totals of numbers that belong to one after another.
    fn fold(self, lanes: usize, numbers: impl Iterator<Item = f64>) -> Vec<f64> {
        let begin = match self {
            Reduce::Sum | Reduce::Mean => 0.0,
            Reduce::Min => f64::INFINITY,
            Reduce::Max => f64::NEG_INFINITY,
        };
        let mut total = vec![begin; lanes.max(1)];
        let mut lane = 0;
        for number in numbers {
            total[lane] = self.of_two(total[lane], number);
            lane = if lane + 1 == total.len() { 0 } else { lane + 1 };
        }
        total
    }

    /// What is no number stays so: it is the news.
    fn of_two(self, so_far: f64, number: f64) -> f64 {
        let takes_over = match self {
            Reduce::Sum | Reduce::Mean => return so_far + number,
            Reduce::Min => number < so_far,
            Reduce::Max => number > so_far,
        };
        if number.is_nan() || takes_over { number } else { so_far }
    }
}

/// How a cell's words are read; f64 holds each of them exactly.
fn number_of(scalar: &str) -> fn([u8; 4]) -> f64 {
    match scalar {
        "i32" => |word| f64::from(i32::from_le_bytes(word)),
        "u32" => |word| f64::from(u32::from_le_bytes(word)),
        _ => |word| f64::from(f32::from_le_bytes(word)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::SimSlots;

    fn work(scalar: &str, height: u32) -> SimWork {
        SimWork {
            source: Default::default(),
            width: 3,
            height,
            steps: 1,
            halo: 1,
            passes: Vec::new(),
            init: None,
            show: None,
            first: None,
            members: 0,
            keep_every: None,
            speculate: false,
            cell_bytes: 8,
            lanes: 2,
            scalar: scalar.into(),
            slots: SimSlots { params: 0, state: 1, next: 2, picture: None },
            params: Vec::new(),
            fields: Vec::new(),
            reduce: None,
        }
    }

    fn field(numbers: &[f32]) -> Vec<u8> {
        numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
    }

    #[test]
    fn each_number_of_a_cell_has_a_total_of_its_own() {
        let work = work("f32", 2);
        let field = field(&[1.0, 10.0, 2.0, 20.0, 3.0, 30.0, -4.0, 40.0, 5.0, 50.0, 5.0, 60.0]);
        let of = |reduce: Reduce| reduce.total(&work, &reduce.rows(&work, &field));
        assert_eq!(of(Reduce::Sum), [12.0, 210.0]);
        assert_eq!(of(Reduce::Min), [-4.0, 10.0]);
        assert_eq!(of(Reduce::Max), [5.0, 60.0]);
        assert_eq!(of(Reduce::Mean), [2.0, 35.0]);
    }

    #[test]
    fn however_the_rows_are_cut_the_bits_are_the_same() {
        let work = work("f32", 40);
        let field: Vec<_> = (0..240u32).map(|n| (n as f32 * 0.37).sin() * 1e7).collect();
        let bytes = self::field(&field);
        let whole = Reduce::Sum.total(&work, &Reduce::Sum.rows(&work, &bytes));
        for cut in [1, 7, 20, 39] {
            let (one, two) = bytes.split_at(cut * 24);
            let rows = [one, two].map(|part| Reduce::Sum.rows(&work, part)).concat();
            let total = Reduce::Sum.total(&work, &rows);
            assert!(whole.iter().zip(&total).all(|(a, b)| a.to_bits() == b.to_bits()));
        }
    }

    #[test]
    fn what_is_no_number_shows() {
        let work = work("f32", 1);
        let field = field(&[1.0, 1.0, f32::NAN, 1.0, 0.5, 1.0]);
        for reduce in Reduce::ALL {
            let total = reduce.total(&work, &reduce.rows(&work, &field));
            assert!(total[0].is_nan() && total[1] >= 1.0, "{reduce:?}");
            assert_eq!(Reduce::named(reduce.name()), Some(reduce));
        }
    }

    #[test]
    fn whole_numbers_are_read_as_such() {
        let field: Vec<_> = [-1i32, 2, 3, 4, 5, 6].iter().flat_map(|n| n.to_le_bytes()).collect();
        let of = |scalar| Reduce::Max.rows(&work(scalar, 1), &field);
        assert_eq!(of("i32"), [5.0, 6.0]);
        assert_eq!(of("u32"), [f64::from(u32::MAX), 6.0]);
    }
}
