//! Detections drawn into a picture: a box in its class's colour, and a label with name and score.

use alloc::format;
use font8x8::legacy::{BASIC_LEGACY, LATIN_LEGACY};

use crate::boxes::Detection;
use crate::names::Names;
use crate::prepare::{CHANNELS, PictureError, check_size};

/// Pixels of a letter, in both directions.
const LETTER: i64 = 8;
/// A picture of so many pixels between its sides gets letters of eight pixels, one of twice as many letters of sixteen.
const PER_LETTER: usize = 320;
/// A line has one pixel for so many.
const PER_LINE: usize = 330;
/// Hues around the circle, 256 between each two of red, yellow, green, cyan, blue and magenta.
const HUES: usize = 6 * 256;
/// From one class to the next: the golden angle, so that no two of the first classes are alike.
const HUE_STEP: usize = 587;

type Rgb = [u8; CHANNELS];

/// Draws boxes and labels into a picture of that size, the best on top. What lies beyond the picture is not drawn.
pub fn draw(
    width: usize,
    height: usize,
    rgb: &mut [u8],
    found: &[Detection],
    names: &Names,
) -> Result<(), PictureError> {
    check_size(width, height, rgb.len())?;
    let mut canvas = Canvas { width, height, rgb };
    // The worst first: what is drawn later covers it.
    for one in found.iter().rev() {
        canvas.frame(one);
    }
    for one in found.iter().rev() {
        canvas.label(one, &format!("{} {:.2}", names.of(one.class), one.score));
    }
    Ok(())
}

/// The colour of a class, always the same.
pub fn colour(class: usize) -> [u8; 3] {
    let hue = class % HUES * HUE_STEP % HUES;
    let (sector, within) = (hue / 256, (hue % 256) as u8);
    let (full, none) = (255, 0);
    let pure: Rgb = match sector {
        0 => [full, within, none],
        1 => [full - within, full, none],
        2 => [none, full, within],
        3 => [none, full - within, full],
        4 => [within, none, full],
        _ => [full, none, full - within],
    };
    // Every other class is paler, so that neighbours on the circle differ in that.
    if class.is_multiple_of(2) { pure } else { pure.map(|part| part / 2 + 96) }
}

/// White on dark colours and black on bright ones.
fn ink(on: Rgb) -> Rgb {
    let [red, green, blue] = on.map(u32::from);
    // How bright the eye sees each, in thousandths.
    let bright = red * 299 + green * 587 + blue * 114;
    if bright > 128_000 { [0; 3] } else { [255; 3] }
}

/// A letter's rows from the top; the lowest bit is at the left.
fn glyph(letter: char) -> [u8; 8] {
    let code = letter as usize;
    let known = BASIC_LEGACY.get(code).or_else(|| LATIN_LEGACY.get(code.checked_sub(0xa0)?));
    *known.unwrap_or(&BASIC_LEGACY[usize::from(b'?')])
}

struct Canvas<'a> {
    width: usize,
    height: usize,
    rgb: &'a mut [u8],
}

impl Canvas<'_> {
    /// The mean of both sides.
    fn size(&self) -> usize {
        (self.width + self.height) / 2
    }

    fn line(&self) -> i64 {
        (self.size() + PER_LINE / 2).div_euclid(PER_LINE).max(1) as i64
    }

    /// How many pixels wide and high each dot of a letter is.
    fn dot(&self) -> i64 {
        (self.size() + PER_LETTER / 2).div_euclid(PER_LETTER).max(1) as i64
    }

    /// A box's lines, inside of it.
    fn frame(&mut self, one: &Detection) {
        let (colour, line) = (colour(one.class), self.line());
        let [left, top, right, bottom] = sides(one);
        let (inner_left, inner_right) = ((left + line).min(right), (right - line).max(left));
        let (inner_top, inner_bottom) = ((top + line).min(bottom), (bottom - line).max(top));
        self.fill([left, top, right, inner_top], colour);
        self.fill([left, inner_bottom, right, bottom], colour);
        self.fill([left, top, inner_left, bottom], colour);
        self.fill([inner_right, top, right, bottom], colour);
    }

    /// Above the box, or in it where there is no room above; as far left as it must to be seen whole.
    fn label(&mut self, one: &Detection, text: &str) {
        let (dot, back) = (self.dot(), colour(one.class));
        let (wide, high) = ((text.chars().count() as i64 * LETTER + 2) * dot, (LETTER + 2) * dot);
        let [left, top, ..] = sides(one);
        let left = left.min(self.width as i64 - wide).max(0);
        let top = if top >= high { top - high } else { top.max(0) };
        self.fill([left, top, left + wide, top + high], back);
        for (at, letter) in (0_i64..).zip(text.chars()) {
            self.letter(letter, left + (at * LETTER + 1) * dot, top + dot, ink(back));
        }
    }

    fn letter(&mut self, letter: char, left: i64, top: i64, ink: Rgb) {
        let dot = self.dot();
        for (row, bits) in (0_i64..).zip(glyph(letter)) {
            for column in (0..LETTER).filter(|column| bits >> column & 1 == 1) {
                let (x, y) = (left + column * dot, top + row * dot);
                self.fill([x, y, x + dot, y + dot], ink);
            }
        }
    }

    /// A rectangle from `left`, `top` up to `right`, `bottom`: the part of it that is in the picture.
    fn fill(&mut self, [left, top, right, bottom]: [i64; 4], colour: Rgb) {
        let within = |at: i64, most: usize| at.clamp(0, most as i64) as usize;
        let (left, right) = (within(left, self.width), within(right, self.width));
        let (top, bottom) = (within(top, self.height), within(bottom, self.height));
        let long = self.width * CHANNELS;
        for row in self.rgb.chunks_exact_mut(long).take(bottom).skip(top) {
            let part = row.get_mut(left * CHANNELS..right * CHANNELS).unwrap_or_default();
            part.as_chunks_mut().0.fill(colour);
        }
    }
}

