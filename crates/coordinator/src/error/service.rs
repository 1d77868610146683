//! Why a service does not answer.

use axum::http::{HeaderValue, StatusCode, header};
use serde_json::json;
use shoal_scheduler::CallError;

use super::ApiError;

#[derive(Debug)]
pub(crate) enum ServiceError {
    Missing {
        name: String,
    },
    /// The deadline or the priority is not one.
    Header {
        name: &'static str,
        value: String,
        expected: &'static str,
    },
    Call(CallError),
}

impl From<ServiceError> for ApiError {
    fn from(error: ServiceError) -> ApiError {
        match error {
            ServiceError::Missing { name } => {
                let message = format!(
                    "there is no service named {name:?}; GET /api/v1/services lists those there are"
                );
                ApiError::new(StatusCode::NOT_FOUND, "no_service", message)
            }
            ServiceError::Header { name, value, expected } => {
                let message = format!("the header {name} is {value:?}; expected {expected}");
                ApiError::new(StatusCode::BAD_REQUEST, "bad_header", message)
            }
            ServiceError::Call(error) => {
                let message = error.to_string();
                match error {
                    CallError::Gone => ApiError::new(StatusCode::NOT_FOUND, "no_service", message),
                    CallError::Full { waiting } => {
                        ApiError::new(StatusCode::TOO_MANY_REQUESTS, "queue_full", message)
                            .with(json!({ "waiting": waiting }))
                            .with_header(header::RETRY_AFTER, HeaderValue::from_static("1"))
                    }
                    CallError::Heavy { .. } => {
                        ApiError::new(StatusCode::TOO_MANY_REQUESTS, "queue_full", message)
                            .with_header(header::RETRY_AFTER, HeaderValue::from_static("1"))
                    }
                    CallError::Deadline { .. } => {
                        ApiError::new(StatusCode::GATEWAY_TIMEOUT, "deadline", message)
                    }
                    CallError::Failed { failure, .. } => {
                        ApiError::new(StatusCode::BAD_GATEWAY, "service_failed", message)
                            .with(json!({ "stderr": failure.stderr() }))
                    }
                    CallError::Doubted { .. } => {
                        ApiError::new(StatusCode::BAD_GATEWAY, "answer_doubted", message)
                    }
                    CallError::Lost { .. } => {
                        ApiError::new(StatusCode::BAD_GATEWAY, "nodes_lost", message)
                    }
                }
            }
        }
    }
}
