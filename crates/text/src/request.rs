//! What clients ask of language models, in the words of OpenAI's API.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use serde::Deserialize;
use serde_json::Value;

use crate::ask::Ask;
use crate::file::Texts;
use crate::form::{Form, Json};
use crate::sample::Sampling;
use crate::template::{Message, Role};
use crate::vocabulary::Token;

/// Answers to one question.
const MOST_CHOICES: u32 = 16;
/// Texts that end an answer.
const MOST_STOPS: usize = 16;
const MOST_STOP_BYTES: usize = 1024;
/// Prompts of one request.
const MOST_PROMPTS: usize = 64;

/// What is wrong with a request, and where.
#[derive(Debug, PartialEq)]
pub struct Wrong {
    pub param: Option<&'static str>,
    pub code: &'static str,
    pub message: String,
}

impl Wrong {
    pub fn at(param: &'static str, message: impl Into<String>) -> Wrong {
        Wrong { param: Some(param), code: "invalid_value", message: message.into() }
    }

    fn unsupported(param: &'static str, message: impl Into<String>) -> Wrong {
        Wrong { param: Some(param), code: "unsupported_parameter", message: message.into() }
    }
}

/// A request for the next words of a conversation. What other servers understand beside this is ignored if it does not
/// change the answer.
#[derive(Debug, Deserialize)]
pub struct ChatRequest {
    pub model: String,
    messages: Vec<MessageJson>,
    #[serde(default)]
    logprobs: Option<bool>,
    #[serde(default)]
    top_logprobs: Option<u8>,
    #[serde(default)]
    tools: Option<Vec<Value>>,
    #[serde(flatten)]
    common: CommonRequest,
}

/// A request for the continuation of texts.
#[derive(Debug, Deserialize)]
pub struct CompletionRequest {
    pub model: String,
    prompt: PromptJson,
    #[serde(default)]
    pub echo: Option<bool>,
    #[serde(default)]
    logprobs: Option<u8>,
    #[serde(default)]
    best_of: Option<u32>,
    #[serde(default)]
    suffix: Option<String>,
    #[serde(flatten)]
    common: CommonRequest,
}

#[derive(Debug, Default, Deserialize)]
struct CommonRequest {
    #[serde(default)]
    stream: Option<bool>,
    #[serde(default)]
    stream_options: Option<StreamOptions>,
    #[serde(default)]
    temperature: Option<f32>,
    #[serde(default)]
    top_p: Option<f32>,
    #[serde(default)]
    top_k: Option<u32>,
    #[serde(default)]
    min_p: Option<f32>,
    #[serde(default)]
    presence_penalty: Option<f32>,
    #[serde(default)]
    frequency_penalty: Option<f32>,
    #[serde(default)]
    repeat_penalty: Option<f32>,
    #[serde(default)]
    logit_bias: Option<BTreeMap<String, f32>>,
    #[serde(default)]
    seed: Option<i64>,
    #[serde(default)]
    stop: Option<OneOrMany>,
    #[serde(default)]
    max_tokens: Option<u32>,
    #[serde(default)]
    max_completion_tokens: Option<u32>,
    #[serde(default)]
    n: Option<u32>,
    #[serde(default)]
    response_format: Option<Json>,
    #[serde(default)]
    guess: Option<bool>,
}

#[derive(Debug, Deserialize)]
struct StreamOptions {
    #[serde(default)]
    include_usage: Option<bool>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

#[derive(Debug, Deserialize)]
struct MessageJson {
    role: String,
    #[serde(default)]
    content: Option<ContentJson>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum ContentJson {
    Text(String),
    Parts(Vec<PartJson>),
}

#[derive(Debug, Deserialize)]
struct PartJson {
    #[serde(rename = "type")]
    sort: String,
    #[serde(default)]
    text: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum PromptJson {
    Text(String),
    Texts(Vec<String>),
    Tokens(Vec<Token>),
    Lists(Vec<Vec<Token>>),
}

/// A text that is to be continued.
#[derive(Clone, Debug, PartialEq)]
pub enum Prompt {
    Text(String),
    Tokens(Vec<Token>),
}

/// How answers are to be.
#[derive(Debug, PartialEq)]
pub struct Settings {
    pub stream: bool,
    /// What it took is told at the end of a stream.
    pub usage: bool,
    pub choices: u32,
    pub stops: Vec<String>,
    /// Tokens at most; as many as fit if none.
    pub most: Option<u32>,
    pub sampling: Sampling,
    /// What answers must look like.
    pub form: Option<Form>,
    /// Devices may guess ahead, which changes no word.
    pub guess: bool,
}

impl Settings {
    /// What a node is asked for one of the answers.
    pub fn ask(&self, prompt: Vec<Token>, texts: &Texts, context: u32, choice: u32) -> Ask {
        let mut sampling = self.sampling.clone();
        sampling.seed = sampling.seed.wrapping_add(choice.into());
        let ends = texts.tokenizer.words().ends().to_vec();
        let most = self.most.unwrap_or(context);
        Ask {
            prompt,
            most,
            ends,
            sampling,
            form: self.form.clone(),
            embed: None,
            guess: self.guess,
        }
    }
}

impl ChatRequest {
    pub fn read(body: &[u8]) -> Result<ChatRequest, Wrong> {
        serde_json::from_slice(body).map_err(no_json)
    }

