//! Submitting, looking at and ending jobs.

use std::time::Duration;

use axum::Json;
use axum::body::{Body, Bytes, HttpBody as _};
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, StatusCode};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::Deserialize;
use shoal_protocol::id::clip;
use shoal_protocol::{JobId, hash};
use tokio::sync::{Semaphore, oneshot};
use tokio::time::timeout;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::extract::{Path, Query};
use super::{App, left};
use crate::driver::event::{Explain, NotTaken, Submission, Ticket};
use crate::driver::keyed::{Key, Taken};
use crate::error::{ApiError, JobError, JobSubmitError, RequestError};
use crate::plan;
use shoal_api::{ErrorJson, ExplainJson, JobJson, JobRequest, JobsJson, UnitsJson};
use shoal_kinds::plan::{PlanError, Planned};

/// A job request with a kernel and long lists of files.
const MAX_REQUEST_BYTES: usize = 32 << 20;
/// Longer waits should ask again: proxies and laptops' lids cut connections.
const MAX_WAIT_SECONDS: f64 = 24.0 * 3600.0;

/// A client's name for a request: room for a UUID, a hash or a short sentence.
const MAX_KEY_BYTES: usize = 255;
pub(super) const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
pub(super) const KEY_MEANS: &str = "Any text of up to 255 characters that you choose for this request, such as a UUID. If the answer is lost, send the same request with the same key again: you get the job of the first time, and no second one. Shoal knows the key as long as it has the job";

/// The kernel of the document's example.
const SQUARES: &str = "@group(0) @binding(0) var<storage, read_write> output: array<u32>; @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) { if id.x < arrayLength(&output) { output[id.x] = id.x * id.x; } }";
/// What a blob is called, in examples.
const HASH: &str = "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262";

/// Plans made at a time: each may compile a program or read lists of files into memory. More wait.
static PLANNING: Semaphore = Semaphore::const_new(8);

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(get_jobs, post_job))
        .routes(routes!(get_job, delete_job))
        .routes(routes!(cancel_job))
        .routes(routes!(get_units))
        .routes(routes!(explain_job))
}

#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct Wait {
    /// Wait for the job's end, at most so many seconds.
    // Read as text, so that the error is ours.
    #[param(value_type = Option<f64>)]
    pub(super) wait: Option<String>,
}

impl Wait {
    pub(super) fn duration(&self) -> Result<Option<Duration>, ApiError> {
        let Some(text) = &self.wait else { return Ok(None) };
        let seconds = text.parse().ok().filter(|s| (0.0..=MAX_WAIT_SECONDS).contains(s));
        let Some(seconds) = seconds else {
            let (value, expected) = (clip(text.clone(), 80), "seconds from 0 to 86400");
            return Err(RequestError::Malformed { what: "wait", value, expected }.into());
        };
        Ok(Some(Duration::from_secs_f64(seconds)))
    }
}

/// Submits a job
#[utoipa::path(
    post, path = "/api/v1/jobs", tag = "jobs", security(("key" = [])),
    params(Wait, ("Idempotency-Key" = Option<String>, Header, description = KEY_MEANS)),
    request_body(content = JobRequest, examples(
        ("A kernel over numbers that it makes itself" = (value = json!({
            "kind": "map", "items": 1000, "wgsl": SQUARES
        }))),
        ("A program over lines that were stored before" = (value = json!({
            "kind": "exec", "module": HASH, "lines": {"blob": HASH}, "args": ["--top", "3"]
        }))),
        ("Empty units, to try the way there and back" = (value = json!({"kind": "noop", "items": 100})))
    )),
    responses(
        (status = 201, description = "Taken; with `wait`, as it is at its end or after that time", body = JobJson),
        (status = 400, description = "No JSON", body = ErrorJson),
        (status = 401, body = ErrorJson),
        (status = 413, description = "The request is too large", body = ErrorJson),
        (status = 422, description = "Cannot be computed; the error says why", body = ErrorJson),
        (status = 429, description = "Too many open jobs", body = ErrorJson),
        (status = 503, description = "Nothing new is taken now: the disk is full, or facts cannot be written", body = ErrorJson),
    )
)]
async fn post_job(
    State(app): State<App>,
    Query(wait): Query<Wait>,
    headers: HeaderMap,
    body: Body,
) -> Result<(StatusCode, Json<JobJson>), ApiError> {
    let wait = wait.duration()?;
    let body = collect(body, MAX_REQUEST_BYTES).await?;
    let key = key(&headers, &body)?;
    let job = match taken(&app, key.as_ref()).await? {
        Some(job) => look(&app, job, wait).await?,
        None => {
            let request = shoal_kinds::plan::read(&body).map_err(JobSubmitError::Plan)?;
            submit(&app, request, key, wait).await?
        }
    };
    Ok((StatusCode::CREATED, Json(job)))
}

