//! Asking a language model.

use axum::http::StatusCode;
use shoal_text::Wrong;

use super::ApiError;

#[derive(Debug)]
pub(crate) enum ChatError {
    NoModel {
        name: String,
    },
    Wrong(Wrong),
    /// The prompt leaves no room for an answer.
    TooLong {
        found: usize,
        most: u32,
    },
    /// The model's file or a node's answer is not what it must be.
    Broken {
        name: String,
        reason: String,
    },
}

impl From<ChatError> for ApiError {
    fn from(error: ChatError) -> ApiError {
        match error {
            ChatError::NoModel { name } => {
                let message = format!(
                    "there is no language model named {name:?}: add one with shoal model add FILE.gguf"
                );
                ApiError::new(StatusCode::NOT_FOUND, "model_not_found", message)
            }
            ChatError::Wrong(wrong) => {
                ApiError::new(StatusCode::BAD_REQUEST, wrong.code, wrong.message)
            }
            ChatError::TooLong { found, most } => {
                let message = format!(
                    "the prompt has {found} tokens, but this model holds {most} with the answer: \
                     shorten it, or add the model with a larger --context"
                );
                ApiError::new(StatusCode::BAD_REQUEST, "context_length_exceeded", message)
            }
            ChatError::Broken { name, reason } => {
                let message = format!("the model {name:?} does not answer: {reason}");
                ApiError::new(StatusCode::BAD_GATEWAY, "bad_answer", message)
            }
        }
    }
}
