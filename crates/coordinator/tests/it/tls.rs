//! One port, two languages: TLS for the network, plain http for this machine.

use reqwest::{Client, StatusCode};
use shoal_coordinator::Coordinator;
use tokio::net::UdpSocket;
use tokio::sync::oneshot;

use crate::world::{TempDir, World, options};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn https_answers_on_the_same_port_with_a_certificate_that_is_kept() {
    let world = World::start();
    let certificate = std::fs::read(world.dir.path().join("cert.pem")).unwrap();
    let client = || {
        let trusted = reqwest::Certificate::from_pem(&certificate).unwrap();
        Client::builder().no_proxy().tls_certs_only([trusted]).build().unwrap()
    };
    let url = format!("https://localhost:{}/healthz", world.api.addr().port());
    assert_eq!(client().get(&url).send().await.unwrap().text().await.unwrap(), "ok");
    let world = world.restart().await;
    let url = format!("https://localhost:{}/healthz", world.api.addr().port());
    assert_eq!(client().get(&url).send().await.unwrap().text().await.unwrap(), "ok");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn plain_http_from_elsewhere_is_sent_to_https() {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let Some(own) = own_address().await else {
        eprintln!("this machine has no address but its own: nothing to test");
        return;
    };
    let dir = TempDir::new();
    let coordinator = Coordinator::open(options(dir.path(), "0.0.0.0:0")).unwrap();
    let port = coordinator.urls().local.rsplit(':').next().unwrap().to_owned();
    let (stop, stopped) = oneshot::channel::<()>();
    let task = tokio::spawn(coordinator.run(async {
        let _ = stopped.await;
    }));
    let client = Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .danger_accept_invalid_certs(true)
        .build()
        .unwrap();
    let plain = client.get(format!("http://{own}:{port}/join?x=1")).send().await.unwrap();
    assert_eq!(plain.status(), StatusCode::PERMANENT_REDIRECT);
    let to = plain.headers()["location"].to_str().unwrap().to_owned();
    assert_eq!(to, format!("https://{own}:{port}/join?x=1"));
    assert_eq!(client.get(&to).send().await.unwrap().status(), StatusCode::OK);
    stop.send(()).unwrap();
    task.await.unwrap().unwrap();
}

async fn own_address() -> Option<std::net::IpAddr> {
    let socket = UdpSocket::bind("0.0.0.0:0").await.ok()?;
    socket.connect("192.0.2.1:9").await.ok()?;
    let ip = socket.local_addr().ok()?.ip();
    (!ip.is_loopback() && !ip.is_unspecified()).then_some(ip)
}
