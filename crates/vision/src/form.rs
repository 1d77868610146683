//! The usual forms of detectors' outputs, told by their shape.
//!
//! | form | shape | a box |
//! |---|---|---|
//! | columns | `[1, 4 + classes, N]` (YOLOv8, YOLO11) | centre, size; a score for each class |
//! | rows | `[1, N, 4 + classes]` (the same, transposed) | the same |
//! | objects | `[1, N, 5 + classes]` (YOLOv5) | centre, size; whether there is anything; a score for each class |
//! | final | `[1, N, 6]` (YOLOv10, and models that suppress by themselves) | corners, score, class |
//!
//! The first dimension may be missing. Which dimension is which, in this order:
//! 1. Six numbers and at most 1000 boxes are final: such models keep a few hundred. YOLOv5 with one class has six numbers
//!    too, but thousands of boxes.
//! 2. If the number of classes is known, the side that has room for them: exactly, or with more behind them (masks and key
//!    points, which are not read).
//! 3. The shorter side has the numbers of a box, and the longer one the boxes.

use alloc::vec::Vec;
use core::fmt;
use thiserror::Error;

/// Models that suppress by themselves keep 100 to 300 boxes. The smallest YOLOv5, for pictures of 128x128, has 1008.
const MOST_FINAL: usize = 1_000;
/// Corners, score, class.
const FINAL: usize = 6;
/// Centre and size.
pub(crate) const PLACE: usize = 4;
/// Centre, size, and whether there is anything.
pub(crate) const OBJECT: usize = 5;
/// Dimensions of a shape in a message: shapes are strangers' words.
const MOST_SHOWN: usize = 8;

/// What a detector's output is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form {
    pub kind: Kind,
    pub boxes: usize,
    /// Numbers of a box.
    pub fields: usize,
    /// Classes with a score each. None in the final form, whose boxes name their class.
    pub classes: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `[1, 4 + classes, N]`
    Columns,
    /// `[1, N, 4 + classes]`
    Rows,
    /// `[1, N, 5 + classes]`
    Objects,
    /// `[1, N, 6]`
    Final,
}

/// An output that is in no form we know.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BoxesError {
    #[error(
        "the model's output has the shape {}: boxes are expected as [1, 4 + classes, N], [1, N, 5 + classes] or [1, N, 6]",
        Shown(.shape)
    )]
    Shape { shape: Vec<usize> },
    #[error("the model's output has the shape {}, which is {expected} numbers, not {found}", Shown(.shape))]
    Length { shape: Vec<usize>, expected: usize, found: usize },
}

impl Form {
    /// The form of an output of that shape. `classes` is how many the model names, if it does.
    pub fn of(shape: &[usize], classes: Option<usize>) -> Result<Self, BoxesError> {
        let unknown =
            || BoxesError::Shape { shape: shape.iter().copied().take(MOST_SHOWN + 1).collect() };
        let (middle, last) = match *shape {
            [1, middle, last] | [middle, last] => (middle, last),
            _ => return Err(unknown()),
        };
        // No product of the dimensions is too large from here on.
        middle.checked_mul(last).ok_or_else(unknown)?;
        if last == FINAL && middle <= MOST_FINAL {
            return Ok(Self { kind: Kind::Final, boxes: middle, fields: FINAL, classes: 0 });
        }
        let named = classes.filter(|count| *count > 0).and_then(|count| named(middle, last, count));
        named.or_else(|| by_length(middle, last)).ok_or_else(unknown)
    }

