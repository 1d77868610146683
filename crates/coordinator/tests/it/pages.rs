//! Pages come with the headers that make them safe, and health and metrics are there.

use reqwest::{Method, StatusCode};

use crate::world::World;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_page_is_isolated_and_strict() {
    let world = World::start();
    for path in ["/", "/join", "/jobs/1", "/playground"] {
        let page = world.api.open(Method::GET, path).send().await.unwrap();
        assert_eq!(page.status(), StatusCode::OK, "{path}");
        let headers = page.headers();
        assert_eq!(headers["cross-origin-opener-policy"], "same-origin");
        assert_eq!(headers["cross-origin-embedder-policy"], "require-corp");
        assert!(headers.contains_key("cross-origin-resource-policy"));
        assert_eq!(headers["x-content-type-options"], "nosniff");
        let policy = headers["content-security-policy"].to_str().unwrap();
        let addr = world.api.addr();
        let connect = format!("connect-src 'self' ws://{addr} wss://{addr} https://{addr};");
        for part in [
            "default-src 'self'",
            "script-src 'self' 'wasm-unsafe-eval'",
            "worker-src 'self' blob:",
            &connect,
            "img-src 'self' blob: data:",
            "frame-ancestors 'none'",
        ] {
            assert!(policy.contains(part), "{path}: {policy}");
        }
        assert!(!policy.contains("unsafe-inline") && !policy.contains("'unsafe-eval'"));
        assert!(headers["content-type"].to_str().unwrap().starts_with("text/html"));
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_module_that_is_kept_compressed_is_unpacked_for_whoever_asks_for_it_plain() {
    let world = World::start();
    let path = "/assets/ort.wasm";
    let ask = |encoding: &str| {
        world.api.open(Method::GET, path).header("accept-encoding", encoding).send()
    };
    let packed = ask("gzip").await.unwrap();
    // A build without pages has none.
    if packed.status() == StatusCode::OK {
        assert_eq!(packed.headers()["content-encoding"], "gzip");
        assert_eq!(packed.headers()["content-type"], "application/wasm");
        let tag = packed.headers()["etag"].clone();
        let packed = packed.bytes().await.unwrap();
        let plain = ask("identity").await.unwrap();
        assert!(!plain.headers().contains_key("content-encoding"));
        let plain = plain.bytes().await.unwrap();
        assert!(plain.starts_with(b"\0asm") && plain.len() > packed.len());
        let again = world.api.open(Method::GET, path).header("if-none-match", tag);
        assert_eq!(again.send().await.unwrap().status(), StatusCode::NOT_MODIFIED);
    }
    world.stop().await;
}

/// What a tab that lends its GPU fetches before its first unit, without the pages' own words.
const JOINING: [&str; 10] = [
    "join",
    "assets/join.js",
    "assets/join.css",
    "assets/icon.svg",
    "assets/brain-worker.js",
    "assets/brain_bg.wasm",
    "assets/gpu-worker.js",
    "assets/gpu_bg.wasm",
    "assets/keep-worker.js",
    "assets/radio.js",
];
const MOST_JOINING: usize = 300_000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tab_that_joins_fetches_little() {
    let world = World::start();
    let mut bytes = 0;
    for name in JOINING {
        let path = format!("/{name}");
        let page = world.api.open(Method::GET, &path).header("accept-encoding", "gzip, br;q=0.9");
        let page = page.send().await.unwrap();
        // A build without pages has only the page that says so.
        if page.status() != StatusCode::OK || !page.headers().contains_key("content-encoding") {
            assert!(bytes == 0 || name.ends_with(".svg"), "{path} is not there, or not compressed");
            continue;
        }
        bytes += page.bytes().await.unwrap().len();
    }
    assert!(bytes < MOST_JOINING, "{bytes} bytes to join, {MOST_JOINING} are allowed");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_comes_in_the_form_that_the_reader_takes() {
    let world = World::start();
    let mut sizes = Vec::new();
    for (accepted, expected) in [
        ("identity", None),
        ("gzip, deflate", Some("gzip")),
        ("gzip, deflate, br", Some("br")),
        ("gzip;q=1.0, br;q=0", Some("gzip")),
    ] {
        let asked = world.api.open(Method::GET, "/assets/join.js");
        let page = asked.header("accept-encoding", accepted).send().await.unwrap();
        // A build without pages has none.
        if page.status() == StatusCode::OK {
            let encoding = page.headers().get("content-encoding");
            assert_eq!(encoding.and_then(|name| name.to_str().ok()), expected, "{accepted}");
            sizes.push(page.bytes().await.unwrap().len());
        }
    }
    if let [plain, zipped, smallest, again] = sizes[..] {
        assert!(smallest < zipped && zipped < plain && again == zipped, "{sizes:?}");
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_join_link_is_drawn_for_whoever_has_the_key() {
    let world = World::start();
    let pool = world.api.json("/api/v1/pool").await;
    let join = pool["join"].as_str().expect("a link");
    let drawn = world.api.get("/api/v1/join.svg").await;
    assert_eq!(drawn.status(), StatusCode::OK);
    assert_eq!(drawn.headers()["content-type"], "image/svg+xml");
    assert_eq!(drawn.headers()["cache-control"], "no-store");
    let code = qrcode::QrCode::new(join).expect("a code");
    let expected = code.render::<qrcode::render::svg::Color>().build();
    assert_eq!(drawn.text().await.expect("text"), expected);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn health_and_metrics_are_open() {
    let world = World::start();
    let health = world.api.open(Method::GET, "/healthz").send().await.unwrap();
    assert_eq!(health.text().await.unwrap(), "ok");
    let metrics = world.api.open(Method::GET, "/metrics").send().await.unwrap();
    let text = metrics.text().await.unwrap();
    assert!(text.contains("# TYPE shoal_nodes gauge\nshoal_nodes 0\n"), "{text}");
    assert!(text.contains("shoal_units_merged_total 0"));
    world.stop().await;
}
