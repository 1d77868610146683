//! Cutting a job into units.

mod size;
mod span_set;

pub(crate) use size::{Progress, even_size, growing_size};
pub(crate) use span_set::SpanSet;
