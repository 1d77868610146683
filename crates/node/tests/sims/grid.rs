//! A small simulation on the CPU: a stencil of integers or floats over a grid that wraps around, so that any
//! wrong row, step or poke changes the result.

use shoal_kinds::{Pass, Reduce, SimSlots, SimWork};
use shoal_protocol::{Poke, Span};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kernel {
    Floats,
    Integers,
    /// Nothing ever changes, so that every guess is right.
    Still,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Grid {
    pub(crate) kernel: Kernel,
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) halo: u32,
    pub(crate) steps: u64,
    pub(crate) reduce: Option<Reduce>,
}

/// Rows of the grid, as bits.
pub(crate) type Rows = Vec<Vec<u32>>;

impl Grid {
    pub(crate) fn work(&self) -> SimWork {
        let pass = Pass { entry: "pass".into(), workgroup: [8, 8, 1], times: self.halo };
        SimWork {
            source: String::new(),
            width: self.width,
            height: self.height,
            steps: self.steps,
            halo: self.halo,
            passes: vec![pass],
            init: None,
            show: None,
            first: None,
            members: 0,
            keep_every: None,
            speculate: false,
            cell_bytes: 4,
            lanes: 1,
            scalar: if self.kernel == Kernel::Integers { "i32" } else { "f32" }.into(),
            slots: SimSlots { params: 0, state: 1, next: 2, picture: None },
            params: Vec::new(),
            fields: Vec::new(),
            reduce: self.reduce,
        }
    }

    pub(crate) fn first(&self, rows: Span) -> Rows {
        let cell = |y: u64, x: u64| {
            let mixed = (y * 2_654_435_761 + x * 40_503 + 12_345) % 1_000;
            match self.kernel {
                Kernel::Floats | Kernel::Still => (mixed as f32 / 100.0).to_bits(),
                Kernel::Integers => mixed as u32,
            }
        };
        let width = u64::from(self.width);
        (rows.start..rows.end()).map(|y| (0..width).map(|x| cell(y, x)).collect()).collect()
    }

    /// As many passes as the halo has rows, each of which reaches one row far.
    pub(crate) fn step(
        &self,
        band: Span,
        step: u64,
        [above, state, below]: [&Rows; 3],
        poke: Option<Poke>,
    ) -> Rows {
        let halo = self.halo as usize;
        let mut buffer: Rows = [above.as_slice(), state, below].concat();
        let height = u64::from(self.height);
        let first = band.start + height - u64::from(self.halo);
        for pass in 0..halo {
            let rows = (0..buffer.len()).map(|y| {
                let row = (first + y as u64) % height;
                let near = [y.saturating_sub(1), y, (y + 1).min(buffer.len() - 1)];
                let near = near.map(|y| &buffer[y]);
                let poke = poke.filter(|_| pass == 0);
                (0..self.width as usize).map(|x| self.cell(near, x, row, step, poke)).collect()
            });
            buffer = rows.collect();
        }
        buffer[halo..buffer.len() - halo].to_vec()
    }

    fn cell(
        &self,
        [up, row, down]: [&Vec<u32>; 3],
        x: usize,
        y: u64,
        step: u64,
        poke: Option<Poke>,
    ) -> u32 {
        let width = row.len();
        let near = [row[x], up[x], down[x], row[(x + width - 1) % width], row[(x + 1) % width]];
        let noise = ((y * 31 + x as u64 * 17 + step * 7) % 13) as u32;
        let far = |poke: &Poke| (x as f32 - poke.at[0]).hypot(y as f32 - poke.at[1]);
        let poke = poke.filter(|poke| far(poke) <= poke.radius);
        match self.kernel {
            Kernel::Still => row[x],
            Kernel::Floats => {
                let [c, u, d, l, r] = near.map(f32::from_bits);
                let mean = 0.199 * (c + u * 1.1 + d * 0.9 + l + r);
                let push = poke.map_or(0.0, |poke| poke.strength * (1.0 + poke.by[0]));
                (mean + noise as f32 * 0.01 + push).to_bits()
            }
            Kernel::Integers => {
                let [c, u, d, l, r] = near;
                let mixed = c.wrapping_mul(3).wrapping_add(u.wrapping_mul(5)) ^ l.rotate_left(7);
                let mixed = mixed.wrapping_sub(d.wrapping_mul(7)).wrapping_add(r ^ noise);
                mixed.wrapping_add(poke.map_or(0, |poke| poke.strength.to_bits()))
            }
        }
    }

    /// What one who is alone with the whole grid gets, with these pokes at these steps.
    pub(crate) fn alone(&self, pokes: &std::collections::BTreeMap<u64, Poke>) -> Vec<u8> {
        let whole = Span::new(0, self.height.into());
        let mut state = self.first(whole);
        let halo = self.halo as usize;
        for step in 0..self.steps {
            let (above, below) = (state[state.len() - halo..].to_vec(), state[..halo].to_vec());
            state = self.step(whole, step, [&above, &state, &below], pokes.get(&step).copied());
        }
        bytes(&state)
    }
}

pub(crate) fn bytes(rows: &[Vec<u32>]) -> Vec<u8> {
    rows.iter().flatten().flat_map(|cell| cell.to_le_bytes()).collect()
}

pub(crate) fn rows(width: u32, bytes: &[u8]) -> Rows {
    let (cells, rest) = bytes.as_chunks::<4>();
    assert!(rest.is_empty(), "no whole cells");
    cells
        .chunks_exact(width as usize)
        .map(|row| row.iter().map(|cell| u32::from_le_bytes(*cell)).collect())
        .collect()
}
