//! Planning a picture: how it is cut into tiles.

use shoal_protocol::limit::MAX_UNIT_BYTES;
use shoal_protocol::{Dtype, Hash, hash};

use super::{Pixel, RenderPlan, RenderRequest, RenderWork};
use crate::kind::Kind;
use crate::plan::{Ask, Common, Note, Part, PlanError, Refusal, Tools, check_kernel_size, sizing};

/// The longest side of a picture: 1 GiB as rgba8 when square.
const MAX_SIDE: u32 = 16_384;
const DEFAULT_TILE: u32 = 64;
const MAX_TILE: u32 = 1024;
/// Tiles in one unit, so that a picture grows visibly.
const MAX_TILES: u64 = 64;

impl Ask for RenderRequest {
    fn kind(&self) -> &'static str {
        "render"
    }

    fn code(&self) -> Result<Option<Hash>, PlanError> {
        Ok(Some(hash(self.wgsl.as_bytes())))
    }

    fn plan(&self, common: &Common<'_>, tools: &Tools<'_>) -> Result<Part, PlanError> {
        check_kernel_size(&self.wgsl)?;
        let RenderRequest { width, height, .. } = *self;
        if width == 0 || height == 0 || width > MAX_SIDE || height > MAX_SIDE {
            return Err(RenderError::Picture { width, height, most: MAX_SIDE }.into());
        }
        let tile = self.tile.unwrap_or(DEFAULT_TILE);
        if !(8..=MAX_TILE).contains(&tile) {
            return Err(RenderError::Tile { tile, most: MAX_TILE }.into());
        }
        let samples = self.samples.unwrap_or(1);
        if samples == 0 {
            return Err(PlanError::Zero { what: "\"samples\"" });
        }
        let RenderPlan { mut kernel, pixel, mut needs } =
            tools.intake.render_kernel(&self.wgsl, self.entry.as_deref(), &self.params)?;
        // Nodes check the signature of exactly what was submitted.
        kernel.source.clone_from(&self.wgsl);
        let work = RenderWork { kernel, width, height, tile, samples, pixel };
        let items = u64::from(work.columns()) * u64::from(work.rows());
        let most = (MAX_UNIT_BYTES / work.tile_bytes()).clamp(1, MAX_TILES);
        needs.buffer_bytes = work.tile_bytes();
        let sizing = sizing(1, most, common.unit)?;
        needs.takes.gpu_memory = work.tile_bytes().saturating_mul(sizing.most.min(items));
        let dtype = match pixel {
            Pixel::Rgba8 => Dtype::Unorm8,
            Pixel::Rgba32Float => Dtype::F32,
        };
        let (kind, note) = (Kind::Render(work), Note::default());
        Ok(Part { kind, items, sizing, needs, dtype, note })
    }
}

/// Why a picture is refused.
#[derive(Debug, thiserror::Error)]
pub enum RenderError {
    #[error("the picture is {width} x {height}; each side must be from 1 to {most} pixels")]
    Picture { width: u32, height: u32, most: u32 },
    #[error("a tile of {tile} pixels is asked for; it must be from 8 to {most}")]
    Tile { tile: u32, most: u32 },
}

impl Refusal for RenderError {
    fn code(&self) -> &'static str {
        match self {
            RenderError::Picture { .. } | RenderError::Tile { .. } => "bad_request",
        }
    }
}
