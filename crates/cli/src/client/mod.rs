//! A typed client of the coordinator's HTTP API.

mod answers;
mod ask;
mod beside;
mod chat;
mod download;
mod events;
mod field;
mod manner;
mod model;
mod patience;
mod said;
mod sink;
mod spool;
mod upload;
mod wait;

pub(crate) use answers::Answer;
pub(crate) use field::Seen;
pub(crate) use manner::{Manner, OnInterrupt, quoted};
pub(crate) use said::{Job, Said};
pub(crate) use sink::Sink;
pub(crate) use spool::{Spool, Spooled};
pub(crate) use upload::Source;
pub(crate) use wait::{Watcher, verdict};

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use reqwest::{Method, RequestBuilder, Response, StatusCode, header};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use shoal_api::{
    ErrorJson, ExplainJson, ExplainServiceJson, InputsJson, JobRequest, JobsJson, NodesJson,
    ServiceJson, ServiceRequest, ServicesJson,
};
use shoal_host::Neighbour;
use shoal_host::tls::{Trust, distrust};

use self::patience::Patience;
use crate::fail::Fail;
use crate::place::Target;
use crate::show;

/// How long a coordinator may take to accept a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const IDEMPOTENCY_KEY: &str = "idempotency-key";

#[derive(Clone)]
pub(crate) struct Client {
    http: reqwest::Client,
    base: String,
    key: String,
    patience: Arc<Patience>,
    /// Programs read what this command says: it speaks only JSON.
    is_quiet: bool,
    /// Fetches what is done of results.
    is_partial: bool,
    /// The coordinator's data folder, if it is on this machine.
    beside: Option<Arc<Neighbour>>,
}

impl Client {
    pub(crate) fn new(target: &Target, data: &Path) -> Result<Client, Fail> {
        let trust = Trust::new(data, &target.url, None, show::first_seen);
        let http = reqwest::Client::builder()
            // A pool is reached directly, as its nodes reach it.
            .no_proxy()
            .tcp_nodelay(true)
            .connect_timeout(CONNECT_TIMEOUT)
            .tls_backend_preconfigured(trust.config()?)
            .build()
            .map_err(|error| {
                Fail::world("client", format!("cannot start the HTTP client: {error}"))
            })?;
        Ok(Client {
            http,
            base: target.url.clone(),
            key: target.key.clone(),
            patience: Arc::new(Patience::new(target.patience)),
            is_quiet: false,
            is_partial: false,
            beside: target.beside.clone().map(Arc::new),
        })
    }

    /// For programs: waiting is nothing to talk about.
    pub(crate) fn quiet(self, is_quiet: bool) -> Client {
        Client { is_quiet, ..self }
    }

    /// For whoever asks for a job by its number: somebody reached this coordinator before.
    pub(crate) fn known(self) -> Client {
        self.patience.note_reached();
        self
    }

    pub(crate) async fn jobs(&self) -> Result<Said<JobsJson>, Fail> {
        self.json(Method::GET, "/api/v1/jobs").await
    }

    pub(crate) async fn job(&self, id: u64) -> Result<Job, Fail> {
        self.json(Method::GET, &format!("/api/v1/jobs/{id}")).await
    }

    /// What a job computes from.
    pub(crate) async fn inputs(&self, id: u64) -> Result<Said<InputsJson>, Fail> {
        self.json(Method::GET, &format!("/api/v1/jobs/{id}/inputs")).await
    }

    /// Removes an ended job and its result.
    pub(crate) async fn remove(&self, id: u64) -> Result<(), Fail> {
        self.delete(&format!("/api/v1/jobs/{id}")).await
    }

    pub(crate) async fn cancel(&self, id: u64) -> Result<Job, Fail> {
        self.json(Method::POST, &format!("/api/v1/jobs/{id}/cancel")).await
    }

