//! Answers that several operations give.

use std::io;

use axum::http::{HeaderValue, StatusCode, header};

use super::ApiError;
use crate::health::Trouble;
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

/// Bytes that do not fit.
pub(crate) fn disk_full() -> ApiError {
    let message = Trouble::DiskFull.to_string();
    ApiError::new(StatusCode::INSUFFICIENT_STORAGE, "disk_full", message)
}

/// Work that is not taken now.
pub(crate) fn degraded(trouble: &Trouble) -> ApiError {
    let code = match trouble {
        Trouble::DiskFull => "disk_full",
        Trouble::Store(_) => "store_stuck",
    };
    ApiError::new(StatusCode::SERVICE_UNAVAILABLE, code, trouble.to_string())
        .with_header(header::RETRY_AFTER, HeaderValue::from_static("1"))
}

pub(super) fn disk(error: &io::Error) -> ApiError {
    if is_full(error) {
        return disk_full();
    }
    let message = format!("the coordinator's disk failed: {error}");
    ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "disk_failed", message)
}
