//! Pictures of a simulation's field, while it runs.

use reqwest::{Method, Response, StatusCode};

use super::{Client, Fail};

/// A picture of the field.
pub(crate) struct Seen {
    /// Counts the pictures.
    pub(crate) version: u64,
    /// The step it shows.
    pub(crate) step: u64,
    pub(crate) png: Vec<u8>,
}

impl Client {
    /// The newest picture after the one of that number, if one comes within some seconds.
    pub(crate) async fn field(&self, job: u64, after: u64) -> Result<Option<Seen>, Fail> {
        let path = format!("/api/v1/jobs/{job}/field?after={after}");
        let answer = self.request(Method::GET, &path).send().await;
        let answer = self.accept(answer).await?;
        if answer.status() == StatusCode::NO_CONTENT {
            return Ok(None);
        }
        let (version, step) = (number(&answer, "x-shoal-version"), number(&answer, "x-shoal-step"));
        let png = answer.bytes().await.map_err(|error| self.unreachable(&error))?;
        Ok(Some(Seen { version, step, png: png.to_vec() }))
    }
}

/// A number in the head of an answer; 0 if it is not there.
fn number(answer: &Response, name: &str) -> u64 {
    let text = answer.headers().get(name).and_then(|value| value.to_str().ok());
    text.and_then(|text| text.parse().ok()).unwrap_or_default()
}
