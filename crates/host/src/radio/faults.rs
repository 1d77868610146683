//! Streams between two radios when something is wrong with them: strangers at the door, somebody in the middle, wires
//! that are cut, stall or change what they carry.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;
use shoal_seal::stream::Halves;
use tokio::time::timeout;

use super::tests::{A, B, PATIENCE, Pair, down, next};
use super::{News, Order, Radio};

const PASS: u8 = 0;
const CUT: u8 = 1;
const STALL: u8 = 2;
const GARBLE: u8 = 3;

/// Somebody between two nodes through whom all their streams go, and what it does.
#[derive(Clone, Default)]
struct Middle(Arc<AtomicU8>);

impl Middle {
    fn does(&self, what: u8) {
        self.0.store(what, Ordering::SeqCst);
    }

    /// Words that name this one's address instead of the radio's.
    fn instead(&self, words: Vec<u8>) -> Vec<u8> {
        with_addresses(words, |at| at.into_iter().map(|to| self.stand_before(to)).collect())
    }

    fn stand_before(&self, to: SocketAddr) -> SocketAddr {
        let door = TcpListener::bind("127.0.0.1:0").expect("a port");
        let at = door.local_addr().expect("its address");
        let middle = self.clone();
        std::thread::spawn(move || {
            for one in door.incoming().flatten() {
                let Ok(other) = TcpStream::connect(to) else { continue };
                let both = (one.try_clone().expect("a socket"), other.try_clone().expect("one"));
                let (there, back) = (middle.clone(), middle.clone());
                std::thread::spawn(move || there.carry(one, other));
                std::thread::spawn(move || back.carry(both.1, both.0));
            }
        });
        at
    }

    fn carry(&self, mut from: TcpStream, mut to: TcpStream) {
        let mut bytes = [0; 16 << 10];
        while let Ok(count @ 1..) = from.read(&mut bytes) {
            match self.0.load(Ordering::SeqCst) {
                PASS => {}
                GARBLE => bytes[count / 2] ^= 1,
                CUT => break,
                _ => loop {
                    // Neither end hears of it.
                    std::thread::sleep(Duration::from_secs(60));
                },
            }
            if to.write_all(&bytes[..count]).is_err() {
                break;
            }
        }
        let _ = from.shutdown(Shutdown::Both);
        let _ = to.shutdown(Shutdown::Both);
    }
}

fn with_addresses(
    words: Vec<u8>,
    change: impl FnOnce(Vec<SocketAddr>) -> Vec<SocketAddr>,
) -> Vec<u8> {
    let mut json: Value = serde_json::from_slice(&words).expect("JSON");
    let Some(streams) = json.get_mut("streams") else { return words };
    let at = serde_json::from_value(streams["at"].take()).expect("addresses");
    let changed: Vec<_> = change(at).iter().map(SocketAddr::to_string).collect();
    streams["at"] = changed.into();
    json.to_string().into_bytes()
}

async fn met(change: impl FnMut(Vec<u8>) -> Vec<u8>) -> Pair {
    let through = Pair::through(Radio::start(), Radio::start(), change);
    timeout(PATIENCE, through).await.expect("connected")
}

/// By streams, with somebody between them who does nothing yet.
async fn met_through_middle() -> (Pair, Middle) {
    let middle = Middle::default();
    let mut pair = met(|words| middle.instead(words)).await;
    pair.takes_stream(true).await;
    let frame = vec![7; 60_000];
    pair.one.order(Order::Send(B, frame.clone()));
    assert!(matches!(next(&mut pair.from_two).await.news, News::Frame(heard) if heard == frame));
    (pair, middle)
}

/// Sends until the peer is gone; what came until then is what was sent.
async fn send_until_down(pair: &mut Pair) {
    let frame = vec![9; 50_000];
    let begun = Instant::now();
    loop {
        pair.one.order(Order::Send(B, frame.clone()));
        match timeout(Duration::from_millis(20), pair.from_two.recv()).await {
            Ok(Some(heard)) => match heard.news {
                News::Frame(bytes) => assert_eq!(bytes, frame),
                News::Down => return,
                other @ (News::Up | News::Words(_)) => panic!("{other:?}"),
            },
            Ok(None) => panic!("the radio is gone"),
            Err(_) => assert!(begun.elapsed() < PATIENCE, "nobody notices"),
        }
    }
}

#[tokio::test]
async fn a_stream_that_is_cut_in_the_middle_is_noticed_at_once_by_both() {
    let (mut pair, middle) = met_through_middle().await;
    middle.does(CUT);
    let begun = Instant::now();
    send_until_down(&mut pair).await;
    assert!(begun.elapsed() < Duration::from_secs(2));
    while !matches!(next(&mut pair.from_one).await.news, News::Down) {}
}

#[tokio::test]
async fn a_stream_on_which_something_is_changed_ends_and_nothing_of_it_is_heard() {
    let (mut pair, middle) = met_through_middle().await;
    middle.does(GARBLE);
    send_until_down(&mut pair).await;
}

