//! One error for each operation, and the one place where each becomes an HTTP answer.

mod common;

use std::io;

use axum::Json;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use shoal_scheduler::SubmitError;

use crate::driver::event::ReserveError;
use crate::driver::handle::Stopped;
use crate::health::Trouble;
use crate::json::{ErrorBody, ErrorJson};
use crate::plan::PlanError;
use crate::store::blobs::UploadError;

pub(crate) use common::{degraded, disk_full, range};

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
        let body = ErrorBody { code, message: message.into(), details: None };
        ApiError(Box::new(Answer { status, body, header: None }))
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
            tracing::error!(code = body.code, "{}", body.message);
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
    Key,
    Session,
}

impl From<AuthError> for ApiError {
    fn from(error: AuthError) -> ApiError {
        let (code, message) = match error {
            AuthError::Key => (
                "bad_key",
                "the API key is missing or wrong: send \"Authorization: Bearer KEY\" with the key of the coordinator's data folder",
            ),
            AuthError::Session => (
                "bad_session",
                "the session is missing or over: send the one of the node's present connection",
            ),
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
                format!("{held} bytes of this blob are held, so go on there, not at {given}"),
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

/// Submitting a job.
#[derive(Debug)]
pub(crate) enum JobSubmitError {
    Plan(PlanError),
    Scheduler(SubmitError),
    /// Nothing new is taken in now.
    Degraded(Trouble),
    Stopped,
}

impl From<JobSubmitError> for ApiError {
    fn from(error: JobSubmitError) -> ApiError {
        match error {
            JobSubmitError::Plan(error) => error.into(),
            JobSubmitError::Scheduler(error) => error.into(),
            JobSubmitError::Degraded(trouble) => degraded(&trouble),
            JobSubmitError::Stopped => Stopped.into(),
        }
    }
}

impl From<PlanError> for ApiError {
    fn from(error: PlanError) -> ApiError {
        let message = error.to_string();
        let unfit = |code| ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, code, message.clone());
        match error {
            PlanError::Json(_) => ApiError::new(StatusCode::BAD_REQUEST, "bad_json", message),
            PlanError::Request(_)
            | PlanError::Zero { .. }
            | PlanError::UnitEmpty
            | PlanError::UnitTooLarge { .. }
            | PlanError::Limit { .. }
            | PlanError::Picture { .. }
            | PlanError::Tile { .. }
            | PlanError::LinesAndFiles
            | PlanError::FolderName { .. }
            | PlanError::Unpassable { .. }
            | PlanError::Verify { .. }
            | PlanError::ClockChecked
            | PlanError::ToleranceExact
            | PlanError::Tolerance { .. }
            | PlanError::Weight { .. }
            | PlanError::NothingToSign
            | PlanError::BadHash { .. } => unfit("bad_request"),
            PlanError::Intake(error) => unfit(error.code).with(json!({
                "line": error.line, "column": error.column,
            })),
            PlanError::BadSignature(_) => unfit("bad_signature"),
            PlanError::KernelTooLarge { .. } => unfit("bad_kernel"),
            PlanError::ModuleTooLarge { .. } => unfit("bad_module"),
            PlanError::NoBlob { hash, .. } | PlanError::Torn { hash, .. } => {
                unfit("blob_missing").with(json!({ "hash": hash.to_string() }))
            }
            PlanError::Empty | PlanError::EmptyInput { .. } => unfit("empty_input"),
            PlanError::InputCount { .. } => unfit("input_count"),
            PlanError::NotDivisible { .. } => unfit("not_divisible"),
            PlanError::ItemsDiffer { .. } => unfit("items_differ"),
            PlanError::ItemsMissing => unfit("items_missing"),
            PlanError::TooManyItems { .. }
            | PlanError::TooManyRuns { .. }
            | PlanError::FileTooLarge { .. }
            | PlanError::FolderTooLarge { .. }
            | PlanError::ItemTooLarge { .. } => unfit("too_large"),
            PlanError::Disk(error) => disk(&error),
        }
    }
}

impl From<SubmitError> for ApiError {
    fn from(error: SubmitError) -> ApiError {
        let message = error.to_string();
        match error {
            SubmitError::Empty => {
                ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, "empty_input", message)
            }
            SubmitError::Busy { open } => {
                ApiError::new(StatusCode::TOO_MANY_REQUESTS, "too_many_jobs", message)
                    .with(json!({ "open": open }))
                    .with_header(header::RETRY_AFTER, HeaderValue::from_static("1"))
            }
            SubmitError::TooManyUnits { units } => {
                ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, "too_many_units", message)
                    .with(json!({ "units": units }))
            }
            SubmitError::NoNodeCan { asked, offered } => {
                ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, "no_node_can", message)
                    .with(json!({ "asked": asked, "offered": offered }))
            }
        }
    }
}