    /// What was said so far.
    pub fn messages(&self) -> Result<Vec<Message>, Wrong> {
        if self.tools.as_ref().is_some_and(|tools| !tools.is_empty()) {
            return Err(Wrong::unsupported("tools", "tools are not supported"));
        }
        if self.messages.is_empty() {
            return Err(Wrong::at("messages", "there are no messages: expected at least one"));
        }
        self.messages.iter().enumerate().map(|(at, message)| message.read(at)).collect()
    }

    /// The conversation as the model reads it. `now` is in seconds since 1970.
    pub fn prompt(&self, texts: &Texts, now: u64) -> Result<Vec<Token>, Wrong> {
        let messages = self.messages()?;
        let template = texts.template.as_ref().ok_or_else(|| Wrong {
            param: None,
            code: "no_chat_template",
            message:
                "this model has no chat template: it continues texts, with POST /v1/completions"
                    .into(),
        })?;
        let wrong = |error: &dyn ToString| Wrong::at("messages", error.to_string());
        let text = template.render(&messages, now).map_err(|error| wrong(&error))?;
        texts.tokenizer.encode_rendered(&text).map_err(|error| wrong(&error))
    }

    /// `seed` is for requests that bring none.
    pub fn settings(&self, seed: u64) -> Result<Settings, Wrong> {
        let alternatives = match (self.logprobs.unwrap_or(false), self.top_logprobs) {
            (true, top) => Some(top.unwrap_or(0)),
            (false, Some(_)) => {
                return Err(Wrong::at("top_logprobs", "top_logprobs needs logprobs to be true"));
            }
            (false, None) => None,
        };
        self.common.settings(seed, alternatives)
    }
}

impl CompletionRequest {
    pub fn read(body: &[u8]) -> Result<CompletionRequest, Wrong> {
        serde_json::from_slice(body).map_err(no_json)
    }

    pub fn prompts(&self) -> Result<Vec<Prompt>, Wrong> {
        let prompts: Vec<Prompt> = match &self.prompt {
            PromptJson::Text(text) => vec![Prompt::Text(text.clone())],
            PromptJson::Texts(texts) => texts.iter().cloned().map(Prompt::Text).collect(),
            PromptJson::Tokens(tokens) => vec![Prompt::Tokens(tokens.clone())],
            PromptJson::Lists(lists) => lists.iter().cloned().map(Prompt::Tokens).collect(),
        };
        if !(1..=MOST_PROMPTS).contains(&prompts.len()) {
            let message =
                format!("there are {} prompts: expected 1 to {MOST_PROMPTS}", prompts.len());
            return Err(Wrong::at("prompt", message));
        }
        Ok(prompts)
    }

    pub fn settings(&self, seed: u64) -> Result<Settings, Wrong> {
        if self.suffix.as_ref().is_some_and(|suffix| !suffix.is_empty()) {
            return Err(Wrong::unsupported("suffix", "suffix is not supported"));
        }
        let settings = self.common.settings(seed, self.logprobs)?;
        if self.best_of.is_some_and(|best| best != settings.choices) {
            return Err(Wrong::unsupported(
                "best_of",
                "best_of is supported only as the same as n",
            ));
        }
        Ok(settings)
    }
}

impl CommonRequest {
    fn settings(&self, seed: u64, alternatives: Option<u8>) -> Result<Settings, Wrong> {
        let usual = Sampling::default();
        let sampling = Sampling {
            temperature: self.temperature.unwrap_or(usual.temperature),
            top_k: self.top_k.unwrap_or(usual.top_k),
            top_p: self.top_p.unwrap_or(usual.top_p),
            min_p: self.min_p.unwrap_or(usual.min_p),
            presence: self.presence_penalty.unwrap_or(usual.presence),
            frequency: self.frequency_penalty.unwrap_or(usual.frequency),
            repeat: self.repeat_penalty.unwrap_or(usual.repeat),
            bias: self.bias()?,
            seed: self.seed.map_or(seed, |seed| seed as u64),
            alternatives,
        };
        sampling.check().map_err(|error| Wrong::at(error.name, error.to_string()))?;
        let choices = self.n.unwrap_or(1);
        if !(1..=MOST_CHOICES).contains(&choices) {
            return Err(Wrong::at("n", format!("n is {choices}: expected 1 to {MOST_CHOICES}")));
        }
        let most = self.max_completion_tokens.or(self.max_tokens);
        if most == Some(0) {
            return Err(Wrong::at("max_tokens", "max_tokens is 0: expected at least 1"));
        }
        let usage = self.stream_options.as_ref().and_then(|options| options.include_usage);
        Ok(Settings {
            stream: self.stream.unwrap_or(false),
            usage: usage.unwrap_or(false),
            choices,
            stops: self.stops()?,
            most,
            sampling,
            form: self.form()?,
            guess: self.guess.unwrap_or(true),
        })
    }

