//! Asking a model.

use axum::http::StatusCode;
use shoal_kinds::onnx::Misfit;
use shoal_kinds::onnx::inference::InferenceError;

use super::ApiError;

#[derive(Debug)]
pub(crate) enum InferError {
    NoModel {
        name: String,
    },
    NoVersion {
        name: String,
        version: String,
    },
    /// The body is compressed.
    Coding(String),
    Request(InferenceError),
    TooLarge {
        size: usize,
        most: usize,
    },
    /// The tensors are not what the model takes.
    Misfit(Misfit),
}

impl From<InferError> for ApiError {
    fn from(error: InferError) -> ApiError {
        match error {
            InferError::NoModel { name } => {
                let message =
                    format!("there is no model named {name:?}: add one with shoal model add");
                ApiError::new(StatusCode::NOT_FOUND, "no_model", message)
            }
            InferError::NoVersion { name, version } => {
                let message = format!("the model {name:?} has no version {version:?}, only \"1\"");
                ApiError::new(StatusCode::NOT_FOUND, "no_model", message)
            }
            InferError::Coding(coding) => {
                let message = format!("the request is compressed ({coding}): send it as it is");
                ApiError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "compressed", message)
            }
            InferError::Request(error @ InferenceError::Answer(_)) => {
                ApiError::new(StatusCode::BAD_GATEWAY, "bad_answer", error.to_string())
            }
            InferError::Request(error) => {
                ApiError::new(StatusCode::BAD_REQUEST, "bad_request", error.to_string())
            }
            InferError::TooLarge { size, most } => {
                let message = format!("the tensors have {size} bytes; at most {most} are allowed");
                ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", message)
            }
            InferError::Misfit(misfit) => {
                ApiError::new(StatusCode::BAD_REQUEST, "bad_tensors", misfit.to_string())
            }
        }
    }
}
