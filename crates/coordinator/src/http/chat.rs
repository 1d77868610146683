//! Language models, in the words of OpenAI's API: what most programs that talk to models speak.

mod answer;
mod embeddings;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use serde_json::{Value, json};
use shoal_kinds::LlmWork;
use shoal_protocol::Micros;
use shoal_text::{
    Ask, ChatRequest, CompletionRequest, Heard, Prompt, Settings, Speaker, Texts, Token, Wrong,
};
use tokio::sync::mpsc;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use self::answer::{Form, Story};
use super::App;
use super::extract::Path;
use super::jobs::collect;
use super::services::{DEADLINE, ask, wish};
use crate::answer::Next;
use crate::driver::event::Wish;
use crate::error::{ApiError, ChatError, ServiceError};

/// A conversation: more than any model reads.
const MAX_BODY_BYTES: usize = 16 << 20;
/// Parts of answers that wait for a slow reader; then nodes wait.
const AHEAD: usize = 64;
/// How long an answer may take if nobody says.
const USUAL_DEADLINE: Micros = Micros::from_secs(600);
/// A line that keeps proxies from closing a quiet stream.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(chat))
        .routes(routes!(complete))
        .routes(routes!(embeddings::embed))
        .routes(routes!(list_models))
        .routes(routes!(get_model))
}

/// Continues a conversation, as OpenAI's API does
#[utoipa::path(
    post, path = "/v1/chat/completions", tag = "chat", security(("key" = [])),
    request_body(content = Value, description = "As OpenAI's API takes it"),
    responses(
        (status = 200, body = Value, description = "As OpenAI's API gives it; server-sent events if \"stream\" is true"),
        (status = 400, body = Value), (status = 401), (status = 404, body = Value), (status = 429, body = Value),
    )
)]
async fn chat(State(app): State<App>, headers: HeaderMap, body: Body) -> Result<Response, Open> {
    let body = collect(body, MAX_BODY_BYTES).await?;
    let request = ChatRequest::read(&body)?;
    let (work, texts) = language(&app, &request.model).await?;
    let settings = request.settings(chance())?;
    let (model, known) = (request.model.clone(), texts.clone());
    let prompt = written(move || Ok(request.prompt(&known, now())?)).await?;
    let prompts = vec![(String::new(), prompt)];
    speak(&app, (model, Form::Chat), (work, texts), prompts, settings, &headers).await
}

/// Continues texts, as OpenAI's API does
#[utoipa::path(
    post, path = "/v1/completions", tag = "chat", security(("key" = [])),
    request_body(content = Value, description = "As OpenAI's API takes it"),
    responses(
        (status = 200, body = Value, description = "As OpenAI's API gives it; server-sent events if \"stream\" is true"),
        (status = 400, body = Value), (status = 401), (status = 404, body = Value), (status = 429, body = Value),
    )
)]
async fn complete(
    State(app): State<App>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Open> {
    let body = collect(body, MAX_BODY_BYTES).await?;
    let request = CompletionRequest::read(&body)?;
    let (work, texts) = language(&app, &request.model).await?;
    let settings = request.settings(chance())?;
    let (prompts, echo) = (request.prompts()?, request.echo.unwrap_or(false));
    let (known, words) = (texts.clone(), work.about.words);
    let prompts = written(move || {
        let write = |prompt| written_prompt(&known, words, prompt, echo);
        prompts.into_iter().map(write).collect::<Result<_, _>>()
    })
    .await?;
    speak(&app, (request.model, Form::Text), (work, texts), prompts, settings, &headers).await
}

/// What is echoed of a prompt, and its tokens.
fn written_prompt(
    texts: &Texts,
    words: u32,
    prompt: Prompt,
    echo: bool,
) -> Result<(String, Vec<Token>), Open> {
    let wrong = |message: String| Wrong::at("prompt", message);
    match prompt {
        Prompt::Text(text) => {
            let tokens = texts.tokenizer.encode(&text).map_err(|error| wrong(error.to_string()))?;
            // A model that begins with nothing needs something to begin with.
            let tokens = if tokens.is_empty() {
                let words = texts.tokenizer.words();
                words.bos().or(words.eos()).into_iter().collect()
            } else {
                tokens
            };
            Ok((if echo { text } else { String::new() }, tokens))
        }
        Prompt::Tokens(tokens) => {
            if let Some(token) = tokens.iter().find(|token| **token >= words) {
                return Err(wrong(format!("the model has no token {token}")).into());
            }
            let bytes: Vec<u8> =
                tokens.iter().flat_map(|token| texts.tokenizer.bytes(*token)).collect();
            let text =
                if echo { String::from_utf8_lossy(&bytes).into_owned() } else { String::new() };
            Ok((text, tokens))
        }
    }
}

/// All language models
#[utoipa::path(
    get, path = "/v1/models", tag = "chat", security(("key" = [])),
    responses((status = 200, body = Value), (status = 401))
)]
async fn list_models(State(app): State<App>) -> Result<Json<Value>, Open> {
    let mut models = Vec::new();
    for service in app.driver.services().await? {
        if let Some((work, ready)) = app.driver.language(service.name.clone()).await? {
            models.push(model_json(&service.name, &work, ready));
        }
    }
    Ok(Json(json!({ "object": "list", "data": models })))
}

