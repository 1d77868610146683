//! A hundred who ask one model at once, more than may wait, and some who hang up.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::material::outside;
use crate::world::{Pool, Process};

/// Who asks at once, and how many of them stay.
const ASKED: usize = 280;
const STAYED: usize = 100;
/// Requests to one service that may wait, as the documentation says.
const MAY_WAIT: usize = 256;
/// Different questions.
const QUESTIONS: usize = 8;

/// stories15M; none where nobody fetched it and nobody asks for it.
fn file() -> Option<PathBuf> {
    Some(outside()?.join("stories15m/stories15M-q8_0.gguf"))
}

fn own(pool: &Pool, name: &str) -> Process {
    let key = pool.key.clone();
    pool.node(name, &["--no-gpu", "--cpus", "1", "--key", &key, "--memory", "1G"])
}

fn body(question: usize, stream: bool, most: u32) -> Value {
    let prompt = format!("Once upon a time there were {question} little fish");
    json!({
        "model": "stories", "prompt": prompt, "temperature": 0.9, "seed": question, "max_tokens": most,
        "stream": stream,
    })
}

/// Somebody who has asked.
fn asks(pool: &Pool, body: &Value) -> TcpStream {
    let place = pool.url.trim_start_matches("http://");
    let mut socket = TcpStream::connect(place).expect("the coordinator");
    let (key, body) = (&pool.key, body.to_string());
    let request = format!(
        "POST /v1/completions HTTP/1.1\r\nhost: {place}\r\nauthorization: Bearer {key}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
    socket.write_all(request.as_bytes()).expect("sent");
    socket
}

/// The status and what was said.
fn told(mut socket: TcpStream) -> (String, Value) {
    let mut answer = String::new();
    socket.read_to_string(&mut answer).expect("an answer");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a body");
    let status = head.split(' ').nth(1).expect("a status").to_owned();
    (status, serde_json::from_str(body).expect("JSON"))
}

/// Requests that wait and those at work.
fn held(pool: &Pool) -> (u64, u64) {
    let service = pool.ask("GET /api/v1/services", "")["services"][0].take();
    let count = |what: &str| service[what].as_u64().expect("a count");
    (count("waiting"), count("running"))
}

#[test]
fn a_hundred_are_answered_right_the_queue_is_bounded_and_who_hangs_up_is_gone() {
    let Some(file) = file() else { return };
    let mut pool = Pool::start();
    let mut node = own(&pool, "a");
    let file = file.display().to_string();
    let words = ["model", "add", &file, "--name", "stories", "--context", "128", "--wait", "120"];
    pool.run(&words).ok();
    let expected: Vec<Value> = (0..QUESTIONS)
        .map(|question| {
            let (status, mut said) = told(asks(&pool, &body(question, false, 8)));
            assert_eq!(status, "200", "{said}");
            said["choices"].take()
        })
        .collect();

    // In the middle of an answer: its seat is free at once.
    let mut long = BufReader::new(asks(&pool, &body(0, true, 100)));
    let mut line = String::new();
    while !line.starts_with("data: ") {
        line.clear();
        assert!(long.read_line(&mut line).expect("a line") > 0, "it speaks");
    }
    drop(long);
    pool.wait("nobody is at work", || held(&pool) == (0, 0));

    // While nobody answers, as many wait as may; the others are told at once.
    node.kill();
    pool.wait("the node is gone", || pool.seen("a").is_none());
    let mut waiting: Vec<(usize, TcpStream)> = Vec::new();
    let mut refused = 0;
    for at in 0..ASKED {
        if at == MAY_WAIT {
            pool.wait("all that may wait do", || held(&pool) == (MAY_WAIT as u64, 0));
        }
        let socket = asks(&pool, &body(at % QUESTIONS, false, 8));
        if at < MAY_WAIT {
            waiting.push((at % QUESTIONS, socket));
            continue;
        }
        let (status, said) = told(socket);
        assert_eq!((status.as_str(), said["error"]["code"].as_str()), ("429", Some("queue_full")));
        assert_eq!(said["error"]["type"], "rate_limit_error");
        refused += 1;
    }
    assert_eq!(refused, ASKED - MAY_WAIT);
    // They hang up: others could wait in their place.
    waiting.truncate(STAYED);
    pool.wait("those who hung up wait no longer", || held(&pool) == (STAYED as u64, 0));

    let _nodes = ["b", "c"].map(|name| own(&pool, name));
    for (question, socket) in waiting {
        let (status, said) = told(socket);
        assert_eq!((status.as_str(), &said["choices"]), ("200", &expected[question]));
    }
    assert_eq!(held(&pool), (0, 0));
    assert!(pool.process.is_alive());
}