    /// With all, also those that left.
    pub(crate) async fn nodes(&self, all: bool) -> Result<Said<NodesJson>, Fail> {
        let path = if all { "/api/v1/nodes?all=1" } else { "/api/v1/nodes" };
        self.json(Method::GET, path).await
    }

    pub(crate) async fn services(&self) -> Result<Said<ServicesJson>, Fail> {
        self.json(Method::GET, "/api/v1/services").await
    }

    pub(crate) async fn serve(&self, request: &ServiceRequest) -> Result<Said<ServiceJson>, Fail> {
        let (key, asked) = (random_key()?, asked(request));
        self.patiently(async || {
            let request = self.request(Method::POST, "/api/v1/services").json(&asked);
            let answer = request.header(IDEMPOTENCY_KEY, &key).send().await;
            self.read(answer).await
        })
        .await
    }

    pub(crate) async fn unserve(&self, name: &str) -> Result<(), Fail> {
        self.delete(&format!("/api/v1/services/{name}")).await
    }

    async fn delete(&self, path: &str) -> Result<(), Fail> {
        let mut is_first = true;
        self.patiently(async || {
            let is_again = !std::mem::replace(&mut is_first, false);
            let answer = self.request(Method::DELETE, path).send().await;
            match answer {
                // It went the first time, and the answer was lost.
                Ok(answer) if is_again && answer.status() == StatusCode::NOT_FOUND => Ok(()),
                answer => self.accept(answer).await.map(drop),
            }
        })
        .await
    }

    /// Why something is as it is, by the path that asks.
    pub(crate) async fn explain(&self, path: &str) -> Result<ExplainJson, Fail> {
        self.json(Method::GET, path).await
    }

    /// Why a service is kept ready as it is.
    pub(crate) async fn explain_service(
        &self,
        name: &str,
    ) -> Result<Said<ExplainServiceJson>, Fail> {
        self.json(Method::GET, &format!("/api/v1/services/{name}/explain")).await
    }

    pub(crate) async fn receipt(&self, id: u64) -> Result<serde_json::Value, Fail> {
        self.json(Method::GET, &format!("/api/v1/jobs/{id}/receipt")).await
    }

    /// Submits a job; with `wait` the answer is held until its end, at most so many seconds.
    pub(crate) async fn submit(
        &self,
        request: &JobRequest,
        wait: Option<f64>,
    ) -> Result<Job, Fail> {
        let wait = wait.map(|seconds| format!("?wait={seconds}")).unwrap_or_default();
        let path = format!("/api/v1/jobs{wait}");
        let (key, asked) = (random_key()?, asked(request));
        self.patiently(async || {
            let request = self.request(Method::POST, &path).json(&asked);
            let answer = request.header(IDEMPOTENCY_KEY, &key).send().await;
            self.read(answer).await
        })
        .await
    }

    /// A call that may be made twice.
    async fn json<T: DeserializeOwned>(&self, method: Method, path: &str) -> Result<T, Fail> {
        self.patiently(async || self.once(method.clone(), path).await).await
    }

    async fn once<T: DeserializeOwned>(&self, method: Method, path: &str) -> Result<T, Fail> {
        let answer = self.request(method, path).send().await;
        self.read(answer).await
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.http.request(method, format!("{}{path}", self.base)).bearer_auth(&self.key)
    }

    async fn read<T: DeserializeOwned>(
        &self,
        answer: reqwest::Result<Response>,
    ) -> Result<T, Fail> {
        let answer = self.accept(answer).await?;
        let body = answer.bytes().await.map_err(|error| self.unreachable(&error))?;
        serde_json::from_slice(&body).map_err(|error| {
            let base = &self.base;
            let message = format!(
                "{base} sent an answer that this client cannot read ({error}): do both have the \
                 same version?"
            );
            Fail::world("bad_answer", message)
        })
    }

