//! Language models for JavaScript: loaded a tensor at a time, then asked by several conversations that share goes. A tab of
//! the pool is asked in tokens and answers in them; a page that talks to a model alone asks and hears in text. What is thrown is a `UnitFailure`, but for a panic and for memory that ran out: the browser throws its own error then, and the
//! module is of no more use.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use js_sys::{Array, Uint8Array};
use shoal_engine::llm::{
    Conversations, Given, Heard, LoadError, Loading, Options, READ_STEP, Room, Rounds, Stage, Whole,
};
use shoal_gguf::{FIRST_BYTES, Model, ReadError};
use shoal_kinds::crew::{Out, Way};
use shoal_kinds::{About, Kind, LlmWork, Wire};
use shoal_protocol::{Failure, Span};
use shoal_text::{
    Asked, Bounds, Chance, ChatRequest, Done, Named, Speaker, Spelling, Texts, Wrong,
};
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
/** What became of a conversation in a go. With `failure` or `done` it is over. `bytes` are for the pool, `said` is for who
 * asked by `chat`. */
export interface LanguageHeard {
  number: number;
  bytes?: Uint8Array<ArrayBuffer>;
  said?: LanguageSaid;
  done?: true;
  failure?: UnitFailure;
}
/** Some words of an answer. The last ones say why it ends, and what it took: in tokens, and in milliseconds if the model got
 * to its own end. */
export interface LanguageSaid {
  text: string;
  finish?: "stop" | "length";
  promptTokens?: number;
  answerTokens?: number;
  promptMs?: number;
  answerMs?: number;
  /** Of the question, those that need not be computed again. */
  cachedTokens?: number;
  /** How likely its tokens were, if that was asked for. */
  logprobs?: LanguageChance[];
}
/** A token, the logarithm of its chance, and those beside it. */
export interface LanguageChance {
  token: string;
  logprob: number;
  bytes: number[];
  top: Omit<LanguageChance, "top">[];
}
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

/// A file's words, or why they cannot be read.
type Read = Result<Arc<Texts>, String>;

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
        let context = self.context;
        let room = Room { seats: self.conversations.into(), tokens: STEP, guesses: true };
        let (stage, bounds, texts) = self.loaded(STEP)?;
        let spelling = spelling(&texts);
        let conversations = Conversations::new(Whole::new(stage), bounds, room, spelling);
        Ok(Language { conversations, texts, context, speakers: BTreeMap::new() })
    }

    /// The same for some layers.
    #[wasm_bindgen(js_name = finishPart)]
    pub fn finish_part(self) -> Result<Layers, JsValue> {
        let wire = self.wire;
        let (stage, bounds, texts) = self.loaded(READ_STEP)?;
        let spelling = stage.is_last().then(|| spelling(&texts)).flatten();
        Ok(Layers { rounds: Rounds::new(stage, bounds, spelling, wire), usual: false })
    }

    fn loaded(self, step: usize) -> Result<(Stage, Bounds, Read), JsValue> {
        let Phase::Weights { loading, texts, words } = self.phase else {
            return Err(internal("the model's file was not read".into()));
        };
        let stage = loading.finish().map_err(not_loaded)?;
        Ok((stage, Bounds { words, context: self.context, step }, texts))
    }

    /// Why the module stopped, if it panicked. If it did not, it ran out of memory.
    pub fn panicked() -> Option<String> {
        crate::panicked::words()
    }
}

/// A model that is loaded, and those who talk to it.
#[wasm_bindgen]
pub struct Language {
    conversations: Conversations<Whole>,
    texts: Read,
    context: u32,
    /// Of those who asked in text.
    speakers: BTreeMap<u64, Aloud>,
}

/// An answer that is given as text.
struct Aloud {
    speaker: Speaker,
    /// Tokens of the question.
    asked: usize,
}

#[wasm_bindgen]
impl Language {
    /// Begins an answer as soon as there is a seat. `number` is the caller's, and no other's.
    pub fn ask(&mut self, number: f64, request: &[u8]) -> Result<(), JsValue> {
        let asked = Asked::unpack(request).ok_or_else(|| {
            let message = "the request is none of a language model".into();
            to_js(&Failure::Model { message })
        })?;
        self.conversations.ask(number as u64, asked);
        Ok(())
    }

