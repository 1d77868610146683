//! A picture as a model takes it: its size, where the picture lies in it, the order of the numbers and their range.

use alloc::vec;
use alloc::vec::Vec;
use thiserror::Error;

use crate::resize::{Axis, resize};

/// The longest side of a picture: no JPEG has a longer one.
const MOST_SIDE: usize = 65_535;
/// The most pixels of a model's input: 4096x4096 are 200 MB of numbers. The size is a stranger's word.
const MOST_INPUT: usize = 1 << 24;
/// The longest side of a model's input: the longest picture cropped for it has fewer pixels in a row than 32 bits count.
const MOST_INPUT_SIDE: usize = 1 << 14;
/// Red, green, blue.
pub(crate) const CHANNELS: usize = 3;
/// The grey around a letterboxed picture. Detectors are trained with it.
const MARGIN: u8 = 114;
/// Classifiers are tested on the middle 224 of 256 pixels, so others see the same share of a picture.
const CROP: (usize, usize) = (256, 224);

/// Pixels in rows from the top, each red, green, blue.
#[derive(Clone, Copy, Debug)]
pub struct Picture<'a> {
    width: usize,
    height: usize,
    rgb: &'a [u8],
}

/// Bytes that are no picture of that size.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PictureError {
    #[error("the picture is {width}x{height}: each side must have 1 to {MOST_SIDE} pixels")]
    Size { width: usize, height: usize },
    #[error(
        "a picture of {width}x{height} has {expected} bytes of red, green and blue, not {found}"
    )]
    Length { width: usize, height: usize, expected: u64, found: usize },
}

impl<'a> Picture<'a> {
    pub fn new(width: usize, height: usize, rgb: &'a [u8]) -> Result<Self, PictureError> {
        check_size(width, height, rgb.len())?;
        Ok(Self { width, height, rgb })
    }

    pub fn width(&self) -> usize {
        self.width
    }

    pub fn height(&self) -> usize {
        self.height
    }

    /// A row of pixels from the top.
    pub(crate) fn row(&self, at: usize) -> &'a [u8] {
        let long = self.width * CHANNELS;
        &self.rgb[at * long..][..long]
    }
}

/// Whether so many bytes are a picture of that size.
pub(crate) fn check_size(width: usize, height: usize, found: usize) -> Result<(), PictureError> {
    let fits = |side| (1..=MOST_SIDE).contains(&side);
    if !fits(width) || !fits(height) {
        return Err(PictureError::Size { width, height });
    }
    let expected = width as u64 * height as u64 * CHANNELS as u64;
    if expected != found as u64 {
        return Err(PictureError::Length { width, height, expected, found });
    }
    Ok(())
}

/// How a picture of any shape becomes one of the model's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fit {
    /// All of it, undistorted, in the middle of a grey field.
    Letterbox,
    /// Its middle, undistorted: the shorter side becomes 256/224 of the model's, and what is beyond is cut off.
    Crop,
    /// All of it, each side by itself.
    Stretch,
}

/// The order of the numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// All red, then all green, then all blue.
    Nchw,
    /// Pixel by pixel.
    Nhwc,
}

/// What a model expects of a picture. A number is `(pixel * scale - mean) / std`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Preparation {
    pub width: usize,
    pub height: usize,
    pub fit: Fit,
    pub layout: Layout,
    pub mean: [f32; 3],
    pub std: [f32; 3],
    pub scale: f32,
}

/// A preparation that is none.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum PrepareError {
    #[error(
        "the model takes pictures of {width}x{height}: a side can have 1 to {MOST_INPUT_SIDE} pixels, and both together {MOST_INPUT}"
    )]
    Size { width: usize, height: usize },
    #[error(
        "the model's scale {scale} and standard deviations {std:?} must be numbers other than zero"
    )]
    Range { scale: f32, std: [f32; 3] },
}

/// What the model is given, and where the picture lies in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Prepared<T> {
    pub values: Vec<T>,
    pub placing: Placing,
}

/// Where a picture lies in a model's input: `input = picture * scale + offset`, counted in pixels from the left and top edge.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Placing {
    /// The picture's own size.
    pub width: usize,
    pub height: usize,
    pub scale_x: f32,
    pub scale_y: f32,
    /// Negative where the input begins inside of the picture.
    pub left: f32,
    pub top: f32,
}

impl Placing {
    /// A point of the input, in the picture.
    pub fn to_picture(&self, x: f32, y: f32) -> (f32, f32) {
        ((x - self.left) / self.scale_x, (y - self.top) / self.scale_y)
    }

    /// A point of the picture, in the input.
    pub fn to_input(&self, x: f32, y: f32) -> (f32, f32) {
        (x * self.scale_x + self.left, y * self.scale_y + self.top)
    }
}

