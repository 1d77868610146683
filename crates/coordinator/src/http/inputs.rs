//! What a job computes from.

use std::io;

use axum::Json;
use axum::extract::State;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::App;
use super::extract::Path;
use super::jobs::parse;
use super::receipt::inputs;
use crate::error::{ApiError, JobError};
use shoal_api::{ErrorJson, InputsJson};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(get_inputs))
}

/// What a job computes from
///
/// Exec over files: the files in the order of their answers, by name, then those of the folder.
#[utoipa::path(
    get, path = "/api/v1/jobs/{id}/inputs", tag = "results", security(("key" = [])),
    params(("id" = u64, Path)),
    responses(
        (status = 200, body = InputsJson),
        (status = 400, body = ErrorJson),
        (status = 401, body = ErrorJson),
        (status = 404, body = ErrorJson),
    )
)]
async fn get_inputs(
    State(app): State<App>,
    Path(id): Path<String>,
) -> Result<Json<InputsJson>, ApiError> {
    let id = parse(&id)?;
    let merged = app.driver.merged(id).await?.ok_or(JobError::Missing { job: id.0 })?;
    // Lists of files are read from the blobs.
    let read = tokio::task::spawn_blocking(move || inputs(&merged.spec, &app.blobs)).await;
    let inputs = read.map_err(|error| JobError::Disk(io::Error::other(error)))?;
    Ok(Json(InputsJson { inputs }))
}