/// A language model
#[utoipa::path(
    get, path = "/v1/models/{name}", tag = "chat", security(("key" = [])),
    params(("name" = String, Path)),
    responses((status = 200, body = Value), (status = 401), (status = 404, body = Value))
)]
async fn get_model(State(app): State<App>, Path(name): Path<String>) -> Result<Json<Value>, Open> {
    let found = app.driver.language(name.clone()).await?;
    let (work, ready) = found.ok_or(ChatError::NoModel { name: name.clone() })?;
    Ok(Json(model_json(&name, &work, ready)))
}

fn model_json(name: &str, work: &LlmWork, ready: bool) -> Value {
    let about = &work.about;
    json!({
        "id": name,
        "object": "model",
        "created": 0,
        "owned_by": "shoal",
        "shoal": {
            "ready": ready,
            "title": about.title,
            "architecture": about.architecture,
            "layers": about.layers,
            "parameters": about.parameters,
            "quantisation": about.quantisation,
            "context": work.context,
            "madeForContext": about.context,
            "conversations": work.conversations,
            "memory": work.memory(),
            "on": work.on.name(),
            "chats": about.chats,
            "file": { "hash": work.model.hash.to_string(), "size": work.model.size },
        },
    })
}

/// The model of this name, and its words.
async fn language(app: &App, name: &str) -> Result<(LlmWork, Arc<Texts>), Open> {
    let found = app.driver.language(name.to_owned()).await?;
    let (work, _) = found.ok_or_else(|| ChatError::NoModel { name: name.to_owned() })?;
    let texts = app.languages.texts(&work, &app.blobs).await;
    let texts = texts.map_err(|reason| ChatError::Broken { name: name.to_owned(), reason })?;
    Ok((work, texts))
}

/// Writes prompts away from the reactor: long ones take a while.
async fn written<T: Send + 'static>(
    write: impl FnOnce() -> Result<T, Open> + Send + 'static,
) -> Result<T, Open> {
    let written = tokio::task::spawn_blocking(write).await;
    written.map_err(|_| crate::driver::handle::Stopped)?
}

/// Has all answers spoken, and hands them out as they come or when they are whole.
async fn speak(
    app: &App,
    (model, form): (String, Form),
    (work, texts): (LlmWork, Arc<Texts>),
    prompts: Vec<(String, Vec<Token>)>,
    settings: Settings,
    headers: &HeaderMap,
) -> Result<Response, Open> {
    let mut wish = wish(headers)?;
    if !headers.contains_key(DEADLINE) {
        wish.within = USUAL_DEADLINE;
    }
    for (_, tokens) in &prompts {
        if tokens.len() as u64 >= u64::from(work.context) {
            let (found, most) = (tokens.len(), work.context);
            return Err(ChatError::TooLong { found, most }.into());
        }
    }
    let asked = prompts.iter().map(|(_, tokens)| tokens.len() as u64).sum();
    let story = Story::new(form, model.clone(), id(), now(), asked);
    let (parts, received) = mpsc::channel(AHEAD);
    let mut index = 0;
    for (echo, tokens) in prompts {
        for choice in 0..settings.choices {
            let ask = settings.ask(tokens.clone(), &texts, work.context, choice);
            let speaker = Speaker::new(texts.clone(), settings.stops.clone());
            let voice = Voice { app: app.clone(), model: model.clone(), index, wish };
            tokio::spawn(voice.speak(ask, speaker, echo.clone(), parts.clone()));
            index += 1;
        }
    }
    drop(parts);
    if settings.stream {
        streamed(story, received, settings.usage).await
    } else {
        whole(story, received).await
    }
}

/// What one answer has to say.
pub(super) enum Part {
    Heard { index: u32, heard: Heard, said: u32 },
    Failed(ApiError),
}

/// One answer on its way.
struct Voice {
    app: App,
    model: String,
    index: u32,
    wish: Wish,
}