    fn bias(&self) -> Result<Vec<(Token, f32)>, Wrong> {
        let read = |(token, bias): (&String, &f32)| {
            let number = token.parse().map_err(|_| {
                Wrong::at(
                    "logit_bias",
                    format!("logit_bias names {token:?}: expected a token's number"),
                )
            })?;
            Ok((number, *bias))
        };
        self.logit_bias.iter().flatten().map(read).collect()
    }

    fn stops(&self) -> Result<Vec<String>, Wrong> {
        let stops = match &self.stop {
            None => Vec::new(),
            Some(OneOrMany::One(stop)) => vec![stop.clone()],
            Some(OneOrMany::Many(stops)) => stops.clone(),
        };
        let long = stops.iter().any(|stop| stop.len() > MOST_STOP_BYTES);
        if stops.len() > MOST_STOPS || long {
            let message = format!(
                "expected at most {MOST_STOPS} stop texts of at most {MOST_STOP_BYTES} bytes"
            );
            return Err(Wrong::at("stop", message));
        }
        Ok(stops)
    }

    fn form(&self) -> Result<Option<Form>, Wrong> {
        const PARAM: &str = "response_format";
        let Some(format) = self.response_format.as_ref().filter(|it| **it != Json::Null) else {
            return Ok(None);
        };
        let sort = format.get("type").and_then(Json::as_text);
        let schema = match sort {
            Some("text") => return Ok(None),
            Some("json_object") => format.get("schema"),
            Some("json_schema") => {
                let schema = format.get("json_schema").and_then(|it| it.get("schema"));
                let missing = || Wrong::at(PARAM, "json_schema.schema is missing");
                Some(schema.or(format.get("schema")).ok_or_else(missing)?)
            }
            Some(_) | None => {
                let message = format!(
                    "the response format has the type {:?}: expected text, json_object or json_schema",
                    sort.unwrap_or_default()
                );
                return Err(Wrong::at(PARAM, message));
            }
        };
        let Some(schema) = schema else { return Ok(Some(Form::Object)) };
        let form = Form::of_schema(schema);
        form.map(Some).map_err(|error| Wrong::at(PARAM, format!("the schema: {error}")))
    }
}

impl MessageJson {
    fn read(&self, at: usize) -> Result<Message, Wrong> {
        let wrong = |message: String| Wrong::at("messages", format!("message {at} {message}"));
        let role = Role::of(&self.role).ok_or_else(|| {
            let known = "system, developer, user, assistant or tool";
            wrong(format!("has the role {:?}: expected {known}", self.role))
        })?;
        let content = match &self.content {
            None => String::new(),
            Some(ContentJson::Text(text)) => text.clone(),
            Some(ContentJson::Parts(parts)) => {
                let mut content = String::new();
                for part in parts {
                    match (part.sort.as_str(), &part.text) {
                        ("text", Some(text)) => content += text,
                        (sort, _) => {
                            return Err(wrong(format!(
                                "has a part of the type {sort:?}: this model reads text only"
                            )));
                        }
                    }
                }
                content
            }
        };
        Ok(Message { role, content })
    }
}

fn no_json(error: serde_json::Error) -> Wrong {
    let message = format!("the request cannot be read: {error}");
    Wrong { param: None, code: "invalid_request", message }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn chat(more: Value) -> Result<Settings, Wrong> {
        let mut body = json!({"model": "m", "messages": [{"role": "user", "content": "Hi"}]});
        for (name, value) in more.as_object().expect("as it should be") {
            body[name] = value.clone();
        }
        let request = ChatRequest::read(body.to_string().as_bytes())?;
        request.messages()?;
        request.settings(9)
    }

    #[test]
    fn what_is_left_out_is_usual_and_what_nobody_knows_is_ignored() {
        let settings = chat(json!({"user": "me", "store": false, "temperature": null}))
            .expect("as it should be");
        let sampling = Sampling { seed: 9, ..Sampling::default() };
        let expected = Settings {
            stream: false,
            usage: false,
            choices: 1,
            stops: vec![],
            most: None,
            sampling,
            form: None,
            guess: true,
        };
        assert_eq!(settings, expected);
        let settings = chat(json!({
            "stream": true, "stream_options": {"include_usage": true}, "n": 2, "stop": "x",
            "max_completion_tokens": 5, "max_tokens": 7, "seed": -1, "logprobs": true,
            "top_logprobs": 3, "logit_bias": {"5": -100}, "response_format": {"type": "text"},
            "guess": false,
        }));
        let settings = settings.expect("as it should be");
        assert!(settings.stream && settings.usage && settings.choices == 2);
        assert_eq!((settings.most, settings.stops), (Some(5), vec!["x".to_string()]));
        assert_eq!(settings.sampling.seed, u64::MAX);
        assert_eq!(settings.sampling.alternatives, Some(3));
        assert_eq!(settings.sampling.bias, [(5, -100.0)]);
        assert!(!settings.guess);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let wrong = |more: Value| chat(more).unwrap_err();
        assert_eq!(wrong(json!({"temperature": 3})).param, Some("temperature"));
        assert_eq!(wrong(json!({"n": 0})).param, Some("n"));
        assert_eq!(wrong(json!({"max_tokens": 0})).param, Some("max_tokens"));
        assert_eq!(wrong(json!({"top_logprobs": 3})).param, Some("top_logprobs"));
        assert_eq!(wrong(json!({"logit_bias": {"a": 1}})).param, Some("logit_bias"));
        assert_eq!(wrong(json!({"tools": [{}]})).code, "unsupported_parameter");
        assert_eq!(wrong(json!({"messages": []})).param, Some("messages"));
        let picture = json!({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]});
        assert!(wrong(picture).message.contains("image_url"));
        let role = json!({"messages": [{"role": "boss", "content": "x"}]});
        assert!(wrong(role).message.contains("boss"));
        assert_eq!(wrong(json!({"temperature": "hot"})).code, "invalid_request");
        let format = |format: Value| wrong(json!({"response_format": format}));
        assert!(format(json!({"type": "yaml"})).message.contains("yaml"));
        assert!(format(json!({"type": "json_schema"})).message.contains("missing"));
        let schema = json!({"schema": {"type": "string", "pattern": "a"}});
        let found = format(json!({"type": "json_schema", "json_schema": schema}));
        assert_eq!(found.param, Some("response_format"));
        assert!(found.message.contains("pattern"), "{}", found.message);
    }