impl Preparation {
    /// As detectors expect it: all of the picture, from 0 to 1.
    pub fn detector(width: usize, height: usize) -> Self {
        Self { fit: Fit::Letterbox, ..Self::plain(width, height) }
    }

    /// As classifiers trained on ImageNet expect it: the middle, by ImageNet's mean and standard deviation.
    pub fn classifier(width: usize, height: usize) -> Self {
        let (mean, std) = ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]);
        Self { fit: Fit::Crop, mean, std, ..Self::plain(width, height) }
    }

    /// Stretched, from 0 to 1.
    pub fn plain(width: usize, height: usize) -> Self {
        Self {
            width,
            height,
            fit: Fit::Stretch,
            layout: Layout::Nchw,
            mean: [0.0; 3],
            std: [1.0; 3],
            scale: 1.0 / 255.0,
        }
    }

    /// The tensor's dimensions.
    pub fn shape(&self) -> [usize; 4] {
        match self.layout {
            Layout::Nchw => [1, CHANNELS, self.height, self.width],
            Layout::Nhwc => [1, self.height, self.width, CHANNELS],
        }
    }

    /// For models that take numbers. Pixels are whole before they become numbers, as those that models are trained with.
    pub fn numbers(&self, picture: &Picture<'_>) -> Result<Prepared<f32>, PrepareError> {
        let good = |value: f32| value.is_finite() && value != 0.0;
        if !good(self.scale) || !self.std.iter().all(|std| good(*std)) {
            return Err(PrepareError::Range { scale: self.scale, std: self.std });
        }
        let (pixels, placing) = self.fitted(picture)?;
        let tables: [[f32; 256]; CHANNELS] = core::array::from_fn(|channel| {
            let number = |pixel| pixel as f32 * self.scale - self.mean[channel];
            core::array::from_fn(|pixel| number(pixel) / self.std[channel])
        });
        let values = self.ordered(&pixels, |channel, pixel| tables[channel][usize::from(pixel)]);
        Ok(Prepared { values, placing })
    }

    /// For models that take pixels as they are: neither scaled nor shifted.
    pub fn pixels(&self, picture: &Picture<'_>) -> Result<Prepared<u8>, PrepareError> {
        let (pixels, placing) = self.fitted(picture)?;
        let values = match self.layout {
            Layout::Nchw => self.ordered(&pixels, |_, pixel| pixel),
            Layout::Nhwc => pixels,
        };
        Ok(Prepared { values, placing })
    }

    /// Rows of pixels in the model's layout, each made into what the model takes.
    fn ordered<T>(&self, pixels: &[u8], made: impl Fn(usize, u8) -> T) -> Vec<T> {
        let mut values = Vec::with_capacity(pixels.len());
        let (whole, _) = pixels.as_chunks::<CHANNELS>();
        match self.layout {
            Layout::Nchw => {
                for channel in 0..CHANNELS {
                    values.extend(whole.iter().map(|pixel| made(channel, pixel[channel])));
                }
            }
            Layout::Nhwc => {
                for [red, green, blue] in whole {
                    values.extend([made(0, *red), made(1, *green), made(2, *blue)]);
                }
            }
        }
        values
    }

    /// The picture in the model's size, in rows of pixels.
    fn fitted(&self, picture: &Picture<'_>) -> Result<(Vec<u8>, Placing), PrepareError> {
        let (width, height) = (self.width, self.height);
        let fits = |side| (1..=MOST_INPUT_SIDE).contains(&side);
        if !fits(width) || !fits(height) || width * height > MOST_INPUT {
            return Err(PrepareError::Size { width, height });
        }
        let Window { across, down, left, top } = self.window(picture);
        let mut pixels = vec![MARGIN; width * height * CHANNELS];
        let rows = pixels.chunks_exact_mut(width * CHANNELS).skip(top).take(down.keep);
        let inside = rows.map(|row| &mut row[left * CHANNELS..][..across.keep * CHANNELS]);
        resize(picture, &across, &down, inside);
        let placing = Placing {
            width: picture.width,
            height: picture.height,
            scale_x: across.to as f32 / across.from as f32,
            scale_y: down.to as f32 / down.from as f32,
            left: left as f32 - across.skip as f32,
            top: top as f32 - down.skip as f32,
        };
        Ok((pixels, placing))
    }

    fn window(&self, picture: &Picture<'_>) -> Window {
        let (width, height) = (self.width, self.height);
        let (from_x, from_y) = (picture.width, picture.height);
        match self.fit {
            Fit::Letterbox => {
                let (to_x, to_y) = letterboxed((width, height), (from_x, from_y));
                let across = Axis { from: from_x, to: to_x, skip: 0, keep: to_x };
                let down = Axis { from: from_y, to: to_y, skip: 0, keep: to_y };
                Window { across, down, left: (width - to_x) / 2, top: (height - to_y) / 2 }
            }
            Fit::Crop => {
                let (over_x, over_y) = (overscan(width), overscan(height));
                let (to_x, to_y) = match narrower((over_x, over_y), (from_x, from_y)) {
                    Side::Height => (over_x, scaled(from_y, over_x, from_x)),
                    Side::Width => (scaled(from_x, over_y, from_y), over_y),
                };
                let across =
                    Axis { from: from_x, to: to_x, skip: middle(to_x - width), keep: width };
                let down =
                    Axis { from: from_y, to: to_y, skip: middle(to_y - height), keep: height };
                Window { across, down, left: 0, top: 0 }
            }
            Fit::Stretch => {
                let across = Axis { from: from_x, to: width, skip: 0, keep: width };
                let down = Axis { from: from_y, to: height, skip: 0, keep: height };
                Window { across, down, left: 0, top: 0 }
            }
        }
    }
}

