//! Services: jobs without an end, asked by whoever has the key.

use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::Response;
use futures_util::stream;
use shoal_kinds::plan::{ServiceRequest, read_service};
use shoal_protocol::limit::MAX_REQUEST_BYTES;
use shoal_protocol::{Micros, Priority};
use shoal_scheduler::CallId;
use tokio::sync::oneshot;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::App;
use super::blobs::BYTES;
use super::extract::Path;
use super::jobs::{KEY_MEANS, collect, in_turn, key, taken};
use crate::answer::{Next, Taker, answer};
use crate::driver::event::{Event, ServiceEvent, Wish};
use crate::driver::handle::{Handle, Stopped};
use crate::error::{ApiError, JobSubmitError, ServiceError};
use crate::plan;
use shoal_api::{ErrorJson, ExplainServiceJson, ServiceJson, ServicesJson};

/// A description of a service, with room for long lists of files.
const MAX_BODY_BYTES: usize = 4 << 20;
/// Milliseconds a request may take if it says nothing, and at most.
const USUAL_DEADLINE: u64 = 30_000;
const MOST_DEADLINE: u64 = 3_600_000;

pub(super) const DEADLINE: HeaderName = HeaderName::from_static("x-shoal-deadline-ms");
pub(super) const BUDGET: HeaderName = HeaderName::from_static("x-shoal-budget-ms");
pub(super) const PRIORITY: HeaderName = HeaderName::from_static("x-shoal-priority");

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(post_service))
        .routes(routes!(get_services))
        .routes(routes!(ask_service))
        .routes(routes!(delete_service))
        .routes(routes!(explain_service))
}

/// Starts a service: a program that nodes keep ready for requests
#[utoipa::path(
    post, path = "/api/v1/services", tag = "services", security(("key" = [])),
    params(("Idempotency-Key" = Option<String>, Header, description = KEY_MEANS)),
    request_body = ServiceRequest,
    responses(
        (status = 201, body = ServiceJson),
        (status = 400, description = "No JSON", body = ErrorJson),
        (status = 401, body = ErrorJson),
        (status = 409, description = "There is one with this name", body = ErrorJson),
        (status = 422, description = "Cannot be served; the error says why", body = ErrorJson),
    )
)]
async fn post_service(
    State(app): State<App>,
    headers: HeaderMap,
    body: Body,
) -> Result<(StatusCode, Json<ServiceJson>), ApiError> {
    let body = collect(body, MAX_BODY_BYTES).await?;
    let key = key(&headers, &body)?;
    let request = read_service(&body).map_err(JobSubmitError::Plan)?;
    let name = request.common.name.clone();
    if taken(&app, key.as_ref()).await?.is_none() {
        let spec =
            in_turn(&app, move |app| plan::serve(&request, &*app.intake, &app.blobs, &app.signer));
        let spec = spec.await.map_err(JobSubmitError::Plan)?;
        app.driver.serve(spec, key).await?.map_err(JobSubmitError::NotTaken)?;
    }
    let found = app.driver.services().await?.into_iter().find(|service| service.name == name);
    let service = found.ok_or(ServiceError::Missing { name })?;
    Ok((StatusCode::CREATED, Json(service)))
}

/// All services
#[utoipa::path(
    get, path = "/api/v1/services", tag = "services", security(("key" = [])),
    responses((status = 200, body = ServicesJson), (status = 401, body = ErrorJson))
)]
async fn get_services(State(app): State<App>) -> Result<Json<ServicesJson>, ApiError> {
    Ok(Json(ServicesJson { services: app.driver.services().await? }))
}

/// Explain which devices keep a service ready and why, and how fast it would be on other numbers of devices
#[utoipa::path(
    get, path = "/api/v1/services/{name}/explain", tag = "services", security(("key" = [])),
    params(("name" = String, Path)),
    responses(
        (status = 200, body = ExplainServiceJson),
        (status = 401, body = ErrorJson),
        (status = 404, body = ErrorJson),
    )
)]
async fn explain_service(
    State(app): State<App>,
    Path(name): Path<String>,
) -> Result<Json<ExplainServiceJson>, ApiError> {
    let why = app.driver.explain_service(name.clone()).await?;
    Ok(Json(why.ok_or(ServiceError::Missing { name })?))
}

/// Ends a service
#[utoipa::path(
    delete, path = "/api/v1/services/{name}", tag = "services", security(("key" = [])),
    params(("name" = String, Path)),
    responses(
        (status = 204, description = "It is gone"),
        (status = 401, body = ErrorJson),
        (status = 404, body = ErrorJson),
    )
)]
async fn delete_service(
    State(app): State<App>,
    Path(name): Path<String>,
) -> Result<StatusCode, ApiError> {
    match app.driver.unserve(name.clone()).await? {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(ServiceError::Missing { name }.into()),
    }
}

