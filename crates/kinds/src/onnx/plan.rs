//! Asking for a model: what a client says, and why it is refused.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};
use shoal_protocol::id::clip;
use shoal_protocol::{BlobRef, Dtype, Engine, Footprint, Hash, Lane, Limits, Needs, Tolerance};

use super::cut::cut;
use super::many::{self, OnnxInputRequest};
use super::tensor::MOST_TENSORS;
use super::{COPIES, Misfit, OnnxWork, Port, Wire};
use crate::kind::Kind;
use crate::plan::{Ask, Common, Part, PlanError, Refusal, Tools, blob, parse_hash, read_whole};

/// Larger models are cut into slices, of which each device holds some.
pub const MAX_MODEL_BYTES: u64 = 2 << 30;
/// Letters of a word in a refusal.
const MOST_SHOWN: usize = 40;
/// What an engine holds beside weights and values, whatever the model is.
const BESIDE: u64 = 16 << 20;
/// Booked for the values of a run where requests choose the shapes. A run that needs more is refused by a node that has not
/// as much left.
const USUAL_VALUES: u64 = 112 << 20;

#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct OnnxRequest {
    /// The hash of the ONNX file.
    pub model: String,
    /// Of a job: an array for each input of the model, whose first axis counts the items. A service has none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<OnnxInputRequest>,
    /// For a model that is split over several devices: the shapes of inputs whose dimensions the file leaves open.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub shapes: BTreeMap<String, Vec<u64>>,
    /// For a model that is split: how tensors travel between its devices, as `f32`, `f16` or `int8`. Default: `f32`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(nullable = false))]
    pub wire: Option<String>,
}

impl OnnxRequest {
    /// A model as it is.
    pub fn new(model: String) -> OnnxRequest {
        OnnxRequest { model, inputs: Vec::new(), shapes: BTreeMap::new(), wire: None }
    }
}

/// What whoever reads models found in a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelPlan {
    pub inputs: Vec<Port>,
    pub outputs: Vec<Port>,
    /// What the values of a run take at a time; none if requests choose the shapes.
    pub peak: Option<u64>,
}

impl Ask for OnnxRequest {
    fn kind(&self) -> &'static str {
        "onnx"
    }

    fn code(&self) -> Result<Option<Hash>, PlanError> {
        parse_hash("model", &self.model).map(Some)
    }

    fn usual_tolerance(&self, dtype: Dtype) -> Tolerance {
        many::usual_tolerance(dtype)
    }

    fn plan(&self, common: &Common<'_>, tools: &Tools<'_>) -> Result<Part, PlanError> {
        if self.inputs.is_empty() {
            return Err(OnnxError::NoInputs.into());
        }
        let (file, work, _) = self.model(tools)?;
        many::plan(&self.inputs, (&file, work), common.unit, tools)
    }

    fn serve(&self, _limits: Limits, tools: &Tools<'_>) -> Result<(Kind, Needs), PlanError> {
        if !self.inputs.is_empty() {
            return Err(OnnxError::ServiceInputs.into());
        }
        let (_, work, peak) = self.model(tools)?;
        let takes = footprint(work.model, peak.unwrap_or(USUAL_VALUES));
        Ok((work.into(), Needs::lane(Lane::Cpu).takes(takes).engine(Engine::ONNX)))
    }

    fn cut(&self, work: Kind, tools: &Tools<'_>) -> Result<Kind, PlanError> {
        let wire = match &self.wire {
            None => Wire::F32,
            Some(name) => Wire::of(name).ok_or_else(|| {
                let found = clip(name.clone(), MOST_SHOWN);
                OnnxError::Wire { found, expected: Wire::ALL.map(Wire::name).join(", ") }
            })?,
        };
        let Some(model) = work.model() else { return Ok(work) };
        cut(model.clone(), &self.shapes, wire, tools).map(Kind::from)
    }
}

