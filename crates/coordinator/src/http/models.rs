//! Models, in the words of the Open Inference Protocol, version 2: what Triton's clients speak.

use axum::Json;
use axum::body::HttpBody as _;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde_json::json;
use shoal_api::{BlobJson, LiveJson, ModelJson, ModelPartJson, PortJson, ReadyJson, ServerJson};
use shoal_kinds::OnnxWork;
use shoal_kinds::onnx::inference::{self, Inference, InferenceError, Written};
use shoal_kinds::onnx::{Part, Port, Reading, Side};
use shoal_protocol::Micros;
use shoal_protocol::limit::MAX_REQUEST_BYTES;
use tokio::sync::Semaphore;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::App;
use super::extract::Path;
use super::jobs::collect;
use super::services::{ask, wish};
use crate::answer::{Next, Ran};
use crate::error::{ApiError, InferError, RequestError, ServiceError};

/// A request with its tensors. As JSON, numbers are longer than as bytes.
const MAX_BODY_BYTES: usize = 2 * MAX_REQUEST_BYTES;
/// Of JSON that is read where it comes in: bytes follow it, so it says little more than names and shapes.
const MOST_HEAD: usize = 64 << 10;
/// Requests of nothing but JSON that are read at a time.
const MOST_READ: usize = 2;
/// The only one there is of each model.
const VERSION: &str = "1";
/// The length of the JSON where tensors follow it as bytes.
pub(super) const HEAD_LENGTH: HeaderName =
    HeaderName::from_static("inference-header-content-length");
/// Who answered, and how long that took.
pub(super) const NODE: HeaderName = HeaderName::from_static("x-shoal-node");
pub(super) const NODE_NAME: HeaderName = HeaderName::from_static("x-shoal-node-name");
pub(super) const WAITED: HeaderName = HeaderName::from_static("x-shoal-wait-ms");
pub(super) const TOOK: HeaderName = HeaderName::from_static("x-shoal-run-ms");
/// Through how many nodes it went.
pub(super) const STAGES: HeaderName = HeaderName::from_static("x-shoal-stages");

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(get_server))
        .routes(routes!(get_live))
        .routes(routes!(get_ready))
        .routes(routes!(get_model))
        .routes(routes!(get_model_ready))
        .routes(routes!(infer))
        .routes(routes!(get_version))
        .routes(routes!(get_version_ready))
        .routes(routes!(infer_version))
}

/// Who answers, and which extensions are spoken
#[utoipa::path(get, path = "/v2", tag = "models", security(("key" = [])), responses((status = 200, body = ServerJson)))]
async fn get_server() -> Json<ServerJson> {
    Json(ServerJson {
        name: "shoal".into(),
        version: env!("CARGO_PKG_VERSION").into(),
        extensions: vec!["binary_tensor_data".into()],
    })
}

/// Whether the coordinator runs
#[utoipa::path(get, path = "/v2/health/live", tag = "models", security(("key" = [])), responses((status = 200, body = LiveJson)))]
async fn get_live() -> Json<LiveJson> {
    Json(LiveJson { live: true })
}

/// Whether models may be asked
#[utoipa::path(get, path = "/v2/health/ready", tag = "models", security(("key" = [])), responses((status = 200, body = ReadyJson)))]
async fn get_ready() -> Json<ReadyJson> {
    Json(ReadyJson { name: None, ready: true })
}

/// What a model takes and gives
#[utoipa::path(
    get, path = "/v2/models/{name}", tag = "models", security(("key" = [])),
    params(("name" = String, Path)),
    responses((status = 200, body = ModelJson), (status = 404))
)]
async fn get_model(
    State(app): State<App>,
    Path(name): Path<String>,
) -> Result<Json<ModelJson>, Plain> {
    let (work, _) = find(&app, &name).await?;
    let ports = |ports: &[Port]| ports.iter().map(port).collect();
    Ok(Json(ModelJson {
        versions: vec![VERSION.into()],
        platform: "onnx".into(),
        inputs: ports(&work.inputs),
        outputs: ports(&work.outputs),
        file: BlobJson { hash: work.model.hash.to_string(), size: work.model.size },
        parts: work.parts.iter().map(part).collect(),
        name,
    }))
}

