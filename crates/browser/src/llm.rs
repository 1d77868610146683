//! Language models for JavaScript: loaded a tensor at a time, then asked by several conversations that share goes. What is
//! thrown is a `UnitFailure`, but for a panic and for memory that ran out: the browser throws its own error then, and the
//! module is of no more use.

use std::ops::Range;
use std::sync::Arc;

use shoal_engine::llm::{Given, Loading, Options, READ_STEP, Rounds, Stage, Whole};
use shoal_gguf::{FIRST_BYTES, Model, ReadError};
use shoal_kinds::crew::{Out, Way};
use shoal_kinds::{About, LlmWork, Wire};
use shoal_protocol::{Failure, Span};
use shoal_text::{Bounds, Texts};
use wasm_bindgen::prelude::*;

use crate::failure::{internal, to_js};
use crate::talk::{
    AllHeard, Manner, Read, Talk, language_of, micros, not_loaded, spelling, unable,
};

/// What a module's memory holds at most. Models that need more are not begun.
const MOST_MEMORY: u64 = 4 << 30;

/// A model that is being loaded: it says which bytes of its file it wants, and is given them.
#[wasm_bindgen]
pub struct Loader {
    /// Of the whole file.
    size: u64,
    context: u32,
    conversations: u16,
    /// Some layers, if not all are wanted.
    layers: Option<Range<u32>>,
    /// How numbers travel to whoever has the next ones.
    wire: Wire,
    phase: Phase,
}

enum Phase {
    /// So many bytes of the head are wanted.
    Head(u64),
    Weights {
        loading: Box<Loading>,
        texts: Read,
        words: u32,
    },
}

#[wasm_bindgen]
impl Loader {
    /// For a page that talks to the model alone: one conversation of so many tokens with a file of so many bytes, which takes
    /// so much memory.
    pub fn alone(size: f64, context: u32, memory: f64) -> Result<Loader, JsValue> {
        Loader::new(size as u64, context, 1, memory as u64)
    }

    /// `work` is what the brain's `job` gives as bytes.
    pub fn of(work: &[u8]) -> Result<Loader, JsValue> {
        let work = language_of(work)?;
        let LlmWork { model, context, conversations, .. } = work;
        Loader::new(model.size, context, conversations, work.memory())
    }

    fn new(size: u64, context: u32, conversations: u16, memory: u64) -> Result<Loader, JsValue> {
        if memory >= MOST_MEMORY {
            return Err(unable(format!(
                "the model needs {memory} bytes of memory; a tab has at most {MOST_MEMORY}"
            )));
        }
        let phase = Phase::Head(FIRST_BYTES.min(size));
        Ok(Loader { size, context, conversations, layers: None, wire: Wire::F32, phase })
    }

    /// The layers of `len` parts from `start` on, as a member of a crew keeps them.
    pub fn part(work: &[u8], start: f64, len: f64) -> Result<Loader, JsValue> {
        let work = language_of(work)?;
        let parts = Span::new(start as u64, len as u64);
        let no_parts = || unable(format!("the model has no parts {parts}"));
        let layers = work.layers(parts).ok_or_else(no_parts)?;
        let memory = work.crew().map_or(0, |plan| plan.problem.held_bytes(parts));
        let loader = Loader::new(work.model.size, work.context, work.texts(), memory)?;
        Ok(Loader { layers: Some(layers), wire: work.wire, ..loader })
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
        let layers = self.layers.clone().unwrap_or_else(|| model.whole());
        let loading = Loading::new(model, layers, &options).map_err(not_loaded)?;
        let texts = Texts::read(model.head()).map(Arc::new).map_err(|error| error.to_string());
        Ok(Phase::Weights { loading: Box::new(loading), texts, words: model.config().vocab })
    }

    /// All bytes are here: the model. The loader is of no more use.
    pub fn finish(self) -> Result<Language, JsValue> {
        let (context, conversations) = (self.context, self.conversations);
        let (stage, words, texts) = self.loaded()?;
        let manner = Manner { texts, context };
        Ok(Language { talk: Talk::new(Whole::new(stage), words, conversations, &manner), manner })
    }