/// Looking at a job or its result.
#[derive(Debug)]
pub(crate) enum JobError {
    Missing {
        job: u64,
    },
    /// Its result is asked for before it is there.
    NotDone {
        job: u64,
        state: &'static str,
    },
    /// Only an ended job has a receipt.
    NoReceipt {
        job: u64,
    },
    /// Only another kind of job has this.
    WrongKind {
        job: u64,
        expected: &'static str,
    },
    NoItem {
        job: u64,
        item: u64,
        items: u64,
    },
    /// The item is computed, but its answer may still turn out to be wrong.
    ItemUnsure {
        job: u64,
        item: u64,
    },
    /// The item is not computed yet.
    ItemNotDone {
        job: u64,
        item: u64,
    },
    Range {
        size: u64,
    },
    TooLarge {
        what: &'static str,
        most: u64,
    },
    Disk(io::Error),
    Stopped,
}

impl From<JobError> for ApiError {
    fn from(error: JobError) -> ApiError {
        match error {
            JobError::Missing { job } => ApiError::new(
                StatusCode::NOT_FOUND,
                "no_such_job",
                format!("there is no job {job}"),
            ),
            JobError::NotDone { job, state } => ApiError::new(
                StatusCode::CONFLICT,
                "not_done",
                format!("job {job} is {state}: only a job that is done has a result"),
            )
            .with(json!({ "state": state })),
            JobError::NoReceipt { job } => ApiError::new(
                StatusCode::CONFLICT,
                "not_done",
                format!("job {job} is running: only a job that has ended has a receipt"),
            )
            .with(json!({ "state": "running" })),
            JobError::WrongKind { job, expected } => ApiError::new(
                StatusCode::CONFLICT,
                "wrong_kind",
                format!("job {job} is no {expected}: only {expected} jobs have this"),
            ),
            JobError::NoItem { job, item, items } => ApiError::new(
                StatusCode::NOT_FOUND,
                "no_such_item",
                format!("job {job} has items 0 to {}, no item {item}", items.saturating_sub(1)),
            ),
            JobError::ItemNotDone { job, item } => ApiError::new(
                StatusCode::CONFLICT,
                "not_done",
                format!("item {item} of job {job} is not computed yet"),
            ),
            JobError::ItemUnsure { job, item } => ApiError::new(
                StatusCode::CONFLICT,
                "not_done",
                format!(
                    "item {item} of job {job} is computed, but answers are still being checked: it can be had when the job is done"
                ),
            ),
            JobError::Range { size } => range(size),
            JobError::TooLarge { what, most } => ApiError::new(
                StatusCode::PAYLOAD_TOO_LARGE,
                "too_large",
                format!("{what} is larger than the {most} bytes allowed here"),
            ),
            JobError::Disk(error) => disk(&error),
            JobError::Stopped => Stopped.into(),
        }
    }
}

impl From<Stopped> for JobError {
    fn from(Stopped: Stopped) -> JobError {
        JobError::Stopped
    }
}

/// Looking at a node.
#[derive(Debug)]
pub(crate) enum NodeError {
    Missing { node: u64 },
}

impl From<NodeError> for ApiError {
    fn from(NodeError::Missing { node }: NodeError) -> ApiError {
        ApiError::new(
            StatusCode::NOT_FOUND,
            "no_such_node",
            format!("no node {node} is connected now"),
        )
    }
}

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
                "this attempt is not lent any more: its result is of no use",
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
                "this attempt's result began too many times, larger each time",
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

impl From<Stopped> for ApiError {
    fn from(Stopped: Stopped) -> ApiError {
        ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "stopping", "the coordinator is stopping")
            .with_header(header::RETRY_AFTER, HeaderValue::from_static("1"))
    }
}
