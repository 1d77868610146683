//! `POST /submit-job`: a newcomer's one-line job, some built-in matrix work.

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use serde_json::{Map, json};
use shoal_kinds::plan::PlanError;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::App;
use super::extract::Query;
use super::jobs::{KEY_MEANS, Wait, collect, key, look, submit, taken};
use crate::error::{ApiError, JobSubmitError};
use shoal_api::{
    CommonRequest, ErrorJson, JobRequest, MapRequest, SubmitJobJson, SubmitJobRequest, WorkRequest,
};

/// More than enough for three numbers.
const MAX_REQUEST_BYTES: usize = 64 << 10;
/// Keeps one element's work below a second on slow devices.
const MAX_TENSOR_SIZE: u32 = 4096;
const MAX_ITERATIONS: u32 = 10_000;

/// One invocation computes one element of C = A * B, where A and B follow from their indices, so that
/// nothing has to be sent. Each round adds a share of the product, so that none can be left out.
const MATMUL: &str = include_str!("matmul.wgsl");

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(submit_job))
}

/// Runs built-in matrix work of a given size
#[utoipa::path(
    post, path = "/submit-job", tag = "jobs", security(("key" = [])),
    params(Wait, ("Idempotency-Key" = Option<String>, Header, description = KEY_MEANS)),
    request_body(content = SubmitJobRequest, example = json!({
        "computeType": "matmul", "iterations": 2, "tensorSize": 256
    })),
    responses(
        (status = 201, body = SubmitJobJson),
        (status = 400, body = ErrorJson),
        (status = 401, body = ErrorJson),
        (status = 422, body = ErrorJson),
        (status = 429, body = ErrorJson),
        (status = 503, body = ErrorJson),
    )
)]
async fn submit_job(
    State(app): State<App>,
    Query(wait): Query<Wait>,
    headers: HeaderMap,
    body: Body,
) -> Result<(StatusCode, Json<SubmitJobJson>), ApiError> {
    let wait = wait.duration()?;
    let body = collect(body, MAX_REQUEST_BYTES).await?;
    let key = key(&headers, &body)?;
    let job = match taken(&app, key.as_ref()).await? {
        Some(job) => look(&app, job, wait).await?,
        None => {
            let request: SubmitJobRequest = serde_json::from_slice(&body)
                .map_err(|error| JobSubmitError::Plan(PlanError::Json(error.to_string())))?;
            let request = job_request(&request).map_err(JobSubmitError::Plan)?;
            submit(&app, request, key, wait).await?
        }
    };
    let status = if wait.is_some() { job.state.word() } else { "submitted" };
    let answer = SubmitJobJson { job_id: job.id, status: status.into() };
    Ok((StatusCode::CREATED, Json(answer)))
}

fn job_request(request: &SubmitJobRequest) -> Result<JobRequest, PlanError> {
    let SubmitJobRequest { compute_type, iterations, tensor_size } = request;
    if compute_type != "matmul" {
        let message = format!("computeType {compute_type:?} is not known; there is \"matmul\"");
        return Err(PlanError::Request(message));
    }
    in_range("tensorSize", *tensor_size, MAX_TENSOR_SIZE)?;
    in_range("iterations", *iterations, MAX_ITERATIONS)?;
    let mut params = Map::new();
    params.insert("size".into(), json!(tensor_size));
    params.insert("iterations".into(), json!(iterations));
    let name = format!("matmul {tensor_size} x {tensor_size}, {iterations} times");
    Ok(JobRequest {
        common: CommonRequest { name: Some(name), ..CommonRequest::default() },
        work: WorkRequest::Map(MapRequest {
            wgsl: MATMUL.into(),
            entry: None,
            inputs: Vec::new(),
            items: Some(u64::from(*tensor_size) * u64::from(*tensor_size)),
            out_per_item: None,
            params,
            edge: None,
            reduce: None,
        }),
    })
}

fn in_range(what: &str, value: u32, most: u32) -> Result<(), PlanError> {
    if (1..=most).contains(&value) {
        return Ok(());
    }
    Err(PlanError::Request(format!("{what} is {value}; it must be from 1 to {most}")))
}
