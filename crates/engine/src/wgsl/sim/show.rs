//! Pictures of a band: the kernel's `show`, or shades of grey, made small enough to be sent.

use shoal_kinds::{Binding, Kernel, SimWork, Slot, Space};
use shoal_protocol::Failure;
use wgpu::ComputePassDescriptor;

use super::band::SimBand;
use super::kernel;
use super::tape::{Tape, Target};
use crate::wgsl::fault::internal;
use crate::wgsl::gpu::Core;
use crate::wgsl::memory::Readback;
use crate::wgsl::pipeline::Pipeline;
use crate::wgsl::pool::{Lease, Role};

/// Grey by the first number of each cell, for kernels without `show`: floats from 0 to 1, integers by whether they
/// are zero.
const PLAIN: &str = include_str!("plain.wgsl");
/// Each pixel the mean of a square.
const SHRINK: &str = include_str!("shrink.wgsl");
/// Words of both kernels' parameters.
const WORDS: usize = 8;
const SIDE: u32 = 8;

pub(super) struct Show {
    /// The kernel's own.
    own: Option<Pipeline>,
    plain: Pipeline,
    pub(super) shrink: Pipeline,
}

/// A picture of a band's rows: RGBA, row by row. Its rows lie at multiples of the stride in the grid.
pub struct View {
    /// The first row in the picture of the whole grid.
    pub first: u32,
    pub rows: u32,
    pub width: u32,
    pub rgba: Readback,
}

impl Show {
    pub(super) async fn new(core: &Core, work: &SimWork) -> Result<Show, Failure> {
        let own = match (&work.show, work.slots.picture) {
            (Some(pass), Some(picture)) => {
                Some(Pipeline::new(core, &kernel(work, pass, picture)).await?)
            }
            (Some(_), None) => return Err(internal("a picture that is bound nowhere")),
            (None, _) => None,
        };
        let plain = Pipeline::new(core, &ours(PLAIN)).await?;
        let shrink = Pipeline::new(core, &ours(SHRINK)).await?;
        Ok(Show { own, plain, shrink })
    }
}

fn ours(source: &str) -> Kernel {
    let binding = |index, space, slot| Binding { index, space, slot };
    Kernel {
        source: source.to_owned(),
        entry: "main".to_owned(),
        workgroup: [SIDE, SIDE, 1],
        bindings: vec![
            binding(0, Space::Uniform, Slot::Params),
            binding(1, Space::StorageRead, Slot::Input(0)),
            binding(2, Space::StorageReadWrite, Slot::Output),
        ],
        params: None,
        windows: None,
    }
}

/// What a picture is made in.
struct Canvas {
    full: Lease,
    full_bytes: u64,
    small: Lease,
    small_bytes: u64,
    params: Lease,
}

const PARAMS_BYTES: u64 = WORDS as u64 * 4;

impl SimBand {
    /// A picture of the present state with one pixel for `stride` by `stride` cells. A band without a row at a
    /// multiple of the stride has a picture without rows.
    pub async fn show(&self, stride: u32) -> Result<View, Failure> {
        let it = &*self.program.0;
        let stride = stride.max(1);
        let per = u64::from(stride);
        let (first, end) = (self.rows.start.div_ceil(per), self.rows.end().div_ceil(per));
        let (width, rows) = (it.work.width.div_ceil(stride), (end - first) as u32);
        let small_bytes = u64::from(width) * u64::from(rows) * 4;
        let full_bytes = u64::from(it.work.width) * self.whole.rows * 4;
        let canvas = Canvas {
            full: it.core.output(full_bytes).await?,
            full_bytes,
            small: it.core.output(small_bytes.max(4)).await?,
            small_bytes: small_bytes.max(4),
            params: it.core.pool.take(Role::Params, PARAMS_BYTES).await?,
        };
        let target = Target::new(&it.core, small_bytes).await?;
        // The buffer's row of the picture's first one, and the band's end, which no square passes.
        let at = self.pad + first * per - self.rows.start;
        let words: [u32; WORDS] = [
            it.work.width,
            self.whole.rows as u32,
            it.work.lanes,
            u32::from(it.work.scalar == "f32"),
            at as u32,
            (self.pad + self.rows.len) as u32,
            stride,
            rows,
        ];
        let rgba = self.paint(&canvas, target, words, [width, rows])?.await?;
        Ok(View { first: first as u32, rows, width, rgba })
    }

    fn paint<'a>(
        &'a self,
        canvas: &Canvas,
        target: Target,
        words: [u32; WORDS],
        [width, rows]: [u32; 2],
    ) -> Result<impl Future<Output = Result<Readback, Failure>> + use<'a>, Failure> {
        let it = &*self.program.0;
        let Canvas { full, full_bytes, small, small_bytes, params } = canvas;
        self.write_blocks(self.step, None)?;
        let words: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        it.core.queue.write_buffer(&params.buffer, 0, &words);
        let mut tape = Tape::new(&it.core);
        tape.encoder.clear_buffer(&full.buffer, 0, None);
        let state = self.whole.buffer(self.now).binding(self.whole.rows * it.row_bytes());
        let (show, block, offsets) = match &it.show.own {
            Some(own) => (own, self.params.binding(self.blocks.size), self.whole.offsets(own)),
            None => (&it.show.plain, params.binding(PARAMS_BYTES), vec![0, 0]),
        };
        let full = full.binding(*full_bytes);
        let device = &it.core.device;
        let made = show.0.bind(device, &[state], &full, Some(&block))?;
        let shrink = &it.show.shrink;
        let small_bound = small.binding(*small_bytes);
        let block = params.binding(PARAMS_BYTES);
        let shrunk = shrink.0.bind(device, &[full], &small_bound, Some(&block))?;
        {
            let mut pass = tape.encoder.begin_compute_pass(&ComputePassDescriptor::default());
            if let Some(flag) = self.flag.as_ref() {
                flag.bind(&mut pass);
            }
            pass.set_pipeline(&show.0.pipeline);
            pass.set_bind_group(0, &made, &offsets);
            let [x, y] = self.whole.workgroups(it, show);
            pass.dispatch_workgroups(x, y, 1);
            pass.set_pipeline(&shrink.0.pipeline);
            pass.set_bind_group(0, &shrunk, &[0, 0]);
            pass.dispatch_workgroups(width.div_ceil(SIDE), rows.div_ceil(SIDE), 1);
        }
        let size = target.size();
        tape.encoder.copy_buffer_to_buffer(&small.buffer, 0, target.buffer(), 0, size);
        Ok(tape.read(target, self.flag.as_ref()))
    }
}
