//! WGSL kernels over arrays: what maps and renders share.

mod window;

pub use window::{Addition, Argument, Builtin, Edge, Given, Mark, Window, Windows};

use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

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
    /// The input of this position in the work's list.
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

/// The element of an array in a storage buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ElementType {
    /// As WGSL writes it: `f32`, `vec2<f32>`, or a struct's name.
    pub name: String,
    /// Bytes from one element to the next: a `vec3<f32>` takes 16.
    pub stride: u32,
    /// The scalar it is made of: `f32`, `i32` or `u32`; `mixed` for a struct of several kinds.
    pub scalar: String,
    /// Scalars from one element to the next, padding included: 4 for a `vec3<f32>`.
    pub lanes: u32,
}
