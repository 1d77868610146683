//! Answers are written while their job runs.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Stdio};

use crate::material::program;
use crate::process::shoal;
use crate::world::{Folder, Pool};

fn begin(pool: &Pool, args: &[&str], stdin: &[u8]) -> Child {
    let mut client = shoal(&[&["exec", program()], args].concat())
        .env("SHOAL_DATA", pool.folder.path("data"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("shoal starts");
    let mut to = client.stdin.take().expect("a pipe");
    std::io::Write::write_all(&mut to, stdin).expect("the lines are taken");
    client
}

#[test]
fn answers_come_out_as_soon_as_none_before_them_is_missing() {
    let (pool, _node) = Pool::with_node();
    let mut client = begin(&pool, &["--lines", "--unit", "1", "--", "spin"], b"1\n2\n7\n8\n");
    let mut lines = BufReader::new(client.stdout.take().expect("a pipe"));
    let mut line = || {
        let mut line = String::new();
        lines.read_line(&mut line).expect("a line");
        line
    };
    // The third line never ends, and the job with it.
    assert_eq!((line(), line()), ("1\n".into(), "2\n".into()));
    pool.until(|job| job["state"] == "running" && job["itemsDone"].as_u64() < Some(4));
    pool.run(&["cancel", "1"]).ok();
    assert_eq!(line(), "");
    assert_eq!(client.wait().expect("ended").code(), Some(1));
}

#[test]
fn files_are_written_as_soon_as_none_before_them_is_missing() {
    let (pool, _node) = Pool::with_node();
    let here = Folder::new();
    let out = here.path("out").display().to_string();
    let (two, seven) = (here.file("two", "2"), here.file("seven", "7"));
    let mut client = begin(&pool, &[&two, &seven, "-o", &out, "--unit", "1", "--", "spin"], b"");
    pool.wait("the first file", || here.path("out/two").exists());
    assert_eq!(here.read("out/two"), b"2");
    pool.run(&["cancel", "1"]).ok();
    assert_eq!(client.wait().expect("ended").code(), Some(1));
    assert!(!here.path("out/seven").exists());
}

#[test]
fn a_job_whose_answers_nobody_reads_on_is_cancelled() {
    let (pool, _node) = Pool::with_node();
    let lines: String = (0..2000).map(|i| format!("{i}\n")).collect();
    let mut client = begin(&pool, &["--lines", "--unit", "1", "--", "work"], lines.as_bytes());
    let mut first = String::new();
    let mut stdout = BufReader::new(client.stdout.take().expect("a pipe"));
    stdout.read_line(&mut first).expect("a line");
    assert!(first.starts_with("0 "), "{first}");
    drop(stdout);
    assert_eq!(client.wait().expect("ended").code(), Some(0));
    pool.until(|job| job["state"] == "cancelled");
    let mut said = String::new();
    client.stderr.take().expect("a pipe").read_to_string(&mut said).expect("text");
    assert!(!said.contains("error"), "{said}");
}

#[test]
fn what_a_job_waits_for_is_said_at_once() {
    let pool = Pool::start();
    let mut client = begin(&pool, &["--lines", "--", "upper"], b"a\n");
    let mut said = BufReader::new(client.stderr.take().expect("a pipe"));
    let mut line = String::new();
    said.read_line(&mut line).expect("a line");
    assert_eq!(line, "job 1 waits: no connected node can compute it\n");
    let _node = pool.node("late", &["--no-gpu"]);
    assert_eq!(client.wait().expect("ended").code(), Some(0));
}