impl OnnxRequest {
    /// The file, what the model takes and gives, and what the values of a run take.
    fn model(&self, tools: &Tools<'_>) -> Result<(Vec<u8>, OnnxWork, Option<u64>), PlanError> {
        let model = blob(tools.store, "model", &self.model)?;
        if model.size > MAX_MODEL_BYTES {
            return Err(OnnxError::TooLarge { size: model.size, most: MAX_MODEL_BYTES }.into());
        }
        let bytes = read_whole(tools.store, model)?;
        let ModelPlan { inputs, outputs, peak } = tools.intake.model(&bytes)?;
        for (what, ports) in [("inputs", &inputs), ("outputs", &outputs)] {
            if ports.len() > MOST_TENSORS {
                let (found, most) = (ports.len(), MOST_TENSORS);
                return Err(OnnxError::TooManyPorts { what, found, most }.into());
            }
        }
        let (parts, wire, batch) = (Vec::new(), Wire::F32, None);
        Ok((bytes, OnnxWork { model, inputs, outputs, parts, wire, batch }, peak))
    }
}

/// A request runs beside units, so that nobody waits for them: it takes memory, but no thread of theirs.
pub(super) fn footprint(model: BlobRef, values: u64) -> Footprint {
    let memory = (model.size * COPIES + BESIDE).saturating_add(values);
    Footprint { memory, ..Footprint::NOTHING }
}

/// Why a model is refused.
#[derive(Debug, thiserror::Error)]
pub enum OnnxError {
    #[error(
        "a job runs a model over arrays: give one for each input in \"inputs\"; to answer requests, ask for a service \
         with POST /api/v1/services"
    )]
    NoInputs,
    #[error("a service gets its inputs with requests: leave \"inputs\" out")]
    ServiceInputs,
    #[error("the model has {size} bytes; at most {most} are allowed")]
    TooLarge { size: u64, most: u64 },
    #[error(
        "the model cannot be split: wherever it is cut, something would have to cross that cannot be sent"
    )]
    Indivisible,
    #[error("\"wire\" is {found:?}; expected one of {expected}")]
    Wire { found: String, expected: String },
    #[error("the model has {found} {what}; at most {most} are allowed")]
    TooManyPorts { what: &'static str, found: usize, most: usize },
    #[error("the model has several inputs: say in \"name\" which one each array is for")]
    NoName,
    #[error("the input {name:?} has the type {found:?}: expected one of {expected}")]
    Type { name: String, found: String, expected: String },
    #[error(
        "the input {name:?} is a single number: expected an array whose first axis counts the items"
    )]
    NoAxis { name: String },
    #[error(
        "the input {name:?} has the shape {shape:?}, which takes {expected} bytes: found {found}"
    )]
    Bytes { name: String, shape: Vec<u64>, expected: u64, found: u64 },
    #[error("the input {name:?} has the shape {shape:?}, which no memory can hold")]
    Shape { name: String, shape: Vec<u64> },
    #[error(
        "the input {one:?} has {items} items, but {other:?} has {others}: the first axes must be the same"
    )]
    ItemsDiffer { one: String, items: u64, other: String, others: u64 },
    #[error("{misfit} (each row of an array is an item; {arrays})")]
    Misfit { misfit: Misfit, arrays: String },
    #[error("the model has no output")]
    NoOutput,
}

impl Refusal for OnnxError {
    fn code(&self) -> &'static str {
        match self {
            OnnxError::NoInputs
            | OnnxError::ServiceInputs
            | OnnxError::NoName
            | OnnxError::Type { .. }
            | OnnxError::NoAxis { .. }
            | OnnxError::Bytes { .. }
            | OnnxError::Shape { .. }
            | OnnxError::ItemsDiffer { .. }
            | OnnxError::Misfit { .. }
            | OnnxError::Wire { .. } => "bad_request",
            OnnxError::TooLarge { .. } => "too_large",
            OnnxError::TooManyPorts { .. } | OnnxError::NoOutput | OnnxError::Indivisible => {
                "bad_model"
            }
        }
    }
}
