//! Against a real server: `turnserver` of the package coturn, which `cargo xtask test` installs.

#![allow(clippy::unwrap_used)]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use shoal_protocol::{Micros, Time};
use shoal_turn::{Access, By, Fault, News, Stream, Turn};

/// A test that hangs must end; none waits this long.
const PATIENCE: Duration = Duration::from_secs(30);

struct Coturn {
    child: Child,
    at: SocketAddr,
    folder: std::path::PathBuf,
}

impl Coturn {
    /// It knows one name, `crab`, and its password, `claw`.
    fn start(words: &[&str]) -> Coturn {
        Coturn::start_at(free(), words)
    }

    fn start_at(at: SocketAddr, words: &[&str]) -> Coturn {
        let folder = std::env::temp_dir().join(format!("shoal-turn-{}", at.port()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = |name: &str| folder.join(name).display().to_string();
        let mut command = Command::new("turnserver");
        command.args(["-n", "--no-tls", "--no-dtls", "--no-cli", "--log-file", "stdout"]);
        command.args(["--listening-ip", "127.0.0.1", "--relay-ip", "127.0.0.1"]);
        command.args(["--realm", "shoal.test", "--lt-cred-mech", "--user", "crab:claw"]);
        command.args(["--listening-port", &at.port().to_string()]);
        command.args(["--pidfile", &path("pid"), "--userdb", &path("users")]);
        command.args(words).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().expect("turnserver runs: apt-get install coturn");
        let coturn = Coturn { child, at, folder };
        let asker = UdpSocket::bind("127.0.0.1:0").unwrap();
        asker.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        let begun = Instant::now();
        loop {
            asker.send_to(&shoal_turn::ask(b"twelve bytes"), at).unwrap();
            let mut bytes = [0; 500];
            if let Ok((length, _)) = asker.recv_from(&mut bytes) {
                let seen = shoal_turn::answer(&bytes[..length], b"twelve bytes");
                assert_eq!(seen, asker.local_addr().ok(), "how this socket looks from outside");
                return coturn;
            }
            assert!(begun.elapsed() < PATIENCE, "coturn does not answer");
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

fn free() -> SocketAddr {
    UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

/// How a client reaches the server.
enum Line {
    Udp(UdpSocket),
    Tcp(TcpStream, Stream),
}

impl Line {
    fn open(server: SocketAddr, by: By) -> Line {
        let patience = Some(Duration::from_millis(20));
        match by {
            By::Udp => {
                let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
                socket.connect(server).unwrap();
                socket.set_read_timeout(patience).unwrap();
                Line::Udp(socket)
            }
            By::Tcp | By::Tls => {
                let socket = TcpStream::connect(server).unwrap();
                socket.set_nodelay(true).unwrap();
                socket.set_read_timeout(patience).unwrap();
                Line::Tcp(socket, Stream::default())
            }
        }
    }

    fn send(&mut self, bytes: &[u8]) {
        let _ = match self {
            Line::Udp(socket) => socket.send(bytes),
            Line::Tcp(socket, _) => socket.write(bytes),
        };
    }

    /// One message, if one comes within a moment.
    fn next(&mut self, into: &mut [u8]) -> Option<usize> {
        match self {
            Line::Udp(socket) => socket.recv(into).ok(),
            Line::Tcp(socket, stream) => {
                if let Some(length) = stream.next(into).expect("in step") {
                    return Some(length);
                }
                // Small, so that messages come in pieces.
                let mut bytes = [0; 64];
                let length = socket.read(&mut bytes).ok()?;
                stream.push(&bytes[..length]);
                stream.next(into).expect("in step").or(Some(0))
            }
        }
    }
}

struct Client {
    turn: Turn,
    line: Line,
    now: Time,
    heard: Vec<(SocketAddr, Vec<u8>)>,
    news: Vec<News>,
    sent: Vec<usize>,
}

impl Client {
    fn new(server: SocketAddr, password: &str) -> Client {
        Client::by(By::Udp, server, password)
    }

    fn by(by: By, server: SocketAddr, password: &str) -> Client {
        let access = Access { name: "crab".into(), password: password.into() };
        let now = Time(1_000_000);
        let (line, turn) = (Line::open(server, by), Turn::new(now, access, by, [7; 32]));
        Client { turn, line, now, heard: Vec::new(), news: Vec::new(), sent: Vec::new() }
    }

    /// Its clock goes by a tenth of a second whenever nothing comes.
    fn turn_once(&mut self) {
        while let Some(bytes) = self.turn.poll() {
            self.sent.push(bytes.len());
            self.line.send(&bytes);
        }
        let mut bytes = [0; 2000];
        match self.line.next(&mut bytes) {
            Some(length) => {
                if let Some((peer, at)) = self.turn.hear(self.now, &bytes[..length]) {
                    self.heard.push((peer, bytes[at].to_vec()));
                }
            }
            None => self.now = self.now + Micros::from_millis(100),
        }
        self.turn.tick(self.now);
        self.news.extend(std::iter::from_fn(|| self.turn.news()));
    }

    fn until(&mut self, what: &str, wanted: impl Fn(&Client) -> bool) {
        let begun = Instant::now();
        while !wanted(self) {
            assert!(begun.elapsed() < PATIENCE, "{what}: {:?} {:?}", self.news, self.heard);
            self.turn_once();
        }
    }

    fn ready(server: SocketAddr) -> (Client, SocketAddr) {
        Client::ready_by(By::Udp, server)
    }

    fn ready_by(by: By, server: SocketAddr) -> (Client, SocketAddr) {
        let mut client = Client::by(by, server, "claw");
        client.until("an allocation", |client| !client.news.is_empty());
        let [News::Ready(relayed)] = client.news[..] else { panic!("{:?}", client.news) };
        assert_eq!(client.turn.relayed(), Some(relayed));
        (client, relayed)
    }
}

#[test]
fn datagrams_go_both_ways_first_in_the_long_form_then_in_the_short() {
    both_ways(By::Udp);
}

#[test]
fn datagrams_go_both_ways_over_a_stream_too() {
    both_ways(By::Tcp);
}

fn both_ways(by: By) {
    let coturn = Coturn::start(&["--allow-loopback-peers"]);
    let (mut client, relayed) = Client::ready_by(by, coturn.at);
    let peer = UdpSocket::bind("127.0.0.1:0").unwrap();
    peer.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    let from = peer.local_addr().unwrap();
    client.turn.send(client.now, from, b"hello");
    let mut bytes = [0; 2000];
    let begun = Instant::now();
    let sender = loop {
        client.turn_once();
        if let Ok((length, sender)) = peer.recv_from(&mut bytes) {
            assert_eq!(&bytes[..length], b"hello");
            break sender;
        }
        assert!(begun.elapsed() < PATIENCE);
    };
    assert_eq!(sender, relayed);
    for round in 0..20u8 {
        let words = vec![round; 1 + usize::from(round) * 61];
        peer.send_to(&words, relayed).unwrap();
        client.until("words", |client| client.heard.len() > usize::from(round));
        assert_eq!(client.heard.last(), Some(&(from, words.clone())));
        client.sent.clear();
        client.turn.send(client.now, from, &words);
        client.turn_once();
        let length = until_heard(&peer, &mut bytes);
        assert_eq!(&bytes[..length], words);
        if round > 5 {
            let short = match by {
                By::Udp => words.len() + 4,
                By::Tcp | By::Tls => (words.len() + 4).next_multiple_of(4),
            };
            assert!(client.sent.contains(&short), "the short form: {:?}", client.sent);
        }
    }
    client.turn.release(client.now);
    client.turn_once();
    assert!(client.turn.is_over() && client.turn.next_timeout().is_none());
}

/// A busy machine may need more than one look.
fn until_heard(peer: &UdpSocket, bytes: &mut [u8]) -> usize {
    let begun = Instant::now();
    loop {
        if let Ok(length) = peer.recv(bytes) {
            return length;
        }
        assert!(begun.elapsed() < PATIENCE, "nothing came to the peer");
    }
}

#[test]
fn what_is_used_is_renewed_for_hours() {
    let coturn = Coturn::start(&["--allow-loopback-peers"]);
    let (mut client, relayed) = Client::ready(coturn.at);
    let peer = UdpSocket::bind("127.0.0.1:0").unwrap();
    peer.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    let from = peer.local_addr().unwrap();
    client.turn.send(client.now, from, b"hello");
    client.until("the answer", |client| {
        peer.send_to(b"hello too", relayed).unwrap();
        !client.heard.is_empty()
    });
    for hour in 1..=2 {
        let until = client.now + Micros::from_secs(3600);
        while client.now < until {
            client.now = client.turn.next_timeout().unwrap().min(until).max(client.now);
            client.turn.send(client.now, from, b"still here");
            // Each renewal is answered before the clock goes on.
            let now = client.now;
            (0..6).for_each(|_| client.turn_once());
            client.now = now;
        }
        assert_eq!(client.news.len(), 1, "hour {hour}: {:?}", client.news);
    }
    client.heard.clear();
    client.until("words after hours", |client| {
        peer.send_to(b"still there", relayed).unwrap();
        !client.heard.is_empty()
    });
}

#[test]
fn a_login_that_became_too_old_is_made_anew() {
    let coturn = Coturn::start(&["--allow-loopback-peers", "--stale-nonce", "1"]);
    let (mut client, _) = Client::ready(coturn.at);
    // Questions go on until the server has found the login too old, at least once.
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(3) {
        client.now = client.turn.next_timeout().unwrap();
        (0..5).for_each(|_| client.turn_once());
    }
    assert_eq!(client.news.len(), 1, "{:?}", client.news);
    assert!(client.turn.relayed().is_some());
}

#[test]
fn a_wrong_password_is_said_so() {
    let coturn = Coturn::start(&[]);
    for by in [By::Udp, By::Tcp] {
        let mut client = Client::by(by, coturn.at, "pincer");
        client.until("an end", |client| client.turn.is_over());
        assert_eq!(client.news, [News::Over(Fault::WrongPassword)]);
        assert_eq!(client.turn.next_timeout(), None);
    }
}

#[test]
fn a_server_that_is_not_there_is_given_up() {
    let mut client = Client::new(free(), "claw");
    client.until("an end", |client| client.turn.is_over());
    assert_eq!(client.news, [News::Over(Fault::NoAnswer)]);
}

#[test]
fn whom_the_server_does_not_let_through_costs_nothing_else() {
    let coturn = Coturn::start(&["--denied-peer-ip", "192.0.2.9", "--allow-loopback-peers"]);
    let (mut client, relayed) = Client::ready(coturn.at);
    client.turn.send(client.now, "192.0.2.9:99".parse().unwrap(), b"hello");
    client.turn.send(client.now, "[2001:db8::1]:99".parse().unwrap(), b"hello");
    let peer = UdpSocket::bind("127.0.0.1:0").unwrap();
    client.turn.send(client.now, peer.local_addr().unwrap(), b"hello");
    client.until("the other", |client| {
        peer.send_to(b"hello too", relayed).unwrap();
        !client.heard.is_empty()
    });
    assert_eq!(client.news.len(), 1, "{:?}", client.news);
}

#[test]
fn bytes_of_any_kind_break_nothing() {
    let mut random = 1u64;
    let mut chance = || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random >> 11
    };
    for _ in 0..20_000 {
        // A new one each time: what is over hears nothing.
        let access = Access { name: "a".into(), password: "b".into() };
        let mut turn = Turn::new(Time(1), access, By::Udp, [1; 32]);
        let mut bytes = turn.poll().unwrap();
        bytes[0] = chance() as u8 & 1;
        bytes[1] = chance() as u8;
        bytes.extend((0..chance() % 60).map(|_| chance() as u8 % 32));
        let length = bytes.len() as u16 - 20;
        bytes[2..4].copy_from_slice(&length.to_be_bytes());
        turn.hear(Time(chance() % 1_000_000), &bytes);
        turn.tick(Time(1));
        while turn.poll().is_some() {}
    }
}

#[test]
fn a_full_server_is_said_so_with_its_words() {
    let coturn = Coturn::start(&["--user-quota", "1"]);
    let (_first, _) = Client::ready(coturn.at);
    let mut second = Client::new(coturn.at, "claw");
    let began = second.now;
    second.until("an end", |client| client.turn.is_over());
    let [News::Over(fault)] = &second.news[..] else { panic!("{:?}", second.news) };
    assert!(matches!(fault, Fault::Refused { code: 486, .. }), "{fault:?}");
    assert!(fault.to_string().contains("Quota"), "{fault}");
    assert!(second.now < began + Micros::from_secs(3), "at once");
}

#[test]
fn a_server_that_was_started_anew_and_knows_nothing_is_said_so() {
    let coturn = Coturn::start(&["--allow-loopback-peers"]);
    let (mut client, _) = Client::ready(coturn.at);
    let at = coturn.at;
    drop(coturn);
    let _anew = Coturn::start_at(at, &["--allow-loopback-peers"]);
    let began = client.now;
    let begun = Instant::now();
    while !client.turn.is_over() {
        assert!(begun.elapsed() < PATIENCE, "{:?}", client.news);
        client.now = client.turn.next_timeout().unwrap().max(client.now);
        let now = client.now;
        (0..4).for_each(|_| client.turn_once());
        client.now = client.now.min(now + Micros::from_millis(100));
    }
    let News::Over(fault) = client.news.last().unwrap() else { panic!("{:?}", client.news) };
    assert!(matches!(fault, Fault::Refused { code: 437, .. }), "{fault:?}");
    assert!(client.now <= began + Micros::from_secs(310), "with the first renewal");
}
