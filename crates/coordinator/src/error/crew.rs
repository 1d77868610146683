//! Why a crew's bytes are not taken from a node, and why a field is not stirred.

use std::io;

use axum::http::StatusCode;

use super::common::{disk, disk_full};
use super::{ApiError, RequestError};
use crate::driver::handle::Stopped;
use crate::store::blobs::UploadError;

/// Taking a checkpoint or a picture from a member of a crew.
#[derive(Debug)]
pub(crate) enum CrewError {
    /// The node is not in this crew, or not in this epoch.
    NotMember {
        crew: u64,
        epoch: Option<u32>,
    },
    /// The rows of this member have another size.
    Size {
        expected: u64,
        found: u64,
    },
    /// A picture that does not fit its field.
    Picture(String),
    Full,
    Client(String),
    Disk(io::Error),
    Stopped,
}

impl From<CrewError> for ApiError {
    fn from(error: CrewError) -> ApiError {
        let unfit =
            |code, message: String| ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, code, message);
        match error {
            CrewError::NotMember { crew, epoch } => {
                let epoch = epoch.map_or_else(String::new, |epoch| format!(" in epoch {epoch}"));
                let message = format!("this node is no member of crew {crew}{epoch}");
                ApiError::new(StatusCode::FORBIDDEN, "not_member", message)
            }
            CrewError::Size { expected, found } => unfit(
                "wrong_size",
                format!("{found} bytes came, but this member's rows have {expected}"),
            ),
            CrewError::Picture(message) => unfit("bad_picture", message),
            CrewError::Full => disk_full(),
            CrewError::Client(message) => RequestError::Body(message).into(),
            CrewError::Disk(error) => disk(&error),
            CrewError::Stopped => Stopped.into(),
        }
    }
}

impl From<Stopped> for CrewError {
    fn from(Stopped: Stopped) -> CrewError {
        CrewError::Stopped
    }
}

impl CrewError {
    /// Of an upload that must have exactly `expected` bytes.
    pub(crate) fn upload(error: UploadError, expected: u64) -> CrewError {
        match error {
            UploadError::TooLong { .. } => CrewError::Size { expected, found: expected + 1 },
            UploadError::Client(message) => CrewError::Client(message),
            UploadError::Disk(error) => CrewError::Disk(error),
            // Only of uploads that have a name and a place.
            UploadError::Busy | UploadError::Offset { .. } | UploadError::Mismatch { .. } => {
                CrewError::Client("the upload was mixed up with another".into())
            }
        }
    }
}

/// Stirring a field.
#[derive(Debug)]
pub(crate) enum PokeError {
    Json(String),
    NotRunning { job: u64, state: &'static str },
    Outside { at: [f32; 2], width: u32, height: u32 },
    TooFar { by: [f32; 2], most: f32 },
    Radius { radius: f32, most: f32 },
    Strength { strength: f32 },
}

impl From<PokeError> for ApiError {
    fn from(error: PokeError) -> ApiError {
        let unfit = |message: String| {
            ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, "bad_request", message)
        };
        match error {
            PokeError::Json(message) => ApiError::new(
                StatusCode::BAD_REQUEST,
                "bad_json",
                format!("the body is not a poke: {message}"),
            ),
            PokeError::NotRunning { job, state } => ApiError::new(
                StatusCode::CONFLICT,
                "not_running",
                format!("job {job} is {state}: only a running simulation can be stirred"),
            ),
            PokeError::Outside { at: [x, y], width, height } => unfit(format!(
                "\"at\" is [{x}, {y}], outside the grid: x must be from 0 to below {width}, y from 0 to below {height}"
            )),
            PokeError::TooFar { by: [x, y], most } => unfit(format!(
                "\"by\" is [{x}, {y}]; each way must be from -{most} to {most} cells"
            )),
            PokeError::Radius { radius, most } => unfit(format!(
                "\"radius\" is {radius}; it must be above 0 and at most {most} cells"
            )),
            PokeError::Strength { strength } => {
                unfit(format!("\"strength\" is {strength}; it must be a number"))
            }
        }
    }
}