/// Asks a service: the body is its input, the response its answer
#[utoipa::path(
    post, path = "/api/v1/services/{name}", tag = "services", security(("key" = [])),
    params(
        ("name" = String, Path),
        ("x-shoal-deadline-ms" = Option<u64>, Header, description = "30000 if left out"),
        ("x-shoal-budget-ms" = Option<u64>, Header, description = "Milliseconds in which it should be answered: near their end a second node is asked as well"),
        ("x-shoal-priority" = Option<String>, Header, description = "interactive (if left out), normal or batch"),
    ),
    request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    responses(
        (status = 200, body = Vec<u8>, content_type = "application/octet-stream"),
        (status = 401, body = ErrorJson),
        (status = 404, body = ErrorJson),
        (status = 413, description = "The input is too large", body = ErrorJson),
        (status = 429, description = "Too many requests wait", body = ErrorJson),
        (status = 502, description = "The program failed; the error says how", body = ErrorJson),
        (status = 504, description = "Not answered before the deadline", body = ErrorJson),
    )
)]
async fn ask_service(
    State(app): State<App>,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let wish = wish(&headers)?;
    let body = collect(body, MAX_REQUEST_BYTES).await?.to_vec();
    let (mut taker, line) = ask(&app, &name, body, wish).await?;
    // What goes wrong before the first byte is a proper error; later it breaks the answer off.
    let first = match taker.next().await {
        Next::Bytes(first) => first,
        Next::Whole => Bytes::new(),
        Next::Failed(error) => return Err(ServiceError::Call(error).into()),
        Next::Stopped => return Err(Stopped.into()),
    };
    let rest = Rest { first: Some(first), answer: taker, over: false, _line: line };
    let mut response = Response::new(Body::from_stream(stream::unfold(rest, Rest::next)));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(BYTES));
    Ok(response)
}

/// Asks a service. Whoever drops the line hangs up.
pub(super) async fn ask(
    app: &App,
    name: &str,
    body: Vec<u8>,
    wish: Wish,
) -> Result<(Taker, Line), ApiError> {
    let (giver, taker) = answer();
    let (reply, told) = oneshot::channel();
    let mut line = Line { told, call: None, driver: app.driver.clone() };
    let name = name.to_owned();
    let asked = ServiceEvent::Ask { name: name.clone(), body, wish, answer: giver, reply };
    app.driver.tell(Event::Service(asked)).await?;
    if line.opens().await { Ok((taker, line)) } else { Err(ServiceError::Missing { name }.into()) }
}

/// What a client says of its request, in headers.
pub(super) fn wish(headers: &HeaderMap) -> Result<Wish, ServiceError> {
    let (within, priority) = (deadline(headers)?, priority(headers)?);
    Ok(Wish { within, priority, budget: budget(headers)? })
}

/// The rest of an answer.
struct Rest {
    first: Option<Bytes>,
    answer: Taker,
    over: bool,
    _line: Line,
}

impl Rest {
    async fn next(mut self) -> Option<(Result<Bytes, std::io::Error>, Rest)> {
        if self.over {
            return None;
        }
        let next = match self.first.take() {
            Some(first) => Next::Bytes(first),
            None => self.answer.next().await,
        };
        // An error breaks the connection off, so that nobody takes half an answer for all of it.
        let broken = |reason: String| Err(std::io::Error::other(reason));
        let part = match next {
            Next::Bytes(part) => return Some((Ok(part), self)),
            Next::Whole => return None,
            Next::Failed(error) => broken(error.to_string()),
            Next::Stopped => broken("the coordinator stops".into()),
        };
        self.over = true;
        Some((part, self))
    }
}

/// Hangs up when nobody waits any more, whether the driver has taken the request in by then or not.
pub(super) struct Line {
    /// Told which request this is when it is taken in.
    told: oneshot::Receiver<CallId>,
    call: Option<CallId>,
    driver: Handle,
}

impl Line {
    /// Waits until the request is taken in. Says whether there is such a service.
    async fn opens(&mut self) -> bool {
        self.call = (&mut self.told).await.ok();
        self.call.is_some()
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        // From here on the driver cannot tell, so it does not take the request in.
        self.told.close();
        let Some(call) = self.call.or_else(|| self.told.try_recv().ok()) else { return };
        let driver = self.driver.clone();
        tokio::spawn(async move {
            let _ = driver.tell(Event::Service(ServiceEvent::HangUp(call))).await;
        });
    }
}

fn deadline(headers: &HeaderMap) -> Result<Micros, ServiceError> {
    let given = millis(headers, &DEADLINE, "x-shoal-deadline-ms")?;
    Ok(given.unwrap_or(Micros::from_millis(USUAL_DEADLINE)))
}

fn budget(headers: &HeaderMap) -> Result<Option<Micros>, ServiceError> {
    millis(headers, &BUDGET, "x-shoal-budget-ms")
}

fn millis(
    headers: &HeaderMap,
    header: &HeaderName,
    name: &'static str,
) -> Result<Option<Micros>, ServiceError> {
    let Some(value) = headers.get(header) else { return Ok(None) };
    let given = value.to_str().ok().and_then(|text| text.parse().ok());
    let fine = given.filter(|millis| (1..=MOST_DEADLINE).contains(millis));
    fine.map(|millis| Some(Micros::from_millis(millis))).ok_or_else(|| ServiceError::Header {
        name,
        value: String::from_utf8_lossy(value.as_bytes()).into_owned(),
        expected: "milliseconds, from 1 to 3600000",
    })
}

fn priority(headers: &HeaderMap) -> Result<Priority, ServiceError> {
    match headers.get(PRIORITY).map(HeaderValue::as_bytes) {
        None | Some(b"interactive") => Ok(Priority::Interactive),
        Some(b"normal") => Ok(Priority::Normal),
        Some(b"batch") => Ok(Priority::Batch),
        Some(other) => Err(ServiceError::Header {
            name: "x-shoal-priority",
            value: String::from_utf8_lossy(other).into_owned(),
            expected: "interactive, normal or batch",
        }),
    }
}
