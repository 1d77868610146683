//! Asking for a language model: what a client says, and why it is refused.

use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};
use shoal_protocol::id::clip;
use shoal_protocol::{Engine, Hash, Lane, Limits, Needs};

use super::{By, LlmWork, On, Summary};
use crate::job::Split;
use crate::kind::{About, Kind};
use crate::plan::{Ask, Common, Part, PlanError, Refusal, Tools, blob, parse_hash};
use crate::wire::Wire;

/// Tokens of a conversation if nobody says: what most conversations stay within, so that memory is left for others.
pub const USUAL_CONTEXT: u32 = 4096;
/// Fewer would not hold a question and an answer.
const LEAST_CONTEXT: u32 = 16;
/// Conversations a node holds at a time, if nobody says and at most.
pub const USUAL_CONVERSATIONS: u16 = 4;
const MOST_CONVERSATIONS: u16 = 64;
/// Of a word that was not understood, as much as tells which one it was.
const MOST_SHOWN: usize = 40;

#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct LlmRequest {
    /// The hash of the GGUF file.
    pub model: String,
    /// Tokens of a conversation at most. Default: 4096, or what the model was made for if that is less.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<u32>,
    /// Conversations that a node holds at a time. Default: 4.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversations: Option<u16>,
    /// Where several devices share the model: how the numbers between its layers travel. `f32` (the default) keeps every
    /// word as one device says it; `f16` and `int8` send a half and about a quarter of the bytes, and change some words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wire: Option<String>,
    /// Where several devices share the model: what each of them has. With `layers` (the default) it has some layers, and a
    /// token goes from device to device. With `tensors` it has some rows of every matrix, and all devices compute each
    /// layer together; numbers always travel as `f32`, and only native nodes take part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// What computes it: `processor` (the default) or `gpu`. On a GPU the numbers are right within a tolerance and not the
    /// same on every device, so some words may differ from device to device. One device has all of the model: `by`,
    /// `wire` and `split` are refused beside it, and there are no embeddings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on: Option<String>,
}

/// What whoever reads models found at the beginning of a file.
pub enum LlmPlan {
    Model(Summary),
    /// So many bytes of it are needed to tell.
    More(u64),
}

impl Ask for LlmRequest {
    fn kind(&self) -> &'static str {
        "llm"
    }

    fn code(&self) -> Result<Option<Hash>, PlanError> {
        parse_hash("model", &self.model).map(Some)
    }

    fn plan(&self, _common: &Common<'_>, _tools: &Tools<'_>) -> Result<Part, PlanError> {
        Err(LlmError::NoJob.into())
    }

    fn serve(&self, _limits: Limits, tools: &Tools<'_>) -> Result<(Kind, Needs), PlanError> {
        let model = blob(tools.store, "model", &self.model)?;
        let about = summary(tools, model)?;
        let context = self.context.unwrap_or(USUAL_CONTEXT.min(about.context));
        if !(LEAST_CONTEXT..=about.context).contains(&context) {
            let most = about.context;
            return Err(LlmError::Context { found: context, least: LEAST_CONTEXT, most }.into());
        }
        let conversations = self.conversations.unwrap_or(USUAL_CONVERSATIONS);
        if !(1..=MOST_CONVERSATIONS).contains(&conversations) {
            let (found, most) = (conversations, MOST_CONVERSATIONS);
            return Err(LlmError::Conversations { found, most }.into());
        }
        let on = self.on()?;
        let wire = match &self.wire {
            None => Wire::F32,
            Some(name) => Wire::of(name).ok_or_else(|| {
                let found = clip(name.clone(), MOST_SHOWN);
                LlmError::Wire { found, expected: Wire::ALL.map(Wire::name).join(", ") }
            })?,
        };
        let by = match &self.by {
            None => By::Layers,
            Some(name) => By::of(name).ok_or_else(|| {
                let found = clip(name.clone(), MOST_SHOWN);
                LlmError::By { found, expected: By::ALL.map(By::name).join(", ") }
            })?,
        };
        if by == By::Tensors && wire != Wire::F32 {
            return Err(LlmError::WireOfTensors { found: wire }.into());
        }
        let work = LlmWork { model, about, context, conversations, split: false, wire, by, on };
        let needs = Needs::lane(Lane::Cpu).takes(work.footprint());
        let needs = needs.engine(work.engine().unwrap_or(Engine::LLM));
        Ok((work.into(), needs))
    }

    fn usual_split(&self) -> Split {
        if self.on.as_deref() == Some(On::Gpu.name()) { Split::Never } else { Split::Auto }
    }

    fn cut(&self, work: Kind, _tools: &Tools<'_>) -> Result<Kind, PlanError> {
        let Some(language) = work.language() else { return Ok(work) };
        if language.on == On::Gpu {
            return Err(LlmError::WholeOnGpu { what: "split" }.into());
        }
        let split = match language.by {
            By::Layers => language.about.layers > 1,
            By::Tensors => language.shares() > 1,
        };
        Ok(LlmWork { split, ..language.clone() }.into())
    }
}

