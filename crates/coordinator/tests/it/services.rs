//! Services while the coordinator cannot write its facts: what is not durable is not said, and what nobody wants any
//! more is not kept.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use shoal_coordinator::{Fault, Faults, Point};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::world::{TempDir, World, eventually, noop};

/// A database that is busy for a while; not for longer than the test, so that none that fails waits for ever.
#[derive(Default)]
struct Busy(Arc<AtomicBool>);

impl Busy {
    fn faults(&self) -> Faults {
        let is_busy = Arc::clone(&self.0);
        Faults::new(move |point| match point {
            Point::Decided if is_busy.load(Ordering::Relaxed) => Fault::Busy,
            Point::Decided | Point::Written | Point::Told => Fault::None,
        })
    }

    fn set(&self, busy: bool) {
        self.0.store(busy, Ordering::Relaxed);
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.set(false);
    }
}

/// The coordinator has facts that it cannot write.
async fn stuck(world: &World) {
    eventually(async || {
        let health = world.api.open(Method::GET, "/healthz").send().await.unwrap();
        (health.status() == StatusCode::SERVICE_UNAVAILABLE).then_some(())
    })
    .await;
}

async fn request(world: &World) -> Value {
    let module = world.api.blob(*b"\0asm1234").await;
    json!({"name": "echo", "kind": "exec", "module": module})
}

async fn serve(world: &World) {
    let response = world.api.post("/api/v1/services", request(world).await).await;
    assert_eq!(response.status(), StatusCode::CREATED, "{}", response.text().await.unwrap());
}

async fn services(world: &World) -> Vec<Value> {
    world.api.json("/api/v1/services").await["services"].as_array().unwrap().clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_whose_client_hung_up_before_it_was_taken_in_is_not_kept() {
    let busy = Busy::default();
    let world = World::start_with(TempDir::new(), busy.faults());
    serve(&world).await;
    busy.set(true);
    let api = world.api.clone();
    let job = tokio::spawn(async move { api.post("/api/v1/jobs", noop(1)).await });
    stuck(&world).await;
    let mut line = TcpStream::connect(world.api.addr()).await.unwrap();
    let (addr, key) = (world.api.addr(), &world.api.key);
    let asked = format!(
        "POST /api/v1/services/echo HTTP/1.1\r\nhost: {addr}\r\nauthorization: Bearer {key}\r\n\
         content-length: 2\r\n\r\nhi"
    );
    line.write_all(asked.as_bytes()).await.unwrap();
    line.shutdown().await.unwrap();
    // The coordinator closes its end too when it has noticed.
    let mut said = Vec::new();
    line.read_to_end(&mut said).await.unwrap();
    assert!(said.is_empty(), "{}", String::from_utf8_lossy(&said));
    busy.set(false);
    let service = services(&world).await.remove(0);
    assert_eq!((&service["waiting"], &service["running"]), (&json!(0), &json!(0)), "{service}");
    assert_eq!(job.await.unwrap().status(), StatusCode::CREATED);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_service_is_said_to_be_there_or_gone_only_when_that_is_durable() {
    let busy = Busy::default();
    let world = World::start_with(TempDir::new(), busy.faults());
    let wanted = request(&world).await;
    busy.set(true);
    let api = world.api.clone();
    let added = tokio::spawn(async move { api.post("/api/v1/services", wanted).await });
    stuck(&world).await;
    assert!(!added.is_finished(), "it is not there yet");
    busy.set(false);
    assert_eq!(added.await.unwrap().status(), StatusCode::CREATED);
    busy.set(true);
    let api = world.api.clone();
    let removed = tokio::spawn(async move {
        api.request(Method::DELETE, "/api/v1/services/echo").send().await.unwrap().status()
    });
    stuck(&world).await;
    stuck(&world).await;
    assert!(!removed.is_finished(), "it is not gone yet");
    let dir = world.stop().await;
    assert_ne!(removed.await.unwrap(), StatusCode::NO_CONTENT);
    busy.set(false);
    let world = World::start_in(dir);
    assert_eq!(services(&world).await.len(), 1, "it was never gone");
    world.stop().await;
}
