//! The pages people open, embedded in the binary, with the headers that make them safe and give them
//! WebGPU and threads.

use std::borrow::Cow;
use std::io::{Cursor, Read as _};

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use rust_embed::{EmbeddedFile, RustEmbed};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::App;
use super::extract::Path;
use crate::error::{ApiError, RequestError};

#[derive(RustEmbed)]
#[folder = "../../web/dist"]
#[allow_missing = true]
struct Dist;

/// Bytes of a compressed file that are unpacked at a time: a stream never holds more of it.
const PART: usize = 64 << 10;

const NOT_BUILT: &str = "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\">\
    <title>Shoal</title><h1>Shoal is running</h1>\
    <p>This build has no pages. Run <code>cargo xtask web</code>, then build again.</p></html>";

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(dashboard))
        .routes(routes!(join))
        .routes(routes!(job_page))
        .routes(routes!(playground))
        .routes(routes!(chat))
        .routes(routes!(detect))
        .routes(routes!(classify))
        .routes(routes!(asset))
}

/// The dashboard
#[utoipa::path(
    get, path = "/", tag = "pages",
    responses((status = 200, body = String, content_type = "text/html"))
)]
async fn dashboard(headers: HeaderMap) -> Response {
    page("index.html", &headers)
}

/// Where a device is lent
#[utoipa::path(
    get, path = "/join", tag = "pages",
    responses((status = 200, body = String, content_type = "text/html"))
)]
async fn join(headers: HeaderMap) -> Response {
    page("join.html", &headers)
}

/// One job's page
#[utoipa::path(
    get, path = "/jobs/{id}", tag = "pages", params(("id" = u64, Path)),
    responses((status = 200, body = String, content_type = "text/html"))
)]
async fn job_page(headers: HeaderMap) -> Response {
    page("index.html", &headers)
}

/// Where kernels are edited and run
#[utoipa::path(
    get, path = "/playground", tag = "pages",
    responses((status = 200, body = String, content_type = "text/html"))
)]
async fn playground(headers: HeaderMap) -> Response {
    page("index.html", &headers)
}

/// Where people talk to language models
#[utoipa::path(
    get, path = "/chat", tag = "pages",
    responses((status = 200, body = String, content_type = "text/html"))
)]
async fn chat(headers: HeaderMap) -> Response {
    page("index.html", &headers)
}

/// Where a detector is shown at work
#[utoipa::path(
    get, path = "/detect", tag = "pages",
    responses((status = 200, body = String, content_type = "text/html"))
)]
async fn detect(headers: HeaderMap) -> Response {
    page("index.html", &headers)
}

/// Where a classifier runs in slices, one in each tab
#[utoipa::path(
    get, path = "/classify", tag = "pages",
    responses((status = 200, body = String, content_type = "text/html"))
)]
async fn classify(headers: HeaderMap) -> Response {
    page("index.html", &headers)
}

/// Scripts, styles and modules of the pages
#[utoipa::path(
    get, path = "/assets/{name}", tag = "pages", params(("name" = String, Path)),
    responses(
        (status = 200, body = Vec<u8>, content_type = "application/octet-stream"),
        (status = 304, description = "As the reader has it"),
        (status = 404, body = shoal_api::ErrorJson),
    )
)]
async fn asset(Path(name): Path<String>, headers: HeaderMap) -> Response {
    serve(&format!("assets/{name}"), &headers)
}

/// Any other file that the web build made.
pub(super) async fn other(method: Method, uri: Uri, headers: HeaderMap) -> Response {
    if method != Method::GET && method != Method::HEAD {
        return ApiError::from(RequestError::NoSuchPath).into_response();
    }
    let name = uri.path().trim_start_matches('/');
    if wants_page(&headers) && is_missing(name) {
        let mut page = page("missing.html", &headers);
        *page.status_mut() = StatusCode::NOT_FOUND;
        return page;
    }
    serve(name, &headers)
}

fn is_missing(name: &str) -> bool {
    Dist::get(name).is_none() && Dist::get(&format!("{name}.gz")).is_none()
}

/// A person looks, by a browser; programs are told in JSON.
fn wants_page(headers: &HeaderMap) -> bool {
    let accepted = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
    accepted.is_some_and(|list| list.split(',').any(|one| is_taken(one, "text/html")))
}

fn page(name: &str, headers: &HeaderMap) -> Response {
    if Dist::get(name).is_some() {
        return serve(name, headers);
    }
    let mut response = Response::new(Body::from(NOT_BUILT));
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    secure(&mut response, headers);
    response
}