/// The key that a client sent with a request.
pub(super) fn key(headers: &HeaderMap, body: &[u8]) -> Result<Option<Key>, ApiError> {
    let Some(value) = headers.get(&IDEMPOTENCY_KEY) else { return Ok(None) };
    let text = value.to_str().unwrap_or_default();
    if !(1..=MAX_KEY_BYTES).contains(&text.len()) {
        let value = clip(String::from_utf8_lossy(value.as_bytes()).into_owned(), 80);
        let (what, expected) = ("the header Idempotency-Key", "from 1 to 255 ASCII characters");
        return Err(RequestError::Malformed { what, value, expected }.into());
    }
    Ok(Some(Key { name: text.into(), body: hash(body) }))
}

/// The job or service that a request made when it came before. Asked before anything is planned: what it was planned
/// from may be gone by now.
pub(super) async fn taken(app: &App, key: Option<&Key>) -> Result<Option<JobId>, ApiError> {
    let Some(key) = key else { return Ok(None) };
    match app.driver.taken(key.clone()).await? {
        None => Ok(None),
        Some(Taken::Same(job)) => Ok(Some(job)),
        Some(Taken::Other(job)) => {
            Err(JobSubmitError::NotTaken(NotTaken::OtherRequest { job }).into())
        }
    }
}

/// Plans a job and submits it; with `wait`, gives it as it is at its end.
pub(super) async fn submit(
    app: &App,
    request: JobRequest,
    key: Option<Key>,
    wait: Option<Duration>,
) -> Result<JobJson, ApiError> {
    if let Some(trouble) = app.driver.trouble() {
        return Err(JobSubmitError::Degraded(trouble).into());
    }
    let Planned { spec, note } = make_plan(app, request).await.map_err(JobSubmitError::Plan)?;
    let (accepted, number) = oneshot::channel();
    let (answer, mut answered) = oneshot::channel();
    let ticket = Ticket { note, key, accepted, answer, wait: wait.is_some() };
    app.driver.submit(Submission { spec, ticket }).await?;
    let answer = match wait {
        None => answered.await,
        Some(wait) => match timeout(wait, &mut answered).await {
            Ok(answer) => answer,
            Err(_elapsed) => {
                let job = number.await.map_err(|_| JobSubmitError::Stopped)?;
                let now = app.driver.job(job).await?;
                return now.ok_or_else(|| JobError::Missing { job: job.0 }.into());
            }
        },
    };
    let answer = answer.map_err(|_| JobSubmitError::Stopped)?;
    Ok(answer.map_err(JobSubmitError::NotTaken)?)
}

async fn make_plan(app: &App, request: JobRequest) -> Result<Planned, PlanError> {
    if !request.work.ask().is_heavy() {
        return plan::plan(&request, &*app.intake, &app.blobs, &app.signer);
    }
    in_turn(app, move |app| plan::plan(&request, &*app.intake, &app.blobs, &app.signer)).await
}

/// Compiles or reads away from the reactor, and not too many at a time.
pub(super) async fn in_turn<T: Send + 'static>(
    app: &App,
    work: impl FnOnce(&App) -> Result<T, PlanError> + Send + 'static,
) -> Result<T, PlanError> {
    // Never closed, so there is always a permit to come.
    let _turn = PLANNING.acquire().await;
    let app = app.clone();
    let done = tokio::task::spawn_blocking(move || work(&app)).await;
    done.unwrap_or_else(|error| Err(PlanError::Disk(error.into())))
}

/// All jobs, newest first
#[utoipa::path(
    get, path = "/api/v1/jobs", tag = "jobs", security(("key" = [])),
    responses((status = 200, body = JobsJson), (status = 401, body = ErrorJson))
)]
async fn get_jobs(State(app): State<App>) -> Result<Json<JobsJson>, ApiError> {
    let (jobs, _) = app.driver.jobs(0).await?;
    Ok(Json(JobsJson { jobs }))
}

/// One job
#[utoipa::path(
    get, path = "/api/v1/jobs/{id}", tag = "jobs", security(("key" = [])),
    params(("id" = u64, Path), Wait),
    responses(
        (status = 200, body = JobJson),
        (status = 401, body = ErrorJson),
        (status = 404, body = ErrorJson),
    )
)]
async fn get_job(
    State(app): State<App>,
    Path(id): Path<String>,
    Query(wait): Query<Wait>,
) -> Result<Json<JobJson>, ApiError> {
    Ok(Json(look(&app, parse(&id)?, wait.duration()?).await?))
}

