//! Those who talk to a language model in a browser, whatever computes it. A tab of the pool is asked in tokens and answers
//! in them; a page that talks to a model alone asks and hears in text.

use std::collections::BTreeMap;
use std::sync::Arc;

use js_sys::{Array, Uint8Array};
use shoal_engine::llm::{Conversations, Heard, Holds, LoadError, Room};
use shoal_kinds::{Kind, LlmWork};
use shoal_protocol::Failure;
use shoal_text::{
    Asked, Bounds, Chance, ChatRequest, Done, Named, Speaker, Spelling, Texts, Wrong,
};
use wasm_bindgen::prelude::*;

use crate::failure::{internal, to_js};
use crate::object::Fields;

/// Tokens of one go. More at once read a prompt faster, but nobody is heard before the go ends: a phone with a model of
/// some hundred million parameters takes a second for these.
pub(crate) const STEP: usize = 32;

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

/// A file's words, or why they cannot be read.
pub(crate) type Read = Result<Arc<Texts>, String>;

/// How requests in text become tokens.
#[derive(Clone)]
pub(crate) struct Manner {
    pub(crate) texts: Read,
    pub(crate) context: u32,
}

/// A model that is loaded, and those who talk to it.
pub(crate) struct Talk<C> {
    pub(crate) conversations: Conversations<C>,
    /// Of those who asked in text.
    speakers: BTreeMap<u64, Aloud>,
}

/// An answer that is given as text.
pub(crate) struct Aloud {
    speaker: Speaker,
    /// Tokens of the question.
    asked: usize,
}

impl Manner {
    /// A request as the pool sends it.
    pub(crate) fn asked(request: &[u8]) -> Result<Asked, JsValue> {
        Asked::unpack(request).ok_or_else(|| {
            let message = "the request is none of a language model".into();
            to_js(&Failure::Model { message })
        })
    }

    /// A request as OpenAI's API takes it, as JSON. `now` is in seconds since 1970; `seed` is for requests that bring none.
    pub(crate) fn chat(
        &self,
        request: &str,
        now: f64,
        seed: f64,
    ) -> Result<(Asked, Aloud), JsValue> {
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
        Ok((Asked { ask, said: Vec::new() }, Aloud { speaker, asked }))
    }
}

impl<C: Holds> Talk<C> {
    pub(crate) fn new(engine: C, words: u32, conversations: u16, manner: &Manner) -> Talk<C> {
        let room = Room { seats: conversations.into(), tokens: STEP, guesses: true };
        let bounds = Bounds { words, context: manner.context, step: STEP };
        let conversations = Conversations::new(engine, bounds, room, spelling(&manner.texts));
        Talk { conversations, speakers: BTreeMap::new() }
    }

    pub(crate) fn ask(&mut self, number: u64, asked: Asked, aloud: Option<Aloud>) {
        self.speakers.extend(aloud.map(|aloud| (number, aloud)));
        self.conversations.ask(number, asked);
    }

    /// Nobody wants this answer any more.
    pub(crate) fn leave(&mut self, number: u64) {
        self.speakers.remove(&number);
        self.conversations.leave(number);
    }

    /// What came of a go, for JavaScript.
    pub(crate) fn all_told(&mut self, heard: Vec<(u64, Heard)>) -> AllHeard {
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
                self.leave(number);
                return fields.with("failure", internal(message)).done();
            }
        };
        if is_over {
            // A text that stops it may come before the model's own end.
            self.leave(number);
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

/// Microseconds since the page was opened.
pub(crate) fn micros() -> u64 {
    (millis() * 1_000.0) as u64
}

/// `work` is what the brain's `job` gives as bytes.
pub(crate) fn language_of(work: &[u8]) -> Result<LlmWork, JsValue> {
    let work: Kind = postcard::from_bytes(work)
        .map_err(|error| internal(format!("a job that cannot be read: {error}")))?;
    let no_model = || internal("a job that is no language model".into());
    work.language().cloned().ok_or_else(no_model)
}

pub(crate) fn spelling(texts: &Read) -> Option<Arc<Spelling>> {
    texts.as_ref().ok().map(|texts| Arc::new(Spelling::new(&texts.tokenizer)))
}

fn wrong(wrong: Wrong) -> JsValue {
    to_js(&Failure::Model { message: wrong.message })
}

pub(crate) fn not_loaded(error: LoadError) -> JsValue {
    unable(error.to_string())
}

pub(crate) fn unable(message: String) -> JsValue {
    to_js(&Failure::Unable { message })
}
