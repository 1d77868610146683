//! What a check of a map's code finds out: how the kernel must be fed, what it needs, and where its items
//! look. Made by the engine's intake, used by the plan.

use alloc::string::String;
use alloc::vec::Vec;
use shoal_protocol::Needs;
use shoal_protocol::limit::MAX_UNIT_BYTES;

use super::Fold;
use crate::feed::InputSplit;
use crate::kernel::{Edge, ElementType, Kernel, Windows};

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