/// Width and height of a picture, neither of them zero, that just fits into a field. Who makes a picture this size first, and
/// letterboxes it then, gets the same as who letterboxes it at once.
pub fn letterboxed(field: (usize, usize), picture: (usize, usize)) -> (usize, usize) {
    let ((width, height), (from_x, from_y)) = (field, picture);
    match narrower(field, picture) {
        Side::Width => (width, in_ratio(from_y, width, from_x).clamp(1, height)),
        Side::Height => (in_ratio(from_x, height, from_y).clamp(1, width), height),
    }
}

/// Which part of the picture goes where in the input.
struct Window {
    across: Axis,
    down: Axis,
    left: usize,
    top: usize,
}

enum Side {
    Width,
    Height,
}

/// Which side of the field a picture reaches first when it grows.
fn narrower(field: (usize, usize), picture: (usize, usize)) -> Side {
    let (by_width, by_height) =
        (field.0 as u64 * picture.1 as u64, field.1 as u64 * picture.0 as u64);
    if by_width <= by_height { Side::Width } else { Side::Height }
}

/// `side * to / from`, without what is left over.
fn scaled(side: usize, to: usize, from: usize) -> usize {
    (side as u64 * to as u64 / from as u64) as usize
}

/// `side * to / from`, to the nearest.
fn in_ratio(side: usize, to: usize, from: usize) -> usize {
    ((side as u64 * to as u64 * 2 + from as u64) / (from as u64 * 2)) as usize
}

/// The side that a crop is cut from.
fn overscan(side: usize) -> usize {
    in_ratio(side, CROP.0, CROP.1)
}

