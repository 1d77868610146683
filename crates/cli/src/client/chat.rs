//! Language models, by OpenAI's API.

use reqwest::Method;
use serde_json::Value;

use super::Client;
use crate::fail::Fail;

/// Bytes of one event: a part of an answer has some hundreds.
const MOST_EVENT_BYTES: usize = 4 << 20;

impl Client {
    /// A language model, if there is one of this name.
    pub(crate) async fn language(&self, name: &str) -> Result<Value, Fail> {
        self.json(Method::GET, &format!("/v1/models/{name}")).await
    }

    /// Asks for the next words of a conversation, and hands every part of the answer to `each` while it comes. Where the
    /// connection breaks it asks again, and goes on behind what was heard: the request must bring its seed, so that the
    /// words are the same.
    pub(crate) async fn chat(
        &self,
        body: &Value,
        mut each: impl FnMut(&Value) -> Result<(), Fail>,
    ) -> Result<(), Fail> {
        let note = |text: &str| self.note(&format!("\n[{text}]"));
        let (mut tries, mut heard) = (self.tries(&note), Heard::default());
        loop {
            let mut hear = |mut part: Value| {
                if heard.skip(&mut part)? {
                    tries.moved();
                    each(&part)?;
                }
                Ok(())
            };
            match self.chat_once(body, &mut hear).await {
                Ok(()) => return Ok(()),
                Err(fail) => tries.again(fail).await?,
            }
            heard.begin_again();
        }
    }

    async fn chat_once(
        &self,
        body: &Value,
        each: &mut impl FnMut(Value) -> Result<(), Fail>,
    ) -> Result<(), Fail> {
        let request = self.request(Method::POST, "/v1/chat/completions").json(body);
        let mut answer = self.accept(request.send().await).await?;
        let mut waiting: Vec<u8> = Vec::new();
        while let Some(part) = answer.chunk().await.map_err(|error| self.unreachable(&error))? {
            waiting.extend_from_slice(&part);
            while let Some(end) = waiting.windows(2).position(|two| two == b"\n\n") {
                let event: Vec<u8> = waiting.drain(..end + 2).collect();
                let Some(data) = event.strip_prefix(b"data: ") else { continue };
                if data.trim_ascii() == b"[DONE]" {
                    return Ok(());
                }
                each(self.event(data)?)?;
            }
            if waiting.len() > MOST_EVENT_BYTES {
                let message = format!("an event of {} does not end", self.base);
                return Err(Fail::world("bad_answer", message));
            }
        }
        let message = format!("the answer of {} broke off", self.base);
        Err(Fail::world("connection_lost", message))
    }

    /// A part of an answer, or what went wrong in the middle of it.
    fn event(&self, data: &[u8]) -> Result<Value, Fail> {
        let value: Value = serde_json::from_slice(data).map_err(|error| {
            let message = format!("the answer of {} cannot be read: {error}", self.base);
            Fail::world("bad_answer", message)
        })?;
        match value["error"]["message"].as_str() {
            Some(message) => {
                Err(Fail::world(value["error"]["code"].as_str().unwrap_or("failed"), message))
            }
            None => Ok(value),
        }
    }
}

/// The text of an answer, as far as it was heard.
#[derive(Default)]
struct Heard {
    text: String,
    /// How much of it this try has told.
    told: usize,
}

impl Heard {
    fn begin_again(&mut self) {
        self.told = 0;
    }

    /// Leaves of a part what was not heard before, and says whether there is something. What was heard must be said again
    /// in the same words: an answer that is made of two would be a third one.
    fn skip(&mut self, part: &mut Value) -> Result<bool, Fail> {
        let choice = &part["choices"][0];
        let ends = choice["finish_reason"].is_string();
        let text = choice["delta"]["content"].as_str().unwrap_or_default().to_owned();
        let known = &self.text[self.told..];
        let other = || {
            let message = "the answer broke off, and what was said then was in other words";
            Fail::world("other_words", message)
        };
        let new = match known.strip_prefix(&text) {
            Some(rest) if ends && !rest.is_empty() => return Err(other()),
            Some(_) => "",
            None => text.strip_prefix(known).ok_or_else(other)?,
        };
        self.told += text.len();
        self.text += new;
        let is_new = ends || !new.is_empty() || part["usage"].is_object();
        if !text.is_empty() {
            part["choices"][0]["delta"]["content"] = new.into();
        }
        Ok(is_new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn part(text: &str, finish: Option<&str>) -> Value {
        json!({ "choices": [{ "delta": { "content": text }, "finish_reason": finish }] })
    }

    /// What is left of these parts.
    fn rest(heard: &mut Heard, parts: &[&str]) -> Result<Vec<String>, Fail> {
        let mut left = Vec::new();
        for text in parts {
            let mut part = part(text, None);
            if heard.skip(&mut part)? {
                left.push(part["choices"][0]["delta"]["content"].as_str().expect("text").into());
            }
        }
        Ok(left)
    }

    #[test]
    fn an_answer_that_is_told_again_goes_on_behind_what_was_heard() {
        let mut heard = Heard::default();
        assert_eq!(rest(&mut heard, &["", "A fish", " swims"]).expect("new"), ["A fish", " swims"]);
        heard.begin_again();
        // Cut elsewhere, with letters of several bytes behind.
        let told = ["A", " fish sw", "ims", " süß", "!"];
        assert_eq!(rest(&mut heard, &told).expect("the same"), [" süß", "!"]);
        heard.begin_again();
        assert_eq!(rest(&mut heard, &["A fish swims süß! It"]).expect("the same"), [" It"]);
        heard.begin_again();
        let mut end = part("A fish swims süß! It", Some("stop"));
        assert!(heard.skip(&mut end).expect("the same"), "the end is told, whatever was heard");
        assert_eq!(end["choices"][0]["delta"]["content"], "");
    }

    #[test]
    fn other_words_are_no_continuation() {
        let mut heard = Heard::default();
        rest(&mut heard, &["A fish"]).expect("new");
        for others in ["A bird", "B", "A fisk swims"] {
            heard.begin_again();
            let fail = rest(&mut heard, &[others]).expect_err("other words");
            assert!(matches!(fail, Fail::World { code, .. } if code == "other_words"));
        }
        heard.begin_again();
        assert!(heard.skip(&mut part("A f", Some("stop"))).is_err(), "it ends too early");
    }

    #[test]
    fn what_it_took_is_told() {
        let mut heard = Heard::default();
        let mut usage = json!({ "choices": [], "usage": { "completion_tokens": 3 } });
        assert!(heard.skip(&mut usage).expect("an end"));
        assert_eq!(usage["usage"]["completion_tokens"], 3);
    }
}
