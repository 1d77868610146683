//! Asking for a model: what a client says, and why it is refused.

use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};
use shoal_protocol::{BlobRef, Engine, Footprint, Hash, Lane, Limits, Needs};

use super::tensor::MOST_TENSORS;
use super::{OnnxWork, Port};
use crate::kind::Kind;
use crate::plan::{Ask, Common, Part, PlanError, Refusal, Tools, blob, parse_hash, read_whole};

/// Larger models are cut into slices, of which each device holds some.
const MAX_MODEL_BYTES: u64 = 2 << 30;
/// An engine holds the file, the weights as they are in it and as it likes them best.
const COPIES: u64 = 3;
/// What an engine holds beside weights: values between the operators.
const BESIDE: u64 = 128 << 20;

#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct OnnxRequest {
    /// The hash of the ONNX file.
    pub model: String,
}

/// What whoever reads models found in a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelPlan {
    pub inputs: Vec<Port>,
    pub outputs: Vec<Port>,
}

impl Ask for OnnxRequest {
    fn kind(&self) -> &'static str {
        "onnx"
    }

    fn code(&self) -> Result<Option<Hash>, PlanError> {
        parse_hash("model", &self.model).map(Some)
    }

    fn plan(&self, _common: &Common<'_>, _tools: &Tools<'_>) -> Result<Part, PlanError> {
        Err(OnnxError::NoJob.into())
    }

    fn serve(&self, _limits: Limits, tools: &Tools<'_>) -> Result<(Kind, Needs), PlanError> {
        let model = blob(tools.store, "model", &self.model)?;
        if model.size > MAX_MODEL_BYTES {
            return Err(OnnxError::TooLarge { size: model.size, most: MAX_MODEL_BYTES }.into());
        }
        let bytes = read_whole(tools.store, model)?;
        let ModelPlan { inputs, outputs } = tools.intake.model(&bytes)?;
        for (what, ports) in [("inputs", &inputs), ("outputs", &outputs)] {
            if ports.len() > MOST_TENSORS {
                let (found, most) = (ports.len(), MOST_TENSORS);
                return Err(OnnxError::TooManyPorts { what, found, most }.into());
            }
        }
        let work = OnnxWork { model, inputs, outputs };
        let needs = Needs::lane(Lane::Cpu).takes(footprint(model)).engine(Engine::ONNX);
        Ok((work.into(), needs))
    }
}

/// A request runs beside units, so that nobody waits for them: it takes memory, but no thread of theirs.
fn footprint(model: BlobRef) -> Footprint {
    Footprint { memory: model.size * COPIES + BESIDE, ..Footprint::NOTHING }
}

/// Why a model is refused.
#[derive(Debug, thiserror::Error)]
pub enum OnnxError {
    #[error("a model answers requests: ask for a service with POST /api/v1/services")]
    NoJob,
    #[error("the model has {size} bytes; at most {most} are allowed")]
    TooLarge { size: u64, most: u64 },
    #[error("the model has {found} {what}; at most {most} are allowed")]
    TooManyPorts { what: &'static str, found: usize, most: usize },
}

impl Refusal for OnnxError {
    fn code(&self) -> &'static str {
        match self {
            OnnxError::NoJob => "bad_request",
            OnnxError::TooLarge { .. } => "too_large",
            OnnxError::TooManyPorts { .. } => "bad_model",
        }
    }
}