/// What a version of a model takes and gives
#[utoipa::path(
    get, path = "/v2/models/{name}/versions/{version}", tag = "models", security(("key" = [])),
    params(("name" = String, Path), ("version" = String, Path, description = "Always 1")),
    responses((status = 200, body = ModelJson), (status = 404))
)]
async fn get_version(
    State(app): State<App>,
    Path((name, version)): Path<(String, String)>,
) -> Result<Json<ModelJson>, Plain> {
    only_version(&name, &version)?;
    get_model(State(app), Path(name)).await
}

/// Whether a node keeps a version of a model ready
#[utoipa::path(
    get, path = "/v2/models/{name}/versions/{version}/ready", tag = "models", security(("key" = [])),
    params(("name" = String, Path), ("version" = String, Path, description = "Always 1")),
    responses((status = 200, body = ReadyJson), (status = 404), (status = 503, description = "Not yet"))
)]
async fn get_version_ready(
    State(app): State<App>,
    Path((name, version)): Path<(String, String)>,
) -> Result<(StatusCode, Json<ReadyJson>), Plain> {
    only_version(&name, &version)?;
    get_model_ready(State(app), Path(name)).await
}

/// Asks a version of a model
#[utoipa::path(
    post, path = "/v2/models/{name}/versions/{version}/infer", tag = "models", security(("key" = [])),
    params(
        ("name" = String, Path),
        ("version" = String, Path, description = "Always 1"),
        ("Inference-Header-Content-Length" = Option<u64>, Header, description = "Bytes of JSON, if tensors follow it"),
    ),
    request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    responses((status = 200, body = Vec<u8>, content_type = "application/octet-stream"), (status = 400), (status = 404))
)]
async fn infer_version(
    State(app): State<App>,
    Path((name, version)): Path<(String, String)>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Plain> {
    only_version(&name, &version)?;
    infer(State(app), Path(name), headers, body).await
}

/// A model that is replaced gets a new name here, not a new version.
fn only_version(name: &str, version: &str) -> Result<(), InferError> {
    if version == VERSION {
        return Ok(());
    }
    Err(InferError::NoVersion { name: name.to_owned(), version: version.to_owned() })
}

/// Whether a node keeps the model ready
#[utoipa::path(
    get, path = "/v2/models/{name}/ready", tag = "models", security(("key" = [])),
    params(("name" = String, Path)),
    responses((status = 200, body = ReadyJson), (status = 404), (status = 503, description = "Not yet"))
)]
async fn get_model_ready(
    State(app): State<App>,
    Path(name): Path<String>,
) -> Result<(StatusCode, Json<ReadyJson>), Plain> {
    let (_, ready) = find(&app, &name).await?;
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    Ok((status, Json(ReadyJson { name: Some(name), ready })))
}

