//! Language models for JavaScript: loaded a tensor at a time, then asked by several conversations that share goes. What is
//! thrown is a `UnitFailure`, but for a panic and for memory that ran out: the browser throws its own error then, and the
//! module is of no more use.

use std::ops::Range;
use std::sync::Arc;

use js_sys::{Array, Uint8Array};
use shoal_engine::llm::{Conversations, Heard, LoadError, Loading, Options, Whole};
use shoal_gguf::{FIRST_BYTES, Model, ReadError};
use shoal_kinds::{Kind, LlmWork};
use shoal_protocol::Failure;
use shoal_text::{Ask, Bounds, Spelling, Texts};
use wasm_bindgen::prelude::*;

use crate::failure::{internal, to_js};
use crate::object::Fields;

/// Tokens of one go. More at once read a prompt faster, but nobody is heard before the go ends: a phone with a model of
/// some hundred million parameters takes a second for these.
const STEP: usize = 32;
/// What a module's memory holds at most. Models that need more are not begun.
const MOST_MEMORY: u64 = 4 << 30;

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = r#"
/** What became of a conversation in a go. With `failure` or `done` it is over. */
export interface LanguageHeard { number: number; bytes?: Uint8Array<ArrayBuffer>; done?: true; failure?: UnitFailure }
"#;

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(typescript_type = "LanguageHeard[]")]
    pub type AllHeard;

    #[wasm_bindgen(js_namespace = performance, js_name = now)]
    fn millis() -> f64;
}

/// A model that is being loaded: it says which bytes of its file it wants, and is given them.
#[wasm_bindgen]
pub struct Loader {
    /// Of the whole file.
    size: u64,
    context: u32,
    conversations: u16,
    phase: Phase,
}

enum Phase {
    /// So many bytes of the head are wanted.
    Head(u64),
    Weights {
        loading: Box<Loading>,
        texts: Result<Arc<Texts>, String>,
        words: u32,
    },
}

#[wasm_bindgen]
impl Loader {
    /// `work` is what the brain's `job` gives as bytes.
    pub fn of(work: &[u8]) -> Result<Loader, JsValue> {
        let work: Kind = postcard::from_bytes(work)
            .map_err(|error| internal(format!("a job that cannot be read: {error}")))?;
        let no_model = || internal("a job that is no language model".into());
        let work = work.language().ok_or_else(no_model)?;
        let LlmWork { model, context, conversations, .. } = *work;
        let needed = work.memory();
        if needed >= MOST_MEMORY {
            return Err(unable(format!(
                "the model needs {needed} bytes of memory; a tab has at most {MOST_MEMORY}"
            )));
        }
        let phase = Phase::Head(FIRST_BYTES.min(model.size));
        Ok(Loader { size: model.size, context, conversations, phase })
    }

    /// From which byte of the file to which it wants some; nothing when all are here.
    pub fn wants(&self) -> Option<Vec<f64>> {
        let Range { start, end } = match &self.phase {
            Phase::Head(wanted) => 0..*wanted,
            Phase::Weights { loading, .. } => loading.wants()?,
        };
        Some(vec![start as f64, end as f64])
    }

    /// The bytes that it wants.
    pub fn give(&mut self, bytes: &[u8]) -> Result<(), JsValue> {
        match &mut self.phase {
            Phase::Head(wanted) => match Model::read(bytes.to_vec(), self.size) {
                Err(ReadError::Short { needed }) if *wanted < self.size => {
                    *wanted = needed.max(*wanted * 2).min(self.size);
                }
                Err(error) => {
                    return Err(to_js(&Failure::Model { message: error.to_string() }));
                }
                Ok(model) => self.phase = self.weights(&model)?,
            },
            Phase::Weights { loading, .. } => loading.give(bytes).map_err(not_loaded)?,
        }
        Ok(())
    }

    fn weights(&self, model: &Model) -> Result<Phase, JsValue> {
        let options = Options {
            threads: 1,
            context: self.context,
            sequences: self.conversations.into(),
            kernel: None,
        };
        let loading = Loading::new(model, model.whole(), &options).map_err(not_loaded)?;
        let texts = Texts::read(model.head()).map(Arc::new).map_err(|error| error.to_string());
        Ok(Phase::Weights { loading: Box::new(loading), texts, words: model.config().vocab })
    }

    /// All bytes are here: the model. The loader is of no more use.
    pub fn finish(self) -> Result<Language, JsValue> {
        let Phase::Weights { loading, texts, words } = self.phase else {
            return Err(internal("the model's file was not read".into()));
        };
        let stage = loading.finish().map_err(not_loaded)?;
        let spelling = texts.ok().map(|texts| Arc::new(Spelling::new(&texts.tokenizer)));
        let bounds = Bounds { words, context: self.context, step: STEP };
        let seats = self.conversations.into();
        Ok(Language(Conversations::new(Whole::new(stage), bounds, seats, spelling)))
    }

    /// Why the module stopped, if it panicked. If it did not, it ran out of memory.
    pub fn panicked() -> Option<String> {
        crate::panicked::words()
    }
}

/// A model that is loaded, and those who talk to it.
#[wasm_bindgen]
pub struct Language(Conversations<Whole>);

#[wasm_bindgen]
impl Language {
    /// Begins an answer as soon as there is a seat. `number` is the caller's, and no other's.
    pub fn ask(&mut self, number: f64, request: &[u8]) -> Result<(), JsValue> {
        let ask = Ask::unpack(request).ok_or_else(|| {
            let message = "the request is none of a language model".into();
            to_js(&Failure::Model { message })
        })?;
        self.0.ask(number as u64, ask);
        Ok(())
    }

    /// Nobody wants this answer any more.
    pub fn leave(&mut self, number: f64) {
        self.0.leave(number as u64);
    }

    #[wasm_bindgen(getter, js_name = isIdle)]
    pub fn is_idle(&self) -> bool {
        self.0.is_idle()
    }

    /// Computes one step of as many conversations as fit.
    pub fn go(&mut self) -> AllHeard {
        let heard = self.0.go(&|| (millis() * 1_000.0) as u64);
        let plain = heard.into_iter().map(|(number, heard)| plain(number, heard));
        JsValue::from(plain.collect::<Array>()).unchecked_into()
    }
}

fn plain(number: u64, heard: Heard) -> JsValue {
    let fields = Fields::new().with("number", number as f64);
    let fields = match heard {
        Heard::Part(bytes) => fields.with("bytes", Uint8Array::from(bytes.as_slice())),
        Heard::Done(bytes) => {
            fields.with("bytes", Uint8Array::from(bytes.as_slice())).with("done", true)
        }
        Heard::Failed(message) => fields.with("failure", to_js(&Failure::Model { message })),
    };
    fields.done()
}

fn not_loaded(error: LoadError) -> JsValue {
    unable(error.to_string())
}

fn unable(message: String) -> JsValue {
    to_js(&Failure::Unable { message })
}