/// Half of what is cut off. Halves of a pixel go to the even side, as in the tools that classifiers are trained with.
fn middle(off: usize) -> usize {
    let half = off / 2;
    half + (off & half & 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    fn constant(width: usize, height: usize, value: u8) -> Vec<u8> {
        vec![value; width * height * CHANNELS]
    }

    fn near(one: (f32, f32), other: (f32, f32)) -> bool {
        (one.0 - other.0).abs() < 0.001 && (one.1 - other.1).abs() < 0.001
    }

    #[test]
    fn bytes_of_another_size_are_no_picture() {
        let error = Picture::new(2, 2, &[0; 11]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "a picture of 2x2 has 12 bytes of red, green and blue, not 11"
        );
        assert!(Picture::new(0, 2, &[]).is_err());
        assert!(Picture::new(usize::MAX, usize::MAX, &[0; 3]).is_err());
    }

    #[test]
    fn a_picture_that_was_made_small_before_gives_the_same_numbers() {
        let mut seed = 7_u32;
        for (width, height) in [(81, 108), (108, 81), (97, 31), (33, 64), (200, 200), (641, 1)] {
            let noise = |_| {
                seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (seed >> 24) as u8
            };
            let rgb: Vec<u8> = (0..width * height * CHANNELS).map(noise).collect();
            let picture = Picture::new(width, height, &rgb).unwrap();
            let (to_x, to_y) = letterboxed((32, 32), (width, height));
            let small = Preparation { layout: Layout::Nhwc, ..Preparation::plain(to_x, to_y) };
            let small = small.pixels(&picture).unwrap().values;
            let small = Picture::new(to_x, to_y, &small).unwrap();
            let detector = Preparation::detector(32, 32);
            let (once, twice) = (detector.numbers(&picture), detector.numbers(&small));
            assert_eq!(once.unwrap().values, twice.unwrap().values, "{width}x{height}");
        }
    }

    #[test]
    fn margins_of_a_letterbox_are_grey_and_the_picture_is_in_the_middle() {
        let rgb = constant(8, 4, 200);
        let picture = Picture::new(8, 4, &rgb).unwrap();
        let wide = Preparation { layout: Layout::Nhwc, ..Preparation::detector(4, 4) };
        let rows = wide.pixels(&picture).unwrap().values;
        let row = |at: usize| rows[at * 12];
        assert_eq!([row(0), row(1), row(2), row(3)], [114, 200, 200, 114]);
    }

    #[test]
    fn a_point_mapped_there_and_back_is_the_same() {
        let rgb = constant(1280, 721, 9);
        let picture = Picture::new(1280, 721, &rgb).unwrap();
        for fit in [Fit::Letterbox, Fit::Crop, Fit::Stretch] {
            let preparation = Preparation { fit, ..Preparation::plain(64, 48) };
            let placing = preparation.pixels(&picture).unwrap().placing;
            let (x, y) = placing.to_input(321.0, 700.5);
            assert!(near(placing.to_picture(x, y), (321.0, 700.5)), "{fit:?}");
        }
    }

    #[test]
    fn a_letterbox_maps_the_pictures_corners_to_its_margins() {
        let rgb = constant(1280, 720, 0);
        let picture = Picture::new(1280, 720, &rgb).unwrap();
        let placing = Preparation::detector(640, 640).pixels(&picture).unwrap().placing;
        assert_eq!(placing.to_picture(0.0, 140.0), (0.0, 0.0));
        assert_eq!(placing.to_picture(640.0, 500.0), (1280.0, 720.0));
    }

    #[test]
    fn a_crop_shows_the_middle() {
        // 448x256: the height becomes 256 and the width stays 448, of which the middle 224 are kept.
        let mut rgb = constant(448, 256, 0);
        for (at, pixel) in rgb.chunks_exact_mut(3).enumerate() {
            pixel.fill((at % 448 / 2) as u8);
        }
        let picture = Picture::new(448, 256, &rgb).unwrap();
        let crop = Preparation { layout: Layout::Nhwc, ..Preparation::classifier(224, 224) };
        let prepared = crop.pixels(&picture).unwrap();
        assert_eq!((prepared.values[0], prepared.values[223 * 3]), (56, 167));
        assert_eq!((prepared.placing.left, prepared.placing.top), (-112.0, -16.0));
    }

    #[test]
    fn thin_pictures_fit_in_every_way() {
        for (width, height) in [(60_000, 1), (1, 60_000), (1, 1)] {
            let rgb = constant(width, height, 77);
            let picture = Picture::new(width, height, &rgb).unwrap();
            for fit in [Fit::Letterbox, Fit::Crop, Fit::Stretch] {
                let preparation = Preparation { fit, ..Preparation::plain(20, 10) };
                let values = preparation.pixels(&picture).unwrap().values;
                assert!(values.iter().all(|pixel| [77, MARGIN].contains(pixel)));
                assert!(values.contains(&77));
            }
        }
    }

    #[test]
    fn channels_are_planes_or_pixels() {
        let rgb = [1, 2, 3, 4, 5, 6];
        let picture = Picture::new(2, 1, &rgb).unwrap();
        let planes = Preparation::plain(2, 1);
        assert_eq!(planes.pixels(&picture).unwrap().values, [1, 4, 2, 5, 3, 6]);
        let pixels = Preparation { layout: Layout::Nhwc, ..planes };
        assert_eq!(pixels.pixels(&picture).unwrap().values, rgb);
        assert_eq!((planes.shape(), pixels.shape()), ([1, 3, 1, 2], [1, 1, 2, 3]));
    }

    #[test]
    fn classifiers_get_numbers_around_zero() {
        let rgb = constant(9, 9, 255);
        let picture = Picture::new(9, 9, &rgb).unwrap();
        let values = Preparation::classifier(2, 2).numbers(&picture).unwrap().values;
        for (value, expected) in [(values[0], 2.2489), (values[4], 2.4286), (values[8], 2.64)] {
            assert!((value - expected).abs() < 0.0001);
        }
    }

    #[test]
    fn white_is_one_and_black_is_zero_for_detectors() {
        let rgb = [255, 255, 255, 0, 0, 0];
        let picture = Picture::new(2, 1, &rgb).unwrap();
        let values = Preparation::detector(2, 1).numbers(&picture).unwrap().values;
        assert_eq!(values, [1.0, 0.0, 1.0, 0.0, 1.0, 0.0]);
    }

    #[test]
    fn models_of_impossible_sizes_are_refused() {
        let picture = Picture::new(1, 1, &[0; 3]).unwrap();
        for (width, height) in [(0, 4), (usize::MAX, usize::MAX), (100_000, 2), (9_999, 9_999)] {
            let refused = Preparation::plain(width, height).pixels(&picture).unwrap_err();
            assert_eq!(refused, PrepareError::Size { width, height });
        }
        let flat = Preparation { std: [1.0, 0.0, 1.0], ..Preparation::plain(1, 1) };
        assert!(matches!(flat.numbers(&picture), Err(PrepareError::Range { .. })));
    }
}