    #[test]
    fn a_form_keeps_the_order_of_its_schema() {
        let form = |format: &str| {
            let body = format!(
                r#"{{"model": "m", "messages": [{{"role": "user", "content": "Hi"}}], "response_format": {format}}}"#
            );
            let request = ChatRequest::read(body.as_bytes()).expect("as it should be");
            request.settings(9).expect("as it should be").form
        };
        assert_eq!(form(r#"{"type": "json_object"}"#), Some(Form::Object));
        assert_eq!((form("null"), form(r#"{"type": "text"}"#)), (None, None));
        let schema = r#"{"type":"object","properties":{"b":{"type":"null"},"a":{"type":"null"}}}"#;
        let format = format!(
            r#"{{"type": "json_schema", "json_schema": {{"name": "x", "schema": {schema}}}}}"#
        );
        assert_eq!(form(&format), Some(Form::Schema(schema.into())));
    }

    #[test]
    fn prompts_are_texts_or_tokens() {
        let prompts = |prompt: Value| {
            let body = json!({"model": "m", "prompt": prompt}).to_string();
            CompletionRequest::read(body.as_bytes()).and_then(|request| request.prompts())
        };
        assert_eq!(prompts(json!("a")).expect("as it should be"), [Prompt::Text("a".into())]);
        assert_eq!(prompts(json!(["a", "b"])).expect("as it should be").len(), 2);
        assert_eq!(prompts(json!([1, 2])).expect("as it should be"), [Prompt::Tokens(vec![1, 2])]);
        assert_eq!(prompts(json!([[1], [2]])).expect("as it should be").len(), 2);
        assert!(prompts(json!({"a": 1})).is_err());
    }
}
