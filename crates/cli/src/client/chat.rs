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

    /// Asks for the next words of a conversation, and hands every part of the answer to `each` while it comes.
    pub(crate) async fn chat(
        &self,
        body: &Value,
        mut each: impl FnMut(&Value) -> Result<(), Fail>,
    ) -> Result<(), Fail> {
        let begin = async || {
            let request = self.request(Method::POST, "/v1/chat/completions").json(body);
            self.accept(request.send().await).await
        };
        let mut answer = self.patiently(begin).await?;
        let mut waiting: Vec<u8> = Vec::new();
        while let Some(part) = answer.chunk().await.map_err(|error| self.unreachable(&error))? {
            waiting.extend_from_slice(&part);
            while let Some(end) = waiting.windows(2).position(|two| two == b"\n\n") {
                let event: Vec<u8> = waiting.drain(..end + 2).collect();
                let Some(data) = event.strip_prefix(b"data: ") else { continue };
                if data.trim_ascii() == b"[DONE]" {
                    return Ok(());
                }
                each(&self.event(data)?)?;
            }
            if waiting.len() > MOST_EVENT_BYTES {
                break;
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
