//! Answers as JSON: whole, or part by part.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use shoal_text::{Chance, Done, Ended, Heard, Named};

/// Which of the two interfaces it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Chat,
    Text,
}

/// What all parts of an answer say.
pub(super) struct Story {
    form: Form,
    model: String,
    id: String,
    created: u64,
    /// Tokens of all prompts.
    asked: u64,
}

/// One of the answers, as far as it got.
#[derive(Default)]
pub(super) struct Choice {
    text: String,
    chances: Vec<Chance>,
    end: Option<Ended>,
    said: u32,
    begun: bool,
}

impl Choice {
    pub(super) fn is_new(&self) -> bool {
        !self.begun
    }

    /// For those who want it whole.
    pub(super) fn add(&mut self, heard: Heard, said: u32) {
        self.count(&heard, said);
        self.text += &heard.text;
        self.chances.extend(heard.chances);
    }

    /// Notes how far it got.
    pub(super) fn count(&mut self, heard: &Heard, said: u32) {
        self.begun = true;
        self.said = said;
        self.end = heard.end.or(self.end);
    }

    /// Tokens of its prompt that its node had already, if it got to say so.
    fn found(&self) -> u64 {
        self.end.and_then(|end| end.done).map_or(0, |done| done.found.into())
    }

    fn finish(&self) -> Value {
        self.end.map_or(Value::Null, |end| end.why.name().into())
    }
}

type Choices = BTreeMap<u32, Choice>;

impl Story {
    pub(super) fn new(form: Form, model: String, id: String, created: u64, asked: u64) -> Story {
        let prefix = match form {
            Form::Chat => "chatcmpl",
            Form::Text => "cmpl",
        };
        Story { form, model, id: format!("{prefix}-{id}"), created, asked }
    }

    pub(super) fn whole(&self, choices: &Choices) -> Value {
        let choice = |(index, choice): (&u32, &Choice)| {
            let logprobs = self.logprobs(&choice.chances);
            let finish = choice.finish();
            match self.form {
                Form::Chat => json!({
                    "index": index,
                    "message": { "role": "assistant", "content": choice.text, "refusal": null },
                    "logprobs": logprobs,
                    "finish_reason": finish,
                }),
                Form::Text => json!({
                    "index": index, "text": choice.text, "logprobs": logprobs, "finish_reason": finish,
                }),
            }
        };
        let list: Vec<Value> = choices.iter().map(choice).collect();
        let mut whole = self.frame(false, list);
        self.told(&mut whole, choices);
        whole
    }

    pub(super) fn part(&self, index: u32, new: bool, heard: &Heard) -> Value {
        let finish = heard.end.map_or(Value::Null, |end| end.why.name().into());
        let logprobs = self.logprobs(&heard.chances);
        let choice = match self.form {
            Form::Chat => {
                let mut delta = json!({});
                if new {
                    delta["role"] = "assistant".into();
                }
                if new || !heard.text.is_empty() {
                    delta["content"] = heard.text.as_str().into();
                }
                json!({ "index": index, "delta": delta, "logprobs": logprobs, "finish_reason": finish })
            }
            Form::Text => json!({
                "index": index, "text": heard.text, "logprobs": logprobs, "finish_reason": finish,
            }),
        };
        self.frame(true, vec![choice])
    }

    /// The last part, for who asked for it.
    pub(super) fn usage_part(&self, choices: &Choices) -> Value {
        let mut part = self.frame(true, Vec::new());
        self.told(&mut part, choices);
        part
    }

    fn frame(&self, part: bool, choices: Vec<Value>) -> Value {
        let object = match (self.form, part) {
            (Form::Chat, false) => "chat.completion",
            (Form::Chat, true) => "chat.completion.chunk",
            (Form::Text, _) => "text_completion",
        };
        json!({
            "id": self.id, "object": object, "created": self.created, "model": self.model,
            "choices": choices,
        })
    }

    /// Counts, and times as the nodes measured them.
    fn told(&self, json: &mut Value, choices: &Choices) {
        let said: u64 = choices.values().map(|choice| u64::from(choice.said)).sum();
        // Several answers to one prompt count it once.
        let found: u64 = choices.values().map(Choice::found).sum();
        json["usage"] = json!({
            "prompt_tokens": self.asked, "completion_tokens": said, "total_tokens": self.asked + said,
            "prompt_tokens_details": { "cached_tokens": found.min(self.asked) },
        });
        let [choice] = &choices.values().collect::<Vec<_>>()[..] else { return };
        if let Some(Ended { done: Some(done), .. }) = choice.end {
            json["timings"] = timings(self.asked, said, done);
        }
    }

    fn logprobs(&self, chances: &[Chance]) -> Value {
        if chances.is_empty() {
            return Value::Null;
        }
        match self.form {
            Form::Chat => {
                let row = |chance: &Chance| {
                    let mut row = named(&chance.own);
                    row["top_logprobs"] = chance.others.iter().map(named).collect();
                    row
                };
                json!({ "content": chances.iter().map(row).collect::<Vec<_>>(), "refusal": null })
            }
            Form::Text => {
                let others = |chance: &Chance| -> Value {
                    let pair = |other: &Named| (other.text(), Value::from(other.chance));
                    Value::Object(chance.others.iter().map(pair).collect())
                };
                let tokens: Vec<String> = chances.iter().map(|chance| chance.own.text()).collect();
                let own: Vec<f32> = chances.iter().map(|chance| chance.own.chance).collect();
                let others: Vec<Value> = chances.iter().map(others).collect();
                json!({ "tokens": tokens, "token_logprobs": own, "top_logprobs": others, "text_offset": [] })
            }
        }
    }
}

fn named(token: &Named) -> Value {
    json!({ "token": token.text(), "logprob": token.chance, "bytes": token.bytes })
}

fn timings(asked: u64, said: u64, done: Done) -> Value {
    let rate = |count: u64, micros: u64| count as f64 * 1e6 / micros.max(1) as f64;
    let computed = asked.saturating_sub(done.found.into());
    let own = said.saturating_sub(done.taken_over.into());
    json!({
        "cache_n": done.found,
        "prompt_n": computed,
        "prompt_ms": done.prompt_micros as f64 / 1e3,
        "prompt_per_second": rate(computed, done.prompt_micros),
        "predicted_n": said,
        "predicted_ms": done.answer_micros as f64 / 1e3,
        "predicted_per_second": rate(own, done.answer_micros),
        "taken_over_n": done.taken_over,
        "draft_n": done.guessed,
        "draft_n_accepted": done.right,
    })
}
