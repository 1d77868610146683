//! A field that is easy to compute and hard to get right by chance: every cell depends on all rows within the
//! halo, so one stale or missing row changes everything after a few steps.

use std::collections::BTreeMap;

use shoal_kinds::{JobSpec, Pass, Reduce, SimSlots, SimWork};
use shoal_protocol::{Poke, Span};

/// The grid of one world.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grid {
    pub(crate) width: u32,
    pub(crate) rows: u32,
    pub(crate) halo: u32,
    pub(crate) steps: u64,
    /// Members make a total of all rows at every checkpoint and at the end.
    pub(crate) reduce: Option<Reduce>,
}

impl Grid {
    pub(crate) fn row_bytes(&self) -> usize {
        self.width as usize * 4
    }

    /// The job of it.
    pub(crate) fn spec(&self, members: u8, keep_every: Option<u64>, speculate: bool) -> JobSpec {
        let work = SimWork { members, keep_every, speculate, ..self.work() };
        crate::device::crew_spec(work.into(), u64::from(self.rows))
    }

    fn work(&self) -> SimWork {
        SimWork {
            source: String::from("field"),
            width: self.width,
            height: self.rows,
            steps: self.steps,
            halo: self.halo,
            passes: vec![Pass { entry: "step".into(), workgroup: [1, 1, 1], times: 1 }],
            init: None,
            show: None,
            first: None,
            members: 0,
            keep_every: None,
            speculate: false,
            cell_bytes: 4,
            lanes: 1,
            scalar: String::from("u32"),
            slots: SimSlots { params: 0, state: 1, next: 2, picture: None },
            params: Vec::new(),
            fields: Vec::new(),
            reduce: self.reduce,
        }
    }

    /// The total of each row, where there is to be one.
    pub(crate) fn row_totals(&self, rows: &[u8]) -> Option<Vec<f64>> {
        Some(self.reduce?.rows(&self.work(), rows))
    }

    pub(crate) fn total(&self, field: &[u8]) -> Option<Vec<f64>> {
        let rows = self.row_totals(field)?;
        Some(self.reduce?.total(&self.work(), &rows))
    }

    pub(crate) fn first(&self, rows: Span) -> Vec<u8> {
        let cells = rows.start * u64::from(self.width)..rows.end() * u64::from(self.width);
        cells.flat_map(|cell| (cell as u32).wrapping_mul(0x9e37_79b1).to_le_bytes()).collect()
    }

    /// One step of a band, from its rows with the halo on either side.
    pub(crate) fn step(&self, rows: &[u8], poke: Option<&Poke>) -> Vec<u8> {
        let (width, reach) = (self.width as usize, 2 * self.halo as usize);
        let cells: Vec<u32> =
            rows.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
        let stir = poke.map_or(0, |poke| poke.at[0].to_bits());
        let band = cells.len() / width - reach;
        let mut next = Vec::with_capacity(band * width * 4);
        for row in 0..band {
            for x in 0..width {
                let near = (0..=reach).map(|d| cells[(row + d) * width + x]);
                let sum = near.fold(stir, |sum: u32, cell| {
                    sum.rotate_left(5).wrapping_mul(31).wrapping_add(cell)
                });
                let side = cells[(row + reach / 2) * width + (x + 1) % width];
                next.extend((sum ^ side).to_le_bytes());
            }
        }
        next
    }

    /// What nobody's leaving changes, with these pokes at their steps.
    pub(crate) fn undisturbed(&self, pokes: &BTreeMap<u64, Poke>) -> Vec<u8> {
        let halo = self.halo as usize * self.row_bytes();
        let mut state = self.first(Span::new(0, u64::from(self.rows)));
        for step in 0..self.steps {
            let wrapped = [&state[state.len() - halo..], &state, &state[..halo]].concat();
            state = self.step(&wrapped, pokes.get(&step));
        }
        state
    }
}
