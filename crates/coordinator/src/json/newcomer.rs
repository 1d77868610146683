//! What newcomers ask for.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A newcomer's one-line job.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SubmitJobRequest {
    /// `matmul`: each element of the product of two made-up matrices.
    #[serde(default = "matmul")]
    pub(crate) compute_type: String,
    #[serde(default = "one")]
    pub(crate) iterations: u32,
    #[serde(default = "tensor_size")]
    pub(crate) tensor_size: u32,
}

fn matmul() -> String {
    "matmul".into()
}

fn one() -> u32 {
    1
}

fn tensor_size() -> u32 {
    256
}
