//! Answers that several operations give.

use std::io;

use axum::http::{HeaderValue, StatusCode, header};

use super::ApiError;
use crate::store::place::is_full;

/// A `Range` that names no byte of the whole.
pub(crate) fn range(size: u64) -> ApiError {
    let error = ApiError::new(
        StatusCode::RANGE_NOT_SATISFIABLE,
        "bad_range",
        format!("the range lies outside the {size} bytes there are"),
    );
    match HeaderValue::try_from(format!("bytes */{size}")) {
        Ok(value) => error.with_header(header::CONTENT_RANGE, value),
        Err(_) => error,
    }
}

pub(crate) fn disk_full() -> ApiError {
    ApiError::new(
        StatusCode::INSUFFICIENT_STORAGE,
        "disk_full",
        "the coordinator's disk is full: nothing new is taken until there is room; what it has is kept",
    )
}

pub(super) fn disk(error: &io::Error) -> ApiError {
    if is_full(error) {
        return disk_full();
    }
    let message = format!("the coordinator's disk failed: {error}");
    ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "disk_failed", message)
}
