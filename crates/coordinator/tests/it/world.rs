//! A coordinator in a folder of its own, and a client for it.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use reqwest::{Client, Method, RequestBuilder, Response, StatusCode};
use serde_json::{Value, json};
use shoal_coordinator::{Coordinator, Faults, OpenError, Options, Relay, RunError};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::intake::FewWords;

/// A folder that is removed when the test has passed.
pub(crate) struct TempDir(PathBuf);

impl TempDir {
    pub(crate) fn new() -> TempDir {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("shoal-it-{}-{count}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _ = std::fs::remove_dir_all(&path);
        TempDir(path)
    }

    /// One that another test world made.
    pub(crate) fn adopt(path: &Path) -> TempDir {
        TempDir(path.into())
    }

    /// Stays.
    pub(crate) fn leave(self) {
        std::mem::forget(self);
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }
}

pub(crate) fn options(dir: &Path, listen: &str) -> Options {
    Options {
        data_dir: dir.into(),
        listen: listen.parse().unwrap(),
        intake: Arc::new(FewWords),
        quic: false,
        stun: vec!["stun:127.0.0.1:9".into()],
        turn: Vec::new(),
    }
}

pub(crate) fn open(dir: &Path) -> Result<Coordinator, OpenError> {
    Coordinator::open(options(dir, "127.0.0.1:0"))
}

pub(crate) fn open_with(dir: &Path, faults: Faults) -> Result<Coordinator, OpenError> {
    Coordinator::open_with(options(dir, "127.0.0.1:0"), faults)
}

/// Tests that start processes hold this one's open files for the moment between fork and exec: a folder
/// that was just left may then still look taken.
pub(crate) fn open_patiently(dir: &Path, faults: &Faults) -> Coordinator {
    for _ in 0..100 {
        match open_with(dir, faults.clone()) {
            Err(OpenError::Locked { .. }) => std::thread::sleep(Duration::from_millis(10)),
            opened => return opened.unwrap(),
        }
    }
    panic!("the folder {} stays locked", dir.display());
}

/// A running coordinator.
pub(crate) struct World {
    pub(crate) api: Api,
    pub(crate) token: String,
    pub(crate) relay: Relay,
    stop: oneshot::Sender<()>,
    task: JoinHandle<Result<(), RunError>>,
    pub(crate) dir: TempDir,
}

impl World {
    pub(crate) fn start() -> World {
        World::start_in(TempDir::new())
    }

    pub(crate) fn start_in(dir: TempDir) -> World {
        World::start_with(dir, Faults::default())
    }

    pub(crate) fn start_with(dir: TempDir, faults: Faults) -> World {
        let coordinator = open_patiently(dir.path(), &faults);
        World::run(coordinator, dir)
    }

    /// One that takes frames by QUIC as well.
    pub(crate) fn start_quic() -> World {
        let dir = TempDir::new();
        let options = Options { quic: true, ..options(dir.path(), "127.0.0.1:0") };
        let coordinator = Coordinator::open(options).unwrap();
        assert!(matches!(coordinator.quic(), Some(Ok(1..))), "{:?}", coordinator.quic());
        World::run(coordinator, dir)
    }

    fn run(coordinator: Coordinator, dir: TempDir) -> World {
        let (url, key) = (coordinator.urls().local.clone(), coordinator.key().to_owned());
        let token = coordinator.token().to_owned();
        let relay = coordinator.relay();
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(coordinator.run(async {
            let _ = stopped.await;
        }));
        World { api: Api::new(url, key), token, relay, stop, task, dir }
    }

    /// Stops cleanly and gives the folder back.
    pub(crate) async fn stop(self) -> TempDir {
        let _ = self.stop.send(());
        self.task.await.unwrap().unwrap();
        self.dir
    }

    pub(crate) async fn restart(self) -> World {
        let dir = self.stop().await;
        World::start_in(dir)
    }
}

/// A client with its key.
#[derive(Clone)]
pub(crate) struct Api {
    pub(crate) url: String,
    pub(crate) key: String,
    client: Client,
}

impl Api {
    pub(crate) fn new(url: String, key: String) -> Api {
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        Api { url, key, client: Client::builder().no_proxy().build().unwrap() }
    }

    pub(crate) fn addr(&self) -> SocketAddr {
        self.url.strip_prefix("http://").unwrap().parse().unwrap()
    }

    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, format!("{}{path}", self.url)).bearer_auth(&self.key)
    }

    pub(crate) fn open(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, format!("{}{path}", self.url))
    }

    pub(crate) async fn get(&self, path: &str) -> Response {
        self.request(Method::GET, path).send().await.unwrap()
    }

    pub(crate) async fn json(&self, path: &str) -> Value {
        let response = self.get(path).await;
        assert_eq!(response.status(), StatusCode::OK, "{path}");
        response.json().await.unwrap()
    }

    pub(crate) async fn bytes(&self, path: &str) -> Vec<u8> {
        let response = self.get(path).await;
        assert_eq!(response.status(), StatusCode::OK, "{path}");
        response.bytes().await.unwrap().into()
    }

    /// Stores bytes; gives their hash.
    pub(crate) async fn blob(&self, bytes: impl Into<Vec<u8>>) -> String {
        let sent = self.request(Method::POST, "/api/v1/blobs").body(bytes.into()).send().await;
        let response = sent.unwrap();
        assert_eq!(response.status(), StatusCode::CREATED);
        let body: Value = response.json().await.unwrap();
        body["hash"].as_str().unwrap().into()
    }

    /// Submits a job that must be taken.
    pub(crate) async fn submit(&self, job: Value) -> u64 {
        let response = self.post("/api/v1/jobs", job).await;
        let (status, body) = (response.status(), response.json::<Value>().await.unwrap());
        assert_eq!(status, StatusCode::CREATED, "{body}");
        body["id"].as_u64().unwrap()
    }

    /// Submits a job that must be refused; gives its code and message.
    pub(crate) async fn refused(&self, job: Value) -> (StatusCode, String, String) {
        let response = self.post("/api/v1/jobs", job).await;
        problem(response).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Response {
        self.request(Method::POST, path).json(&body).send().await.unwrap()
    }

    /// The value of a counter.
    pub(crate) async fn metric(&self, name: &str) -> f64 {
        let text = self.get("/metrics").await.text().await.unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("no {name} in {text}")).parse().unwrap()
    }

    /// The job once it has ended.
    pub(crate) async fn ended(&self, job: u64) -> Value {
        let job = self.json(&format!("/api/v1/jobs/{job}?wait=20")).await;
        assert_ne!(job["state"], "running", "{job}");
        job
    }
}

pub(crate) async fn problem(response: Response) -> (StatusCode, String, String) {
    let status = response.status();
    let body: Value = response.json().await.unwrap();
    let text = |name: &str| body["error"][name].as_str().unwrap_or_default().to_owned();
    (status, text("code"), text("message"))
}

pub(crate) async fn eventually<F, T>(mut look: impl FnMut() -> F) -> T
where
    F: Future<Output = Option<T>>,
{
    for _ in 0..500 {
        if let Some(found) = look().await {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("did not happen within five seconds");
}

pub(crate) fn noop(items: u64) -> Value {
    json!({ "kind": "noop", "items": items })
}