    /// The same for a request as OpenAI's API takes it, as JSON. `now` is in seconds since 1970; `seed` is for requests that
    /// bring none.
    pub fn chat(&mut self, number: f64, request: &str, now: f64, seed: f64) -> Result<(), JsValue> {
        let texts = self.texts.clone().map_err(unable)?;
        let request = ChatRequest::read(request.as_bytes()).map_err(wrong)?;
        let settings = request.settings(seed as u64).map_err(wrong)?;
        let prompt = request.prompt(&texts, now as u64).map_err(wrong)?;
        let (asked, most) = (prompt.len(), self.context);
        if asked as u64 >= u64::from(most) {
            let message = format!(
                "the prompt has {asked} tokens, but this model holds {most} with the answer: shorten it"
            );
            return Err(to_js(&Failure::Model { message }));
        }
        let ask = settings.ask(prompt, &texts, most, 0);
        let speaker = Speaker::new(texts, settings.stops);
        self.speakers.insert(number as u64, Aloud { speaker, asked });
        self.conversations.ask(number as u64, Asked { ask, said: Vec::new() });
        Ok(())
    }

    /// Nobody wants this answer any more.
    pub fn leave(&mut self, number: f64) {
        self.speakers.remove(&(number as u64));
        self.conversations.leave(number as u64);
    }

    #[wasm_bindgen(getter, js_name = isIdle)]
    pub fn is_idle(&self) -> bool {
        self.conversations.is_idle()
    }

    /// Computes one step of as many conversations as fit.
    pub fn go(&mut self) -> AllHeard {
        let heard = self.conversations.go(&|| (millis() * 1_000.0) as u64);
        let all: Array =
            heard.into_iter().map(|(number, heard)| self.told(number, heard)).collect();
        JsValue::from(all).unchecked_into()
    }

    fn told(&mut self, number: u64, heard: Heard) -> JsValue {
        let fields = Fields::new().with("number", number as f64);
        let (bytes, done) = match heard {
            Heard::Part(bytes) => (bytes, false),
            Heard::Done(bytes) => (bytes, true),
            Heard::Failed(message) => {
                self.speakers.remove(&number);
                return fields.with("failure", to_js(&Failure::Model { message })).done();
            }
            Heard::Broke(message) => {
                self.speakers.remove(&number);
                return fields.with("failure", internal(message)).done();
            }
        };
        let Some(aloud) = self.speakers.get_mut(&number) else {
            let fields = fields.with("bytes", Uint8Array::from(bytes.as_slice()));
            return fields.with("done", done.then_some(true)).done();
        };
        let (said, is_over) = match aloud.hear(&bytes) {
            Ok(said) => said,
            Err(message) => {
                self.leave(number as f64);
                return fields.with("failure", internal(message)).done();
            }
        };
        if is_over {
            // A text that stops it may come before the model's own end.
            self.leave(number as f64);
        }
        fields.with("said", said).with("done", is_over.then_some(true)).done()
    }
}

impl Aloud {
    /// What is said now, and whether it is the last of it.
    fn hear(&mut self, bytes: &[u8]) -> Result<(JsValue, bool), String> {
        let heard = self.speaker.hear(bytes)?;
        let mut fields = Fields::new().with("text", heard.text);
        if !heard.chances.is_empty() {
            let chances: Array = heard.chances.iter().map(chance).collect();
            fields = fields.with("logprobs", chances);
        }
        let Some(end) = heard.end else { return Ok((fields.done(), false)) };
        let fields = fields
            .with("finish", end.why.name())
            .with("promptTokens", self.asked as f64)
            .with("answerTokens", self.speaker.said);
        let millis = |micros: u64| micros as f64 / 1_000.0;
        let fields = match end.done {
            None => fields,
            Some(Done { prompt_micros, answer_micros, found, .. }) => fields
                .with("cachedTokens", found)
                .with("promptMs", millis(prompt_micros))
                .with("answerMs", millis(answer_micros)),
        };
        Ok((fields.done(), true))
    }
}

fn chance(chance: &Chance) -> JsValue {
    let others: Array = chance.others.iter().map(|other| named(other).done()).collect();
    named(&chance.own).with("top", others).done()
}

fn named(token: &Named) -> Fields {
    let bytes: Array = token.bytes.iter().copied().map(JsValue::from).collect();
    Fields::new().with("token", token.text()).with("logprob", token.chance).with("bytes", bytes)
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
        let turn = self.rounds.turn(&given, &|| (millis() * 1_000.0) as u64);
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

/// `work` is what the brain's `job` gives as bytes.
fn language_of(work: &[u8]) -> Result<LlmWork, JsValue> {
    let work: Kind = postcard::from_bytes(work)
        .map_err(|error| internal(format!("a job that cannot be read: {error}")))?;
    let no_model = || internal("a job that is no language model".into());
    work.language().cloned().ok_or_else(no_model)
}

fn spelling(texts: &Read) -> Option<Arc<Spelling>> {
    texts.as_ref().ok().map(|texts| Arc::new(Spelling::new(&texts.tokenizer)))
}

fn wrong(wrong: Wrong) -> JsValue {
    to_js(&Failure::Model { message: wrong.message })
}

fn not_loaded(error: LoadError) -> JsValue {
    unable(error.to_string())
}

fn unable(message: String) -> JsValue {
    to_js(&Failure::Unable { message })
}
