//! Queries and keys are turned by their position. Angles are computed in double precision by code that is the same on
//! every machine, once for all layers of a run.

use shoal_gguf::{Rope, RopeStyle};

/// Sines and cosines for some positions.
pub(crate) struct Turns {
    style: RopeStyle,
    /// Elements that are turned.
    dims: usize,
    /// `[row][pair]`: cosine, sine.
    table: Vec<(f32, f32)>,
}

impl Turns {
    /// `factors` divide the frequencies, one for each pair, where a model has them.
    pub(crate) fn new(
        rope: &Rope,
        factors: Option<&[f32]>,
        positions: impl Iterator<Item = u32>,
    ) -> Turns {
        let dims = rope.dims as usize;
        let frequency = |pair: usize| {
            let power = -2.0 * pair as f64 / dims as f64;
            let factor = factors.map_or(1.0, |factors| f64::from(factors[pair]));
            libm::pow(f64::from(rope.base), power) * f64::from(rope.scale) / factor
        };
        let frequencies: Vec<f64> = (0..dims / 2).map(frequency).collect();
        let mut table = Vec::new();
        for position in positions {
            table.extend(frequencies.iter().map(|frequency| {
                let angle = f64::from(position) * frequency;
                (libm::cos(angle) as f32, libm::sin(angle) as f32)
            }));
        }
        Turns { style: rope.style, dims, table }
    }

    /// `[row][pair]`: cosine, sine.
    #[cfg(feature = "gpu")]
    pub(crate) fn table(&self) -> &[(f32, f32)] {
        &self.table
    }

    /// Turns all heads of a row.
    pub(crate) fn turn(&self, row: usize, heads: &mut [f32], elements: usize) {
        let pairs = self.dims / 2;
        let table = &self.table[row * pairs..(row + 1) * pairs];
        for head in heads.chunks_exact_mut(elements) {
            match self.style {
                RopeStyle::Pairs => {
                    for (pair, (cos, sin)) in head.chunks_exact_mut(2).zip(table) {
                        (pair[0], pair[1]) = both(pair[0], pair[1], *cos, *sin);
                    }
                }
                RopeStyle::Halves => {
                    let (first, second) = head[..self.dims].split_at_mut(pairs);
                    for ((a, b), (cos, sin)) in first.iter_mut().zip(second).zip(table) {
                        (*a, *b) = both(*a, *b, *cos, *sin);
                    }
                }
            }
        }
    }
}

fn both(a: f32, b: f32, cos: f32, sin: f32) -> (f32, f32) {
    (a * cos - b * sin, a * sin + b * cos)
}
