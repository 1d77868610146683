//! Why a unit's result is not taken from a node.

use std::io;

use axum::http::StatusCode;

use super::common::{disk, disk_full};
use super::{ApiError, AuthError, RequestError};
use crate::driver::event::ReserveError;
use crate::driver::handle::Stopped;

/// Taking a unit's result from a node.
#[derive(Debug)]
pub(crate) enum ResultError {
    Reserve(ReserveError),
    /// Fewer or more bytes came than Content-Length says.
    Length {
        expected: u64,
        found: u64,
    },
    Mismatch {
        expected: String,
        found: String,
    },
    /// The bytes are no exec result.
    Shape(String),
    Client(String),
    Disk(io::Error),
    Stopped,
}

impl From<ResultError> for ApiError {
    fn from(error: ResultError) -> ApiError {
        let unfit =
            |code, message: String| ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, code, message);
        match error {
            ResultError::Reserve(ReserveError::NotLent) => ApiError::new(
                StatusCode::CONFLICT,
                "not_lent",
                "this unit went to another device: its result is no longer needed",
            ),
            ResultError::Reserve(ReserveError::NotHolder) => AuthError::Session.into(),
            ResultError::Reserve(ReserveError::Stored(place)) => ApiError::new(
                StatusCode::CONFLICT,
                "already_stored",
                format!("this attempt has a result of {} bytes already", place.size),
            ),
            ResultError::Reserve(ReserveError::TooOften) => ApiError::new(
                StatusCode::CONFLICT,
                "too_often",
                "this attempt's result began too many times",
            ),
            ResultError::Reserve(ReserveError::NotPlaced) => ApiError::new(
                StatusCode::CONFLICT,
                "not_placed",
                "this coordinator gave no such place for the result: ask for one again",
            ),
            ResultError::Reserve(ReserveError::Full) => disk_full(),
            ResultError::Reserve(ReserveError::Size { expected }) => {
                unfit("wrong_size", format!("this unit's result has {expected} bytes"))
            }
            ResultError::Reserve(ReserveError::TooLarge { most }) => ApiError::new(
                StatusCode::PAYLOAD_TOO_LARGE,
                "too_large",
                format!("this unit's result may have at most {most} bytes"),
            ),
            ResultError::Reserve(ReserveError::Disk(error)) | ResultError::Disk(error) => {
                disk(&error)
            }
            ResultError::Length { expected, found } => {
                unfit("wrong_size", format!("{found} bytes came, Content-Length says {expected}"))
            }
            ResultError::Mismatch { expected, found } => unfit(
                "hash_mismatch",
                format!("the bytes have the hash {found}, not {expected} as X-Shoal-Hash says"),
            ),
            ResultError::Shape(message) => unfit("wrong_shape", message),
            ResultError::Client(message) => RequestError::Body(message).into(),
            ResultError::Stopped => Stopped.into(),
        }
    }
}

impl From<Stopped> for ResultError {
    fn from(Stopped: Stopped) -> ResultError {
        ResultError::Stopped
    }
}
