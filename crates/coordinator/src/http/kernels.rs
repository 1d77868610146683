//! Looking at a kernel without running it: what it reads and writes, so that clients can convert their
//! numbers before they send them.

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use shoal_kinds::map::describe;
use shoal_kinds::plan::PlanError;
use shoal_protocol::limit::MAX_KERNEL_BYTES;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::App;
use super::jobs::{collect, in_turn};
use crate::error::{ApiError, JobSubmitError};
use shoal_api::{ErrorJson, KernelJson, KernelRequest};

/// A kernel, each of its bytes escaped at worst, and its parameters.
const MAX_REQUEST_BYTES: usize = 6 * MAX_KERNEL_BYTES + (1 << 20);

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(check_kernel))
}

/// Checks a map kernel and says what it reads and writes; nothing is stored and nothing runs
#[utoipa::path(
    post, path = "/api/v1/kernels/check", tag = "jobs", security(("key" = [])),
    request_body = KernelRequest,
    responses(
        (status = 200, body = KernelJson),
        (status = 400, description = "No JSON", body = ErrorJson),
        (status = 401, body = ErrorJson),
        (status = 413, description = "The request is too large", body = ErrorJson),
        (status = 422, description = "No kernel that could run; the error says why and where", body = ErrorJson),
    )
)]
async fn check_kernel(State(app): State<App>, body: Body) -> Result<Json<KernelJson>, ApiError> {
    let body = collect(body, MAX_REQUEST_BYTES).await?;
    let request: KernelRequest = read(&body).map_err(JobSubmitError::Plan)?;
    let described = in_turn(&app, move |app| describe(&request, &*app.intake)).await;
    Ok(Json(described.map_err(JobSubmitError::Plan)?))
}

fn read(body: &[u8]) -> Result<KernelRequest, PlanError> {
    let value: serde_json::Value =
        serde_json::from_slice(body).map_err(|error| PlanError::Json(error.to_string()))?;
    serde_json::from_value(value).map_err(|error| PlanError::Request(error.to_string()))
}
