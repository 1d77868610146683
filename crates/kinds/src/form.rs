//! What results are made of: how large a unit's must be, and where the answers of some items are in it. Bytes of
//! another shape would shift all that come after them, so they are refused where they arrive.

use alloc::format;
use alloc::string::String;
use shoal_protocol::{Limits, Span};

use crate::onnx::Batch;
use crate::render::RenderWork;

/// Bytes of one length before each run's answer.
pub const LENGTH_BYTES: u64 = 4;
/// Largest result of one unit of answers, whatever the limits: many runs of large output are one unit only if
/// their output was small before.
const MAX_ANSWERS_BYTES: u64 = 1 << 30;

/// What the result of a job is made of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Form<'a> {
    /// There is none.
    Nothing,
    /// So many bytes for each item, in order.
    Items { bytes: u64 },
    /// Square tiles of a picture, each full size.
    Tiles(&'a RenderWork),
    /// The lengths of a unit's answers, [`LENGTH_BYTES`] each, little-endian, then the answers.
    Answers,
    /// Tensors of each item, one after the other.
    Rows(&'a Batch),
}

/// What the result of one unit must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    Exact(u64),
    /// The lengths of so many runs, then their answers; at most `most` bytes in all.
    Runs {
        runs: u64,
        most: u64,
    },
}

impl Form<'_> {
    /// Bytes of each item, where all have the same.
    pub fn item_bytes(&self) -> Option<u64> {
        match self {
            Form::Nothing => Some(0),
            Form::Items { bytes } => Some(*bytes),
            Form::Tiles(render) => Some(render.tile_bytes()),
            Form::Rows(batch) => Some(batch.row_bytes()),
            Form::Answers => None,
        }
    }

    /// Whether two results of the same items are one; `near` says it of numbers that devices round.
    pub fn agree(&self, a: &[u8], b: &[u8], near: impl Fn(&[u8], &[u8]) -> bool) -> bool {
        match self {
            Form::Rows(batch) => batch.agree(a, b, near),
            Form::Nothing | Form::Items { .. } | Form::Tiles(_) | Form::Answers => near(a, b),
        }
    }

    /// Bytes at the start of a unit's result that are no part of the job's.
    pub fn head_bytes(&self, span: Span) -> u64 {
        match self {
            Form::Nothing | Form::Items { .. } | Form::Tiles(_) | Form::Rows(_) => 0,
            Form::Answers => span.len.saturating_mul(LENGTH_BYTES),
        }
    }

    pub fn shape(&self, span: Span, limits: &Limits) -> Shape {
        match self.item_bytes() {
            Some(each) => Shape::Exact(span.len.saturating_mul(each)),
            None => {
                let each = limits.output.saturating_add(LENGTH_BYTES);
                let most = span.len.saturating_mul(each).min(MAX_ANSWERS_BYTES);
                Shape::Runs { runs: span.len, most }
            }
        }
    }

    /// The bytes of some items in the result of `span`, and before that the lengths of their answers.
    pub fn part<'b>(
        &self,
        items: Span,
        (span, bytes): (Span, &'b [u8]),
    ) -> Option<(&'b [u8], &'b [u8])> {
        let from = usize::try_from(items.start.checked_sub(span.start)?).ok()?;
        let len = usize::try_from(items.len).ok()?;
        let Some(each) = self.item_bytes() else {
            return answers(bytes, usize::try_from(span.len).ok()?, from, len);
        };
        let each = usize::try_from(each).ok()?;
        let start = from.checked_mul(each)?;
        let end = start.checked_add(len.checked_mul(each)?)?;
        Some((&[], bytes.get(start..end)?))
    }
}

fn answers(bytes: &[u8], items: usize, from: usize, len: usize) -> Option<(&[u8], &[u8])> {
    let head = bytes.get(..items.checked_mul(4)?)?;
    let body = bytes.get(head.len()..)?;
    let size = |lens: &[u8]| run_lengths(lens).map(|len| len as usize).sum::<usize>();
    let lens = head.get(from * 4..(from + len) * 4)?;
    let start = size(&head[..from * 4]);
    Some((lens, body.get(start..start + size(lens))?))
}

impl Shape {
    /// Why these bytes are no such result.
    pub fn fault(&self, bytes: &[u8]) -> Option<String> {
        let size = bytes.len() as u64;
        match *self {
            Shape::Exact(expected) if size != expected => {
                Some(format!("the result has {size} bytes, expected {expected}"))
            }
            Shape::Exact(_) => None,
            Shape::Runs { runs, .. } => {
                let head = usize::try_from(runs.saturating_mul(LENGTH_BYTES)).ok()?;
                let sizes = bytes.get(..head);
                sizes.map_or_else(|| Some(short(runs)), |sizes| runs_fault(sizes, size))
            }
        }
    }
}

/// Why a result of `size` bytes cannot begin with these lengths.
pub fn runs_fault(lengths: &[u8], size: u64) -> Option<String> {
    let answers: u64 = run_lengths(lengths).sum();
    let expected = answers + lengths.len() as u64;
    (expected != size).then(|| {
        format!("the result has {size} bytes, but the lengths at its start make {expected}")
    })
}

pub fn short(runs: u64) -> String {
    format!("the result is too short to hold the lengths of {runs} answers")
}

pub fn run_lengths(lengths: &[u8]) -> impl Iterator<Item = u64> {
    lengths.chunks_exact(4).map(|four| {
        let four = [four[0], four[1], four[2], four[3]];
        u64::from(u32::from_le_bytes(four))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_must_be_as_long_as_they_say() {
        let shape = Shape::Runs { runs: 2, most: 100 };
        assert_eq!(shape.fault(&[1, 0, 0, 0, 2, 0, 0, 0, b'a', b'b', b'c']), None);
        assert!(shape.fault(&[1, 0, 0, 0, 2, 0, 0, 0, b'a']).is_some());
        assert!(shape.fault(&[1, 0, 0]).is_some());
    }

    #[test]
    fn fixed_results_must_have_their_size() {
        assert_eq!(Shape::Exact(3).fault(&[1, 2, 3]), None);
        assert!(Shape::Exact(3).fault(&[]).is_some_and(|fault| fault.contains("expected 3")));
    }

    #[test]
    fn a_part_of_a_programs_answers_is_found_by_their_lengths() {
        let whole = [1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, b'a', b'b', b'c'];
        assert_eq!(answers(&whole, 3, 1, 1), Some((&whole[4..8], &b"bc"[..])));
        assert_eq!(answers(&whole, 3, 2, 1), Some((&whole[8..12], &b""[..])));
        assert_eq!(answers(&whole[..13], 3, 1, 1), None, "torn");
    }
}
