//! A coordinator killed at any moment loses nothing it acknowledged: played with a process of its own
//! that is really killed.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::json;
use shoal_coordinator::{Fault, Faults};
use shoal_protocol::{Hash, Held, Hello, UnitOutput};

use crate::node::{Node, hello, nothing, numbers};
use crate::world::{Api, TempDir, World, eventually, noop, open_with};

const FOLDER: &str = "SHOAL_IT_FOLDER";
const DIES_AT: &str = "SHOAL_IT_DIES_AT";

/// Not a test by itself: the process that is killed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "started by other tests"]
async fn coordinator_process() {
    let Ok(folder) = std::env::var(FOLDER) else { return };
    let coordinator = open_with(Path::new(&folder), dying()).unwrap();
    let (url, key) = (coordinator.urls().local.clone(), coordinator.key().to_owned());
    let mut out = std::io::stderr();
    writeln!(out, "READY {url} {key} {}", coordinator.token()).unwrap();
    coordinator.run(std::future::pending()).await.unwrap();
}

/// Dies without a word at the point that was asked for, counted over all batches with facts.
fn dying() -> Faults {
    let Some(point) = std::env::var(DIES_AT).ok().and_then(|text| text.parse::<u64>().ok()) else {
        return Faults::default();
    };
    let passed = AtomicU64::new(0);
    Faults::new(move |_| {
        if passed.fetch_add(1, Ordering::Relaxed) == point {
            std::process::abort();
        }
        Fault::None
    })
}

pub(crate) struct Process {
    child: Child,
    pub(crate) api: Api,
    pub(crate) token: String,
}

impl Process {
    pub(crate) fn start(folder: &Path) -> Process {
        Process::start_dying(folder, u64::MAX)
    }

