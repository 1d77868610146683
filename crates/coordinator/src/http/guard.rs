//! Who gets in, from where: the API key, nodes' sessions, and pages of other sites.

use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::{HeaderName, Method, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tower_http::cors::{Any, CorsLayer};
use utoipa::Modify;
use utoipa::openapi::OpenApi;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};

use super::{App, chat, field, jobs, models, services};
use crate::error::{ApiError, AuthError, UPLOAD_OFFSET};

pub(super) const UPLOAD_LENGTH: HeaderName = HeaderName::from_static("upload-length");
pub(super) const SHOAL_HASH: HeaderName = HeaderName::from_static("x-shoal-hash");

/// Browsers ask again after this long whether another site may call us; the answer never changes.
const PREFLIGHT_KEPT: Duration = Duration::from_secs(24 * 3600);

pub(super) async fn with_key(State(app): State<App>, request: Request, next: Next) -> Response {
    if app.auth.has_key(request.headers()) {
        return next.run(request).await;
    }
    let is_given = request.headers().contains_key(header::AUTHORIZATION);
    let error = if is_given { AuthError::WrongKey } else { AuthError::NoKey };
    if chat::is_here(request.uri().path()) {
        return chat::Open::from(error).into_response();
    }
    ApiError::from(error).into_response()
}

pub(super) async fn with_session(State(app): State<App>, request: Request, next: Next) -> Response {
    if app.auth.session(request.headers()).is_some() {
        next.run(request).await
    } else {
        ApiError::from(AuthError::Session).into_response()
    }
}

/// Any site may call: what opens the door is a header that only those with a key can send.
pub(super) fn cors() -> CorsLayer {
    CorsLayer::new()
        .allow_origin(Any)
        .allow_methods([Method::GET, Method::HEAD, Method::POST, Method::PUT, Method::DELETE])
        .allow_headers([
            header::AUTHORIZATION,
            header::CONTENT_TYPE,
            header::RANGE,
            UPLOAD_OFFSET,
            UPLOAD_LENGTH,
            SHOAL_HASH,
            jobs::IDEMPOTENCY_KEY,
            services::DEADLINE,
            services::BUDGET,
            services::PRIORITY,
            models::HEAD_LENGTH,
        ])
        .expose_headers([
            header::CONTENT_LENGTH,
            header::CONTENT_RANGE,
            header::ACCEPT_RANGES,
            UPLOAD_OFFSET,
            field::VERSION,
            field::STEP,
            field::WIDTH,
            field::HEIGHT,
            models::HEAD_LENGTH,
            models::NODE,
            models::NODE_NAME,
            models::WAITED,
            models::TOOK,
            models::STAGES,
        ])
        .allow_private_network(true)
        .max_age(PREFLIGHT_KEPT)
}

/// The two kinds of credentials, for the document.
pub(super) struct Schemes;

impl Modify for Schemes {
    fn modify(&self, document: &mut OpenApi) {
        let bearer = |about: &str| {
            let http = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).description(Some(about));
            SecurityScheme::Http(http.build())
        };
        let components = document.components.get_or_insert_default();
        components.add_security_scheme("key", bearer("The API key of the data folder"));
        components.add_security_scheme("session", bearer("The session from a node's Welcome"));
    }
}
