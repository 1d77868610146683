//! Tiles put together to a picture.

use std::io::Cursor;

use image::{ImageFormat, RgbaImage};
use shoal_api::RenderJson;
use shoal_kinds::Pixel;

use crate::fail::Fail;

/// Tiles come row by row, each full size, also at the edges.
pub(crate) struct Picture {
    width: usize,
    height: usize,
    tile: usize,
    pixel: Pixel,
    /// Bytes of a tile that is not complete yet.
    pending: Vec<u8>,
    next_tile: usize,
    pixels: Vec<u8>,
}

impl Picture {
    pub(crate) fn new(about: &RenderJson) -> Result<Picture, Fail> {
        let bad = |what: &str| {
            Fail::world("bad_answer", format!("the coordinator describes a picture {what}"))
        };
        let (width, height, tile) =
            (about.width as usize, about.height as usize, about.tile as usize);
        let size = width.checked_mul(height).and_then(|pixels| pixels.checked_mul(4));
        let size =
            size.filter(|_| tile > 0).ok_or_else(|| bad("that is too large for this machine"))?;
        Ok(Picture {
            width,
            height,
            tile,
            pixel: about.pixel,
            pending: Vec::new(),
            next_tile: 0,
            pixels: vec![0; size],
        })
    }

    /// Bytes of all tiles.
    pub(crate) fn bytes(&self) -> u64 {
        (self.tiles() * self.tile_bytes()) as u64
    }

    /// Takes the next bytes of the tiles, however they are cut.
    pub(crate) fn push(&mut self, mut bytes: &[u8]) -> Result<(), Fail> {
        let whole = self.tile_bytes();
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(whole - self.pending.len()));
            bytes = later;
            self.pending.extend_from_slice(now);
            if self.pending.len() == whole {
                let tile = std::mem::take(&mut self.pending);
                self.place(&tile)?;
            }
        }
        Ok(())
    }

    /// The picture as a PNG file.
    pub(crate) fn png(self) -> Result<Vec<u8>, Fail> {
        if self.next_tile != self.tiles() || !self.pending.is_empty() {
            return Err(Fail::world("bad_answer", "the picture arrived incomplete"));
        }
        let broken = || Fail::world("internal", "the picture's size is inconsistent");
        let image = RgbaImage::from_raw(self.width as u32, self.height as u32, self.pixels)
            .ok_or_else(broken)?;
        let mut png = Cursor::new(Vec::new());
        image
            .write_to(&mut png, ImageFormat::Png)
            .map_err(|error| Fail::world("internal", format!("cannot make a PNG: {error}")))?;
        Ok(png.into_inner())
    }

    fn place(&mut self, tile: &[u8]) -> Result<(), Fail> {
        if self.next_tile >= self.tiles() {
            return Err(Fail::world("bad_answer", "the picture has more tiles than it should"));
        }
        let columns = self.width.div_ceil(self.tile);
        let left = self.next_tile % columns * self.tile;
        let top = self.next_tile / columns * self.tile;
        self.next_tile += 1;
        let (across, down) = (self.tile.min(self.width - left), self.tile.min(self.height - top));
        let pixel_bytes = self.pixel.bytes() as usize;
        for row in 0..down {
            let from = row * self.tile * pixel_bytes;
            let to = ((top + row) * self.width + left) * 4;
            let source = &tile[from..from + across * pixel_bytes];
            let target = &mut self.pixels[to..to + across * 4];
            match self.pixel {
                Pixel::Rgba8 => target.copy_from_slice(source),
                Pixel::Rgba32Float => develop(source, target),
            }
        }
        Ok(())
    }

    fn tiles(&self) -> usize {
        self.width.div_ceil(self.tile) * self.height.div_ceil(self.tile)
    }

    fn tile_bytes(&self) -> usize {
        self.tile * self.tile * self.pixel.bytes() as usize
    }
}

/// Linear light to 8-bit sRGB; alpha stays linear.
fn develop(source: &[u8], target: &mut [u8]) {
    let (pixels, _) = source.as_chunks::<16>();
    for (pixel, out) in pixels.iter().zip(target.chunks_exact_mut(4)) {
        let (lights, _) = pixel.as_chunks::<4>();
        for (channel, (light, byte)) in lights.iter().zip(out).enumerate() {
            let light = f32::from_le_bytes(*light);
            let value = if channel == 3 { light } else { srgb(light) };
            // A cast from NaN gives 0, as black as it should be.
            *byte = (value.clamp(0.0, 1.0) * 255.0 + 0.5) as u8;
        }
    }
}

fn srgb(light: f32) -> f32 {
    if light <= 0.003_130_8 { light * 12.92 } else { 1.055 * light.powf(1.0 / 2.4) - 0.055 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn about(width: u32, height: u32, tile: u32) -> RenderJson {
        RenderJson { width, height, tile, pixel: Pixel::Rgba8, samples: 1 }
    }

    #[test]
    fn tiles_at_the_edges_are_cut_to_the_picture() {
        let mut picture = Picture::new(&about(3, 3, 2)).expect("a picture");
        // Four tiles of 2 × 2, each filled with its number.
        let bytes: Vec<u8> = (1..=4_u8).flat_map(|tile| vec![tile; 16]).collect();
        for piece in bytes.chunks(7) {
            picture.push(piece).expect("tiles");
        }
        let reds: Vec<u8> = picture.pixels.chunks(4).map(|pixel| pixel[0]).collect();
        assert_eq!(reds, [1, 1, 2, 1, 1, 2, 3, 3, 4]);
        let png = picture.png().expect("a PNG");
        let image = image::load_from_memory(&png).expect("a readable PNG");
        assert_eq!((image.width(), image.height()), (3, 3));
    }

    #[test]
    fn a_picture_cut_short_or_too_long_is_refused() {
        let mut picture = Picture::new(&about(2, 2, 2)).expect("a picture");
        picture.push(&[0; 15]).expect("part of a tile");
        assert!(picture.png().is_err());
        let mut picture = Picture::new(&about(2, 2, 2)).expect("a picture");
        assert!(picture.push(&[0; 32]).is_err());
    }

    #[test]
    fn light_becomes_srgb() {
        let light: Vec<u8> =
            [0.0_f32, 0.5, 7.0, 0.5].iter().flat_map(|v| v.to_le_bytes()).collect();
        let mut out = [9; 4];
        develop(&light, &mut out);
        assert_eq!(out, [0, 188, 255, 128]);
        let dark: Vec<u8> =
            [f32::NAN, -1.0, 0.001, 1.0].iter().flat_map(|v| v.to_le_bytes()).collect();
        develop(&dark, &mut out);
        assert_eq!(out, [0, 0, 3, 255]);
    }
}