    pub(crate) fn start_dying(folder: &Path, at: u64) -> Process {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "crash::coordinator_process", "--ignored", "--nocapture"])
            .env(FOLDER, folder)
            .env(DIES_AT, at.to_string())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let ready = lines.find_map(|line| line.unwrap().strip_prefix("READY ").map(str::to_owned));
        let ready = ready.expect("the coordinator did not start");
        let words: Vec<&str> = ready.split(' ').collect();
        let api = Api::new(words[0].into(), words[1].into());
        Process { child, api, token: words[2].into() }
    }

    pub(crate) fn is_alive(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Kill -9.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    async fn node(&self, name: &str) -> Node {
        Node::join_with(&self.api, hello(name, &self.token)).await
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_goes_on_after_kill_9_and_merges_nothing_twice() {
    let dir = TempDir::new();
    let mut process = Process::start(dir.path());
    let items = 400_000_u64;
    let job = json!({"kind": "map", "wgsl": "x", "items": items, "unit": 500, "verify": "none"});
    let id = process.api.submit(job).await;
    let path = format!("/api/v1/jobs/{id}");
    let mut seen = 0;
    for round in 1..=3 {
        // Slow enough to be caught in the middle.
        let mut node = process.node("one").await;
        node.rest = Duration::from_millis(30);
        let working = node.work(numbers);
        let goal = items * round / 6;
        let done = eventually(async || {
            let done = process.api.json(&path).await["itemsDone"].as_u64().unwrap();
            (done > goal).then_some(done)
        });
        let acknowledged = done.await;
        process.kill();
        drop(working);
        process = Process::start(dir.path());
        let after = process.api.json(&path).await;
        assert_eq!(after["state"], "running");
        let kept = after["itemsDone"].as_u64().unwrap();
        assert!(kept >= acknowledged, "{kept} of {acknowledged} acknowledged items are left");
        assert!(kept > seen && kept <= items);
        seen = kept;
    }
    let _working = process.node("one").await.work(numbers);
    let job = process.api.ended(id).await;
    assert_eq!((&job["state"], &job["itemsDone"]), (&json!("done"), &json!(items)), "{job}");
    let expected: Vec<u8> = (0..items).flat_map(|i| (i as f32).to_le_bytes()).collect();
    assert!(process.api.bytes(&format!("{path}/result")).await == expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_submission_that_was_answered_is_there_after_kill_9() {
    let dir = TempDir::new();
    let process = Process::start(dir.path());
    let _working = process.node("one").await.work(nothing);
    let (sender, mut answered) = tokio::sync::mpsc::unbounded_channel();
    let mut clients = Vec::new();
    for _ in 0..4 {
        let (api, sender) = (process.api.clone(), sender.clone());
        clients.push(tokio::spawn(async move {
            loop {
                let request = api.request(reqwest::Method::POST, "/api/v1/jobs?wait=5");
                let Ok(response) = request.json(&noop(3)).send().await else { return };
                let Ok(job) = response.json::<serde_json::Value>().await else { return };
                sender.send(job).unwrap();
            }
        }));
    }
    drop(sender);
    let mut jobs = Vec::new();
    // Far fewer than are kept once they have ended.
    while jobs.len() < 100 {
        jobs.push(answered.recv().await.unwrap());
    }
    process.kill();
    for client in clients {
        client.await.unwrap();
    }
    while let Some(job) = answered.recv().await {
        jobs.push(job);
    }
    let world = World::start_in(dir);
    for job in jobs {
        let after = world.api.json(&format!("/api/v1/jobs/{}", job["id"])).await;
        assert_eq!((&after["state"], &after["itemsDone"]), (&job["state"], &job["itemsDone"]));
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bytes_that_were_acknowledged_are_there_after_kill_9() {
    let dir = TempDir::new();
    let process = Process::start(dir.path());
    let content = vec![42; 3_000_000];
    let blob = process.api.blob(content.clone()).await;
    let name = blake3::hash(&content[..1000]).to_hex();
    let part = process.api.request(reqwest::Method::PUT, &format!("/api/v1/blobs/{name}"));
    let part = part.header("upload-length", 1000).body(content[..600].to_vec());
    assert_eq!(part.send().await.unwrap().status(), 202);
    let mut node = process.node("one").await;
    let id = process
        .api
        .submit(
            json!({"kind": "map", "wgsl": "x", "items": 10_000, "unit": 10_000, "verify": "none"}),
        )
        .await;
    let lease = node.lent().await;
    let bytes = numbers(&node.jobs[&lease.job].work, lease.span);
    assert_eq!(node.put(lease, bytes.clone()).await.status(), 200);
    process.kill();

    let process = Process::start(dir.path());
    assert!(process.api.bytes(&format!("/api/v1/blobs/{blob}")).await == content);
    let head = process.api.request(reqwest::Method::HEAD, &format!("/api/v1/blobs/{name}"));
    assert_eq!(head.send().await.unwrap().headers()["upload-offset"], "600");
    let held = vec![Held { attempt: lease.attempt, job: lease.job, span: lease.span }];
    let again = Hello { held, ..hello("one", &process.token) };
    let mut node = Node::join_with(&process.api, again).await;
    let hash = Hash(*blake3::hash(&bytes).as_bytes());
    let size = bytes.len() as u64;
    node.done(lease.attempt, UnitOutput::Stored { hash, size }).await;
    let job = process.api.ended(id).await;
    assert_eq!((&job["state"], &job["retries"]), (&json!("done"), &json!(0)), "{job}");
    assert!(process.api.bytes(&format!("/api/v1/jobs/{id}/result")).await == bytes);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_blob_that_never_reached_the_disk_is_dropped() {
    let world = World::start();
    let whole = world.api.blob("whole").await;
    let torn = world.api.blob("torn").await;
    let dir = world.stop().await;
    std::fs::write(dir.path().join("blobs").join(&torn[..2]).join(&torn), "\0\0\0\0").unwrap();
    let world = World::start_in(dir);
    assert_eq!(world.api.bytes(&format!("/api/v1/blobs/{whole}")).await, b"whole");
    let missing = world.api.get(&format!("/api/v1/blobs/{torn}")).await;
    assert_eq!(missing.status(), 404);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn torn_and_missing_results_are_computed_again() {
    let world = World::start();
    let node = Node::join(&world, "one").await.work(numbers);
    let job = json!({"kind": "map", "wgsl": "x", "items": 9_000, "unit": 1_000});
    let done = world.api.submit(job.clone()).await;
    let lost = world.api.submit(job).await;
    for id in [done, lost] {
        assert_eq!(world.api.ended(id).await["state"], "done");
    }
    let path = format!("/api/v1/jobs/{done}/result");
    let expected = world.api.bytes(&path).await;
    drop(node);
    let dir = world.stop().await;
    // As after a power failure: one unit's bytes never reached the disk, the end of the file is cut
    // off, and another job's file is missing.
    let file = dir.path().join(format!("results/{done}.log"));
    let mut bytes = std::fs::read(&file).unwrap();
    bytes[8_000] ^= 0xFF;
    bytes.truncate(35_000);
    std::fs::write(&file, bytes).unwrap();
    std::fs::remove_file(dir.path().join(format!("results/{lost}.log"))).unwrap();
    let world = World::start_in(dir);
    let job = world.api.json(&format!("/api/v1/jobs/{done}")).await;
    assert_eq!((&job["state"], &job["itemsDone"]), (&json!("running"), &json!(7_000)), "{job}");
    let job = world.api.json(&format!("/api/v1/jobs/{lost}")).await;
    assert_eq!(job["itemsDone"], 0);
    let _node = Node::join(&world, "one").await.work(numbers);
    for id in [done, lost] {
        assert_eq!(world.api.ended(id).await["state"], "done");
        let path = format!("/api/v1/jobs/{id}/result");
        assert!(world.api.bytes(&path).await == expected);
    }
    let world = world.restart().await;
    assert!(world.api.bytes(&path).await == expected);
    assert_eq!(world.api.json(&format!("/api/v1/jobs/{lost}")).await["state"], "done");
    let next = world.api.submit(noop(1)).await;
    assert_eq!(next, 3);
    world.stop().await;
}