#[tokio::test]
async fn a_half_open_stream_is_noticed_by_its_silence_though_nothing_is_sent() {
    let (mut pair, middle) = met_through_middle().await;
    middle.does(STALL);
    let both = async {
        while !matches!(next(&mut pair.from_one).await.news, News::Down) {}
        while !matches!(next(&mut pair.from_two).await.news, News::Down) {}
    };
    timeout(Duration::from_secs(8), both).await.expect("noticed");
}

#[tokio::test]
async fn after_a_stream_is_lost_the_next_call_has_one_again() {
    let (mut pair, middle) = met_through_middle().await;
    middle.does(CUT);
    send_until_down(&mut pair).await;
    let Pair { one, from_one, two, from_two } = pair;
    let pair = Pair::through((one, from_one), (two, from_two), |words| words);
    timeout(PATIENCE, pair).await.expect("connected").takes_stream(true).await;
}

#[tokio::test]
async fn where_a_firewall_swallows_connections_a_channel_comes_about() {
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let at = silent.local_addr().expect("its address");
    met(|words| with_addresses(words, |_| vec![at])).await.takes_stream(false).await;
    met(|words| with_addresses(words, |_| Vec::new())).await.takes_stream(false).await;
}

/// Its half of the secret came by the sealed link; whoever has another one is somebody else.
#[tokio::test]
async fn who_does_not_have_the_secret_gets_no_stream() {
    let pair = met(|words| {
        let mut json: Value = serde_json::from_slice(&words).expect("JSON");
        let Some(streams) = json.get_mut("streams") else { return words };
        streams["half"] = "5a".repeat(32).into();
        json.to_string().into_bytes()
    });
    pair.await.takes_stream(false).await;
}

/// What a radio says of its streams.
fn said(words: &[u8]) -> Option<([u8; 32], SocketAddr)> {
    let json: Value = serde_json::from_slice(words).ok()?;
    let half = blake3::Hash::from_hex(json["streams"]["half"].as_str()?).ok()?;
    let at: Vec<SocketAddr> = serde_json::from_value(json["streams"]["at"].clone()).ok()?;
    Some((*half.as_bytes(), at.into_iter().find(|at| at.ip().is_loopback())?))
}

async fn says(
    radio: &Radio,
    events: &mut tokio::sync::mpsc::Receiver<super::Heard>,
) -> (Vec<u8>, ([u8; 32], SocketAddr)) {
    loop {
        let heard = next(events).await;
        if let Some((_, News::Words(words))) = radio.present(heard)
            && let Some(said) = said(&words)
        {
            return (words, said);
        }
    }
}

/// Reads until the other end has nothing more to say.
fn all_it_says(mut socket: &TcpStream) -> usize {
    socket.set_read_timeout(Some(PATIENCE)).expect("a patient socket");
    let (mut bytes, mut all) = ([0; 1024], 0);
    while let Ok(count @ 1..) = socket.read(&mut bytes) {
        all += count;
    }
    all
}

/// The call's name goes in the clear: who overheard it must still not get in, nor be in the way.
#[tokio::test(flavor = "multi_thread")]
async fn strangers_at_the_door_are_let_go_and_the_peer_gets_in() {
    let ((one, mut from_one), (two, mut from_two)) = (Radio::start(), Radio::start());
    two.order(Order::Listen(A));
    one.order(Order::Dial(B));
    let (words, (dials, _)) = says(&one, &mut from_one).await;
    two.order(Order::Hear(A, words));
    let (words, (listens, door)) = says(&two, &mut from_two).await;
    let id = Halves { dials, listens }.id();
    let hello = [b"shoal-s1".as_slice(), &id, &[1; 32]].concat();
    let call = |bytes: &[u8]| {
        let mut socket = TcpStream::connect(door).expect("an open door");
        let _ = socket.write_all(bytes);
        socket
    };
    assert_eq!(
        all_it_says(&call(b"GET / HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\n\r\nmore")),
        0
    );
    assert_eq!(all_it_says(&call(&[0xff; 4096])), 0);
    // It hears what anybody may, and is let go when it cannot answer under the seal.
    let proof = [&[16, 0, 0, 0][..], &[0; 16]].concat();
    assert_eq!(all_it_says(&call(&[hello.clone(), proof].concat())), 8 + 32 + 4 + 16);
    let too_long = [&hello[..], &[0xff; 64]].concat();
    assert!(all_it_says(&call(&too_long)) <= 8 + 32 + 4 + 16);
    let silent: Vec<_> = (0..16).map(|_| call(&[])).collect();
    one.order(Order::Hear(B, words));
    let mut pair = Pair { one, from_one, two, from_two };
    let up = async {
        while !matches!(next(&mut pair.from_one).await.news, News::Up) {}
        while !matches!(next(&mut pair.from_two).await.news, News::Up) {}
    };
    timeout(PATIENCE, up).await.expect("connected");
    pair.takes_stream(true).await;
    drop(silent);
    pair.one.order(Order::Hang(B));
    down(&mut pair.from_two).await;
}
