//! Why a job is not taken.

use axum::http::{HeaderValue, StatusCode, header};
use serde_json::json;
use shoal_scheduler::SubmitError;

use super::ApiError;
use super::common::{degraded, disk};
use crate::driver::handle::Stopped;
use crate::health::Trouble;
use crate::plan::PlanError;

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
            | PlanError::UnitCutsGroups { .. }
            | PlanError::UnitCutsBlocks { .. }
            | PlanError::Limit { .. }
            | PlanError::Picture { .. }
            | PlanError::Tile { .. }
            | PlanError::LinesAndFiles
            | PlanError::FolderName { .. }
            | PlanError::Unpassable { .. }
            | PlanError::Verify { .. }
            | PlanError::ClockChecked
            | PlanError::CrewChecked
            | PlanError::NotForCrews { .. }
            | PlanError::Grid { .. }
            | PlanError::Steps { .. }
            | PlanError::Halo { .. }
            | PlanError::Members { .. }
            | PlanError::TooManyMembers { .. }
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
            PlanError::WrongType { input, .. } => {
                unfit("wrong_type").with(json!({ "input": input }))
            }
            PlanError::FirstSize { .. } => unfit("wrong_size"),
            PlanError::NotDivisible { .. } => unfit("not_divisible"),
            PlanError::ItemsDiffer { .. } => unfit("items_differ"),
            PlanError::ItemsMissing => unfit("items_missing"),
            PlanError::TooManyItems { .. }
            | PlanError::TooManyRuns { .. }
            | PlanError::TooManyElements { .. }
            | PlanError::Overlap { .. }
            | PlanError::Anywhere { .. }
            | PlanError::Ring { .. }
            | PlanError::GroupTooLarge { .. }
            | PlanError::BlockTooLarge { .. }
            | PlanError::FileTooLarge { .. }
            | PlanError::FolderTooLarge { .. }
            | PlanError::GridTooLarge { .. }
            | PlanError::HaloTooLarge { .. }
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
