//! One member's rows.

use shoal_protocol::{Failure, Poke, Span};

use super::SimProgram;
use super::block::{Blocks, Moment};
use super::field::Field;
use super::reach;
use super::tape::{Tape, Target};
use crate::wgsl::fault::internal;
use crate::wgsl::guard::Flag;
use crate::wgsl::memory::Readback;
use crate::wgsl::pool::{Lease, Role};

/// Bands of at least so many halos can compute their edges apart: each edge is made of so many of the band's own
/// rows.
const LEAST_APART: u64 = SLAB - 1;
/// Rows of the slab an edge is computed in: itself and what it depends on above and below.
pub(super) const SLAB: u64 = 3;
/// Steps between two looks at how far the passes reach: it may depend on the state, and a look costs about a
/// step.
const LOOK_EVERY: u64 = 256;
/// The blocks of parameters: the whole, the two edges, and what is looked at.
const BLOCKS: u64 = LOOK_BLOCK + 1;
/// The block of what is looked at.
pub(super) const LOOK_BLOCK: u64 = 3;
/// A band of rows with its state. Every call but `back` and `load` waits for the device.
pub struct SimBand {
    pub(super) program: SimProgram,
    pub(super) rows: Span,
    pub(super) whole: Field,
    /// The slabs of the upper and the lower edge, if these are computed apart and first.
    pub(super) slabs: Option<[Field; 2]>,
    /// Rows of `whole` above and below the band: the halos, unless those go into the slabs.
    pub(super) pad: u64,
    pub(super) params: Lease,
    pub(super) blocks: Blocks,
    /// Set once a loop of any step was cut short; looked at with whatever is read.
    pub(super) flag: Option<Flag>,
    /// The buffer with the present state, and the one with the state before the last step.
    pub(super) now: usize,
    before: Option<usize>,
    pub(super) step: u64,
    /// Steps made until the next look at how far the passes reach.
    until_look: u64,
}

/// The first and the last `halo` rows of a band.
pub struct Edges {
    readback: Readback,
    halo_bytes: usize,
}

impl Edges {
    pub fn top(&self) -> &[u8] {
        &self.readback[..self.halo_bytes]
    }

    pub fn bottom(&self) -> &[u8] {
        &self.readback[self.halo_bytes..]
    }

    /// Both, one after the other, as JavaScript sees them; valid until `self` is dropped.
    #[cfg(target_arch = "wasm32")]
    pub fn as_js(&self) -> js_sys::Uint8Array {
        self.readback.as_js()
    }
}

impl SimBand {
    pub(super) async fn new(
        program: &SimProgram,
        rows: Span,
        apart: bool,
    ) -> Result<SimBand, Failure> {
        let it = &*program.0;
        let (halo, height) = (it.halo(), u64::from(it.work.height));
        if rows.len < halo.max(1) || rows.end() > height || it.row_bytes() == 0 {
            return Err(internal(format!(
                "rows {rows} are no band of a grid with {height} rows and a halo of {halo}"
            )));
        }
        let blocks = Blocks::new(&it.core, &it.work);
        let params = it.core.pool.take(Role::Params, blocks.at(BLOCKS)).await?;
        // With one pass the state before it stays where it is; with more, two buffers take turns beside it.
        let buffers = if it.runs() == 1 { 2 } else { 3 };
        let apart = apart && halo > 0 && rows.len >= LEAST_APART * halo;
        let pad = if apart { 0 } else { halo };
        let whole = Field::new(it, rows.len + 2 * pad, buffers, (&params, blocks, 0)).await?;
        let slabs = match apart {
            false => None,
            true => Some([
                Field::new(it, SLAB * halo, 2, (&params, blocks, 1)).await?,
                Field::new(it, SLAB * halo, 2, (&params, blocks, 2)).await?,
            ]),
        };
        // Of the one kernel that has loops in any case; all see the same flag.
        let flag = Flag::of(&it.core, &it.show.shrink.0).await?;
        let band = SimBand {
            program: program.clone(),
            rows,
            whole,
            slabs,
            pad,
            params,
            blocks,
            flag,
            now: 0,
            before: None,
            step: 0,
            until_look: 0,
        };
        let mut tape = Tape::new(&it.core);
        // Buffers are used again: nobody sees another job's numbers.
        let slabs = band.slabs.iter().flatten();
        for buffer in slabs.chain([&band.whole]).flat_map(Field::buffers) {
            tape.encoder.clear_buffer(&buffer.buffer, 0, None);
        }
        if let Some(flag) = &band.flag {
            flag.lower(&mut tape.encoder);
        }
        tape.submit().await?;
        Ok(band)
    }

    pub fn rows(&self) -> Span {
        self.rows
    }

    /// Puts bytes of whole rows at row `row` of the grid, which lies in the band.
    pub fn load(&mut self, row: u64, bytes: &[u8]) -> Result<(), Failure> {
        let at = self.place(row, bytes.len() as u64)?;
        let state = self.whole.buffer(self.now);
        self.program.0.core.queue.write_buffer(&state.buffer, at, bytes);
        self.before = None;
        Ok(())
    }

