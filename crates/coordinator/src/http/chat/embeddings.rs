//! Texts as numbers, in the words of OpenAI's API.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures_util::{StreamExt, TryStreamExt, stream};
use serde::Serialize;
use shoal_kinds::LlmWork;
use shoal_kinds::llm::On;
use shoal_text::{Ask, EmbeddingRequest, Read, Said, Texts, Token, Words, Wrong};

use super::{MAX_BODY_BYTES, Open, USUAL_DEADLINE, language, written};
use crate::answer::Next;
use crate::driver::event::Wish;
use crate::error::{ApiError, ChatError, ServiceError};
use crate::http::App;
use crate::http::jobs::collect;
use crate::http::services::{DEADLINE, ask, wish};

/// Texts of one request that are on their way at a time: enough that no device waits for the next one, few enough that
/// others' requests come between.
const AT_ONCE: usize = 8;

/// What the texts of a request became.
#[derive(Serialize)]
pub(super) struct Embeddings {
    object: &'static str,
    data: Vec<Embedding>,
    model: String,
    usage: Usage,
}

#[derive(Serialize)]
struct Embedding {
    object: &'static str,
    index: usize,
    embedding: Numbers,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Numbers {
    List(Vec<f32>),
    Base64(String),
}

#[derive(Serialize)]
struct Usage {
    prompt_tokens: usize,
    total_tokens: usize,
}

/// Gives the numbers of texts, as OpenAI's API does
#[utoipa::path(
    post, path = "/v1/embeddings", tag = "chat", security(("key" = [])),
    request_body(content = Value, description = "As OpenAI's API takes it"),
    responses(
        (status = 200, body = Value, description = "As OpenAI's API gives it"),
        (status = 400, body = Value), (status = 401), (status = 404, body = Value), (status = 429, body = Value),
    )
)]
pub(super) async fn embed(
    State(app): State<App>,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<Embeddings>, Open> {
    let body = collect(body, MAX_BODY_BYTES).await?;
    let request = EmbeddingRequest::read(&body)?;
    let (work, texts) = language(&app, &request.model).await?;
    let (reads, as_base64) = (request.texts()?, request.as_base64()?);
    let width = work.about.width;
    if request.dimensions.is_some_and(|wanted| wanted != u64::from(width)) {
        let message = format!("dimensions is not supported: this model gives {width} numbers");
        return Err(Wrong::at("dimensions", message).into());
    }
    let pooling = texts.pooling.map_err(|kind| {
        let message = format!("this model pools its tokens in a way that is not supported: {kind}");
        Wrong::at("model", message)
    })?;
    refuse_on_gpu(&work, &request.model)?;
    refuse_shared(&app, &request.model).await?;
    let (known, words) = (texts.clone(), work.about.words);
    let prompts = written(move || {
        reads.into_iter().map(|text| tokens_of(&known, words, text)).collect::<Result<Vec<_>, _>>()
    })
    .await?;
    if let Some(long) = prompts.iter().find(|tokens| tokens.len() as u64 > work.context.into()) {
        return Err(ChatError::TooLong { found: long.len(), most: work.context }.into());
    }
    let mut wish = wish(&headers)?;
    if !headers.contains_key(DEADLINE) {
        wish.within = USUAL_DEADLINE;
    }
    let read: usize = prompts.iter().map(Vec::len).sum();
    let name = &request.model;
    let each = prompts.into_iter().map(|tokens| {
        let request = Ask::embedding(tokens, pooling).pack();
        one(&app, name, request, (wish, width as usize))
    });
    let all: Vec<Vec<f32>> = stream::iter(each).buffered(AT_ONCE).try_collect().await?;
    let data = all.into_iter().enumerate().map(|(index, numbers)| Embedding {
        object: "embedding",
        index,
        embedding: if as_base64 {
            Numbers::Base64(packed(&numbers))
        } else {
            Numbers::List(numbers)
        },
    });
    let usage = Usage { prompt_tokens: read, total_tokens: read };
    Ok(Json(Embeddings { object: "list", data: data.collect(), model: request.model, usage }))
}

/// GPUs give words only: said before anything is computed.
fn refuse_on_gpu(work: &LlmWork, name: &str) -> Result<(), Open> {
    match work.on {
        On::Processor => Ok(()),
        On::Gpu => Err(Wrong {
            param: Some("model"),
            code: "model_on_gpu",
            message: format!(
                "a GPU computes the model {name:?}, and it gives no embeddings: add it without --gpu"
            ),
        }
        .into()),
    }
}

/// Devices that share a model have no numbers of texts: said before anything is computed.
async fn refuse_shared(app: &App, name: &str) -> Result<(), Open> {
    let services = app.driver.services().await?;
    let service = services.into_iter().find(|service| service.name == name);
    if service.is_some_and(|service| service.crew.is_some()) {
        return Err(Wrong {
            param: Some("model"),
            code: "model_shared",
            message: format!(
                "several devices share the model {name:?}, and they give no embeddings: add it with \
                 --split never, so that one device has all of it"
            ),
        }
        .into());
    }
    Ok(())
}

fn tokens_of(texts: &Arc<Texts>, words: u32, text: Read) -> Result<Vec<Token>, Open> {
    let wrong = |message: String| Wrong::at("input", message);
    let tokens = match text {
        Read::Text(text) => {
            texts.tokenizer.encode(&text).map_err(|error| wrong(error.to_string()))?
        }
        Read::Tokens(tokens) => tokens,
    };
    match tokens.iter().find(|token| **token >= words) {
        Some(token) => Err(wrong(format!("the model has no token {token}")).into()),
        None => Ok(tokens),
    }
}

/// The numbers of one text. Who drops this hangs up.
async fn one(
    app: &App,
    name: &str,
    request: Vec<u8>,
    (wish, width): (Wish, usize),
) -> Result<Vec<f32>, ApiError> {
    let broken = |reason: String| ChatError::Broken { name: name.to_owned(), reason };
    let (mut taker, _line) = ask(app, name, request, wish).await?;
    let (mut words, mut numbers) = (Words::default(), Vec::new());
    loop {
        match taker.next().await {
            Next::Bytes(bytes) => words.push(&bytes),
            Next::Failed(error) => return Err(ServiceError::Call(error).into()),
            Next::Stopped => return Err(crate::driver::handle::Stopped.into()),
            Next::Whole => return Err(broken("the node's answer broke off".into()).into()),
        }
        while let Some(said) = words.take().map_err(|error| broken(error.to_string()))? {
            match said {
                Said::Embedding(some) if numbers.len() + some.len() <= width => {
                    numbers.extend_from_slice(&some);
                }
                Said::Done(_) if numbers.len() == width => return Ok(numbers),
                Said::Embedding(_) | Said::Done(_) | Said::Token(_) => {
                    return Err(
                        broken("the node gave other numbers than were asked for".into()).into()
                    );
                }
            }
        }
    }
}

/// As OpenAI writes them: 32-bit numbers, the lowest byte first.
fn packed(numbers: &[f32]) -> String {
    let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    STANDARD.encode(bytes)
}
