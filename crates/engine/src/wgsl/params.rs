//! The parameter block of one dispatch: the user's values with the unit's place written in.

use shoal_kinds::{Field, Params, RenderWork};
use shoal_protocol::{Failure, Span};

/// The block of a map unit. A kernel with windows counts over all items, as if they were one unit.
pub(super) fn map_block(
    params: &Params,
    items: u64,
    span: Span,
    has_windows: bool,
) -> Result<Vec<u8>, Failure> {
    let span = if has_windows { Span::new(0, items) } else { span };
    block(params, |field| {
        Some(match field {
            Field::Offset => span.start,
            Field::Length => span.len,
            Field::Total => items,
            Field::TileX
            | Field::TileY
            | Field::TileWidth
            | Field::TileHeight
            | Field::ImageWidth
            | Field::ImageHeight
            | Field::Samples
            | Field::Tile
            | Field::Stride => return None,
        })
    })
}

/// The block of one tile.
pub(super) fn tile_block(
    params: &Params,
    work: &RenderWork,
    tile: u64,
) -> Result<Vec<u8>, Failure> {
    let columns = u64::from(work.columns());
    let size = u64::from(work.tile);
    let (width, height) = (u64::from(work.width), u64::from(work.height));
    let (x, y) = (tile % columns * size, tile / columns * size);
    block(params, |field| {
        Some(match field {
            Field::Offset | Field::Tile => tile,
            Field::Length => 1,
            Field::Total => columns * u64::from(work.rows()),
            Field::TileX => x,
            Field::TileY => y,
            Field::TileWidth => size.min(width.saturating_sub(x)),
            Field::TileHeight => size.min(height.saturating_sub(y)),
            Field::ImageWidth => width,
            Field::ImageHeight => height,
            Field::Samples => u64::from(work.samples),
            Field::Stride => size,
        })
    })
}

fn block(params: &Params, value: impl Fn(Field) -> Option<u64>) -> Result<Vec<u8>, Failure> {
    let mut bytes = params.bytes.clone();
    for &(field, at) in &params.places {
        let Some(value) = value(field) else {
            continue;
        };
        let word = u32::try_from(value).map_err(|_| Failure::Kernel {
            message: format!("{field:?} is {value}, more than the u32 the kernel asks for holds"),
        })?;
        let at = at as usize;
        let place = bytes.get_mut(at..at + 4).ok_or_else(|| Failure::Kernel {
            message: format!("{field:?} lies at byte {at}, outside the parameter block"),
        })?;
        place.copy_from_slice(&word.to_le_bytes());
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use shoal_kinds::{Kernel, Pixel};

    fn words(bytes: &[u8]) -> Vec<u32> {
        bytes
            .chunks(4)
            .map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]))
            .collect()
    }

    #[test]
    fn an_edge_tile_is_narrower_but_stored_full_size() {
        let kernel = Kernel {
            source: String::new(),
            entry: String::new(),
            workgroup: [8, 8, 1],
            bindings: Vec::new(),
            params: None,
            windows: None,
        };
        let (width, height, tile, samples) = (100, 70, 64, 4);
        let work = RenderWork { kernel, width, height, tile, samples, pixel: Pixel::Rgba8 };
        let fields =
            [Field::TileX, Field::TileY, Field::TileWidth, Field::TileHeight, Field::Stride];
        let places = fields.into_iter().zip((0..).step_by(4)).collect();
        let params = Params { bytes: vec![0; 20], places };
        assert_eq!(tile_block(&params, &work, 3).map(|b| words(&b)), Ok(vec![64, 64, 36, 6, 64]));
    }

    #[test]
    fn a_place_too_large_for_the_kernel_is_an_error_not_a_wrong_number() {
        let params = Params { bytes: vec![0; 4], places: vec![(Field::Offset, 0)] };
        assert!(map_block(&params, 1 << 40, Span::new(1 << 33, 1), false).is_err());
        assert_eq!(map_block(&params, 9, Span::new(7, 1), false).map(|b| words(&b)), Ok(vec![7]));
    }
}