    /// The same from JavaScript's memory, without passing through Rust's.
    #[cfg(target_arch = "wasm32")]
    pub fn load_js(&mut self, row: u64, bytes: &js_sys::Uint8Array) -> Result<(), Failure> {
        let at = self.place(row, u64::from(bytes.length()))?;
        let state = &self.whole.buffer(self.now).buffer;
        let queue = &self.program.0.core.queue;
        let (Some(queue), Some(buffer)) = (queue.as_webgpu(), state.as_webgpu()) else {
            return Err(internal("this is no WebGPU device"));
        };
        self.before = None;
        queue
            .write_buffer_with_f64_and_u8_array(buffer, at as f64, bytes)
            .map_err(|error| internal(format!("the browser refused the rows: {error:?}")))
    }

    /// Makes the first state with the kernel's `init`; zero if it has none, or where that writes nothing.
    pub async fn init(&mut self) -> Result<(), Failure> {
        self.before = None;
        self.write_blocks(0, None)?;
        let it = &*self.program.0;
        let mut tape = Tape::new(&it.core);
        tape.encoder.clear_buffer(&self.whole.buffer(self.now).buffer, 0, None);
        if let Some(init) = &it.init {
            self.whole.make(it, init, self.flag.as_ref(), self.now, &mut tape.encoder)?;
        }
        tape.submit().await
    }

    /// The edges of the present state.
    pub async fn edges(&self) -> Result<Edges, Failure> {
        let it = &*self.program.0;
        let each = it.work.halo_bytes();
        let target = Target::new(&it.core, 2 * each).await?;
        let mut tape = Tape::new(&it.core);
        self.copy_edges(self.now, &target, &mut tape.encoder);
        let readback = tape.read(target, self.flag.as_ref()).await?;
        Ok(Edges { readback, halo_bytes: each as usize })
    }

    /// One step, from `step` to `step + 1`. The halos are the rows just above and just below the band. The edges
    /// come as soon as they are there; the inside may be computed still.
    pub async fn step(
        &mut self,
        step: u64,
        above: &[u8],
        below: &[u8],
        poke: Option<Poke>,
    ) -> Result<Edges, Failure> {
        let program = self.program.clone();
        let it = &*program.0;
        let each = it.work.halo_bytes();
        if above.len() as u64 != each || below.len() as u64 != each {
            let (above, below) = (above.len(), below.len());
            return Err(internal(format!("halos of {above} and {below} bytes instead of {each}")));
        }
        let target = Target::new(&it.core, 2 * each).await?;
        self.write_halos(above, below);
        self.write_blocks(step, poke)?;
        let (from, flag) = (self.now, self.flag.as_ref());
        let mut tape = Tape::new(&it.core);
        let (to, ready, inside) = match &self.slabs {
            None => {
                let to = self.whole.step(it, flag, from, &mut tape.encoder)?;
                self.copy_edges(to, &target, &mut tape.encoder);
                (to, tape.read(target, flag), None)
            }
            Some(slabs) => {
                let made = self.step_slabs(it, slabs, &target, &mut tape.encoder)?;
                let ready = tape.read(target, flag);
                // Submitted before anything waits, so that the device goes on with it by itself.
                let mut tape = Tape::new(&it.core);
                let to = self.whole.step(it, flag, from, &mut tape.encoder)?;
                self.put_edges(made, to, &mut tape.encoder);
                (to, ready, Some(tape.submit()))
            }
        };
        let edges = Edges { readback: ready.await?, halo_bytes: each as usize };
        if let Some(inside) = inside {
            inside.await?;
        }
        if self.until_look == 0 {
            reach::look(self, Moment { step, poke, ..self.moment() }, [above, below], &edges)
                .await?;
            self.until_look = LOOK_EVERY;
        }
        self.until_look -= 1;
        (self.before, self.now, self.step) = (Some(from), to, step + 1);
        Ok(edges)
    }

    /// Takes the last step back. Only one can be taken back; says whether there was one.
    pub fn back(&mut self) -> bool {
        let Some(before) = self.before.take() else {
            return false;
        };
        self.now = before;
        self.step -= 1;
        true
    }

    /// The bytes of some rows of the grid, all of them in the band.
    pub async fn read(&self, rows: Span) -> Result<Readback, Failure> {
        let size = rows.len * self.program.0.row_bytes();
        let at = self.place(rows.start, size)?;
        let core = &self.program.0.core;
        let target = Target::new(core, size).await?;
        let mut tape = Tape::new(core);
        let state = &self.whole.buffer(self.now).buffer;
        tape.encoder.copy_buffer_to_buffer(state, at, target.buffer(), 0, size);
        tape.read(target, self.flag.as_ref()).await
    }

    /// Waits until the device has done everything.
    pub async fn settle(&self) -> Result<(), Failure> {
        self.read(Span::new(self.rows.start, 1)).await.map(drop)
    }

    /// Where the bytes of a row of the grid lie in the buffer.
    fn place(&self, row: u64, size: u64) -> Result<u64, Failure> {
        let each = self.program.0.row_bytes();
        let rows = Span::new(row, size / each);
        if !size.is_multiple_of(each)
            || rows.start < self.rows.start
            || rows.end() > self.rows.end()
        {
            let band = self.rows;
            return Err(internal(format!(
                "{size} bytes at row {row} are no whole rows of the band {band}, which have {each}"
            )));
        }
        Ok((self.pad + row - self.rows.start) * each)
    }
}
