//! What a detector found: boxes in the picture's own pixels, each thing once.

use alloc::vec;
use alloc::vec::Vec;

use crate::form::{BoxesError, Form, Kind, OBJECT, PLACE};
use crate::prepare::Placing;

/// Candidates that suppression looks at, the best ones. The largest usual output has 25,200, so this only bounds hostile ones.
const MOST_CANDIDATES: usize = 30_000;
/// Boxes that are given. More would cover any picture, and each candidate is held against all that are kept.
const MOST_DETECTIONS: usize = 300;
/// A class beyond this is none: the largest lists of classes have some 20,000.
const MOST_CLASSES: f32 = 65_536.0;

/// A thing in a picture. Its sides are in the picture's pixels and lie within it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Detection {
    pub class: usize,
    pub score: f32,
    pub left: f32,
    pub top: f32,
    pub right: f32,
    pub bottom: f32,
}

/// What counts as found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Thresholds {
    /// The least score.
    pub score: f32,
    /// Two boxes of a class that share more than this part of what they cover together are one thing.
    pub overlap: f32,
}

impl Default for Thresholds {
    /// What detectors are usually run with.
    fn default() -> Self {
        Self { score: 0.25, overlap: 0.45 }
    }
}

/// All that a detector found, the best first: reads its output, and suppresses boxes where the model has not done so itself.
/// `classes` is how many classes the model names, if it does: it tells forms apart that look the same.
pub fn detect(
    shape: &[usize],
    output: &[f32],
    classes: Option<usize>,
    placing: &Placing,
    thresholds: Thresholds,
) -> Result<Vec<Detection>, BoxesError> {
    let form = Form::of(shape, classes)?;
    if form.len() != output.len() {
        let (shape, expected, found) = (shape.to_vec(), form.len(), output.len());
        return Err(BoxesError::Length { shape, expected, found });
    }
    let found = read(&form, output, placing, thresholds.score);
    Ok(match form.kind {
        Kind::Columns | Kind::Rows | Kind::Objects => suppress(found, thresholds.overlap),
        Kind::Final => found.into_iter().take(MOST_DETECTIONS).collect(),
    })
}

/// The candidates of an output with at least that score, the best first. What is no number is no candidate, and neither is
/// a box beside the picture. Numbers that are missing are boxes that are missing.
fn read(form: &Form, output: &[f32], placing: &Placing, score: f32) -> Vec<Detection> {
    let mut found = Vec::new();
    let mut take = |class: usize, sure: f32, corners: [f32; 4]| {
        // Not the opposite: what is no number is less than nothing here.
        if sure >= score && sure.is_finite() {
            found.extend(placed(class, sure, corners, placing));
        }
    };
    match form.kind {
        Kind::Columns => columns(form, output, &mut take),
        Kind::Rows => rows(form, output, |fields| {
            let (class, sure) = best(&fields[PLACE..][..form.classes])?;
            Some((class, sure, around(fields[0], fields[1], fields[2], fields[3])))
        })
        .for_each(|(class, sure, corners)| take(class, sure, corners)),
        Kind::Objects => rows(form, output, |fields| {
            // No score of a class is more than one, so few boxes are looked at further.
            let anything = Some(fields[PLACE]).filter(|anything| *anything >= score)?;
            let (class, sure) = best(&fields[OBJECT..][..form.classes])?;
            Some((class, anything * sure, around(fields[0], fields[1], fields[2], fields[3])))
        })
        .for_each(|(class, sure, corners)| take(class, sure, corners)),
        Kind::Final => rows(form, output, |fields| {
            let class = fields[5];
            let known = (0.0..MOST_CLASSES).contains(&class);
            let corners = [fields[0], fields[1], fields[2], fields[3]];
            known.then_some(((class + 0.5) as usize, fields[4], corners))
        })
        .for_each(|(class, sure, corners)| take(class, sure, corners)),
    }
    best_first(&mut found);
    found
}

/// Of boxes of one class that overlap by more than `overlap`, the best; at most 300, the best first. Boxes with the same score
/// are in the order of their classes, then in the order they came.
pub fn suppress(mut found: Vec<Detection>, overlap: f32) -> Vec<Detection> {
    found.retain(|one| one.score.is_finite());
    best_first(&mut found);
    let mut kept: Vec<Detection> = Vec::new();
    for one in found {
        let covered = |other: &Detection| other.class == one.class && shared(other, &one) > overlap;
        if !kept.iter().any(covered) {
            kept.push(one);
        }
        if kept.len() == MOST_DETECTIONS {
            break;
        }
    }
    kept
}

fn best_first(found: &mut Vec<Detection>) {
    found.sort_by(|one, other| other.score.total_cmp(&one.score).then(one.class.cmp(&other.class)));
    found.truncate(MOST_CANDIDATES);
}

/// How much of what two boxes cover together both cover.
fn shared(one: &Detection, other: &Detection) -> f32 {
    let width = one.right.min(other.right) - one.left.max(other.left);
    let height = one.bottom.min(other.bottom) - one.top.max(other.top);
    if width <= 0.0 || height <= 0.0 {
        return 0.0;
    }
    let area = |one: &Detection| (one.right - one.left) * (one.bottom - one.top);
    let both = width * height;
    both / (area(one) + area(other) - both)
}

