//! An ONNX model that stays ready and answers requests, or runs over many inputs.

mod batch;
pub mod sight;
mod split;
pub mod tensor;
pub mod wire;
mod work;

#[cfg(feature = "plan")]
pub mod asking;
#[cfg(feature = "plan")]
mod cut;
#[cfg(feature = "plan")]
pub mod inference;
#[cfg(feature = "plan")]
mod many;
#[cfg(feature = "plan")]
mod plan;
#[cfg(feature = "plan")]
mod reading;

pub use batch::{Batch, Column, Unit};
pub use sight::Sight;
pub use split::{Leg, MOST_PARTS, Part};
pub use tensor::{Element, Head, Tensor, TensorError};
pub use wire::{Wire, WireError};
pub use work::{COPIES, Misfit, OnnxWork, Port, Side};

#[cfg(feature = "plan")]
pub use cut::{CutAsk, CutPart, CutPlan};
#[cfg(feature = "plan")]
pub use many::{BatchPlan, OnnxInputRequest, TensorJson, columns};
#[cfg(feature = "plan")]
pub use plan::{MAX_MODEL_BYTES, ModelPlan, OnnxError, OnnxRequest};
#[cfg(feature = "plan")]
pub use reading::Reading;

use alloc::vec::Vec;
use shoal_protocol::{Engine, Lane};

use crate::crew::CrewPlan;
use crate::feed::Feed;
use crate::form::Form;
use crate::kind::{About, Code, Told, body, packed};
use crate::plain::Plain;

impl About for OnnxWork {
    fn name(&self) -> &'static str {
        "onnx"
    }

    fn told() -> Told {
        Told::of("a model such as an image classifier")
    }

    fn lane(&self) -> Lane {
        Lane::Cpu
    }

    fn engine(&self) -> Option<&'static str> {
        Some(Engine::ONNX)
    }

    fn code(&self) -> Option<Code> {
        Some(Code { what: "model", hash: self.model.hash })
    }

    fn form(&self) -> Form<'_> {
        self.batch.as_ref().map_or(Form::Answers, Form::Rows)
    }

    fn is_rounded(&self) -> bool {
        self.batch.as_ref().is_none_or(Batch::is_rounded)
    }

    /// Processors add in different orders, and no probe tells which: all are compared within the tolerance.
    fn has_class(&self) -> bool {
        false
    }

    fn feeds(&self) -> &[Feed] {
        self.batch.as_ref().map_or(&[], |batch| &batch.feeds)
    }

    /// A job of it is a row of requests, each for one device; only a service may be kept by several together.
    fn takes_crew(&self) -> bool {
        false
    }

    fn crew(&self) -> Option<CrewPlan> {
        self.chain()
    }

    fn plain(&self) -> Plain {
        Plain::Object(Vec::from([
            ("kind", Plain::Text("onnx".into())),
            ("bytes", Plain::Bytes(packed(self))),
            ("model", Plain::blob(&self.model)),
            ("parts", Plain::List(self.parts.iter().map(|part| Plain::blob(&part.blob)).collect())),
            ("inputs", Plain::feeds(self)),
        ]))
    }

    fn body(&self) -> Vec<u8> {
        body(self)
    }

    #[cfg(feature = "plan")]
    fn shown(&self) -> crate::plan::Shown {
        let tensors = self.batch.as_ref();
        let tensors = tensors.map(|batch| batch.outputs.iter().map(TensorJson::of).collect());
        crate::plan::Shown { tensors, ..crate::plan::Shown::default() }
    }

    #[cfg(feature = "plan")]
    fn inputs(&self, _store: &dyn crate::plan::Store) -> Vec<crate::plan::NamedInput> {
        let batch = self.batch.iter();
        let inputs = batch.flat_map(|batch| batch.inputs.iter().zip(&batch.feeds));
        let named = |(column, feed): (&Column, &Feed)| crate::plan::NamedInput {
            name: Some(column.name.clone()),
            ..crate::plan::NamedInput::plain("input", &feed.blob)
        };
        inputs.map(named).collect()
    }

    #[cfg(feature = "plan")]
    fn sides(&self, items: u64, _per_item: u64) -> Option<Vec<u64>> {
        let [output] = self.batch.as_ref()?.outputs.as_slice() else { return None };
        Some(core::iter::once(items).chain(output.dims.iter().copied()).collect())
    }
}
