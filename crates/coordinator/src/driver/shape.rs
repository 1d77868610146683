//! What a unit's result must look like, by the job's spec. Bytes of another shape would shift all that
//! come after them, so they are refused where they arrive.

use shoal_protocol::{JobSpec, Span, Work};

/// Bytes of one length before each run's answer in an exec result.
pub(crate) const LENGTH_BYTES: u64 = 4;
/// Largest result of one unit of an exec, whatever its limits: many runs of large output are one unit
/// only if their output was small before.
const MAX_EXEC_BYTES: u64 = 1 << 30;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    Exact(u64),
    /// The lengths of so many runs, then their answers; at most `most` bytes in all.
    Runs {
        runs: u64,
        most: u64,
    },
}

impl Shape {
    pub(crate) fn of(spec: &JobSpec, span: Span) -> Shape {
        match &spec.work {
            Work::Noop => Shape::Exact(0),
            Work::Map(map) => Shape::Exact(span.len.saturating_mul(map.output_bytes.into())),
            Work::Render(render) => Shape::Exact(span.len.saturating_mul(render.tile_bytes())),
            Work::Sim(sim) => Shape::Exact(span.len.saturating_mul(sim.row_bytes())),
            Work::Exec(_) => {
                let each = spec.limits.output.saturating_add(LENGTH_BYTES);
                let most = span.len.saturating_mul(each).min(MAX_EXEC_BYTES);
                Shape::Runs { runs: span.len, most }
            }
        }
    }

    /// Why these bytes are no such result.
    pub(crate) fn fault(&self, bytes: &[u8]) -> Option<String> {
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
pub(crate) fn runs_fault(lengths: &[u8], size: u64) -> Option<String> {
    let answers: u64 = run_lengths(lengths).sum();
    let expected = answers + lengths.len() as u64;
    (expected != size).then(|| {
        format!("the result has {size} bytes, but the lengths at its start make {expected}")
    })
}

pub(crate) fn short(runs: u64) -> String {
    format!("the result is too short to hold the lengths of {runs} answers")
}

pub(crate) fn run_lengths(lengths: &[u8]) -> impl Iterator<Item = u64> {
    lengths.chunks_exact(4).map(|four| {
        let four = [four[0], four[1], four[2], four[3]];
        u64::from(u32::from_le_bytes(four))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exec_results_must_be_as_long_as_they_say() {
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
}