    /// The numbers of an output in this form.
    pub fn len(&self) -> usize {
        self.boxes * self.fields
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The form in which there is room for the classes that the model names.
fn named(middle: usize, last: usize, classes: usize) -> Option<Form> {
    let (plain, object) = (classes.checked_add(PLACE)?, classes.checked_add(OBJECT)?);
    let columns = Form { kind: Kind::Columns, boxes: last, fields: middle, classes };
    let across = |kind| Form { kind, boxes: middle, fields: last, classes };
    if middle == plain {
        Some(columns)
    } else if last == object {
        Some(across(Kind::Objects))
    } else if last == plain {
        Some(across(Kind::Rows))
    } else if middle > plain && middle < last {
        Some(columns)
    } else if last > object && last < middle {
        Some(across(Kind::Objects))
    } else {
        None
    }
}

/// The form by the longer side alone.
fn by_length(middle: usize, last: usize) -> Option<Form> {
    if middle > PLACE && middle < last {
        let classes = middle - PLACE;
        Some(Form { kind: Kind::Columns, boxes: last, fields: middle, classes })
    } else if last > OBJECT && last < middle {
        let classes = last - OBJECT;
        Some(Form { kind: Kind::Objects, boxes: middle, fields: last, classes })
    } else {
        None
    }
}

/// A shape as people write it.
struct Shown<'a>(&'a [usize]);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("[")?;
        for (at, dim) in self.0.iter().take(MOST_SHOWN).enumerate() {
            let between = if at == 0 { "" } else { ", " };
            write!(out, "{between}{dim}")?;
        }
        out.write_str(if self.0.len() > MOST_SHOWN { ", …]" } else { "]" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    fn kind(shape: &[usize], classes: Option<usize>) -> (Kind, usize, usize) {
        let form = Form::of(shape, classes).unwrap();
        (form.kind, form.boxes, form.classes)
    }

    #[test]
    fn the_usual_shapes_are_known() {
        assert_eq!(kind(&[1, 84, 8400], None), (Kind::Columns, 8400, 80));
        assert_eq!(kind(&[1, 25_200, 85], None), (Kind::Objects, 25_200, 80));
        assert_eq!(kind(&[1, 300, 6], None), (Kind::Final, 300, 0));
        assert_eq!(kind(&[84, 8400], Some(80)), (Kind::Columns, 8400, 80));
    }

    #[test]
    fn six_numbers_are_one_class_where_there_are_thousands_of_boxes() {
        assert_eq!(kind(&[1, 25_200, 6], None), (Kind::Objects, 25_200, 1));
        assert_eq!(kind(&[1, 6, 8400], None), (Kind::Columns, 8400, 2));
        assert_eq!(kind(&[1, 0, 6], None), (Kind::Final, 0, 0));
    }

    #[test]
    fn named_classes_tell_which_side_is_which() {
        // Few boxes and many classes: the length alone says the opposite.
        assert_eq!(kind(&[1, 604, 336], Some(600)), (Kind::Columns, 336, 600));
        assert_eq!(kind(&[1, 8400, 84], Some(80)), (Kind::Rows, 8400, 80));
        assert_eq!(kind(&[1, 8400, 84], Some(79)), (Kind::Objects, 8400, 79));
    }

    #[test]
    fn masks_and_key_points_are_no_classes() {
        assert_eq!(kind(&[1, 116, 8400], Some(80)), (Kind::Columns, 8400, 80));
        assert_eq!(kind(&[1, 56, 8400], Some(1)), (Kind::Columns, 8400, 1));
        assert_eq!(kind(&[1, 25_200, 117], Some(80)), (Kind::Objects, 25_200, 80));
    }

    #[test]
    fn more_names_than_numbers_are_not_believed() {
        assert_eq!(kind(&[1, 7, 8400], Some(80)), (Kind::Columns, 8400, 3));
        assert_eq!(kind(&[1, 7, 8400], Some(usize::MAX)), (Kind::Columns, 8400, 3));
        assert_eq!(kind(&[1, 7, 8400], Some(0)), (Kind::Columns, 8400, 3));
    }

    #[test]
    fn other_shapes_are_refused_by_name() {
        let error = Form::of(&[1, 1000], None).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the model's output has the shape [1, 1000]: boxes are expected as [1, 4 + classes, N], [1, N, 5 + classes] or [1, N, 6]"
        );
        let strange: [&[usize]; 8] = [
            &[],
            &[84],
            &[2, 84, 8400],
            &[1, 7, 7],
            &[1, 4, 100],
            &[1, 100, 5],
            &[1, usize::MAX, 6],
            &[1, 3, 80, 80, 85],
        ];
        strange.iter().for_each(|shape| assert!(Form::of(shape, Some(80)).is_err(), "{shape:?}"));
    }

    #[test]
    fn a_message_about_a_long_shape_is_short() {
        let error = Form::of(&[9; 1000], None).unwrap_err();
        assert!(error.to_string().contains("[9, 9, 9, 9, 9, 9, 9, 9, …]"));
    }
}
