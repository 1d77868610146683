//! Language models on a browser's GPU: as in the module for processors, but a go is awaited. Who asks or leaves meanwhile is
//! heard when it is over.

use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use js_sys::Promise;
use shoal_engine::llm::Options;
use shoal_engine::llm::gpu::{Card, GpuLoading, GpuWhole};
use shoal_gguf::{FIRST_BYTES, Model, ReadError};
use shoal_kinds::LlmWork;
use shoal_protocol::Failure;
use shoal_text::{Asked, Texts};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::future_to_promise;

use crate::failure::{internal, to_js};
use crate::talk::{Aloud, Manner, Read, Talk, language_of, micros, not_loaded, unable};

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(typescript_type = "Promise<LanguageHeard[]>")]
    pub type HeardLater;
}

/// A model that is being loaded: it says which bytes of its file it wants, and is given them.
#[wasm_bindgen]
pub struct GpuLoader {
    card: Card,
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
        loading: Box<GpuLoading>,
        texts: Read,
        words: u32,
    },
}

#[wasm_bindgen]
impl GpuLoader {
    /// For a page that talks to the model alone: one conversation of so many tokens with a file of so many bytes.
    pub async fn alone(size: f64, context: u32) -> Result<GpuLoader, JsValue> {
        GpuLoader::new(size as u64, context, 1).await
    }

    /// `work` is what the brain's `job` gives as bytes.
    pub async fn of(work: Vec<u8>) -> Result<GpuLoader, JsValue> {
        let LlmWork { model, context, conversations, .. } = language_of(&work)?;
        GpuLoader::new(model.size, context, conversations).await
    }

    async fn new(size: u64, context: u32, conversations: u16) -> Result<GpuLoader, JsValue> {
        let card = Card::open().await;
        let card = card.map_err(|message| to_js(&Failure::DeviceLost { message }))?;
        let phase = Phase::Head(FIRST_BYTES.min(size));
        Ok(GpuLoader { card, size, context, conversations, phase })
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
        let (context, sequences) = (self.context, self.conversations.into());
        let options = Options { threads: 1, context, sequences, kernel: None };
        let loading = GpuLoading::new(&self.card, model, model.whole(), &options);
        let loading = Box::new(loading.map_err(not_loaded)?);
        let texts = Texts::read(model.head()).map(Arc::new).map_err(|error| error.to_string());
        Ok(Phase::Weights { loading, texts, words: model.config().vocab })
    }

    /// All bytes are here: the model, tried once. The loader is of no more use.
    pub async fn finish(self) -> Result<GpuLanguage, JsValue> {
        let Phase::Weights { loading, texts, words } = self.phase else {
            return Err(internal("the model's file was not read".into()));
        };
        let mut whole = GpuWhole::new(loading.finish().map_err(not_loaded)?);
        whole.tried().await.map_err(unable)?;
        let dispatches = whole.dispatches();
        let manner = Manner { texts, context: self.context };
        let talk = Some(Talk::new(whole, words, self.conversations, &manner));
        let held = Rc::new(RefCell::new(Held { talk, left: Vec::new(), is_lost: false }));
        Ok(GpuLanguage { held, manner, dispatches })
    }

    /// Why the module stopped, if it panicked. If it did not, it ran out of memory.
    pub fn panicked() -> Option<String> {
        crate::panicked::words()
    }
}

/// A model that is loaded, and those who talk to it.
#[wasm_bindgen]
pub struct GpuLanguage {
    held: Rc<RefCell<Held>>,
    manner: Manner,
    dispatches: usize,
}

struct Held {
    /// Away while it computes.
    talk: Option<Talk<GpuWhole>>,
    /// Words that were left meanwhile.
    left: Vec<Word>,
    is_lost: bool,
}

enum Word {
    Ask(u64, Asked, Option<Aloud>),
    Leave(u64),
}

impl Held {
    fn hear(&mut self, word: Word) {
        match (&mut self.talk, word) {
            (None, word) => self.left.push(word),
            (Some(talk), Word::Ask(number, asked, aloud)) => talk.ask(number, asked, aloud),
            (Some(talk), Word::Leave(number)) => talk.leave(number),
        }
    }
}

#[wasm_bindgen]
impl GpuLanguage {
    /// Begins an answer as soon as there is a seat. `number` is the caller's, and no other's.
    pub fn ask(&self, number: f64, request: &[u8]) -> Result<(), JsValue> {
        let asked = Manner::asked(request)?;
        self.held.borrow_mut().hear(Word::Ask(number as u64, asked, None));
        Ok(())
    }

    /// The same for a request as OpenAI's API takes it, as JSON. `now` is in seconds since 1970; `seed` is for requests that
    /// bring none.
    pub fn chat(&self, number: f64, request: &str, now: f64, seed: f64) -> Result<(), JsValue> {
        let (asked, aloud) = self.manner.chat(request, now, seed)?;
        self.held.borrow_mut().hear(Word::Ask(number as u64, asked, Some(aloud)));
        Ok(())
    }

    /// Nobody wants this answer any more.
    pub fn leave(&self, number: f64) {
        self.held.borrow_mut().hear(Word::Leave(number as u64));
    }

    #[wasm_bindgen(getter, js_name = isIdle)]
    pub fn is_idle(&self) -> bool {
        self.held.borrow().talk.as_ref().is_some_and(|talk| talk.conversations.is_idle())
    }

    /// Whether the GPU is gone: it will never compute again.
    #[wasm_bindgen(getter, js_name = isLost)]
    pub fn is_lost(&self) -> bool {
        self.held.borrow().is_lost
    }

    /// Kernels that are started for one token.
    #[wasm_bindgen(getter)]
    pub fn dispatches(&self) -> usize {
        self.dispatches
    }

    /// Computes one step of as many conversations as fit.
    pub fn go(&self) -> HeardLater {
        let held = self.held.clone();
        let told: Promise = future_to_promise(async move {
            let talk = held.borrow_mut().talk.take();
            let mut talk = talk.ok_or_else(|| internal("it computes already".into()))?;
            let heard = talk.conversations.go_later(&micros).await;
            let told = talk.all_told(heard);
            let mut held = held.borrow_mut();
            held.is_lost = talk.conversations.is_lost();
            held.talk = Some(talk);
            for word in std::mem::take(&mut held.left) {
                held.hear(word);
            }
            Ok(told.into())
        });
        JsValue::from(told).unchecked_into()
    }
}