/// Boxes whose numbers lie apart: class by class over all boxes, in the order in which they are stored.
fn columns(form: &Form, output: &[f32], take: &mut impl FnMut(usize, f32, [f32; 4])) {
    let Some(places) = output.get(..PLACE * form.boxes) else { return };
    if form.boxes == 0 {
        return;
    }
    let scores = output[places.len()..].chunks_exact(form.boxes).take(form.classes);
    let mut most = vec![(0_u32, f32::NEG_INFINITY); form.boxes];
    for (class, scores) in (0_u32..).zip(scores) {
        for (best, score) in most.iter_mut().zip(scores) {
            if *score > best.1 {
                *best = (class, *score);
            }
        }
    }
    let place = |field: usize, at: usize| places[field * form.boxes + at];
    for (at, (class, score)) in most.into_iter().enumerate() {
        let corners = around(place(0, at), place(1, at), place(2, at), place(3, at));
        take(class as usize, score, corners);
    }
}

/// Boxes whose numbers lie together, those that `made` makes something of.
fn rows<T>(
    form: &Form,
    output: &[f32],
    made: impl Fn(&[f32]) -> Option<T>,
) -> impl Iterator<Item = T> {
    output.chunks_exact(form.fields.max(1)).take(form.boxes).filter_map(made)
}

/// The class with the highest score, the first of several.
fn best(scores: &[f32]) -> Option<(usize, f32)> {
    let mut best: Option<(usize, f32)> = None;
    for (class, score) in scores.iter().enumerate() {
        if *score > best.map_or(f32::NEG_INFINITY, |(_, most)| most) {
            best = Some((class, *score));
        }
    }
    best
}

/// The corners of a box around a point.
fn around(x: f32, y: f32, width: f32, height: f32) -> [f32; 4] {
    let (half_width, half_height) = (width / 2.0, height / 2.0);
    [x - half_width, y - half_height, x + half_width, y + half_height]
}

