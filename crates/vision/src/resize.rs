//! Resizing: bilinear, and a triangle as wide as the step where a picture shrinks, so that no pixel is passed over.
//!
//! One row of the result at a time: first the rows above each other into one, then the pixels of it. A row is short enough
//! to stay in the cache, and a picture of any size needs no more memory than that.

use alloc::vec;
use alloc::vec::Vec;

use crate::prepare::{CHANNELS, Picture};

/// One direction of a picture: `from` pixels become `to`, of which `keep` are wanted after the first `skip`.
pub(crate) struct Axis {
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) skip: usize,
    pub(crate) keep: usize,
}

/// Fills `rows`, from the top, with the part of the resized picture that is wanted.
pub(crate) fn resize<'a>(
    picture: &Picture<'_>,
    across: &Axis,
    down: &Axis,
    rows: impl Iterator<Item = &'a mut [u8]>,
) {
    let (across, down) = (Taps::new(across), Taps::new(down));
    // What no pixel of the result looks at is not added up.
    let seen = across.begin() * CHANNELS..across.end() * CHANNELS;
    let mut sums = vec![0.0; seen.len()];
    for (tap, row) in down.taps.iter().zip(rows) {
        let weights = down.weights(tap);
        let above = |at: usize| &picture.row(tap.start + at)[seen.clone()];
        stack(&mut sums, weights, above);
        across.fold(&sums, row);
    }
}

/// Adds up rows that lie above each other. Two at a time: the sums are read and written half as often.
fn stack<'a>(sums: &mut [f32], weights: &[f32], row: impl Fn(usize) -> &'a [u8]) {
    let (pairs, rest) = weights.as_chunks::<2>();
    for (pair, [one, two]) in pairs.iter().enumerate() {
        let pixels = row(pair * 2).iter().zip(row(pair * 2 + 1));
        let parts = pixels.map(|(a, b)| f32::from(*a) * one + f32::from(*b) * two);
        if pair == 0 {
            sums.iter_mut().zip(parts).for_each(|(sum, part)| *sum = part);
        } else {
            sums.iter_mut().zip(parts).for_each(|(sum, part)| *sum += part);
        }
    }
    if let [last] = rest {
        let parts = row(pairs.len() * 2).iter().map(|pixel| f32::from(*pixel) * last);
        if pairs.is_empty() {
            sums.iter_mut().zip(parts).for_each(|(sum, part)| *sum = part);
        } else {
            sums.iter_mut().zip(parts).for_each(|(sum, part)| *sum += part);
        }
    }
}

/// Which pixels of the source each pixel of the result is made of, and how much of each.
struct Taps {
    taps: Vec<Tap>,
    /// Of all taps, one after another. Those of a tap come to one.
    weights: Vec<f32>,
}

struct Tap {
    /// The first pixel of the source.
    start: usize,
    /// The first of its weights.
    first: usize,
    count: usize,
}

impl Taps {
    fn new(axis: &Axis) -> Self {
        let step = axis.from as f64 / axis.to as f64;
        // How far a pixel looks to both sides: one pixel of the source or of the result, whichever is larger.
        let reach = step.max(1.0);
        let mut made = Self { taps: Vec::with_capacity(axis.keep), weights: Vec::new() };
        for at in axis.skip..axis.skip + axis.keep {
            made.add(axis.from, (at as f64 + 0.5) * step, reach);
        }
        made
    }

    fn add(&mut self, from: usize, centre: f64, reach: f64) {
        // Casts cut off, at zero too: `+ 0.5` makes that the nearest.
        let begin = ((centre - reach + 0.5) as usize).min(from - 1);
        let end = ((centre + reach + 0.5) as usize).clamp(begin + 1, from);
        let weight = |at: usize| {
            let away = (at as f64 + 0.5 - centre) / reach;
            (1.0 - away.abs()).max(0.0)
        };
        let total: f64 = (begin..end).map(weight).sum();
        let start = (begin..end).find(|at| weight(*at) > 0.0).unwrap_or(begin);
        let end = (start..end).rfind(|at| weight(*at) > 0.0).map_or(start + 1, |last| last + 1);
        let first = self.weights.len();
        self.weights.extend((start..end).map(|at| (weight(at) / total) as f32));
        self.taps.push(Tap { start, first, count: end - start });
    }

