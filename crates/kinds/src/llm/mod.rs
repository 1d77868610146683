//! A language model that stays ready and continues texts. What a node is asked, and what it says, are words of the crate
//! `text`: to everybody else they are a request's bytes and an answer in parts.

mod shares;
mod split;
mod work;

#[cfg(feature = "plan")]
mod plan;

pub use split::{MOST_PARTS, SPARE_TEXTS};
pub use work::{By, LlmWork, On, Summary};

#[cfg(feature = "plan")]
pub use plan::{LlmError, LlmPlan, LlmRequest, USUAL_CONTEXT, USUAL_CONVERSATIONS};

use alloc::vec::Vec;
use shoal_protocol::{Engine, Lane};

use crate::crew::CrewPlan;
use crate::form::Form;
use crate::kind::{About, Code, Told, body, packed};
use crate::plain::Plain;
use crate::wire::Wire;

impl About for LlmWork {
    fn name(&self) -> &'static str {
        "llm"
    }

    fn told() -> Told {
        Told::of("a language model")
    }

    fn lane(&self) -> Lane {
        Lane::Cpu
    }

    fn engine(&self) -> Option<&'static str> {
        Some(match (self.on, self.by) {
            (On::Processor, By::Layers) => Engine::LLM,
            (On::Processor, By::Tensors) => Engine::LLM_TENSORS,
            (On::Gpu, By::Layers | By::Tensors) => Engine::LLM_GPU,
        })
    }

    fn code(&self) -> Option<Code> {
        Some(Code { what: "model", hash: self.model.hash })
    }

    fn form(&self) -> Form<'_> {
        Form::Answers
    }

    /// Only where a service asks for it: jobs have no language models.
    fn crew(&self) -> Option<CrewPlan> {
        self.split.then(|| self.together())
    }

    fn at_once(&self) -> Option<u16> {
        Some(self.conversations)
    }

    fn resumed(&self, request: &[u8], answer: &[u8]) -> Option<(Vec<u8>, u64)> {
        Some(split::resumed(request, answer))
    }

    fn steps(&self, answer: &[u8]) -> Option<u64> {
        Some(split::words(answer).count() as u64)
    }

    /// Where the numbers between the layers are rounded on their way, one device may well say another word than several. So may
    /// one GPU beside another.
    fn steps_again(&self, answer: &[u8], together: bool) -> Option<Vec<usize>> {
        let same_bits = match self.on {
            On::Processor => !together || self.wire == Wire::F32,
            On::Gpu => false,
        };
        same_bits.then(|| split::words_again(answer))
    }

    fn same_step(&self, step: &[u8], again: &[u8]) -> Option<bool> {
        split::same_word(step, again)
    }

    fn plain(&self) -> Plain {
        Plain::Object(Vec::from([
            ("kind", Plain::Text("llm".into())),
            ("bytes", Plain::Bytes(packed(self))),
            ("model", Plain::blob(&self.model)),
        ]))
    }

    fn body(&self) -> Vec<u8> {
        body(self)
    }
}
