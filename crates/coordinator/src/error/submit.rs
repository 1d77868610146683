//! Why a job is not taken.

use std::io;

use axum::http::{HeaderValue, StatusCode, header};
use serde_json::json;
use shoal_kinds::plan::{PlanError, StoreError};
use shoal_scheduler::SubmitError;

use super::ApiError;
use super::common::{degraded, disk};
use crate::driver::event::NotTaken;
use crate::driver::handle::Stopped;
use crate::health::Trouble;

/// Submitting a job.
#[derive(Debug)]
pub(crate) enum JobSubmitError {
    Plan(PlanError),
    NotTaken(NotTaken),
    /// Nothing new is taken in now.
    Degraded(Trouble),
    Stopped,
}

impl From<JobSubmitError> for ApiError {
    fn from(error: JobSubmitError) -> ApiError {
        match error {
            JobSubmitError::Plan(error) => error.into(),
            JobSubmitError::NotTaken(NotTaken::Scheduler(error)) => error.into(),
            JobSubmitError::NotTaken(NotTaken::OtherRequest { job }) => {
                let message = format!(
                    "another request came with this Idempotency-Key and made job {job}: use a new key for each request"
                );
                ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, "key_taken", message)
                    .with(json!({ "job": job.0 }))
            }
            JobSubmitError::Degraded(trouble) => degraded(&trouble),
            JobSubmitError::Stopped => Stopped.into(),
        }
    }
}

impl From<PlanError> for ApiError {
    fn from(error: PlanError) -> ApiError {
        if let PlanError::Disk(cause) = &error {
            return store_failed(cause);
        }
        let unread = matches!(error, PlanError::Json(_));
        let status =
            if unread { StatusCode::BAD_REQUEST } else { StatusCode::UNPROCESSABLE_ENTITY };
        let answer = ApiError::new(status, error.code(), error.to_string());
        match error.details() {
            Some(details) => answer.with(details),
            None => answer,
        }
    }
}

/// A full disk is told apart from a broken one.
fn store_failed(cause: &StoreError) -> ApiError {
    match cause.downcast_ref::<io::Error>() {
        Some(error) => disk(error),
        None => disk(&io::Error::other(cause.to_string())),
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
            SubmitError::NameTaken { .. } => {
                ApiError::new(StatusCode::CONFLICT, "name_taken", message)
            }
            SubmitError::TooManyUnits { units } => {
                ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, "too_many_units", message)
                    .with(json!({ "units": units }))
            }
            SubmitError::TooLarge { takes, most } => {
                ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, "no_node_can", message)
                    .with(json!({ "takes": takes, "most": most }))
            }
            SubmitError::NoNodeCan { asked, offered } => {
                ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, "no_node_can", message)
                    .with(json!({ "asked": asked, "offered": offered }))
            }
        }
    }
}
