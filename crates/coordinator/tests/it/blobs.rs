//! Bytes in and out: streamed, by hash, resumable, in parts.

use reqwest::{Body, Method, Response, StatusCode};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::world::{World, eventually, problem};

fn hash(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex().to_string()
}

fn noise(len: usize) -> Vec<u8> {
    let mut seed = 0x2545_F491_4F6C_DD1D_u64;
    let next = || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed as u8
    };
    std::iter::repeat_with(next).take(len).collect()
}

async fn put(world: &World, hash: &str, offset: usize, total: usize, bytes: &[u8]) -> Response {
    world
        .api
        .request(Method::PUT, &format!("/api/v1/blobs/{hash}"))
        .header("upload-offset", offset)
        .header("upload-length", total)
        .body(bytes.to_vec())
        .send()
        .await
        .unwrap()
}

async fn held(world: &World, hash: &str) -> Option<u64> {
    let response = world.api.request(Method::HEAD, &format!("/api/v1/blobs/{hash}")).send().await;
    let response = response.unwrap();
    let offset = response.headers().get("upload-offset")?;
    assert_eq!(response.status(), StatusCode::NOT_FOUND);
    offset.to_str().unwrap().parse().ok()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_posted_comes_back_by_its_hash() {
    let world = World::start();
    for size in [0, 1, 70_000, 5_000_000] {
        let bytes = noise(size);
        let name = world.api.blob(bytes.clone()).await;
        assert_eq!(name, hash(&bytes));
        assert_eq!(world.api.bytes(&format!("/api/v1/blobs/{name}")).await, bytes);
        let head = world.api.request(Method::HEAD, &format!("/api/v1/blobs/{name}"));
        let head = head.send().await.unwrap();
        assert_eq!(head.status(), StatusCode::OK);
        assert_eq!(head.headers()["content-length"], size.to_string().as_str());
    }
    let partial = world.dir.path().join("blobs/partial");
    assert_eq!(std::fs::read_dir(partial).unwrap().count(), 0);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn parts_of_a_blob_can_be_asked_for() {
    let world = World::start();
    let bytes = noise(3_000_000);
    let path = format!("/api/v1/blobs/{}", world.api.blob(bytes.clone()).await);
    let part = async |range: &str| {
        world.api.request(Method::GET, &path).header("range", range).send().await.unwrap()
    };
    for (range, from, to) in [
        ("bytes=0-0", 0, 1),
        ("bytes=10-1999999", 10, 2_000_000),
        ("bytes=2999990-", 2_999_990, 3_000_000),
        ("bytes=-5", 2_999_995, 3_000_000),
    ] {
        let response = part(range).await;
        assert_eq!(response.status(), StatusCode::PARTIAL_CONTENT);
        let told = format!("bytes {from}-{}/3000000", to - 1);
        assert_eq!(response.headers()["content-range"], told.as_str());
        assert_eq!(response.bytes().await.unwrap(), bytes[from..to]);
    }
    let outside = part("bytes=3000000-").await;
    assert_eq!(outside.headers()["content-range"], "bytes */3000000");
    assert_eq!(problem(outside).await.0, StatusCode::RANGE_NOT_SATISFIABLE);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upload_goes_on_where_it_stopped_also_after_a_restart() {
    let world = World::start();
    let bytes = noise(100_000);
    let name = hash(&bytes);
    assert_eq!(held(&world, &name).await, Some(0));
    let first = put(&world, &name, 0, bytes.len(), &bytes[..30_000]).await;
    assert_eq!(first.status(), StatusCode::ACCEPTED);
    assert_eq!(first.headers()["upload-offset"], "30000");
    let world = world.restart().await;
    assert_eq!(held(&world, &name).await, Some(30_000));
    let wrong = put(&world, &name, 20_000, bytes.len(), &bytes[20_000..]).await;
    assert_eq!(wrong.headers()["upload-offset"], "30000");
    let (status, code, _) = problem(wrong).await;
    assert_eq!((status, code.as_str()), (StatusCode::CONFLICT, "wrong_offset"));
    let last = put(&world, &name, 30_000, bytes.len(), &bytes[30_000..]).await;
    assert_eq!(last.status(), StatusCode::CREATED);
    assert_eq!(world.api.bytes(&format!("/api/v1/blobs/{name}")).await, bytes);
    let again = put(&world, &name, 0, bytes.len(), &bytes).await;
    assert_eq!(again.status(), StatusCode::CREATED);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_hash_is_told_and_nothing_is_kept() {
    let world = World::start();
    let name = hash(b"expected");
    let response = put(&world, &name, 0, 5, b"other").await;
    let (status, code, message) = problem(response).await;
    assert_eq!((status, code.as_str()), (StatusCode::UNPROCESSABLE_ENTITY, "hash_mismatch"));
    assert!(message.contains(&hash(b"other")) && message.contains(&name), "{message}");
    assert_eq!(held(&world, &name).await, Some(0));
    let long = put(&world, &name, 0, 3, b"longer").await;
    assert_eq!(problem(long).await.1, "too_long");
    let odd = world.api.get("/api/v1/blobs/abc").await;
    assert_eq!(problem(odd).await.0, StatusCode::BAD_REQUEST);
    let missing = world.api.get(&format!("/api/v1/blobs/{}", hash(b"missing"))).await;
    assert_eq!(problem(missing).await.1, "no_such_blob");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_breaks_off_keeps_what_arrived() {
    let world = World::start();
    let bytes = noise(3_000_000);
    let name = hash(&bytes);
    let mut raw = TcpStream::connect(world.api.addr()).await.unwrap();
    let head = format!(
        "PUT /api/v1/blobs/{name} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\n\
         upload-length: {}\r\ncontent-length: {}\r\n\r\n",
        world.api.key,
        bytes.len(),
        bytes.len()
    );
    raw.write_all(head.as_bytes()).await.unwrap();
    raw.write_all(&bytes[..2_500_000]).await.unwrap();
    raw.flush().await.unwrap();
    drop(raw);
    let offset = eventually(async || held(&world, &name).await.filter(|held| *held == 2_500_000));
    let offset = offset.await as usize;
    let rest = put(&world, &name, offset, bytes.len(), &bytes[offset..]).await;
    assert_eq!(rest.status(), StatusCode::CREATED);
    assert_eq!(world.api.bytes(&format!("/api/v1/blobs/{name}")).await, bytes);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_post_that_breaks_off_leaves_nothing() {
    let world = World::start();
    let mut raw = TcpStream::connect(world.api.addr()).await.unwrap();
    let head = format!(
        "POST /api/v1/blobs HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\n\
         content-length: 1000000\r\n\r\n",
        world.api.key
    );
    raw.write_all(head.as_bytes()).await.unwrap();
    raw.write_all(&noise(500_000)).await.unwrap();
    let partial = world.dir.path().join("blobs/partial");
    let files = || std::fs::read_dir(&partial).unwrap().count();
    eventually(async || (files() == 1).then_some(())).await;
    drop(raw);
    eventually(async || (files() == 0).then_some(())).await;
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_clients_cannot_write_one_blob_at_once() {
    let world = World::start();
    let bytes = noise(1000);
    let name = hash(&bytes);
    let (sender, receiver) = tokio::sync::mpsc::channel::<Result<Vec<u8>, std::io::Error>>(1);
    let slow = futures_util::stream::unfold(receiver, async |mut receiver| {
        let piece = receiver.recv().await?;
        Some((piece, receiver))
    });
    let slow = world
        .api
        .request(Method::PUT, &format!("/api/v1/blobs/{name}"))
        .header("upload-length", bytes.len())
        .body(Body::wrap_stream(slow));
    let slow = tokio::spawn(slow.send());
    sender.send(Ok(bytes[..500].to_vec())).await.unwrap();
    let partial = world.dir.path().join("blobs/partial").join(&name);
    eventually(async || partial.exists().then_some(())).await;
    let other = put(&world, &name, 0, bytes.len(), &bytes).await;
    assert_eq!(problem(other).await.1, "upload_busy");
    sender.send(Ok(bytes[500..].to_vec())).await.unwrap();
    drop(sender);
    assert_eq!(slow.await.unwrap().unwrap().status(), StatusCode::CREATED);
    world.stop().await;
}