impl Voice {
    async fn speak(
        self,
        request: Ask,
        mut speaker: Speaker,
        echo: String,
        parts: mpsc::Sender<Part>,
    ) {
        let Voice { app, model, index, wish } = self;
        let asked = ask(&app, &model, request.pack(), wish).await;
        // Dropping the line hangs up: the node stops at once.
        let (mut taker, _line) = match asked {
            Ok(asked) => asked,
            Err(error) => return drop(parts.send(Part::Failed(error)).await),
        };
        let mut echo = Some(echo).filter(|echo| !echo.is_empty());
        loop {
            let next = tokio::select! {
                next = taker.next() => next,
                () = parts.closed() => return,
            };
            let heard = match next {
                Next::Bytes(bytes) => speaker.hear(&bytes).map_err(|reason| {
                    ApiError::from(ChatError::Broken { name: model.clone(), reason })
                }),
                Next::Failed(error) => Err(ServiceError::Call(error).into()),
                Next::Stopped => Err(crate::driver::handle::Stopped.into()),
                Next::Whole => {
                    let reason = "the node's answer broke off".into();
                    Err(ChatError::Broken { name: model.clone(), reason }.into())
                }
            };
            let part = match heard {
                Ok(mut heard) => {
                    if let Some(echo) = echo.take() {
                        heard.text.insert_str(0, &echo);
                    }
                    Part::Heard { index, heard, said: speaker.said }
                }
                Err(error) => Part::Failed(error),
            };
            let last = match &part {
                Part::Heard { heard, .. } => heard.end.is_some(),
                Part::Failed(_) => true,
            };
            if parts.send(part).await.is_err() || last {
                return;
            }
        }
    }
}

/// All answers, when they are whole.
async fn whole(story: Story, mut parts: mpsc::Receiver<Part>) -> Result<Response, Open> {
    let mut choices: BTreeMap<u32, answer::Choice> = BTreeMap::new();
    while let Some(part) = parts.recv().await {
        match part {
            Part::Heard { index, heard, said } => {
                choices.entry(index).or_default().add(heard, said);
            }
            Part::Failed(error) => return Err(error.into()),
        }
    }
    Ok(Json(story.whole(&choices)).into_response())
}

/// Answers as they come. What goes wrong before the first word is a proper error; later it is an event.
async fn streamed(
    story: Story,
    mut parts: mpsc::Receiver<Part>,
    usage: bool,
) -> Result<Response, Open> {
    let first = match parts.recv().await {
        Some(Part::Failed(error)) => return Err(error.into()),
        first => first,
    };
    let rest = Rest { story, first, parts, usage, choices: BTreeMap::new(), over: false };
    let events = stream::unfold(rest, Rest::next);
    let alive = KeepAlive::new().interval(KEEP_ALIVE);
    Ok(Sse::new(events).keep_alive(alive).into_response())
}

struct Rest {
    story: Story,
    first: Option<Part>,
    parts: mpsc::Receiver<Part>,
    usage: bool,
    choices: BTreeMap<u32, answer::Choice>,
    over: bool,
}

type Sent = Result<Event, std::convert::Infallible>;

impl Rest {
    async fn next(mut self) -> Option<(Sent, Rest)> {
        if self.over {
            return None;
        }
        let part = match self.first.take() {
            Some(part) => Some(part),
            None => self.parts.recv().await,
        };
        let json = match part {
            Some(Part::Heard { index, heard, said }) => {
                let choice = self.choices.entry(index).or_default();
                let json = self.story.part(index, choice.is_new(), &heard);
                choice.count(&heard, said);
                json
            }
            Some(Part::Failed(error)) => {
                self.over = true;
                Open::from(error).json()
            }
            None if self.usage => {
                self.usage = false;
                self.story.usage_part(&self.choices)
            }
            None => {
                self.over = true;
                return Some((Ok(Event::default().data("[DONE]")), self));
            }
        };
        Some((Ok(Event::default().data(json.to_string())), self))
    }
}

/// Whether a path is one of those that OpenAI's clients ask.
pub(super) fn is_here(path: &str) -> bool {
    path.starts_with("/v1/")
}

/// An error as these clients expect it.
pub(super) struct Open {
    error: ApiError,
    param: Option<&'static str>,
}

impl<E: Into<ApiError>> From<E> for Open {
    fn from(error: E) -> Open {
        Open { error: error.into(), param: None }
    }
}

impl From<Wrong> for Open {
    fn from(wrong: Wrong) -> Open {
        let param = wrong.param;
        Open { error: ChatError::Wrong(wrong).into(), param }
    }
}

impl Open {
    fn json(self) -> Value {
        self.told().1
    }

    fn told(self) -> (StatusCode, Value) {
        let param = self.param;
        let (status, code, message) = self.error.plain();
        let sort = match status {
            StatusCode::TOO_MANY_REQUESTS => "rate_limit_error",
            status if status.is_client_error() => "invalid_request_error",
            _ => "server_error",
        };
        let body = json!({ "message": message, "type": sort, "param": param, "code": code });
        (status, json!({ "error": body }))
    }
}

impl IntoResponse for Open {
    fn into_response(self) -> Response {
        let (status, body) = self.told();
        (status, Json(body)).into_response()
    }
}

/// A name for an answer that no other has.
fn id() -> String {
    format!("{:016x}", chance())
}

/// A seed for whoever brings none.
fn chance() -> u64 {
    let mut bytes = [0; 8];
    // Without chance there is still the time.
    if getrandom::fill(&mut bytes).is_err() {
        bytes = (now() ^ 0x5eed).to_le_bytes();
    }
    u64::from_le_bytes(bytes)
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
