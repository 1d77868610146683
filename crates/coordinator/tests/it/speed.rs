//! How fast the coordinator alone is; run with `--ignored --nocapture` and a release build.

use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::Value;

use crate::node::{Node, nothing};
use crate::world::{World, noop};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "measures"]
async fn units_per_second() {
    let world = World::start();
    let _one = Node::join(&world, "one").await.work(nothing);
    let _two = Node::join(&world, "two").await.work(nothing);
    for _ in 0..3 {
        let began = Instant::now();
        let response = world.api.post("/api/v1/jobs?wait=60", noop(300_000)).await;
        let job: Value = response.json().await.unwrap();
        assert_eq!(job["state"], "done");
        eprintln!("{:.0} units/s", 300_000.0 / began.elapsed().as_secs_f64());
        eprintln!("driver so far: {:?} of CPU", driver_cpu());
    }
    let metrics = world.api.open(Method::GET, "/metrics").send().await.unwrap();
    eprintln!("{}", metrics.text().await.unwrap());
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "measures"]
async fn one_small_job() {
    let world = World::start();
    let _one = Node::join(&world, "one").await.work(nothing);
    let mut times: Vec<Duration> = Vec::new();
    for _ in 0..2000 {
        let began = Instant::now();
        let response = world.api.post("/api/v1/jobs?wait=60", noop(1)).await;
        let job: Value = response.json().await.unwrap();
        assert_eq!(job["state"], "done");
        times.push(began.elapsed());
    }
    times.sort_unstable();
    eprintln!("p50 {:?}, p99 {:?}", times[1000], times[1980]);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "measures"]
async fn large_blobs() {
    let world = World::start();
    let size = 256 << 20;
    for round in 0..4 {
        let bytes = vec![round as u8; size];
        let began = Instant::now();
        let name = world.api.blob(bytes).await;
        let up = began.elapsed();
        let began = Instant::now();
        let mut response = world.api.get(&format!("/api/v1/blobs/{name}")).await;
        let mut read = 0;
        while let Some(chunk) = response.chunk().await.unwrap() {
            read += chunk.len();
        }
        let down = began.elapsed();
        assert_eq!(read, size);
        let rate = |took: Duration| size as f64 / took.as_secs_f64() / 1e9;
        eprintln!("up {:.2} GB/s, down {:.2} GB/s", rate(up), rate(down));
    }
    world.stop().await;
}

/// CPU time of the driver's thread in this process, where the system tells.
fn driver_cpu() -> Option<Duration> {
    let tasks = std::fs::read_dir("/proc/self/task").ok()?;
    let stats =
        tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("stat")).ok());
    let stat = stats.into_iter().find(|stat| stat.contains("(shoal-driver)"))?;
    let fields: Vec<&str> = stat.rsplit(')').next()?.split_whitespace().collect();
    let ticks: u64 = fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?;
    Some(Duration::from_millis(ticks * 10))
}