/// Asks a model: tensors as JSON, or as bytes behind the JSON
#[utoipa::path(
    post, path = "/v2/models/{name}/infer", tag = "models", security(("key" = [])),
    params(
        ("name" = String, Path),
        ("Inference-Header-Content-Length" = Option<u64>, Header, description = "Bytes of JSON, if tensors follow it"),
    ),
    request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    responses(
        (
            status = 200, body = Vec<u8>, content_type = "application/octet-stream",
            headers(
                ("Inference-Header-Content-Length" = u64, description = "Bytes of JSON, if tensors follow it"),
                ("x-shoal-node" = u64, description = "The number of the node that answered"),
                ("x-shoal-node-name" = String, description = "Its name, percent-encoded"),
                ("x-shoal-wait-ms" = f64, description = "Milliseconds until that node was asked"),
                ("x-shoal-run-ms" = f64, description = "Milliseconds from then until it had answered"),
                ("x-shoal-stages" = u64, description = "The number of nodes that the request went through"),
            ),
        ),
        (status = 400, description = "The tensors are not what the model takes; the error says what was expected"),
        (status = 404),
    )
)]
async fn infer(
    State(app): State<App>,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Plain> {
    let wish = wish(&headers)?;
    let head = head_length(&headers)?;
    if let Some(coding) =
        headers.get(header::CONTENT_ENCODING).filter(|it| it.as_bytes() != b"identity")
    {
        let coding = String::from_utf8_lossy(coding.as_bytes()).into_owned();
        return Err(InferError::Coding(coding).into());
    }
    let (work, _) = find(&app, &name).await?;
    let mut asked = read(body, head).await?;
    if asked.packed.len() > MAX_REQUEST_BYTES {
        let (size, most) = (asked.packed.len(), MAX_REQUEST_BYTES);
        return Err(InferError::TooLarge { size, most }.into());
    }
    let heads = asked.sight.heads(&work, &asked.heads).map_err(InferError::Misfit)?;
    work.takes(&heads).map_err(InferError::Misfit)?;
    let (mut taker, _line) = ask(&app, &name, std::mem::take(&mut asked.packed), wish).await?;
    let mut parts = Vec::new();
    loop {
        match taker.next().await {
            Next::Bytes(part) => parts.push(part),
            Next::Whole => break,
            Next::Failed(error) => return Err(ApiError::from(ServiceError::Call(error)).into()),
            Next::Stopped => return Err(ApiError::from(crate::driver::handle::Stopped).into()),
        }
    }
    let packed = joined(parts);
    let written = inference::write(&name, &asked, &packed).map_err(InferError::Request)?;
    let mut response = answered(written, &packed);
    if let Some(ran) = taker.ran() {
        tell(response.headers_mut(), &ran);
    }
    Ok(response)
}

/// Parts of an answer in one piece.
fn joined(mut parts: Vec<Bytes>) -> Bytes {
    match parts.len() {
        1 => parts.remove(0),
        _ => parts.concat().into(),
    }
}

/// The answer's JSON, and behind it the tensors from where they lie in what came back.
fn answered(written: Written<'_>, packed: &Bytes) -> Response {
    let head = written.head();
    let behind: Vec<Bytes> = written.behind.iter().map(|bytes| packed.slice_ref(bytes)).collect();
    let length = written.json.len() + behind.iter().map(Bytes::len).sum::<usize>();
    let pieces = std::iter::once(Bytes::from(written.json)).chain(behind);
    let pieces = pieces.map(Ok::<_, std::convert::Infallible>).collect::<Vec<_>>();
    let mut response = Response::new(Body::from_stream(stream::iter(pieces)));
    let is = if head.is_some() { "application/octet-stream" } else { "application/json" };
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(is));
    headers.insert(header::CONTENT_LENGTH, length.into());
    if let Some(head) = head {
        headers.insert(HEAD_LENGTH, head.into());
    }
    response
}

fn tell(headers: &mut HeaderMap, ran: &Ran) {
    let millis = |time: Micros| format!("{:.3}", time.0 as f64 / 1e3);
    headers.insert(NODE, ran.node.into());
    headers.insert(STAGES, ran.stages.into());
    let words =
        [(NODE_NAME, encoded(&ran.name)), (WAITED, millis(ran.waited)), (TOOK, millis(ran.took))];
    for (name, text) in words {
        if let Ok(text) = HeaderValue::try_from(text) {
            headers.insert(name, text);
        }
    }
}

