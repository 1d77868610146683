//! Pictures grow tile by tile.

use serde_json::json;
use shoal_kinds::Kind;
use shoal_protocol::Span;

use crate::node::Node;
use crate::world::World;

/// Every pixel of tile `i` is (i, 0, 0, 255).
fn tiles(work: &Kind, span: Span) -> Vec<u8> {
    let Kind::Render(render) = work else { panic!("no render") };
    let pixels = (render.tile * render.tile) as usize;
    (span.start..span.end()).flat_map(|i| [i as u8, 0, 0, 255].repeat(pixels)).collect()
}

fn picture(png: &[u8]) -> image::RgbaImage {
    image::load_from_memory_with_format(png, image::ImageFormat::Png).unwrap().to_rgba8()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_picture_is_put_together_from_tiles() {
    let world = World::start();
    let _node = Node::join(&world, "one").await.work(tiles);
    let job = json!({"kind": "render", "wgsl": "x", "width": 40, "height": 20, "tile": 16});
    let id = world.api.submit(job).await;
    let job = world.api.ended(id).await;
    let shown = json!({"width": 40, "height": 20, "tile": 16, "pixel": "rgba8", "samples": 1});
    assert_eq!((&job["items"], &job["render"]), (&json!(6), &shown), "{job}");
    let path = format!("/api/v1/jobs/{id}");
    let response = world.api.get(&format!("{path}/picture.png")).await;
    assert_eq!(response.headers()["content-type"], "image/png");
    let image = picture(&response.bytes().await.unwrap());
    assert_eq!(image.dimensions(), (40, 20));
    for (x, y, tile) in [(0, 0, 0), (16, 0, 1), (39, 15, 2), (0, 16, 3), (39, 19, 5)] {
        assert_eq!(image.get_pixel(x, y).0, [tile, 0, 0, 255], "{x}, {y}");
    }
    let tile = world.api.bytes(&format!("{path}/tiles/4")).await;
    assert_eq!(tile, [4, 0, 0, 255].repeat(256));
    assert_eq!(world.api.bytes(&format!("{path}/result")).await.len(), 6 * 1024);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_missing_is_transparent() {
    let world = World::start();
    let mut node = Node::join(&world, "one").await;
    // Asking too early spoils nothing.
    let early = world.api.get("/api/v1/jobs/1/tiles/0").await;
    assert_eq!(crate::world::problem(early).await.1, "no_such_job");
    let job =
        json!({"kind": "render", "wgsl": "x", "width": 32, "height": 16, "tile": 16, "unit": 1});
    let id = world.api.submit(job).await;
    let path = format!("/api/v1/jobs/{id}");
    let empty = picture(&world.api.bytes(&format!("{path}/picture.png")).await);
    assert!(empty.pixels().all(|pixel| pixel.0 == [0; 4]));
    let lease = node.lent().await;
    node.inline(lease.attempt, tiles(&node.jobs[&lease.job].work, lease.span)).await;
    let some = crate::world::eventually(async || {
        let list = world.api.json(&format!("{path}/result?partial=1")).await;
        (list == json!({"tiles": [lease.span.start]})).then_some(())
    });
    some.await;
    // A word that nobody knows is no wish for the list, nor for nothing.
    for unknown in ["result?partial=all", "result.npy?partial=all", "result.npy?partial=1"] {
        let answer = world.api.get(&format!("{path}/{unknown}")).await;
        assert_eq!(crate::world::problem(answer).await.1, "bad_request", "{unknown}");
    }
    let image = picture(&world.api.bytes(&format!("{path}/picture.png")).await);
    assert_eq!(image.pixels().filter(|pixel| pixel.0[3] == 255).count(), 256);
    let missing = world.api.get(&format!("{path}/tiles/{}", 1 - lease.span.start)).await;
    assert_eq!(crate::world::problem(missing).await.1, "not_done");
    world.stop().await;
}
