//! Parts of a path and of a query, with errors in our words: axum's own are plain text.

use axum::extract::{FromRequestParts, rejection};
use axum::http::request::Parts;
use serde::de::DeserializeOwned;

use super::App;
use crate::error::{ApiError, RequestError};

/// As [`axum::extract::Path`].
pub(super) struct Path<T>(pub(super) T);

/// As [`axum::extract::Query`].
pub(super) struct Query<T>(pub(super) T);

impl<T: DeserializeOwned + Send> FromRequestParts<App> for Path<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Path<T>, ApiError> {
        let read = axum::extract::Path::from_request_parts(parts, app).await;
        read.map(|axum::extract::Path(it)| Path(it)).map_err(|error: rejection::PathRejection| {
            RequestError::Unreadable { what: "path", why: error.body_text() }.into()
        })
    }
}

impl<T: DeserializeOwned> FromRequestParts<App> for Query<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Query<T>, ApiError> {
        let read = axum::extract::Query::from_request_parts(parts, app).await;
        read.map(|axum::extract::Query(it)| Query(it)).map_err(
            |error: rejection::QueryRejection| {
                RequestError::Unreadable { what: "query", why: error.body_text() }.into()
            },
        )
    }
}
