//! The field of a simulation: who may send pictures and checkpoints of it, who sees it, who stirs it; and
//! requests that cannot be simulated.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use shoal_protocol::{CheckpointPart, CrewSay, CrewTold, Hash};

use crate::crew::{Player, cells, rows, sim, task};
use crate::world::{World, eventually, problem};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_members_store_rows_and_pictures_and_only_their_own() {
    let world = World::start();
    let mut one = Player::join(&world, "one").await;
    world.api.submit(sim(1)).await;
    let call = one.enlisted().await;
    let crew = call.crew;
    let stranger = Player::join(&world, "stranger").await;
    let (kept, mine) = (format!("/node/kept/{crew}/1"), cells(rows(&call), 2));
    let refused = problem(stranger.put(&kept, mine.clone()).await).await;
    assert_eq!((refused.0, refused.1.as_str()), (StatusCode::FORBIDDEN, "not_member"));
    assert!(refused.2.contains(&format!("crew {crew} in epoch 1")), "{}", refused.2);
    let view = format!("/node/view/{crew}?firstRow=0&rows=12&step=1&stride=1");
    assert_eq!(problem(stranger.put(&view, vec![0; 384]).await).await.1, "not_member");
    let without = world.api.request(Method::PUT, &kept).body(mine.clone()).send().await.unwrap();
    assert_eq!(problem(without).await.1, "bad_session");
    let future = format!("/node/kept/{crew}/2");
    assert_eq!(problem(one.put(&future, mine.clone()).await).await.1, "not_member");
    let short = problem(one.put(&kept, mine[1..].to_vec()).await).await;
    assert_eq!((short.0, short.1.as_str()), (StatusCode::UNPROCESSABLE_ENTITY, "wrong_size"));
    assert!(short.2.contains("383 bytes") && short.2.contains("384"), "{}", short.2);
    for (query, bytes, words) in [
        ("firstRow=0&rows=13&step=1", 416, "not this member's"),
        ("firstRow=0&rows=12&step=1", 380, "expected 384"),
        ("firstRow=0&rows=12&step=1&stride=0", 384, "at least 1"),
    ] {
        let bad =
            problem(one.put(&format!("/node/view/{crew}?{query}"), vec![0; bytes]).await).await;
        assert_eq!(bad.1, "bad_picture");
        assert!(bad.2.contains(words), "{}", bad.2);
    }
    let large = one.put(&view, vec![0; 385]).await;
    assert_eq!(large.status(), StatusCode::PAYLOAD_TOO_LARGE);
    let nameless = problem(one.put(&format!("/node/view/{crew}"), vec![]).await).await;
    assert!(nameless.2.contains("firstRow"), "{}", nameless.2);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_part_that_is_not_there_is_part_of_no_checkpoint() {
    let world = World::start();
    let mut one = Player::join(&world, "one").await;
    let job = world.api.submit(sim(1)).await;
    let call = one.enlisted().await;
    let mut blob = one.store(&call, cells(rows(&call), 2)).await;
    let right = CheckpointPart { rows: rows(&call), blob };
    blob.hash = Hash([7; 32]);
    one.say(&call, CrewSay::Checkpoint { step: 2, part: CheckpointPart { blob, ..right } });
    one.step(&call, 3);
    let step = async || {
        let sim = world.api.json(&format!("/api/v1/jobs/{job}")).await["sim"].clone();
        (sim["step"] == 3).then_some(sim)
    };
    assert_eq!(eventually(step).await["crew"]["keptStep"], 0);
    one.say(&call, CrewSay::Checkpoint { step: 2, part: right });
    eventually(async || (step().await?["crew"]["keptStep"] == 2).then_some(())).await;
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_field_is_seen_while_somebody_looks() {
    let world = World::start();
    let (mut one, mut two) = (Player::join(&world, "one").await, Player::join(&world, "two").await);
    let job = world.api.submit(sim(2)).await;
    let (first, second) = (one.enlisted().await, two.enlisted().await);
    let field = format!("/api/v1/jobs/{job}/field");
    let look = |after: u64| {
        let request = world.api.request(Method::GET, &format!("{field}?after={after}"));
        tokio::spawn(request.header("accept", "application/octet-stream").send())
    };
    let looking = look(0);
    assert_eq!(one.told().await, CrewTold::Watch(true));
    assert_eq!(two.told().await, CrewTold::Watch(true));
    let show = async |player: &Player, start: u64, colour: u8| {
        let crew = first.crew;
        let path = format!("/node/view/{crew}?firstRow={start}&rows=6&step=4&stride=1");
        let put = player.put(&path, vec![colour; 192]).await;
        assert_eq!(put.status(), StatusCode::NO_CONTENT, "{}", put.text().await.unwrap());
    };
    show(&two, rows(&second).start, 9).await;
    let seen = looking.await.unwrap().unwrap();
    let header = |name: &str| seen.headers()[name].to_str().unwrap().to_owned();
    let headers =
        ["version", "step", "width", "height"].map(|name| header(&format!("x-shoal-{name}")));
    assert_eq!(headers, ["1", "4", "8", "12"]);
    // What was not seen yet is transparent.
    assert_eq!(seen.bytes().await.unwrap(), [vec![0; 192], vec![9; 192]].concat());
    let looking = look(1);
    show(&one, rows(&first).start, 5).await;
    let seen = looking.await.unwrap().unwrap().bytes().await.unwrap();
    assert_eq!(seen, [vec![5; 192], vec![9; 192]].concat());
    let png = world.api.get(&field).await;
    assert_eq!(png.headers()["content-type"], "image/png");
    let png = image::load_from_memory(&png.bytes().await.unwrap()).unwrap().into_rgba8();
    assert_eq!((png.dimensions(), png.as_raw()), ((8, 12), &seen.to_vec()));
    // Nobody looks any more.
    assert_eq!(one.told().await, CrewTold::Watch(false));
    assert_eq!(two.told().await, CrewTold::Watch(false));
    one.finish(&first, cells(rows(&first), 6));
    two.finish(&second, cells(rows(&second), 6));
    world.api.ended(job).await;
    assert_eq!(world.api.get(&format!("{field}?after=2")).await.status(), StatusCode::NO_CONTENT);
    assert_eq!(world.api.get(&field).await.status(), StatusCode::OK);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_poke_reaches_the_first_member() {
    let world = World::start();
    let mut one = Player::join(&world, "one").await;
    let job = world.api.submit(sim(1)).await;
    let call = one.enlisted().await;
    let path = format!("/api/v1/jobs/{job}/poke");
    let taken = world.api.post(&path, json!({ "at": [1.5, 11], "by": [2, -3], "radius": 4 })).await;
    assert_eq!(taken.status(), StatusCode::ACCEPTED);
    let CrewTold::Poke(poke) = one.told().await else { panic!("expected a poke") };
    assert_eq!((poke.at, poke.by), ([1.5, 11.0], [2.0, -3.0]));
    assert_eq!((poke.radius, poke.strength), (4.0, 1.0));
    for (bad, words) in [
        (json!({ "at": [8, 0] }), "outside the grid"),
        (json!({ "at": [-0.5, 0] }), "outside the grid"),
        (json!({ "at": [0, 0], "by": [13, 0] }), "-12 to 12"),
        (json!({ "at": [0, 0], "radius": 0 }), "above 0"),
        (json!({ "at": [0, 0], "radius": 1e9 }), "at most 12"),
        (json!({ "at": [0] }), "not a poke"),
        (json!({ "at": [0, 0], "power": 1 }), "power"),
    ] {
        let (_, _, message) = problem(world.api.post(&path, bad).await).await;
        assert!(message.contains(words), "{message}");
    }
    one.finish(&call, cells(rows(&call), 6));
    world.api.ended(job).await;
    let late = problem(world.api.post(&path, json!({ "at": [0, 0] })).await).await;
    assert_eq!((late.0, late.1.as_str()), (StatusCode::CONFLICT, "not_running"));
    let noop = world.api.submit(crate::world::noop(1)).await;
    for path in [format!("/api/v1/jobs/{noop}/field"), format!("/api/v1/jobs/{noop}/result.npy")] {
        let status = world.api.get(&path).await.status();
        assert_eq!(status, StatusCode::CONFLICT, "{path}");
    }
    assert_eq!(task(&call).job.0, job);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_simulated_is_refused_with_words() {
    let world = World::start();
    let blob = world.api.blob(vec![0; 100]).await;
    let many = json!({ "width": 32_768, "height": 32_768, "source": "vec4" });
    for (change, code, words) in [
        (json!({ "source": "wrong" }), "bad_kernel", "line 1, column 5"),
        (json!({ "source": " ".repeat(300_000) }), "bad_kernel", "at most 262144"),
        (json!({ "width": 0 }), "bad_request", "grid is 0 x 12"),
        (json!({ "height": 40_000 }), "bad_request", "from 1 to 32768"),
        (many, "too_large", "at most 4294967296"),
        (json!({ "steps": 0 }), "bad_request", "\"steps\" is 0"),
        (json!({ "steps": 1_u64 << 40 }), "bad_request", "from 1 to 4294967295"),
        (json!({ "halo": 13 }), "bad_request", "grid has only 12"),
        (json!({ "members": 0 }), "bad_request", "from 1 to 64"),
        (json!({ "members": 65 }), "bad_request", "from 1 to 64"),
        (json!({ "members": 7 }), "bad_request", "7 members need at least 2 rows each"),
        (json!({ "first": "abc" }), "bad_request", "not a BLAKE3 hash"),
        (json!({ "first": "0".repeat(64) }), "blob_missing", "upload it first"),
        (json!({ "first": blob }), "wrong_size", "12 rows of 8 cells of 4 bytes are 384"),
        (json!({ "verify": "quorum:3" }), "bad_request", "computed by several at once"),
        (json!({ "unit": 4 }), "bad_request", "\"unit\" is not for simulations"),
        (json!({ "strategy": "weight" }), "bad_request", "\"strategy\" is not for simulations"),
        (json!({ "tolerance": { "abs": 1 } }), "bad_request", "\"tolerance\" is not for"),
        (json!({ "speed": 1 }), "bad_request", "speed"),
        (json!({ "wgsl": "" }), "bad_request", "wgsl"),
    ] {
        let mut job = sim(2);
        let Value::Object(change) = change else { unreachable!() };
        job.as_object_mut().unwrap().extend(change.clone());
        if change.contains_key("width") && change.contains_key("height") {
            job.as_object_mut().unwrap().remove("members");
        }
        let (status, found, message) = world.api.refused(job).await;
        assert_eq!((status, found.as_str()), (StatusCode::UNPROCESSABLE_ENTITY, code), "{message}");
        assert!(message.contains(words), "{message}");
    }
    let first = world.api.blob(vec![0; 384]).await;
    let mut job = sim(2);
    job["first"] = json!(first);
    job["verify"] = json!("none");
    world.api.submit(job).await;
    world.stop().await;
}
