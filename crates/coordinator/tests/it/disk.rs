//! A full disk is told, and what was promised is kept. Needs a small file system of its own, so it runs
//! only where one can be mounted.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde_json::json;
use shoal_protocol::Failure;

use crate::node::{Node, numbers};
use crate::world::{Api, eventually, noop, open, problem};

/// A file system of 24 MiB.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn mount() -> Option<SmallDisk> {
        let path = std::env::temp_dir().join(format!("shoal-small-{}", std::process::id()));
        std::fs::create_dir_all(&path).ok()?;
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=24m", "tmpfs"])
            .arg(&path)
            .output();
        mounted.is_ok_and(|output| output.status.success()).then_some(SmallDisk(path))
    }

    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
        let _ = std::fs::remove_dir(&self.0);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_refuses_what_is_new_and_keeps_what_is_old() {
    let Some(disk) = SmallDisk::mount() else {
        assert!(std::env::var_os("CI").is_none(), "no small file system can be mounted here");
        eprintln!("SKIPPED: a full disk is not tested, because no tmpfs can be mounted here");
        return;
    };
    let folder = disk.path().join("data");
    let coordinator = open(&folder).unwrap();
    let api = Api::new(coordinator.urls().local.clone(), coordinator.key().into());
    let token = coordinator.token().to_owned();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let task = tokio::spawn(coordinator.run(async {
        let _ = stopped.await;
    }));

    let kept = api.blob("kept").await;
    let id = api.submit(json!({"kind": "map", "wgsl": "x", "items": 100_000, "unit": 1000})).await;
    let huge = api.request(Method::POST, "/api/v1/blobs").body(vec![7; 30 << 20]).send().await;
    let (status, code, message) = problem(huge.unwrap()).await;
    assert_eq!((status, code.as_str()), (StatusCode::INSUFFICIENT_STORAGE, "disk_full"));
    assert!(message.contains("disk is full"), "{message}");
    assert_eq!(api.bytes(&format!("/api/v1/blobs/{kept}")).await, b"kept");

    // Nothing is left of the failed upload, so there is room for an ordinary job.
    let node = Node::join_with(&api, crate::node::hello("one", &token)).await.work(numbers);
    assert_eq!(api.ended(id).await["state"], "done");
    drop(node);

    no_room_for_a_result(&api, &token, &disk.path().join("filler")).await;

    // Now something else fills the disk to the last byte; facts go on from the ballast.
    let filler = disk.path().join("filler");
    let _ = std::fs::write(&filler, vec![1; 30 << 20]);
    let full = eventually(async || {
        let response = api.post("/api/v1/jobs", noop(1)).await;
        (response.status() == StatusCode::SERVICE_UNAVAILABLE).then_some(())
    });
    full.await;
    let health = api.open(Method::GET, "/healthz").send().await.unwrap();
    assert_eq!(health.status(), StatusCode::SERVICE_UNAVAILABLE);
    let words = health.text().await.unwrap();
    assert!(words.starts_with("degraded: ") && words.contains("disk is full"), "{words}");
    let refused = api.request(Method::POST, "/api/v1/blobs").body(vec![7; 5 << 20]).send().await;
    assert_eq!(problem(refused.unwrap()).await.1, "disk_full");
    let before = api.json("/api/v1/jobs").await["jobs"].as_array().unwrap().len();
    assert_eq!(api.bytes(&format!("/api/v1/jobs/{id}/result")).await.len(), 400_000);

    std::fs::remove_file(&filler).unwrap();
    let again = eventually(async || {
        let response = api.post("/api/v1/jobs", noop(1)).await;
        (response.status() == StatusCode::CREATED).then_some(())
    });
    tokio::time::timeout(Duration::from_secs(4), again).await.unwrap();
    stop.send(()).unwrap();
    task.await.unwrap().unwrap();
    let coordinator = open(&folder).unwrap();
    let api = Api::new(coordinator.urls().local.clone(), coordinator.key().into());
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let task = tokio::spawn(coordinator.run(async {
        let _ = stopped.await;
    }));
    let after = api.json("/api/v1/jobs").await["jobs"].as_array().unwrap().len();
    assert_eq!(after, before + 1);
    stop.send(()).unwrap();
    task.await.unwrap().unwrap();
}

/// A result that finds no room is nobody's fault: its unit is lent again once there is some.
async fn no_room_for_a_result(api: &Api, token: &str, filler: &std::path::Path) {
    let mut node = Node::join_with(api, crate::node::hello("two", token)).await;
    let late = api.submit(json!({"kind": "map", "wgsl": "x", "items": 1000, "unit": 1000})).await;
    let lease = node.lent().await;
    let bytes = numbers(&node.jobs[&lease.job].work, lease.span);
    let _ = std::fs::write(filler, vec![1; 30 << 20]);
    assert_eq!(problem(node.put(lease, bytes.clone()).await).await.1, "disk_full");
    node.fail(lease.attempt, Failure::Fetch { message: "507".into() }).await;
    node.inline(lease.attempt, bytes.clone()).await;
    let job = api.json(&format!("/api/v1/jobs/{late}")).await;
    assert_eq!((&job["state"], &job["itemsLeased"]), (&json!("running"), &json!(1000)), "{job}");
    std::fs::remove_file(filler).unwrap();
    let again = node.lent().await;
    assert_eq!((again.job, again.span), (lease.job, lease.span));
    node.inline(again.attempt, bytes).await;
    assert_eq!(api.ended(late).await["state"], "done");
    let metrics = api.open(Method::GET, "/metrics").send().await.unwrap().text().await.unwrap();
    assert!(metrics.contains("shoal_units_failed_total 0\n"), "{metrics}");
}
