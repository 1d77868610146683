//! What a picture is.

use serde::{Deserialize, Serialize};
use shoal_protocol::Needs;

use crate::kernel::Kernel;

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
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
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

    /// As clients read it.
    pub fn word(self) -> &'static str {
        match self {
            Pixel::Rgba8 => "rgba8",
            Pixel::Rgba32Float => "rgba32float",
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
