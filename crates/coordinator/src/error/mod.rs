//! One error for each operation, and the one place where each becomes an HTTP answer.

mod chat;
mod common;
mod crew;
mod job;
mod model;
mod result;
mod service;
mod submit;

use std::io;

use std::borrow::Cow;

use axum::Json;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use crate::driver::handle::Stopped;
use crate::health::Trouble;
use crate::store::blobs::UploadError;
use shoal_api::{ErrorBody, ErrorJson};

pub(crate) use chat::ChatError;
pub(crate) use common::{disk_full, range};
pub(crate) use crew::{CrewError, PokeError};
pub(crate) use job::{JobError, JoinCodeError, NodeError};
pub(crate) use model::InferError;
pub(crate) use result::ResultError;
pub(crate) use service::ServiceError;
pub(crate) use submit::JobSubmitError;

use common::disk;

/// Bytes of an upload that are held; sent with every answer about a partial one.
pub(crate) const UPLOAD_OFFSET: HeaderName = HeaderName::from_static("upload-offset");

/// An error on its way out. Boxed, because answers seldom are errors and results should stay small.
#[derive(Debug)]
pub(crate) struct ApiError(Box<Answer>);

#[derive(Debug)]
struct Answer {
    status: StatusCode,
    body: ErrorBody,
    header: Option<(HeaderName, HeaderValue)>,
}

impl ApiError {
    fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> ApiError {
        let body = ErrorBody { code: code.into(), message: message.into(), details: None };
        ApiError(Box::new(Answer { status, body, header: None }))
    }

    /// For protocols whose errors are a line of text.
    pub(crate) fn plain(self) -> (StatusCode, Cow<'static, str>, String) {
        (self.0.status, self.0.body.code, self.0.body.message)
    }

    fn with(mut self, details: Value) -> ApiError {
        self.0.body.details = Some(details);
        self
    }

    fn with_header(mut self, name: HeaderName, value: impl Into<HeaderValue>) -> ApiError {
        self.0.header = Some((name, value.into()));
        self
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let Answer { status, body, header } = *self.0;
        if status.is_server_error() {
            tracing::error!(code = &*body.code, "{}", body.message);
        }
        let mut response = (status, Json(ErrorJson { error: body })).into_response();
        if let Some((name, value)) = header {
            response.headers_mut().insert(name, value);
        }
        response
    }
}

/// No or wrong credentials.
#[derive(Debug)]
pub(crate) enum AuthError {
    NoKey,
    WrongKey,
    Session,
    /// Only those may ask who share the data folder.
    NotBeside,
}

impl From<AuthError> for ApiError {
    fn from(error: AuthError) -> ApiError {
        let (code, message) = match error {
            AuthError::NoKey => (
                "bad_key",
                "the API key is missing: send \"Authorization: Bearer KEY\" with the key of the coordinator's data folder",
            ),
            AuthError::WrongKey => (
                "bad_key",
                "the API key is wrong: it is in the file `key` of the coordinator's data folder, and `shoal up` prints it in the dashboard link",
            ),
            AuthError::Session => (
                "bad_session",
                "the session is missing or over: send the one of the node's present connection",
            ),
            AuthError::NotBeside => {
                return ApiError::new(
                    StatusCode::FORBIDDEN,
                    "not_beside",
                    "this is for programs that read the coordinator's data folder: send X-Shoal-Beside with the word of its running.json",
                );
            }
        };
        ApiError::new(StatusCode::UNAUTHORIZED, code, message)
            .with_header(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))
    }
}

/// A request that cannot be what it claims to be.
#[derive(Debug)]
pub(crate) enum RequestError {
    /// A part of the path or a header that is not what it must be.
    Malformed {
        what: &'static str,
        value: String,
        expected: &'static str,
    },
    /// A path or a query that is not well formed.
    Unreadable {
        what: &'static str,
        why: String,
    },
    /// A request for a WebSocket that is none.
    NoSocket(String),
    LengthMissing,
    /// The body is larger than this operation takes.
    TooLarge {
        most: usize,
    },
    /// The body did not arrive.
    Body(String),
    NoSuchPath,
    NoSuchMethod,
}