/// As in an address: names may have any letters, headers may not.
fn encoded(name: &str) -> String {
    let letter = |byte: u8| match byte {
        b'-' | b'_' | b'.' | b'~' => char::from(byte).to_string(),
        _ if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    name.bytes().map(letter).collect()
}

/// Reads a request.
async fn read(body: Body, head: Option<usize>) -> Result<Inference, ApiError> {
    match head.filter(|length| *length <= MOST_HEAD) {
        Some(length) => read_coming(body, length).await,
        None => read_whole(collect(body, MAX_BODY_BYTES).await?, head).await,
    }
}

/// Tensors behind a short JSON go straight to where they stay. Whatever is wrong is said when all has come: who still
/// sends does not listen.
async fn read_coming(body: Body, length: usize) -> Result<Inference, ApiError> {
    let said = body.size_hint().exact().map_or(0, |bytes| bytes as usize);
    if said > MAX_BODY_BYTES {
        return Err(RequestError::TooLarge { most: MAX_BODY_BYTES }.into());
    }
    let mut body = Limited::new(body, MAX_BODY_BYTES);
    let (mut json, mut reading, mut size) = (Vec::new(), None, 0);
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| match error.is::<LengthLimitError>() {
            true => RequestError::TooLarge { most: MAX_BODY_BYTES },
            false => RequestError::Body(error.to_string()),
        })?;
        let Ok(mut bytes) = frame.into_data() else { continue };
        size += bytes.len();
        if reading.is_none() {
            json.extend(bytes.split_to(bytes.len().min(length - json.len())));
            if json.len() == length {
                reading = Some(Reading::open(&json, said.saturating_sub(length)));
            }
        }
        if let Some(Ok(reading)) = &mut reading {
            reading.take(&bytes);
        }
    }
    let wrong = InferenceError::HeadLength { length, body: size };
    let read = reading.unwrap_or(Err(wrong)).and_then(Reading::done);
    Ok(read.map_err(InferError::Request)?)
}

/// Reads a request away from the reactor, and not many at a time: as JSON, tensors take many times their size.
async fn read_whole(body: Bytes, head: Option<usize>) -> Result<Inference, ApiError> {
    static READING: Semaphore = Semaphore::const_new(MOST_READ);
    // Never closed, so there is always a permit to come.
    let _turn = READING.acquire().await;
    let reading = tokio::task::spawn_blocking(move || inference::read(&body, head));
    let read = reading.await.map_err(|_| crate::driver::handle::Stopped)?;
    Ok(read.map_err(InferError::Request)?)
}

fn head_length(headers: &HeaderMap) -> Result<Option<usize>, ServiceError> {
    let Some(value) = headers.get(HEAD_LENGTH) else { return Ok(None) };
    let given = value.to_str().ok().and_then(|text| text.parse().ok());
    given.map(Some).ok_or_else(|| ServiceError::Header {
        name: "inference-header-content-length",
        value: String::from_utf8_lossy(value.as_bytes()).into_owned(),
        expected: "a number of bytes",
    })
}

/// The model of this name, and whether somebody keeps it ready.
async fn find(app: &App, name: &str) -> Result<(OnnxWork, bool), ApiError> {
    let found = app.driver.model(name.to_owned()).await?;
    found.ok_or_else(|| InferError::NoModel { name: name.to_owned() }.into())
}

fn part(part: &Part) -> ModelPartJson {
    let Part { blob, operators, parameters, out_bytes, .. } = part;
    ModelPartJson {
        operators: *operators,
        parameters: *parameters,
        bytes: blob.size,
        out_bytes: *out_bytes,
    }
}

fn port(port: &Port) -> PortJson {
    let side = |side: &Side| match side {
        Side::Fixed(number) => i64::try_from(*number).unwrap_or(i64::MAX),
        Side::Open(_) => -1,
    };
    let shape = port.dims.iter().flatten().map(side).collect();
    PortJson { name: port.name.clone(), datatype: port.element.wire_name().into(), shape }
}

/// An error as these clients expect it: one line of text. Ours find its code beside it.
struct Plain(ApiError);

impl<E: Into<ApiError>> From<E> for Plain {
    fn from(error: E) -> Plain {
        Plain(error.into())
    }
}

impl IntoResponse for Plain {
    fn into_response(self) -> Response {
        let (status, code, message) = self.0.plain();
        (status, Json(json!({ "error": message, "code": code }))).into_response()
    }
}