/// A box in whole pixels. Far beyond any picture is near enough: sums of these never overflow.
fn sides(one: &Detection) -> [i64; 4] {
    let far = f32::from(u16::MAX) * 4.0;
    [one.left, one.top, one.right, one.bottom].map(|side| {
        let side = if side.is_nan() { 0.0 } else { side.clamp(-far, far) };
        libm::floorf(side + 0.5) as i64
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;
    use alloc::vec;
    use alloc::vec::Vec;

    const GREY: Rgb = [9, 9, 9];

    fn thing(left: f32, top: f32, right: f32, bottom: f32) -> Detection {
        Detection { class: 0, score: 0.87, left, top, right, bottom }
    }

    fn drawn(width: usize, height: usize, found: &[Detection]) -> Vec<Rgb> {
        let mut rgb = vec![GREY[0]; width * height * CHANNELS];
        draw(width, height, &mut rgb, found, &Names::for_count(80)).unwrap();
        rgb.as_chunks().0.to_vec()
    }

    #[test]
    fn a_box_has_lines_and_nothing_in_it() {
        let pixels = drawn(100, 60, &[thing(20.0, 30.0, 40.0, 50.0)]);
        let at = |x: usize, y: usize| pixels[y * 100 + x];
        let red = colour(0);
        assert_eq!([at(20, 30), at(39, 30), at(20, 49), at(39, 49), at(30, 49)], [red; 5]);
        assert_eq!([at(30, 40), at(19, 40), at(40, 40), at(30, 50)], [GREY; 4]);
    }

    #[test]
    fn a_label_is_above_its_box_in_its_colour() {
        let pixels = drawn(200, 60, &[thing(20.0, 30.0, 40.0, 50.0)]);
        let row = |y: usize| &pixels[y * 200..][..200];
        // `person 0.87`: eleven letters of eight pixels, and one at both ends.
        let painted = |y: usize| row(y).iter().filter(|pixel| **pixel != GREY).count();
        assert_eq!((painted(19), painted(20), painted(25), painted(29)), (0, 90, 90, 90));
        assert!(row(23).contains(&ink(colour(0))));
    }

    #[test]
    fn a_label_without_room_above_is_inside_and_one_at_the_right_moves_left() {
        let pixels = drawn(200, 60, &[thing(190.0, 0.0, 200.0, 60.0)]);
        assert_eq!((pixels[109], pixels[110], pixels[199]), (GREY, colour(0), colour(0)));
    }

    #[test]
    fn what_lies_beyond_the_picture_is_not_drawn() {
        let far = [1e30, -1e30, f32::MAX, f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 0.0, 5.0];
        for left in far {
            for right in far {
                drawn(12, 7, &[thing(left, right, right, left), thing(left, left, right, right)]);
            }
        }
    }

    #[test]
    fn the_smallest_picture_and_empty_boxes_are_drawn_into() {
        assert_eq!(drawn(1, 1, &[thing(0.0, 0.0, 0.0, 0.0)]).len(), 1);
        assert_eq!(drawn(1, 1, &[]), [GREY]);
        drawn(30, 3, &[thing(5.0, 5.0, 5.0, 5.0), thing(9.0, 9.0, 2.0, 2.0)]);
    }

    #[test]
    fn the_best_is_on_top() {
        let (best, worst) =
            (thing(5.0, 20.0, 30.0, 40.0), Detection { class: 1, ..thing(5.0, 20.0, 30.0, 40.0) });
        assert_eq!(drawn(100, 60, &[best, worst])[39 * 100 + 10], colour(0));
        assert_eq!(drawn(100, 60, &[worst, best])[39 * 100 + 10], colour(1));
    }

    #[test]
    fn classes_have_colours_of_their_own() {
        let colours: BTreeSet<Rgb> = (0..80).map(colour).collect();
        assert_eq!(colours.len(), 80);
        assert_eq!(colour(usize::MAX), colour(usize::MAX));
    }

    #[test]
    fn large_pictures_have_thick_lines_and_large_letters() {
        let canvas = |width, height| Canvas { width, height, rgb: &mut [] };
        assert_eq!((canvas(640, 480).line(), canvas(640, 480).dot()), (2, 2));
        assert_eq!((canvas(1920, 1080).line(), canvas(1920, 1080).dot()), (5, 5));
        assert_eq!((canvas(9, 9).line(), canvas(9, 9).dot()), (1, 1));
    }

    #[test]
    fn letters_without_a_shape_are_question_marks() {
        assert_eq!(glyph('鱼'), glyph('?'));
        assert_ne!(glyph('é'), glyph('?'));
        assert_ne!(glyph('A'), glyph('B'));
    }

    #[test]
    fn bytes_of_another_size_are_refused() {
        let refused = draw(4, 4, &mut [0; 5], &[], &Names::default());
        assert!(matches!(refused, Err(PictureError::Length { .. })));
    }
}
