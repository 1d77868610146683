//! What newcomers ask for.

use serde::{Deserialize, Serialize};

/// A newcomer's one-line job.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct SubmitJobRequest {
    /// `matmul`: each element of the product of two made-up matrices.
    #[serde(default = "matmul")]
    pub compute_type: String,
    #[serde(default = "one")]
    pub iterations: u32,
    #[serde(default = "tensor_size")]
    pub tensor_size: u32,
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