fn serve(name: &str, headers: &HeaderMap) -> Response {
    let (plain, zipped) = (Dist::get(name), Dist::get(&format!("{name}.gz")));
    let Some(first) = plain.as_ref().or(zipped.as_ref()) else {
        return ApiError::from(RequestError::NoSuchPath).into_response();
    };
    let tag = tag(first);
    let has_it = headers.get(header::IF_NONE_MATCH).is_some_and(|held| held.as_bytes() == tag);
    // Those without a plain form are modules.
    let kind = plain.as_ref().map_or("application/wasm", |file| file.metadata.mimetype());
    let kind = kind.to_owned();
    let (mut response, encoding) = match (has_it, packed(name, headers), plain) {
        (true, _, _) => (StatusCode::NOT_MODIFIED.into_response(), None),
        (false, Some((encoding, file)), _) => (Response::new(body(file)), Some(encoding)),
        (false, None, Some(plain)) => (Response::new(body(plain)), None),
        (false, None, None) => (unpacked(name), None),
    };
    let list = response.headers_mut();
    if let (Ok(kind), Ok(tag)) = (HeaderValue::try_from(kind), HeaderValue::from_bytes(&tag)) {
        list.insert(header::CONTENT_TYPE, kind);
        list.insert(header::ETAG, tag);
    }
    if let Some(encoding) = encoding {
        list.insert(header::CONTENT_ENCODING, HeaderValue::from_static(encoding));
    }
    list.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    list.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    secure(&mut response, headers);
    response
}

/// The smallest form that the reader takes.
fn packed(name: &str, headers: &HeaderMap) -> Option<(&'static str, EmbeddedFile)> {
    let forms = [("br", "br"), ("gzip", "gz")];
    forms.into_iter().filter(|(encoding, _)| takes(headers, encoding)).find_map(
        |(encoding, end)| Dist::get(&format!("{name}.{end}")).map(|file| (encoding, file)),
    )
}

/// A file of which only the compressed form is kept, because it is large and nearly everybody takes that. It is unpacked on
/// its way, a part at a time.
fn unpacked(name: &str) -> Response {
    let Some(packed) = Dist::get(&format!("{name}.gz")) else {
        return ApiError::from(RequestError::NoSuchPath).into_response();
    };
    let mut reader = flate2::read::GzDecoder::new(Cursor::new(packed.data));
    let parts = std::iter::from_fn(move || {
        let mut part = vec![0; PART];
        match reader.read(&mut part) {
            Ok(0) => None,
            Ok(length) => {
                part.truncate(length);
                Some(Ok(Bytes::from(part)))
            }
            Err(error) => Some(Err(error)),
        }
    });
    Response::new(Body::from_stream(futures_util::stream::iter(parts)))
}

fn body(file: EmbeddedFile) -> Body {
    match file.data {
        Cow::Borrowed(bytes) => Body::from(Bytes::from_static(bytes)),
        Cow::Owned(bytes) => Body::from(bytes),
    }
}

fn tag(file: &EmbeddedFile) -> Vec<u8> {
    let hash = file.metadata.sha256_hash();
    let hex: String = hash.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    format!("\"{hex}\"").into_bytes()
}

fn takes(headers: &HeaderMap, encoding: &str) -> bool {
    let accepted = headers.get(header::ACCEPT_ENCODING).and_then(|value| value.to_str().ok());
    accepted.is_some_and(|list| list.split(',').any(|one| is_taken(one, encoding)))
}

/// `gzip`, or `gzip;q=0.5`; but `gzip;q=0` says that it is not taken.
fn is_taken(one: &str, encoding: &str) -> bool {
    let mut parts = one.split(';').map(str::trim);
    let is_named = parts.next() == Some(encoding);
    let weight = parts.find_map(|part| part.strip_prefix("q=")).and_then(|q| q.parse::<f32>().ok());
    is_named && weight != Some(0.0)
}

/// Isolation gives a page threads; other sites may load our scripts to lend their visitors' devices.
fn secure(response: &mut Response, headers: &HeaderMap) {
    let pairs: [(HeaderName, &'static str); 5] = [
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-embedder-policy"), "require-corp"),
        (HeaderName::from_static("cross-origin-resource-policy"), "cross-origin"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
    ];
    for (name, value) in pairs {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    if let Ok(policy) = HeaderValue::try_from(content_security(headers)) {
        response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, policy);
    }
}

/// Scripts, wasm and workers of our own only; nothing may frame a page or be sent elsewhere. The sockets
/// and the way by QUIC are those of the page's own host, by name, because not every browser counts them as `'self'`.
fn content_security(headers: &HeaderMap) -> String {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    let is_plain = |host: &&str| {
        let plain = |c: char| c.is_ascii_alphanumeric() || ".-_:[]".contains(c);
        !host.is_empty() && host.chars().all(plain)
    };
    let sockets =
        host.filter(is_plain).map(|host| format!(" ws://{host} wss://{host} https://{host}"));
    format!(
        "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self' blob:; \
         connect-src 'self'{}; img-src 'self' blob: data:; media-src 'self' blob:; style-src 'self'; object-src 'none'; \
         base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
        sockets.unwrap_or_default()
    )
}
