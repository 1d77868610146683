//! What a check of user code finds out: how a kernel must be fed and what it needs. Made by the engine's
//! intake, used by whoever turns a request into a job.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::fold::Fold;
use crate::job::Needs;
use crate::limit::MAX_UNIT_BYTES;
use crate::window::{Edge, Windows};
use crate::work::{InputSplit, Kernel, Pixel};

/// An array that every unit gets whole although nobody said so: what every WebGPU device can bind.
pub const MOST_WHOLE_BYTES: u64 = 128 << 20;
/// What a unit gets beyond its own on either side. More of it than of its own would be a waste.
const MOST_REACH_BYTES: u64 = MAX_UNIT_BYTES / 4;

/// A checked map kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct MapPlan {
    pub kernel: Kernel,
    /// Elements of the input arrays, in binding order.
    pub inputs: Vec<ElementType>,
    pub output: ElementType,
    /// What a node must have; `buffer_bytes` is 0, because the sizes come with the inputs.
    pub needs: Needs,
}

/// How a map's arrays are given to its items, as somebody asks for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MapAsk {
    /// In binding order.
    pub inputs: Vec<InputAsk>,
    /// Elements of output for each item.
    pub out_per_item: u32,
    pub edge: Edge,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InputAsk {
    pub whole: bool,
    /// Elements for each item.
    pub per_item: u32,
    /// Elements beyond its own that a unit is given on either side, if somebody says so.
    pub overlap: Option<u32>,
}

/// Where the items of a map look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapReading {
    /// Of a kernel that looks beyond its own item, or may.
    pub windows: Option<Windows>,
    /// In binding order.
    pub inputs: Vec<Reading>,
    /// Whether a unit must be whole workgroups: the kernel counts within them, or they share memory.
    pub whole_groups: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reading {
    /// Each item reads its own elements.
    Own,
    /// Each item reads at most so many elements away from its own.
    Near { elements: u32 },
    /// Nobody can tell; `line` is where.
    Anywhere { line: u32 },
}

/// A checked way to bring a map's outputs together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoldPlan {
    pub fold: Fold,
    /// What a block becomes, as WGSL writes it.
    pub made: String,
    /// Bytes of a block's result, all columns.
    pub output_bytes: u32,
    /// `combine` for what blocks become, and a kernel that copies it: with both it is folded again.
    pub combine: String,
    pub copy: String,
}

/// Why a unit cannot be given what its items read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TooFar {
    /// So many bytes on either side are more than a unit should carry.
    Overlap { bytes: u64 },
    /// Every unit would need all of a large array; `line` is where the kernel reads it.
    Anywhere { line: u32 },
    /// The same, because its ends meet.
    Ring,
}

impl Reading {
    /// What a unit is given of an array of `size` bytes whose items have parts as `given`.
    pub fn split(
        &self,
        given: InputSplit,
        edge: Edge,
        stride: u32,
        size: u64,
    ) -> Result<InputSplit, TooFar> {
        let InputSplit::PerItem { bytes, .. } = given else { return Ok(given) };
        match *self {
            Reading::Own => Ok(given),
            Reading::Near { elements } => {
                let reach = u64::from(elements) * u64::from(stride);
                // A unit at one end looks at the other.
                if edge == Edge::Wrap && elements > 0 {
                    let fits = size <= MOST_WHOLE_BYTES;
                    return if fits { Ok(InputSplit::Whole) } else { Err(TooFar::Ring) };
                }
                if reach >= size && size <= MOST_WHOLE_BYTES {
                    return Ok(InputSplit::Whole);
                }
                match u32::try_from(reach) {
                    Ok(fits) if reach <= MOST_REACH_BYTES => {
                        Ok(InputSplit::PerItem { bytes, reach: fits })
                    }
                    Ok(_) | Err(_) => Err(TooFar::Overlap { bytes: reach }),
                }
            }
            Reading::Anywhere { .. } if size <= MOST_WHOLE_BYTES => Ok(InputSplit::Whole),
            Reading::Anywhere { line } => Err(TooFar::Anywhere { line }),
        }
    }
}

/// A checked render kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct RenderPlan {
    pub kernel: Kernel,
    pub pixel: Pixel,
    /// What a node must have; `buffer_bytes` is 0, because the sizes come with the picture.
    pub needs: Needs,
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

/// Why user code is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IntakeError {
    /// For machines: `bad_kernel`, `bad_params` or `bad_module`.
    pub code: &'static str,
    /// For people, in whole sentences; for kernels with line, column and a caret under the spot.
    pub message: String,
    pub line: Option<u32>,
    pub column: Option<u32>,
}

impl IntakeError {
    /// One that names no spot.
    pub fn plain(code: &'static str, message: impl Into<String>) -> IntakeError {
        IntakeError { code, message: message.into(), line: None, column: None }
    }
}

impl fmt::Display for IntakeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl core::error::Error for IntakeError {}