    fn weights(&self, tap: &Tap) -> &[f32] {
        &self.weights[tap.first..][..tap.count]
    }

    /// The first pixel of the source that counts.
    fn begin(&self) -> usize {
        self.taps.first().map_or(0, |tap| tap.start)
    }

    /// The first after the last that counts.
    fn end(&self) -> usize {
        self.taps.last().map_or(0, |tap| tap.start + tap.count)
    }

    /// A row of the result from the sums of the source's, which begin at `begin`.
    fn fold(&self, sums: &[f32], row: &mut [u8]) {
        let begin = self.begin();
        let (pixels, _) = row.as_chunks_mut::<CHANNELS>();
        let (sums, _) = sums.as_chunks::<CHANNELS>();
        for (pixel, tap) in pixels.iter_mut().zip(&self.taps) {
            let seen = &sums[tap.start - begin..][..tap.count];
            let mut total = [0.5; CHANNELS];
            for (sum, weight) in seen.iter().zip(self.weights(tap)) {
                total[0] += sum[0] * weight;
                total[1] += sum[1] * weight;
                total[2] += sum[2] * weight;
            }
            *pixel = total.map(|value| value as u8);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resized(rgb: &[u8], from: (usize, usize), to: (usize, usize)) -> Vec<u8> {
        let picture = Picture::new(from.0, from.1, rgb).unwrap();
        let axis = |from, to| Axis { from, to, skip: 0, keep: to };
        let mut result = vec![0; to.0 * to.1 * CHANNELS];
        let rows = result.chunks_exact_mut(to.0 * CHANNELS);
        resize(&picture, &axis(from.0, to.0), &axis(from.1, to.1), rows);
        result
    }

    /// Pixels without a pattern, the same each time.
    fn noise(pixels: usize) -> Vec<u8> {
        let mut state = 1_u32;
        let next = |_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        };
        (0..pixels * CHANNELS).map(next).collect()
    }

    fn grey(levels: &[u8]) -> Vec<u8> {
        levels.iter().flat_map(|level| [*level; 3]).collect()
    }

    #[test]
    fn a_constant_picture_stays_constant() {
        for value in [0, 1, 114, 254, 255] {
            for to in [(1, 1), (7, 3), (31, 17), (100, 90), (3, 200)] {
                let small = resized(&vec![value; 31 * 17 * 3], (31, 17), to);
                assert!(small.iter().all(|pixel| *pixel == value), "{value} in {to:?}");
            }
        }
    }

    #[test]
    fn the_same_size_is_the_same_picture() {
        let picture = noise(13 * 7);
        assert_eq!(resized(&picture, (13, 7), (13, 7)), picture);
    }

    #[test]
    fn shrinking_by_two_looks_at_four_pixels() {
        // Weights of 1, 3, 3, 1; at the edges of 3, 3, 1.
        let row = grey(&[0, 0, 80, 80, 0, 0]);
        let expected = grey(&[11, 60, 11]);
        assert_eq!(resized(&row, (6, 1), (3, 1)), expected);
        assert_eq!(resized(&row, (1, 6), (1, 3)), expected);
    }

    #[test]
    fn growing_goes_evenly_from_one_pixel_to_the_next() {
        let row = grey(&[0, 100]);
        assert_eq!(resized(&row, (2, 1), (4, 1)), grey(&[0, 25, 75, 100]));
    }

    #[test]
    fn fine_stripes_become_grey_when_they_shrink() {
        let stripes: Vec<u8> = (0..1000).map(|at| if at % 2 == 0 { 0 } else { 255 }).collect();
        let small = resized(&grey(&stripes), (1000, 1), (10, 1));
        assert!(small.iter().all(|pixel| (126..=129).contains(pixel)), "{small:?}");
    }

    #[test]
    fn a_window_is_a_part_of_the_whole() {
        let rgb = noise(40 * 30);
        let whole = resized(&rgb, (40, 30), (20, 15));
        let picture = Picture::new(40, 30, &rgb).unwrap();
        let across = Axis { from: 40, to: 20, skip: 6, keep: 5 };
        let down = Axis { from: 30, to: 15, skip: 4, keep: 1 };
        let mut part = [0; 15];
        resize(&picture, &across, &down, part.chunks_exact_mut(15));
        assert_eq!(part, whole[(4 * 20 + 6) * 3..][..15]);
    }
}
