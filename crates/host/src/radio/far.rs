//! Radios that no network brings together by itself: how they look from outside, and TURN servers. The server is
//! a real one, `turnserver` of the package coturn.

#![allow(clippy::unwrap_used)]

use std::net::{SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use shoal_protocol::{CrewId, NodeId};
use tokio::sync::mpsc::Receiver;
use tokio::time::timeout;

use super::{Heard, News, Order, Radio};

const A: (CrewId, NodeId) = (CrewId(1), NodeId(1));
const B: (CrewId, NodeId) = (CrewId(1), NodeId(2));
/// A test that hangs must end; none waits this long.
const PATIENCE: Duration = Duration::from_secs(60);

struct Coturn {
    child: Child,
    at: SocketAddr,
    folder: PathBuf,
}

impl Coturn {
    async fn start() -> Coturn {
        Coturn::with(&["--no-tls"]).await
    }

    async fn with(words: &[&str]) -> Coturn {
        let at = free_port();
        let folder = std::env::temp_dir().join(format!("shoal-coturn-{}", at.port()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = |name: &str| folder.join(name).display().to_string();
        let mut command = Command::new("turnserver");
        command.args(words).args(["-n", "--no-dtls", "--no-cli", "--log-file", "stdout"]);
        command.args(["--listening-ip", "127.0.0.1", "--relay-ip", "127.0.0.1"]);
        command.args(["--realm", "shoal.test", "--lt-cred-mech", "--user", "crab:claw"]);
        command.args(["--allow-loopback-peers", "--listening-port", &at.port().to_string()]);
        command.args(["--pidfile", &path("pid"), "--userdb", &path("users")]);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().expect("turnserver runs: apt-get install coturn");
        let coturn = Coturn { child, at, folder };
        let begun = Instant::now();
        while !coturn.is_there(words.contains(&"--no-udp")).await {
            assert!(begun.elapsed() < PATIENCE, "coturn does not answer");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        coturn
    }

    async fn is_there(&self, only_tcp: bool) -> bool {
        if only_tcp {
            // From another address of this machine: an attempt from the server's own may be given the very
            // port it asks for. It then reaches itself, and takes the port from the server.
            let socket = tokio::net::TcpSocket::new_v4().unwrap();
            socket.bind("127.0.0.2:0".parse().unwrap()).unwrap();
            return socket.connect(self.at).await.is_ok();
        }
        let asker = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let _ = asker.send_to(&shoal_turn::ask(b"twelve bytes"), self.at).await;
        let mut bytes = [0; 500];
        let answer = timeout(Duration::from_millis(100), asker.recv(&mut bytes)).await;
        answer.is_ok_and(|heard| heard.is_ok())
    }
}

/// A port that nobody has, neither for UDP nor for TCP.
fn free_port() -> SocketAddr {
    loop {
        let at = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        if std::net::TcpListener::bind(at).is_ok() {
            return at;
        }
    }
}

impl Drop for Coturn {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// A router at home: what comes to its inner side goes on to the server from its outer one, and back.
/// Both addresses.
async fn router(server: SocketAddr) -> (SocketAddr, SocketAddr) {
    let inner = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let outer = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let addresses = (inner.local_addr().unwrap(), outer.local_addr().unwrap());
    tokio::spawn(async move {
        let (mut out, mut back) = ([0; 2000], [0; 2000]);
        let mut inside = None;
        loop {
            tokio::select! {
                Ok((length, from)) = inner.recv_from(&mut out) => {
                    inside = Some(from);
                    let _ = outer.send_to(&out[..length], server).await;
                }
                Ok(length) = outer.recv(&mut back) => {
                    if let Some(inside) = inside {
                        let _ = inner.send_to(&back[..length], inside).await;
                    }
                }
            }
        }
    });
    addresses
}

async fn words(radio: &Radio, events: &mut Receiver<Heard>) -> String {
    loop {
        let heard = timeout(PATIENCE, events.recv()).await.expect("in time").expect("an event");
        if let Some((_, News::Words(words))) = radio.present(heard) {
            return String::from_utf8(words).unwrap();
        }
    }
}

#[tokio::test]
async fn a_radio_behind_a_router_tells_its_peers_how_it_looks_from_outside() {
    let coturn = Coturn::start().await;
    let (inner, outer) = router(coturn.at).await;
    let (radio, mut events) = Radio::start();
    radio.order(Order::Servers(vec![format!("stun:{inner}")]));
    radio.order(Order::Dial(B));
    let found = loop {
        let words = words(&radio, &mut events).await;
        if words.contains("typ srflx") {
            break words;
        }
    };
    assert!(found.contains(&format!(" 127.0.0.1 {} typ srflx", outer.port())), "{found}");
}

/// What a radio says, without the addresses that no TURN server gave it.
fn far(words: Vec<u8>) -> Option<Vec<u8>> {
    let mut json: serde_json::Value = serde_json::from_slice(&words).unwrap();
    if json.get("candidate").is_some() {
        return json.to_string().contains("typ relay").then_some(words);
    }
    json.as_object_mut().unwrap().remove("streams");
    let sdp = json["sdp"].as_str().unwrap();
    let is_far = |line: &&str| !line.starts_with("a=candidate") || line.contains("typ relay");
    json["sdp"] = sdp.split_inclusive('\n').filter(is_far).collect::<String>().into();
    Some(json.to_string().into_bytes())
}

/// Both are up, or one has waited so long in vain.
async fn meet(servers: &[String], patience: Duration) -> Option<Met> {
    meet_between((Radio::start(), Radio::start()), servers, patience).await
}

type Met = (Radio, Receiver<Heard>, Radio, Receiver<Heard>);
type Started = (Radio, Receiver<Heard>);

async fn meet_between(
    ((one, mut from_one), (two, mut from_two)): (Started, Started),
    servers: &[String],
    patience: Duration,
) -> Option<Met> {
    one.order(Order::Servers(servers.to_vec()));
    two.order(Order::Servers(servers.to_vec()));
    two.order(Order::Listen(A));
    one.order(Order::Dial(B));
    let mut up = (false, false);
    let both = async {
        while up != (true, true) {
            let (to, peer, heard) = tokio::select! {
                Some(heard) = from_one.recv() => (&two, A, one.present(heard)),
                Some(heard) = from_two.recv() => (&one, B, two.present(heard)),
            };
            match heard {
                Some((_, News::Words(words))) => {
                    if let Some(words) = far(words) {
                        to.order(Order::Hear(peer, words));
                    }
                }
                Some((of, News::Up)) if of == B => up.0 = true,
                Some((_, News::Up)) => up.1 = true,
                Some((_, News::Down | News::Frame(_))) | None => {}
            }
        }
    };
    timeout(patience, both).await.ok()?;
    Some((one, from_one, two, from_two))
}

#[tokio::test]
async fn two_radios_that_only_a_turn_server_brings_together_talk() {
    let coturn = Coturn::start().await;
    let servers = [format!("turn:{}?transport=udp crab claw", coturn.at)];
    talk(meet(&servers, PATIENCE).await.expect("a way through the server")).await;
}

#[tokio::test]
async fn and_so_they_do_where_no_udp_gets_out() {
    let coturn = Coturn::with(&["--no-tls", "--no-udp"]).await;
    let servers = [format!("turn:{}?transport=tcp crab claw", coturn.at)];
    talk(meet(&servers, PATIENCE).await.expect("a way through the server")).await;
}

#[tokio::test]
async fn and_over_tls_if_the_server_is_trusted() {
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let folder = std::env::temp_dir().join(format!("shoal-coturn-tls-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = |name: &str| folder.join(name).display().to_string();
    std::fs::write(path("cert"), made.cert.pem()).unwrap();
    std::fs::write(path("key"), made.signing_key.serialize_pem()).unwrap();
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let port = free.port().to_string();
    let (cert, key) = (path("cert"), path("key"));
    let words = ["--cert", &cert, "--pkey", &key, "--tls-listening-port", &port];
    let _coturn = Coturn::with(&words).await;
    let servers = [format!("turns:{free} crab claw")];
    assert!(meet(&servers, Duration::from_secs(3)).await.is_none(), "nobody vouches for it");
    let start = || Radio::with(vec![made.cert.der().clone()], false);
    let met = meet_between((start(), start()), &servers, PATIENCE).await;
    talk(met.expect("a way through the server")).await;
    std::fs::remove_dir_all(&folder).unwrap();
}

async fn talk((one, _one, _two, mut from_two): Met) {
    for n in 0..50u8 {
        let frame = vec![n; 1 + usize::from(n) * 1_000];
        one.order(Order::Send(B, frame.clone()));
        loop {
            let heard = timeout(PATIENCE, from_two.recv()).await.expect("in time").expect("news");
            match heard.news {
                News::Frame(bytes) => break assert_eq!(bytes, frame),
                News::Words(_) => {}
                other @ (News::Up | News::Down) => panic!("{other:?}"),
            }
        }
    }
}

#[tokio::test]
async fn servers_that_refuse_or_are_not_there_bring_nobody_together_and_break_nothing() {
    let coturn = Coturn::start().await;
    let dead = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let servers = [format!("turn:{} crab pincer", coturn.at), format!("turn:{dead} crab claw")];
    assert!(meet(&servers, Duration::from_secs(3)).await.is_none());
    let nowhere = ["turn:no.such.host.invalid crab claw".into(), "turns:x a b".into(), "?".into()];
    assert!(meet(&nowhere, Duration::from_secs(1)).await.is_none());
    // Nobody listens there; and here somebody does who speaks another language.
    let web = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = web.local_addr().unwrap().port();
    std::thread::spawn(move || {
        while let Ok((mut to, _)) = web.accept() {
            let _ = std::io::Write::write_all(&mut to, b"HTTP/1.1 400 Bad Request\r\n\r\n");
        }
    });
    let strange = [
        format!("turn:{dead}?transport=tcp crab claw"),
        format!("turn:127.0.0.1:{port}?transport=tcp crab claw"),
        format!("turns:127.0.0.1:{port} crab claw"),
    ];
    for server in strange {
        assert!(meet(&[server], Duration::from_secs(1)).await.is_none());
    }
}