/// A box in the picture, unless it lies beside it, is empty, or is made of what is no number.
fn placed(class: usize, score: f32, corners: [f32; 4], placing: &Placing) -> Option<Detection> {
    let [left, top, right, bottom] = corners;
    let ((left, top), (right, bottom)) =
        (placing.to_picture(left, top), placing.to_picture(right, bottom));
    if ![left, top, right, bottom].iter().all(|side| side.is_finite()) {
        return None;
    }
    let (width, height) = (placing.width as f32, placing.height as f32);
    let (left, right) = (left.clamp(0.0, width), right.clamp(0.0, width));
    let (top, bottom) = (top.clamp(0.0, height), bottom.clamp(0.0, height));
    (left < right && top < bottom).then_some(Detection { class, score, left, top, right, bottom })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A picture of 100x100, twice as large in the input, with a margin of 10 at the top.
    const PLACING: Placing =
        Placing { width: 100, height: 100, scale_x: 2.0, scale_y: 2.0, left: 0.0, top: 10.0 };

    fn thing(class: usize, score: f32, left: f32) -> Detection {
        Detection { class, score, left, top: 0.0, right: left + 10.0, bottom: 10.0 }
    }

    fn found(shape: &[usize], output: &[f32]) -> Vec<Detection> {
        detect(shape, output, None, &PLACING, Thresholds::default()).unwrap()
    }

    /// An output in columns, of boxes with their numbers together.
    fn transposed(boxes: &[[f32; 6]]) -> Vec<f32> {
        (0..6).flat_map(|field| boxes.iter().map(move |one| one[field])).collect()
    }

    const EXPECTED: Detection =
        Detection { class: 1, score: 0.75, left: 40.0, top: 30.0, right: 60.0, bottom: 60.0 };

    #[test]
    fn the_best_of_overlapping_boxes_of_one_class_is_kept() {
        let kept =
            suppress(vec![thing(3, 0.5, 1.0), thing(3, 0.9, 0.0), thing(3, 0.6, 50.0)], 0.45);
        assert_eq!(kept, [thing(3, 0.9, 0.0), thing(3, 0.6, 50.0)]);
    }

    #[test]
    fn overlapping_boxes_of_two_classes_are_both_kept() {
        let kept = suppress(vec![thing(1, 0.5, 1.0), thing(2, 0.9, 0.0)], 0.45);
        assert_eq!(kept, [thing(2, 0.9, 0.0), thing(1, 0.5, 1.0)]);
    }

    #[test]
    fn a_suppressed_box_suppresses_nothing() {
        let chain = vec![thing(0, 0.9, 0.0), thing(0, 0.8, 3.0), thing(0, 0.7, 6.0)];
        assert_eq!(suppress(chain, 0.45), [thing(0, 0.9, 0.0), thing(0, 0.7, 6.0)]);
    }

    #[test]
    fn equal_scores_are_in_the_order_of_classes_then_of_coming() {
        let same = vec![thing(2, 0.5, 50.0), thing(1, 0.5, 20.0), thing(1, 0.5, 0.0)];
        let expected = [thing(1, 0.5, 20.0), thing(1, 0.5, 0.0), thing(2, 0.5, 50.0)];
        assert_eq!(suppress(same, 0.45), expected);
    }

    #[test]
    fn columns_have_centre_size_and_a_score_for_each_class() {
        // 100, 100 in the input is 50, 45 in the picture.
        let mut boxes = vec![[0.0; 6]; 10];
        boxes[7] = [100.0, 100.0, 40.0, 60.0, 0.1, 0.75];
        assert_eq!(found(&[1, 6, 10], &transposed(&boxes)), [EXPECTED]);
    }

    #[test]
    fn rows_are_the_same_transposed() {
        let output = [100.0, 100.0, 40.0, 60.0, 0.1, 0.75, 0.0];
        let rows = detect(&[1, 1, 7], &output, Some(3), &PLACING, Thresholds::default()).unwrap();
        assert_eq!(rows, [EXPECTED]);
    }

    #[test]
    fn objects_have_a_score_for_being_anything() {
        let mut output = vec![0.0; 10 * 7];
        output[21..28].copy_from_slice(&[100.0, 100.0, 40.0, 60.0, 0.75, 0.1, 1.0]);
        assert_eq!(found(&[1, 10, 7], &output), [EXPECTED]);
        output[25] = 0.2;
        assert_eq!(found(&[1, 10, 7], &output), []);
    }

    #[test]
    fn final_boxes_have_corners_and_a_class_and_are_not_suppressed() {
        let one = [80.0, 70.0, 120.0, 130.0, 0.75, 1.0];
        let output = [one, one, [0.0; 6]].concat();
        assert_eq!(found(&[1, 3, 6], &output), [EXPECTED, EXPECTED]);
    }

    #[test]
    fn boxes_end_at_the_pictures_edges() {
        let output = [-50.0, -50.0, 900.0, 900.0, 0.5, 0.0];
        let whole = found(&[1, 1, 6], &output)[0];
        assert_eq!((whole.left, whole.top, whole.right, whole.bottom), (0.0, 0.0, 100.0, 100.0));
        let beside = [300.0, 0.0, 400.0, 50.0, 0.5, 0.0];
        assert_eq!(found(&[1, 1, 6], &beside), []);
    }

    #[test]
    fn what_is_no_number_is_no_box() {
        let good = [100.0, 100.0, 40.0, 60.0, 0.1, 0.75];
        for field in 0..6 {
            for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
                let mut broken = good;
                broken[field] = bad;
                let all = transposed(&[broken, broken, good, [bad; 6], good, good, good]);
                // A class without a score leaves the others'.
                let boxes = found(&[1, 6, 7], &all);
                assert!(boxes.iter().all(|one| *one == EXPECTED) && !boxes.is_empty());
                let rows = [broken, broken].concat();
                let rows = found(&[1, 2, 6], &rows);
                assert!(rows.iter().all(|one| one.score.is_finite() && one.left.is_finite()));
            }
        }
    }

    #[test]
    fn a_negative_or_huge_class_is_none() {
        for class in [-1.0, 1e9, f32::NAN] {
            assert_eq!(found(&[1, 1, 6], &[80.0, 70.0, 120.0, 130.0, 0.75, class]), []);
        }
    }

    #[test]
    fn an_output_shorter_than_its_shape_is_refused() {
        let refused = detect(&[1, 84, 8400], &[0.0; 5], None, &PLACING, Thresholds::default());
        let expected =
            "the model's output has the shape [1, 84, 8400], which is 705600 numbers, not 5";
        assert_eq!(alloc::format!("{}", refused.unwrap_err()), expected);
        let forms = [[1, 84, 8400], [1, 8400, 85], [1, 300, 6]]
            .map(|shape| Form::of(&shape, None).unwrap());
        for form in forms {
            assert_eq!(read(&form, &[0.0; 5], &PLACING, 0.5), []);
        }
    }

    #[test]
    fn a_hostile_output_of_nothing_but_boxes_is_bounded() {
        let mut output = vec![0.9; 40_000 * 6];
        for (at, one) in output.chunks_exact_mut(6).enumerate() {
            let (x, y) = ((at % 200) as f32, (at / 200) as f32);
            one[..4].copy_from_slice(&[x, y + 10.0, 1.0, 1.0]);
        }
        assert_eq!(found(&[1, 40_000, 6], &output).len(), MOST_DETECTIONS);
        let form = Form::of(&[1, 40_000, 6], None).unwrap();
        assert_eq!(read(&form, &output, &PLACING, 0.25).len(), MOST_CANDIDATES);
    }

    #[test]
    fn a_threshold_that_is_no_number_finds_nothing() {
        let thresholds = Thresholds { score: f32::NAN, overlap: f32::NAN };
        let output = [80.0, 70.0, 120.0, 130.0, 0.75, 1.0];
        assert_eq!(detect(&[1, 1, 6], &output, None, &PLACING, thresholds).unwrap(), []);
    }
}