impl LlmRequest {
    /// What computes it, if what else is asked for goes with that.
    fn on(&self) -> Result<On, LlmError> {
        let Some(name) = &self.on else { return Ok(On::Processor) };
        let on = On::of(name).ok_or_else(|| {
            let found = clip(name.clone(), MOST_SHOWN);
            LlmError::On { found, expected: On::ALL.map(On::name).join(", ") }
        })?;
        let beside = [("by", &self.by), ("wire", &self.wire)];
        match beside.into_iter().find(|(_, asked)| asked.is_some()) {
            Some((what, _)) if on == On::Gpu => Err(LlmError::WholeOnGpu { what }),
            _ => Ok(on),
        }
    }
}

/// Reads as much of the file's beginning as it takes.
fn summary(tools: &Tools<'_>, model: shoal_protocol::BlobRef) -> Result<Summary, PlanError> {
    let mut wanted = 1 << 20;
    loop {
        let head = beginning(tools, model, wanted)?;
        match tools.intake.language_model(head, model.size)? {
            LlmPlan::Model(summary) => return Ok(summary),
            LlmPlan::More(needed) if needed > wanted && wanted < model.size => {
                wanted = needed.max(wanted * 2).min(model.size);
            }
            LlmPlan::More(_) => return Err(LlmError::Short { size: model.size }.into()),
        }
    }
}

fn beginning(
    tools: &Tools<'_>,
    model: shoal_protocol::BlobRef,
    wanted: u64,
) -> Result<Vec<u8>, PlanError> {
    let wanted = usize::try_from(wanted.min(model.size)).unwrap_or(usize::MAX);
    let mut bytes = Vec::with_capacity(wanted);
    let take = &mut |piece: &[u8]| {
        let room = wanted - bytes.len();
        bytes.extend_from_slice(&piece[..piece.len().min(room)]);
        bytes.len() < wanted
    };
    let is_there = tools.store.read(model.hash, take).map_err(PlanError::Disk)?;
    let what = || String::from("model");
    if is_there { Ok(bytes) } else { Err(PlanError::NoBlob { what: what(), hash: model.hash }) }
}

/// Why a language model is refused.
#[derive(Debug, thiserror::Error)]
pub enum LlmError {
    #[error("a language model answers requests: ask for a service with POST /api/v1/services")]
    NoJob,
    #[error(
        "\"context\" is {found}: expected {least} to {most}, the most that the model was made for"
    )]
    Context { found: u32, least: u32, most: u32 },
    #[error("\"conversations\" is {found}: expected 1 to {most}")]
    Conversations { found: u16, most: u16 },
    #[error("\"wire\" is {found:?}; expected one of {expected}")]
    Wire { found: String, expected: String },
    #[error("\"by\" is {found:?}; expected one of {expected}")]
    By { found: String, expected: String },
    #[error("\"wire\" is {found}: devices that share a model by tensors send each other only f32")]
    WireOfTensors { found: Wire },
    #[error("\"on\" is {found:?}; expected one of {expected}")]
    On { found: String, expected: String },
    #[error("a model on a GPU runs on one device: remove \"{what}\", or remove \"on\"")]
    WholeOnGpu { what: &'static str },
    #[error("the model's file ends after {size} bytes, before its own description does")]
    Short { size: u64 },
}

impl Refusal for LlmError {
    fn code(&self) -> &'static str {
        match self {
            LlmError::NoJob
            | LlmError::Wire { .. }
            | LlmError::By { .. }
            | LlmError::On { .. }
            | LlmError::WholeOnGpu { .. }
            | LlmError::WireOfTensors { .. } => "bad_request",
            LlmError::Context { .. } | LlmError::Conversations { .. } => "out_of_range",
            LlmError::Short { .. } => "bad_model",
        }
    }
}