    /// An answer that is not an error.
    async fn accept(&self, answer: reqwest::Result<Response>) -> Result<Response, Fail> {
        let answer = answer.map_err(|error| self.unreachable(&error))?;
        self.patience.note_reached();
        if answer.status().is_success() { Ok(answer) } else { Err(self.refused(answer).await) }
    }

    /// The coordinator's own words for an error.
    async fn refused(&self, answer: Response) -> Fail {
        let status = answer.status();
        let is_json = answer
            .headers()
            .get(header::CONTENT_TYPE)
            .is_some_and(|kind| kind.as_bytes().starts_with(b"application/json"));
        let body = answer.bytes().await.unwrap_or_default();
        let said = if is_json { said_wrong(&body) } else { None };
        let base = &self.base;
        match (status, said) {
            (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN, _) => Fail::Input {
                code: "wrong_key".into(),
                message: format!(
                    "the coordinator at {base} refuses this key: pass the right one with --key or \
                     SHOAL_KEY"
                ),
            },
            (_, Some((code, message))) if status.is_client_error() => Fail::Input { code, message },
            (_, Some((code, message))) => {
                Fail::world(&code, format!("the coordinator at {base} failed: {message}"))
            }
            (
                StatusCode::BAD_GATEWAY
                | StatusCode::SERVICE_UNAVAILABLE
                | StatusCode::GATEWAY_TIMEOUT,
                None,
            ) => {
                let message = format!("{base} answered {status}: the coordinator is not there");
                Fail::world("unavailable", message)
            }
            (_, None) => Fail::world(
                "bad_answer",
                format!(
                    "{base} answered {status}: is this a Shoal coordinator of the same version?"
                ),
            ),
        }
    }

    fn unreachable(&self, error: &reqwest::Error) -> Fail {
        let base = &self.base;
        if let Some(reason) = distrust(error) {
            return Fail::world("untrusted", reason);
        }
        let reason = innermost(error);
        if error.is_connect() {
            let message =
                format!("cannot reach the coordinator at {base}: {reason}; is it running?");
            return Fail::world("unreachable", message);
        }
        Fail::world("connection_lost", format!("the connection to {base} broke: {reason}"))
    }
}

/// Names a request, so that one that is sent again is not taken twice.
fn random_key() -> Result<String, Fail> {
    let mut random = [0; 16];
    getrandom::fill(&mut random)
        .map_err(|error| Fail::world("internal", format!("no random numbers: {error}")))?;
    Ok(format!("{:032x}", u128::from_le_bytes(random)))
}

/// Code and message of an error.
fn said_wrong(body: &[u8]) -> Option<(String, String)> {
    #[derive(serde::Deserialize)]
    #[serde(untagged)]
    enum Wrong {
        Ours(ErrorJson),
        /// As the Open Inference Protocol has it.
        Plain {
            error: String,
            code: Option<String>,
        },
    }
    match serde_json::from_slice(body).ok()? {
        Wrong::Ours(ErrorJson { error }) => Some((error.code.into_owned(), error.message)),
        Wrong::Plain { error, code } => Some((code.unwrap_or_else(|| "bad_request".into()), error)),
    }
}

/// A request as it is sent: what is not asked for is left out, so that a coordinator that does not know it yet takes
/// the rest.
fn asked(request: &impl Serialize) -> Value {
    // A request is plain data: writing it cannot fail.
    let mut value = serde_json::to_value(request).unwrap_or_default();
    leave_out(&mut value);
    value
}

fn leave_out(value: &mut Value) {
    if let Value::Object(fields) = value {
        fields.retain(|_, field| !field.is_null());
        fields.values_mut().for_each(leave_out);
    } else if let Value::Array(items) = value {
        items.iter_mut().for_each(leave_out);
    }
}

/// The last of an error's causes: what really happened.
pub(crate) fn innermost(error: &(dyn std::error::Error + 'static)) -> String {
    let mut cause = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    match cause.downcast_ref::<std::io::Error>() {
        Some(error) => crate::fail::plain(error),
        None => cause.to_string(),
    }
}
