//! An ONNX model that stays ready and answers requests.

pub mod tensor;
mod work;

#[cfg(feature = "plan")]
pub mod asking;
#[cfg(feature = "plan")]
pub mod inference;
#[cfg(feature = "plan")]
mod plan;

pub use tensor::{Element, Head, Tensor, TensorError};
pub use work::{Misfit, OnnxWork, Port, Side};

#[cfg(feature = "plan")]
pub use plan::{ModelPlan, OnnxError, OnnxRequest};

use alloc::vec::Vec;
use shoal_protocol::{Engine, Lane};

use crate::form::Form;
use crate::kind::{About, Code, body, packed};
use crate::plain::Plain;

impl About for OnnxWork {
    fn name(&self) -> &'static str {
        "onnx"
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
        Form::Answers
    }

    fn plain(&self) -> Plain {
        Plain::Object(Vec::from([
            ("kind", Plain::Text("onnx".into())),
            ("bytes", Plain::Bytes(packed(self))),
            ("model", Plain::blob(&self.model)),
        ]))
    }

    fn body(&self) -> Vec<u8> {
        body(self)
    }
}
