//! Simulations: crews called together with tokens that hold, checkpoints that are kept and dropped, and what
//! happens when members or the coordinator go.

use std::path::Path;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use shoal_protocol::sign::link_statement;
use shoal_protocol::{CheckpointPart, CrewSay, CrewTask, Enlist, Epoch, NodeId, Span};
use shoal_seal::{Rights, is_signed};

use crate::crew::{Player, cells, coordinator_key, keep_all, rows, sim, task};
use crate::world::{World, eventually, problem};

const GRID: Span = Span { start: 0, len: 12 };

/// Checkpoints' files.
fn kept_files(dir: &Path) -> usize {
    let folders = std::fs::read_dir(dir.join("kept")).unwrap().map(|dir| dir.unwrap().path());
    let folders = folders.filter(|dir| !dir.ends_with("partial"));
    folders.map(|dir| std::fs::read_dir(dir).unwrap().count()).sum()
}

async fn pair(world: &World) -> (Player, Player) {
    (Player::join(world, "one").await, Player::join(world, "two").await)
}

async fn called(one: &mut Player, two: &mut Player) -> (Enlist, Enlist) {
    (one.enlisted().await, two.enlisted().await)
}

/// Both hand in their rows; gives the job as it ended.
async fn finish(world: &World, job: u64, crew: [(&Player, &Enlist); 2]) -> Value {
    for (player, enlist) in crew {
        player.finish(enlist, cells(rows(enlist), 6));
    }
    let ended = world.api.ended(job).await;
    assert_eq!(ended["state"], "done", "{ended}");
    ended
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crew_is_called_with_tokens_and_proofs_that_hold() {
    let world = World::start();
    let (mut one, mut two) = pair(&world).await;
    let job = world.api.submit(sim(2)).await;
    let coordinator = coordinator_key(&world.api).await;
    let (first, second) = called(&mut one, &mut two).await;
    for (enlist, rank) in [(&first, 0), (&second, 1)] {
        assert_eq!((enlist.crew, enlist.epoch, enlist.rank), (first.crew, Epoch(1), rank));
        assert_eq!(enlist.ice, ["stun:127.0.0.1:9"]);
        assert_eq!(task(enlist).bands, [Span::new(0, 6), Span::new(6, 6)]);
        assert_eq!((task(enlist).from, task(enlist).keep_every), (0, 2));
        let claims = shoal_seal::read(&enlist.token, &coordinator).unwrap();
        let me = enlist.members[usize::from(rank)].node;
        assert_eq!(claims.belong(enlist.crew, me), Ok(()));
        let now = claims.until - 3_600_000_000;
        for buffer in [1, 15] {
            assert_eq!(claims.allow(Rights::WRITE, buffer, Epoch(1), now), Ok(()));
        }
        assert!(claims.allow(Rights::WRITE, 0, Epoch(1), now).is_err());
        assert!(claims.allow(Rights::READ, 1, Epoch(1), now).is_err());
        assert!(claims.allow(Rights::WRITE, 1, Epoch(2), now).is_err());
        for member in &enlist.members {
            let statement = link_statement(&coordinator, &member.key);
            assert!(is_signed(&member.identity.0, &statement, &member.proof));
        }
    }
    assert_ne!(task(&first).attempt, task(&second).attempt);
    assert_eq!(world.api.metric("shoal_crews").await, 1.0);
    let ended = finish(&world, job, [(&one, &first), (&two, &second)]).await;
    assert_eq!((&ended["kind"], &ended["sim"]["step"]), (&json!("sim"), &json!(6)));
    assert_eq!(one.dismissed().await, first.crew);
    assert_eq!(world.api.metric("shoal_crews").await, 0.0);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_rows_become_one_array_and_its_receipt_says_how() {
    let world = World::start();
    let (mut one, mut two) = pair(&world).await;
    let job = world.api.submit(sim(2)).await;
    let (first, second) = called(&mut one, &mut two).await;
    one.step(&first, 3);
    two.step(&second, 2);
    let shown = eventually(async || {
        let job = world.api.json(&format!("/api/v1/jobs/{job}")).await;
        (job["sim"]["step"] == 2).then_some(job)
    })
    .await;
    assert_eq!(shown["sim"]["crew"]["state"], "working");
    assert_eq!(shown["sim"]["crew"]["members"][0]["step"], 3);
    assert_eq!(shown["sim"]["crew"]["members"][1]["rows"], json!([6, 6]));
    assert_eq!(shown["sim"]["crew"]["members"][1]["name"], "two");
    finish(&world, job, [(&one, &first), (&two, &second)]).await;
    let bytes = cells(GRID, 6);
    assert_eq!(world.api.bytes(&format!("/api/v1/jobs/{job}/result")).await, bytes);
    let npy = world.api.bytes(&format!("/api/v1/jobs/{job}/result.npy")).await;
    let head = String::from_utf8_lossy(&npy[..128]).into_owned();
    assert!(head.contains("'descr': '<f4'") && head.contains("'shape': (12, 8)"), "{head}");
    assert_eq!(npy[128..], bytes);
    // Whoever lost the connection goes on where it broke, in the head as well as behind it.
    for (from, until) in [(0, 5), (100, 128), (120, 140), (130, npy.len()), (5, npy.len())] {
        let request = world.api.request(Method::GET, &format!("/api/v1/jobs/{job}/result.npy"));
        let range = format!("bytes={from}-{}", until - 1);
        let part = request.header("range", range).send().await.unwrap();
        assert_eq!(part.status(), StatusCode::PARTIAL_CONTENT);
        assert_eq!(part.bytes().await.unwrap(), npy[from..until]);
    }
    let request = world.api.request(Method::GET, &format!("/api/v1/jobs/{job}/result.npy"));
    let beyond = request.header("range", format!("bytes={}-", npy.len())).send().await.unwrap();
    assert_eq!(beyond.status(), StatusCode::RANGE_NOT_SATISFIABLE);
    let signed = world.api.json(&format!("/api/v1/jobs/{job}/receipt")).await;
    let receipt = &signed["receipt"];
    assert_eq!(receipt["kind"], "sim");
    let (settings, nodes) = (&receipt["settings"], receipt["nodes"].as_array().unwrap());
    assert_eq!((&settings["width"], &settings["height"]), (&json!(8), &json!(12)));
    assert_eq!((&settings["steps"], &settings["halo"]), (&json!(6), &json!(2)));
    assert_eq!(settings["passes"], json!(["step", "again*10"]));
    assert_eq!(nodes.iter().map(|node| &node["name"]).collect::<Vec<_>>(), ["one", "two"]);
    let explained = world.api.json(&format!("/api/v1/jobs/{job}/explain")).await;
    assert!(explained["lines"].as_array().unwrap().len() > 1, "{explained}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn checkpoints_are_kept_and_the_one_before_is_dropped() {
    let world = World::start();
    let (mut one, mut two) = pair(&world).await;
    let job = world.api.submit(sim(2)).await;
    let (first, second) = called(&mut one, &mut two).await;
    let crew = [(&one, &first), (&two, &second)];
    let old = keep_all(&world.api, &crew, 2).await;
    assert_eq!(two.blob(old[0]).await, Some(cells(rows(&first), 2)));
    // What a user uploaded stays, also if a checkpoint has the same bytes.
    let upload = world.api.blob(cells(rows(&first), 2)).await;
    assert_eq!(upload, old[0].hash.to_string());
    assert_eq!(kept_files(world.dir.path()), 2);
    let new = keep_all(&world.api, &crew, 4).await;
    assert_eq!(one.blob(new[1]).await, Some(cells(rows(&second), 4)));
    eventually(async || (kept_files(world.dir.path()) == 2).then_some(())).await;
    assert_eq!(one.blob(old[1]).await, None);
    assert_eq!(world.api.bytes(&format!("/api/v1/blobs/{upload}")).await, cells(rows(&first), 2));
    finish(&world, job, crew).await;
    eventually(async || (kept_files(world.dir.path()) == 0).then_some(())).await;
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_bytes_stay_while_another_job_needs_them() {
    let world = World::start();
    let mut one = Player::join(&world, "one").await;
    let first_job = world.api.submit(sim(1)).await;
    let first = one.enlisted().await;
    let old = keep_all(&world.api, &[(&one, &first)], 2).await;
    let mut longer = sim(1);
    longer["steps"] = 8.into();
    world.api.submit(longer).await;
    let second = one.enlisted().await;
    assert_eq!(keep_all(&world.api, &[(&one, &second)], 2).await, old);
    one.finish(&first, cells(GRID, 6));
    assert_eq!(world.api.ended(first_job).await["state"], "done");
    assert_eq!(one.blob(old[0]).await, Some(cells(GRID, 2)));
    // A state that does not change has the same bytes at the next checkpoint.
    one.keep(&second, 4, cells(GRID, 2)).await;
    one.keep(&second, 6, cells(GRID, 4)).await;
    eventually(async || one.blob(old[0]).await.is_none().then_some(())).await;
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancelled_crew_goes_home_and_its_checkpoint_with_it() {
    let world = World::start();
    let mut one = Player::join(&world, "one").await;
    let job = world.api.submit(sim(1)).await;
    let call = one.enlisted().await;
    let kept = keep_all(&world.api, &[(&one, &call)], 2).await;
    one.store(&call, cells(GRID, 4)).await;
    let cancelled = world.api.post(&format!("/api/v1/jobs/{job}/cancel"), json!({})).await;
    assert_eq!(cancelled.json::<Value>().await.unwrap()["state"], "cancelled");
    assert_eq!(one.dismissed().await, call.crew);
    eventually(async || (kept_files(world.dir.path()) == 0).then_some(())).await;
    assert_eq!(one.blob(kept[0]).await, None);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn when_a_member_dies_the_rest_goes_on_from_the_checkpoint() {
    let world = World::start();
    let (mut one, mut two) = pair(&world).await;
    let job = world.api.submit(sim(2)).await;
    let (first, second) = called(&mut one, &mut two).await;
    let kept = keep_all(&world.api, &[(&one, &first), (&two, &second)], 2).await;
    let half = one.store(&first, cells(rows(&first), 4)).await;
    let part = CheckpointPart { rows: rows(&first), blob: half };
    one.say(&first, CrewSay::Checkpoint { step: 4, part });
    let mut three = Player::join(&world, "three").await;
    drop(two);
    let (first, second) = called(&mut one, &mut three).await;
    assert_eq!((first.epoch, second.epoch), (Epoch(2), Epoch(2)));
    assert_eq!((task(&first).from, task(&second).from), (2, 2));
    let blobs: Vec<_> = task(&second).kept.iter().map(|part| part.blob).collect();
    assert_eq!(blobs, kept);
    assert_eq!(three.blob(kept[1]).await, Some(cells(Span::new(6, 6), 2)));
    // What never became whole is of no use.
    eventually(async || one.blob(half).await.is_none().then_some(())).await;
    let old = format!("/node/kept/{}/1", first.crew);
    assert_eq!(problem(one.put(&old, cells(rows(&first), 4)).await).await.1, "not_member");
    let ended = finish(&world, job, [(&one, &first), (&three, &second)]).await;
    assert_eq!(ended["retries"], 1);
    assert_eq!(world.api.bytes(&format!("/api/v1/jobs/{job}/result")).await, cells(GRID, 6));
    assert_eq!(world.api.json("/api/v1/pool").await["epochs"], 2);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_coordinator_that_comes_back_calls_the_crew_again_from_the_checkpoint() {
    let world = World::start();
    let (mut one, mut two) = pair(&world).await;
    let job = world.api.submit(sim(2)).await;
    let (first, second) = called(&mut one, &mut two).await;
    let kept = keep_all(&world.api, &[(&one, &first), (&two, &second)], 4).await;
    one.store(&first, cells(rows(&first), 6)).await;
    let world = world.restart().await;
    assert_eq!(kept_files(world.dir.path()), 2);
    let (mut one, mut two) = pair(&world).await;
    let (first, second) = called(&mut one, &mut two).await;
    assert!(first.epoch > Epoch(1));
    assert_eq!((task(&first).from, task(&first).kept.len()), (4, 2));
    assert_eq!(two.blob(kept[0]).await, Some(cells(Span::new(0, 6), 4)));
    finish(&world, job, [(&one, &first), (&two, &second)]).await;
    assert_eq!(world.api.bytes(&format!("/api/v1/jobs/{job}/result")).await, cells(GRID, 6));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_checkpoint_that_was_lost_on_the_disk_is_not_computed_on() {
    let world = World::start();
    let (mut one, mut two) = pair(&world).await;
    let job = world.api.submit(sim(2)).await;
    let (first, second) = called(&mut one, &mut two).await;
    let kept = keep_all(&world.api, &[(&one, &first), (&two, &second)], 4).await;
    let dir = world.stop().await;
    let name = kept[1].hash.to_string();
    std::fs::write(dir.path().join("kept").join(&name[..2]).join(&name), "torn").unwrap();
    for _ in 0..2 {
        // The second start finds what the first made of it.
        let world = World::start_in(crate::world::TempDir::adopt(dir.path()));
        let (mut one, mut two) = pair(&world).await;
        let (first, _) = called(&mut one, &mut two).await;
        assert_eq!((task(&first).from, task(&first).kept.len()), (0, 0));
        assert_eq!(kept_files(dir.path()), 0);
        let shown = world.api.json(&format!("/api/v1/jobs/{job}")).await;
        assert_eq!(shown["sim"]["crew"]["keptStep"], 0);
        world.stop().await.leave();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_nodes_that_meet_may_do_all_to_each_other_and_nothing_to_the_pool() {
    let world = World::start();
    let (mut one, mut two) = pair(&world).await;
    let nodes = world.api.json("/api/v1/nodes").await;
    let node = nodes["nodes"].as_array().unwrap().iter().find(|node| node["name"] == "two");
    let first = one.met(NodeId(node.unwrap()["id"].as_u64().unwrap())).await;
    let second = two.enlisted().await;
    let coordinator = coordinator_key(&world.api).await;
    for call in [&first, &second] {
        assert_eq!((call.crew, &call.task), (first.crew, &CrewTask::Talk));
        let claims = shoal_seal::read(&call.token, &coordinator).unwrap();
        let me = call.members[usize::from(call.rank)].node;
        assert_eq!(claims.belong(call.crew, me), Ok(()));
        let now = claims.until - 1;
        assert_eq!(claims.allow(Rights::ALL, 1 << 20, call.epoch, now), Ok(()));
    }
    let kept = format!("/node/kept/{}/{}", first.crew, first.epoch.0);
    assert_eq!(problem(one.put(&kept, vec![0; 4]).await).await.1, "not_member");
    let view = format!("/node/view/{}?firstRow=0&rows=1&step=1", first.crew);
    assert_eq!(problem(one.put(&view, vec![0; 4]).await).await.1, "not_member");
    drop(two);
    assert_eq!(one.dismissed().await, first.crew);
    world.stop().await;
}