    /// The same for some layers.
    #[wasm_bindgen(js_name = finishPart)]
    pub fn finish_part(self) -> Result<Layers, JsValue> {
        let (wire, context) = (self.wire, self.context);
        let (stage, words, texts) = self.loaded()?;
        let bounds = Bounds { words, context, step: READ_STEP };
        let spelling = stage.is_last().then(|| spelling(&texts)).flatten();
        Ok(Layers { rounds: Rounds::new(stage, bounds, spelling, wire), usual: false })
    }

    fn loaded(self) -> Result<(Stage, u32, Read), JsValue> {
        let Phase::Weights { loading, texts, words } = self.phase else {
            return Err(internal("the model's file was not read".into()));
        };
        let stage = loading.finish().map_err(not_loaded)?;
        Ok((stage, words, texts))
    }

    /// Why the module stopped, if it panicked. If it did not, it ran out of memory.
    pub fn panicked() -> Option<String> {
        crate::panicked::words()
    }
}

/// A model that is loaded, and those who talk to it.
#[wasm_bindgen]
pub struct Language {
    talk: Talk<Whole>,
    manner: Manner,
}

#[wasm_bindgen]
impl Language {
    /// Begins an answer as soon as there is a seat. `number` is the caller's, and no other's.
    pub fn ask(&mut self, number: f64, request: &[u8]) -> Result<(), JsValue> {
        self.talk.ask(number as u64, Manner::asked(request)?, None);
        Ok(())
    }

    /// The same for a request as OpenAI's API takes it, as JSON. `now` is in seconds since 1970; `seed` is for requests that
    /// bring none.
    pub fn chat(&mut self, number: f64, request: &str, now: f64, seed: f64) -> Result<(), JsValue> {
        let (asked, aloud) = self.manner.chat(request, now, seed)?;
        self.talk.ask(number as u64, asked, Some(aloud));
        Ok(())
    }

    /// Nobody wants this answer any more.
    pub fn leave(&mut self, number: f64) {
        self.talk.leave(number as u64);
    }

    #[wasm_bindgen(getter, js_name = isIdle)]
    pub fn is_idle(&self) -> bool {
        self.talk.conversations.is_idle()
    }

    /// Computes one step of as many conversations as fit.
    pub fn go(&mut self) -> AllHeard {
        let heard = self.talk.conversations.go(&micros);
        self.talk.all_told(heard)
    }
}

/// Some layers of a model in a crew: see `shoal_engine::llm::Rounds`.
#[wasm_bindgen]
pub struct Layers {
    rounds: Rounds,
    usual: bool,
}

#[wasm_bindgen]
impl Layers {
    /// `items` as the crew's `turn` has them; what is made of them is for its `stageTurned`.
    pub fn turn(&mut self, items: &[u8]) -> Result<Vec<u8>, JsValue> {
        let items: Vec<(u64, Way, &[u8])> = postcard::from_bytes(items)
            .map_err(|error| internal(format!("a turn that cannot be read: {error}")))?;
        let given = items.iter().map(|(text, way, bytes)| Given { text: *text, way: *way, bytes });
        let given: Vec<Given<'_>> = given.collect();
        let turn = self.rounds.turn(&given, &micros);
        self.usual = turn.usual;
        let made: Vec<(u64, Result<Vec<Out>, Failure>)> =
            items.iter().map(|(text, ..)| *text).zip(turn.made).collect();
        // Writing to memory cannot fail.
        Ok(postcard::to_allocvec(&made).unwrap_or_default())
    }

    /// Whether the last turn says how fast this device is.
    #[wasm_bindgen(getter)]
    pub fn usual(&self) -> bool {
        self.usual
    }

    /// A new epoch begins: nothing is left of any text.
    pub fn clear(&mut self) {
        self.rounds.clear();
    }

    /// Nobody wants that text any more.
    pub fn forget(&mut self, text: f64) {
        self.rounds.forget(text as u64);
    }
}
