//! Why a job, its result or a node cannot be shown.

use std::io;

use axum::http::StatusCode;
use serde_json::json;

use super::ApiError;
use super::common::{disk, range};
use crate::driver::handle::Stopped;

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
    /// Its result is no array of one type.
    NoArray {
        job: u64,
    },
    NoItem {
        job: u64,
        item: u64,
        items: u64,
    },
    /// The item's run left no such file.
    NoFile {
        job: u64,
        item: u64,
        path: String,
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
    /// A unit's bytes are not those that were merged.
    Damaged {
        job: u64,
        start: u64,
        end: u64,
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
            JobError::NoArray { job } => ApiError::new(
                StatusCode::CONFLICT,
                "no_array",
                format!(
                    "the result of job {job} is not an array of one type: fetch it without .npy"
                ),
            ),
            JobError::NoItem { job, item, items } => ApiError::new(
                StatusCode::NOT_FOUND,
                "no_such_item",
                format!("job {job} has items 0 to {}, no item {item}", items.saturating_sub(1)),
            ),
            JobError::NoFile { job, item, path } => ApiError::new(
                StatusCode::NOT_FOUND,
                "no_such_file",
                format!("item {item} of job {job} left no file {path:?} in /out"),
            ),
            JobError::ItemNotDone { job, item } => ApiError::new(
                StatusCode::CONFLICT,
                "not_done",
                format!("item {item} of job {job} is not computed yet"),
            ),
            JobError::ItemUnsure { job, item } => unsure(job, item),
            JobError::Range { size } => range(size),
            JobError::TooLarge { what, most } => ApiError::new(
                StatusCode::PAYLOAD_TOO_LARGE,
                "too_large",
                format!("{what} is larger than the {most} bytes allowed here"),
            ),
            JobError::Damaged { job, start, end } => ApiError::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                "damaged",
                format!(
                    "the result of job {job} is damaged: items {start} to {} do not have the bytes that were merged, so no receipt is signed; run the job again",
                    end.saturating_sub(1)
                ),
            ),
            JobError::Disk(error) => disk(&error),
            JobError::Stopped => Stopped.into(),
        }
    }
}

fn unsure(job: u64, item: u64) -> ApiError {
    let message = format!(
        "item {item} of job {job} is computed, but its answers are still being checked: fetch it when the job is done"
    );
    ApiError::new(StatusCode::CONFLICT, "not_done", message)
}

impl From<Stopped> for JobError {
    fn from(Stopped: Stopped) -> JobError {
        JobError::Stopped
    }
}

/// Drawing the join link.
#[derive(Debug)]
pub(crate) enum JoinCodeError {
    TooLong,
}

impl From<JoinCodeError> for ApiError {
    fn from(JoinCodeError::TooLong: JoinCodeError) -> ApiError {
        ApiError::new(
            StatusCode::NOT_FOUND,
            "no_join_code",
            "the join link is too long for a QR code; open or copy the link itself",
        )
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
