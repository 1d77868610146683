//! What is to be computed. Written by the intake, which has checked it; read by nodes, which need not.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

use crate::fold::{Fold, How};
use crate::id::{BlobRef, Span};
use crate::sim::SimWork;
use crate::window::Windows;

/// The computation of a job. Append new kinds at the end: the position is the wire format.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Work {
    /// Units without content: measures what the pool itself costs.
    Noop,
    Map(MapWork),
    Render(RenderWork),
    Exec(ExecWork),
    Sim(SimWork),
}

/// A checked WGSL compute shader and how its bindings (all in group 0) are filled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Kernel {
    pub source: String,
    pub entry: String,
    pub workgroup: [u32; 3],
    pub bindings: Vec<Binding>,
    /// The uniform or storage block named by [`Slot::Params`], if the kernel declares one.
    pub params: Option<Params>,
    /// Of a map whose items look beyond their own places.
    pub windows: Option<Windows>,
}

impl Kernel {
    /// Gives it windows, with what they need to be bound.
    pub fn look_through(&mut self, windows: Windows) {
        let place = Binding { index: windows.block, space: Space::Uniform, slot: Slot::Place };
        let space = Space::StorageReadWrite;
        self.bindings.extend([place, Binding { index: windows.report, space, slot: Slot::Report }]);
        self.windows = Some(windows);
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Binding {
    pub index: u32,
    pub space: Space,
    pub slot: Slot,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Space {
    Uniform,
    StorageRead,
    StorageReadWrite,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Slot {
    /// The input of this position in [`MapWork::inputs`].
    Input(u32),
    Output,
    Params,
    /// The unit's place, for [`Windows`].
    Place,
    /// Where a kernel with windows says that it looked outside of them.
    Report,
}

/// A parameter block: the user's values already in place, and where each unit writes its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Params {
    pub bytes: Vec<u8>,
    /// Byte positions of `u32` members that carry the unit's place.
    pub places: Vec<(Field, u32)>,
}

/// A member of the parameter block that Shoal fills, found by its name (in `snake_case`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Field {
    /// First item of this unit in the whole; 0 for a kernel that counts over the whole by [`Windows`].
    Offset,
    /// Items in this unit; all of them for such a kernel.
    Length,
    /// Items in the job.
    Total,
    /// Left edge of this tile in the picture, in pixels.
    TileX,
    TileY,
    /// Pixels of this tile that lie in the picture.
    TileWidth,
    TileHeight,
    ImageWidth,
    ImageHeight,
    Samples,
    /// The tile's number, for random seeds.
    Tile,
    /// Pixels from one row of a tile to the next in `output`: tiles at an edge are stored full size.
    Stride,
}

/// A kernel over the elements of arrays. Item `i` of the job is invocation `i - offset` of a unit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MapWork {
    pub kernel: Kernel,
    pub inputs: Vec<MapInput>,
    /// Bytes of output for each item.
    pub output_bytes: u32,
    /// How outputs are brought together, if they are: items are blocks then.
    pub fold: Option<Fold>,
}

impl MapWork {
    /// What somebody signs.
    pub fn code(&self) -> Cow<'_, str> {
        match &self.fold {
            Some(Fold { how: How::Combine(source), .. }) => {
                Cow::Owned(map_code(&self.kernel.source, source))
            }
            Some(_) | None => Cow::Borrowed(&self.kernel.source),
        }
    }
}

/// What is signed of a map whose outputs are brought together by code: both texts.
pub fn map_code(kernel: &str, combine: &str) -> String {
    alloc::format!("{kernel}\n{combine}")
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MapInput {
    pub blob: BlobRef,
    pub split: InputSplit,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum InputSplit {
    /// A unit gets this many bytes for each of its items, and `reach` more before and behind them.
    PerItem { bytes: u32, reach: u32 },
    /// Every unit gets all of it: tables, weights, the other matrix.
    Whole,
}

impl MapInput {
    /// The bytes a unit gets; the array's ends cut them off.
    pub fn range(&self, span: Span) -> (u64, u64) {
        match self.split {
            InputSplit::Whole => (0, self.blob.size),
            InputSplit::PerItem { bytes, reach } => {
                let (bytes, reach) = (u64::from(bytes), u64::from(reach));
                let start = span.start.saturating_mul(bytes).saturating_sub(reach);
                let end = span.end().saturating_mul(bytes).saturating_add(reach);
                (start.min(self.blob.size), end.min(self.blob.size))
            }
        }
    }
}

/// A kernel over the square tiles of a picture, row by row. Item `i` is tile `i`; each is one dispatch
/// over `ceil(tile / workgroup)` groups in x and y, and gives `tile * tile` pixels.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RenderWork {
    pub kernel: Kernel,
    pub width: u32,
    pub height: u32,
    pub tile: u32,
    pub samples: u32,
    pub pixel: Pixel,
}

impl RenderWork {
    pub fn columns(&self) -> u32 {
        self.width.div_ceil(self.tile)
    }

    pub fn rows(&self) -> u32 {
        self.height.div_ceil(self.tile)
    }

    /// Bytes one tile takes in a result; tiles at an edge are stored full size.
    pub fn tile_bytes(&self) -> u64 {
        u64::from(self.tile) * u64::from(self.tile) * u64::from(self.pixel.bytes())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Pixel {
    /// `array<u32>`, red in the low byte, as `pack4x8unorm` makes it.
    Rgba8,
    /// `array<vec4<f32>>`, linear light from 0 to 1.
    Rgba32Float,
}

impl Pixel {
    pub fn bytes(self) -> u32 {
        match self {
            Pixel::Rgba8 => 4,
            Pixel::Rgba32Float => 16,
        }
    }
}

/// A WASI preview1 program, run once for each item: the item's bytes on stdin, the answer from stdout.
/// The result of a unit is `[u32 length] * items`, then the bytes of all answers, little-endian.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExecWork {
    /// The module as it was signed; nodes keep it to the job's memory limit.
    pub module: BlobRef,
    pub args: Vec<String>,
    pub env: Vec<(String, String)>,
    pub items: ExecItems,
    /// A JSON list of `{"name", "hash", "size"}`: files the program finds, read-only, in `/data`.
    pub folder: Option<BlobRef>,
    /// Whether the program sees the real time. Without it clocks start at zero and count calls, and
    /// random bytes come from the item's number, so that every node gives the same answer.
    pub clock: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ExecItems {
    /// Item `i` is `data[ends[i - 1]..ends[i]]`; `ends` holds little-endian `u64`s.
    Lines { data: BlobRef, ends: BlobRef },
    /// A JSON list of `{"name", "hash", "size"}`; the name is in `SHOAL_INPUT`.
    Files { manifest: BlobRef },
}
