//! Models, by the Open Inference Protocol.

use reqwest::Method;
use shoal_api::ModelJson;
use shoal_kinds::onnx::{Head, Tensor, asking};

use super::{Client, Said};
use crate::fail::Fail;

const HEAD_LENGTH: &str = "inference-header-content-length";

impl Client {
    pub(crate) async fn model(&self, name: &str) -> Result<Said<ModelJson>, Fail> {
        self.json(Method::GET, &format!("/v2/models/{name}")).await
    }

    /// Asks a model, which answers within so many milliseconds or not at all.
    pub(crate) async fn infer(
        &self,
        name: &str,
        tensors: &[Tensor<'_>],
        millis: u64,
    ) -> Result<Vec<(Head, Vec<u8>)>, Fail> {
        let (body, head) = asking::write(tensors);
        let (path, body) = (format!("/v2/models/{name}/infer"), bytes::Bytes::from(body));
        // Nothing is shown before all of it is there: an answer that breaks off is asked for again.
        let (body, head) = self
            .patiently(async || {
                let request = self
                    .request(Method::POST, &path)
                    .header("x-shoal-deadline-ms", millis)
                    .header(HEAD_LENGTH, head);
                let answer = self.accept(request.body(body.clone()).send().await).await?;
                let head = answer.headers().get(HEAD_LENGTH);
                let head = head.and_then(|text| text.to_str().ok()?.parse().ok());
                let body = answer.bytes().await.map_err(|error| self.unreachable(&error))?;
                Ok((body, head))
            })
            .await?;
        asking::read(&body, head).map_err(|error| {
            let message = format!("the answer of {} cannot be read: {error}", self.base);
            Fail::world("bad_answer", message)
        })
    }
}