/// The job as it is, or with `wait` as it is at its end.
pub(super) async fn look(
    app: &App,
    id: JobId,
    wait: Option<Duration>,
) -> Result<JobJson, ApiError> {
    if let Some(wait) = wait
        && let Ok(ended) = timeout(wait, app.driver.job_end(id)).await
    {
        return Ok(ended?.ok_or(JobError::Missing { job: id.0 })?);
    }
    let job = app.driver.job(id).await?;
    Ok(job.ok_or(JobError::Missing { job: id.0 })?)
}

/// Cancels a running job; removes an ended one and its result
#[utoipa::path(
    delete, path = "/api/v1/jobs/{id}", tag = "jobs", security(("key" = [])),
    params(("id" = u64, Path)),
    responses(
        (status = 200, description = "The job as it is now, or was", body = JobJson),
        (status = 401, body = ErrorJson),
        (status = 404, body = ErrorJson),
    )
)]
async fn delete_job(
    State(app): State<App>,
    Path(id): Path<String>,
) -> Result<Json<JobJson>, ApiError> {
    let id = parse(&id)?;
    let job = app.driver.delete(id).await?;
    Ok(Json(job.ok_or(JobError::Missing { job: id.0 })?))
}

/// Cancels a job; an ended one stays as it is
#[utoipa::path(
    post, path = "/api/v1/jobs/{id}/cancel", tag = "jobs", security(("key" = [])),
    params(("id" = u64, Path)),
    responses(
        (status = 200, body = JobJson),
        (status = 401, body = ErrorJson),
        (status = 404, body = ErrorJson),
    )
)]
async fn cancel_job(
    State(app): State<App>,
    Path(id): Path<String>,
) -> Result<Json<JobJson>, ApiError> {
    let id = parse(&id)?;
    let job = app.driver.cancel(id).await?;
    Ok(Json(job.ok_or(JobError::Missing { job: id.0 })?))
}

/// A job's units by state and node, neighbours joined
#[utoipa::path(
    get, path = "/api/v1/jobs/{id}/units", tag = "jobs", security(("key" = [])),
    params(("id" = u64, Path)),
    responses(
        (status = 200, body = UnitsJson),
        (status = 401, body = ErrorJson),
        (status = 404, body = ErrorJson),
    )
)]
async fn get_units(
    State(app): State<App>,
    Path(id): Path<String>,
) -> Result<Json<UnitsJson>, ApiError> {
    let id = parse(&id)?;
    let units = app.driver.units(id).await?;
    Ok(Json(units.ok_or(JobError::Missing { job: id.0 })?))
}

#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct Which {
    /// Why this item is where it is, instead of the whole job.
    #[param(value_type = Option<u64>)]
    item: Option<String>,
}

/// Why a job, or the unit of one item, is as it is: in sentences
#[utoipa::path(
    get, path = "/api/v1/jobs/{id}/explain", tag = "jobs", security(("key" = [])),
    params(("id" = u64, Path), Which),
    responses(
        (status = 200, body = ExplainJson),
        (status = 401, body = ErrorJson),
        (status = 404, body = ErrorJson),
    )
)]
async fn explain_job(
    State(app): State<App>,
    Path(id): Path<String>,
    Query(which): Query<Which>,
) -> Result<Json<ExplainJson>, ApiError> {
    let job = parse(&id)?;
    let item = which.item.map(|item| number("item", &item)).transpose()?;
    if let Some(mut lines) = app.driver.explain(Explain::Job { job, item }).await? {
        if let Some(item) = item {
            lines.extend(left::of_item(&app, job, item).await?);
        }
        return Ok(Json(ExplainJson { lines }));
    }
    let known = app.driver.job(job).await?.ok_or(JobError::Missing { job: job.0 })?;
    Err(JobError::NoItem { job: job.0, item: item.unwrap_or(0), items: known.items }.into())
}

pub(super) fn parse(id: &str) -> Result<JobId, ApiError> {
    number("the job's number", id).map(JobId)
}

/// A choice in a query.
pub(super) fn truth(what: &'static str, text: &str) -> Result<bool, ApiError> {
    text.parse().map_err(|_| {
        let value = clip(text.into(), 80);
        RequestError::Malformed { what, value, expected: "true or false" }.into()
    })
}

/// A number in a path.
pub(super) fn number(what: &'static str, text: &str) -> Result<u64, ApiError> {
    text.parse().map_err(|_| {
        let value = clip(text.into(), 80);
        RequestError::Malformed { what, value, expected: "a number" }.into()
    })
}

/// A small body, whole.
pub(super) async fn collect(body: Body, most: usize) -> Result<Bytes, ApiError> {
    // Who says how much comes, and says too much, is not listened to.
    if body.size_hint().lower() > most as u64 {
        return Err(RequestError::TooLarge { most }.into());
    }
    match Limited::new(body, most).collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(RequestError::TooLarge { most }.into()),
        Err(error) => Err(RequestError::Body(error.to_string()).into()),
    }
}