impl From<RequestError> for ApiError {
    fn from(error: RequestError) -> ApiError {
        match error {
            RequestError::Malformed { what, value, expected } => ApiError::new(
                StatusCode::BAD_REQUEST,
                "bad_request",
                format!("{what} is {value:?}; expected {expected}"),
            ),
            RequestError::Unreadable { what, why } => ApiError::new(
                StatusCode::BAD_REQUEST,
                "bad_request",
                format!("the {what} cannot be read: {why}"),
            ),
            RequestError::NoSocket(why) => ApiError::new(StatusCode::BAD_REQUEST, "no_socket", why),
            RequestError::LengthMissing => ApiError::new(
                StatusCode::LENGTH_REQUIRED,
                "length_required",
                "the Content-Length header is missing",
            ),
            RequestError::TooLarge { most } => ApiError::new(
                StatusCode::PAYLOAD_TOO_LARGE,
                "too_large",
                format!("the body is larger than the {most} bytes allowed here"),
            ),
            RequestError::Body(message) => ApiError::new(
                StatusCode::BAD_REQUEST,
                "incomplete",
                format!("the body did not arrive whole: {message}"),
            ),
            RequestError::NoSuchPath => ApiError::new(
                StatusCode::NOT_FOUND,
                "no_such_path",
                "there is nothing here; see /api/v1/openapi.json",
            ),
            RequestError::NoSuchMethod => ApiError::new(
                StatusCode::METHOD_NOT_ALLOWED,
                "no_such_method",
                "this method does not work here; see /api/v1/openapi.json",
            ),
        }
    }
}

/// Reading the counters.
#[derive(Debug)]
pub(crate) enum MetricsError {
    /// The driver did not answer in time.
    Busy { trouble: Option<Trouble> },
}

impl From<MetricsError> for ApiError {
    fn from(MetricsError::Busy { trouble }: MetricsError) -> ApiError {
        let busy = || "the coordinator is too busy to answer".into();
        let message = trouble.map_or_else(busy, |trouble| trouble.to_string());
        ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "busy", message)
            .with_header(header::RETRY_AFTER, HeaderValue::from_static("1"))
    }
}

/// Reading a blob.
#[derive(Debug)]
pub(crate) enum BlobError {
    Missing { hash: String },
    Disk(io::Error),
}

impl From<BlobError> for ApiError {
    fn from(error: BlobError) -> ApiError {
        match error {
            BlobError::Missing { hash } => ApiError::new(
                StatusCode::NOT_FOUND,
                "no_such_blob",
                format!("no blob {hash} is stored"),
            )
            .with(json!({ "hash": hash })),
            BlobError::Disk(error) => disk(&error),
        }
    }
}

impl From<UploadError> for ApiError {
    fn from(error: UploadError) -> ApiError {
        match error {
            UploadError::Busy => ApiError::new(
                StatusCode::CONFLICT,
                "upload_busy",
                "the same blob is being uploaded by somebody else: try again when that has ended",
            ),
            UploadError::Offset { held, given } => ApiError::new(
                StatusCode::CONFLICT,
                "wrong_offset",
                format!("the coordinator has {held} bytes of this blob: continue at {held}, not at {given}"),
            )
            .with(json!({ "offset": held }))
            .with_header(UPLOAD_OFFSET, held),
            UploadError::TooLong { length } => ApiError::new(
                StatusCode::PAYLOAD_TOO_LARGE,
                "too_long",
                format!("more bytes came than the {length} that Upload-Length says"),
            ),
            UploadError::Mismatch { expected, found } => ApiError::new(
                StatusCode::UNPROCESSABLE_ENTITY,
                "hash_mismatch",
                format!("the bytes have the hash {found}, not {expected}: the upload was dropped"),
            )
            .with(json!({ "expected": expected.to_string(), "found": found.to_string() })),
            UploadError::Client(message) => RequestError::Body(message).into(),
            UploadError::Disk(error) => disk(&error),
        }
    }
}
impl From<Stopped> for ApiError {
    fn from(Stopped: Stopped) -> ApiError {
        ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "stopping", "the coordinator is stopping")
            .with_header(header::RETRY_AFTER, HeaderValue::from_static("1"))
    }
}
