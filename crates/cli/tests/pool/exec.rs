//! `shoal exec`: lines, files, once, and what the program is given.

use crate::material::program;
use crate::world::{Folder, Pool};

#[test]
fn lines_come_out_in_order() {
    let (pool, _node) = Pool::with_node();
    let input: String = (0..1000).map(|i| format!("line {i}\n")).collect();
    let done = pool.run_with(&["exec", program(), "--lines"], input.as_bytes()).ok();
    assert_eq!(String::from_utf8_lossy(&done.stdout), input.to_uppercase());
    let args = ["exec", program(), "--lines", "--batch", "64"];
    let done = pool.run_with(&args, input.as_bytes()).ok();
    assert_eq!(String::from_utf8_lossy(&done.stdout), input.to_uppercase());
    assert_eq!(pool.job(2).expect("the job")["items"], 16);
}

#[test]
fn answers_without_a_newline_do_not_run_together() {
    let (pool, _node) = Pool::with_node();
    let done = pool.run_with(&["exec", program(), "--lines", "--", "bare"], b"a\nb\n\nc").ok();
    assert_eq!(String::from_utf8_lossy(&done.stdout), "<a>\n<b>\n<>\n<c>\n");
}

#[test]
fn files_go_to_files_of_the_same_name() {
    let (pool, _node) = Pool::with_node();
    let here = Folder::new();
    let a = here.file("a.txt", "hello");
    let b = here.file("b.txt", "");
    let out = here.path("out").display().to_string();
    pool.run(&["exec", program(), &a, &b, "-o", &out, "--", "name"]).ok();
    assert_eq!(here.read("out/a.txt"), b"a.txt:5");
    assert_eq!(here.read("out/b.txt"), b"b.txt:0");
}

#[test]
fn the_program_gets_arguments_environment_and_a_folder() {
    let (pool, _node) = Pool::with_node();
    let here = Folder::new();
    std::fs::create_dir_all(here.path("words/deep")).expect("a folder");
    here.file("words/deep/one.txt", "shared\n");
    let words = here.path("words").display().to_string();
    let once = |args: &[&str]| {
        let done = pool.run(&[&["exec", program()], args].concat()).ok();
        String::from_utf8(done.stdout).expect("text")
    };
    assert_eq!(once(&["--", "args", "x y", "z"]), "x y|z\n");
    assert_eq!(once(&["--env", "COLOUR=sea green", "--", "env", "COLOUR"]), "sea green\n");
    assert_eq!(once(&["--folder", &words, "--", "data", "/data/deep/one.txt"]), "shared\n");
    let done = pool.run_with(&["exec", program(), "--json"], b"quiet").ok();
    assert_eq!(done.json()["answers"], serde_json::json!(["QUIET"]));
}

#[test]
fn jobs_can_be_looked_at_afterwards() {
    let (pool, _node) = Pool::with_node();
    pool.run_with(&["exec", program(), "--lines", "--name", "shout"], b"a\nb\n").ok();
    pool.run_with(&["exec", program(), "--lines", "--", "exit"], b"5\n").fails(1, &["code 9"]);
    let watched = pool.run(&["watch", "1", "--json"]).ok();
    let last: serde_json::Value = watched
        .stdout
        .split(|byte| *byte == b'\n')
        .rfind(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(line).expect("a JSON line"))
        .expect("a line");
    assert_eq!((&last["state"], &last["name"]), (&"done".into(), &"shout".into()));
    pool.run(&["watch", "2"]).fails(1, &["exit code 9"]);
    let table = String::from_utf8(pool.run(&["jobs"]).ok().stdout).expect("text");
    assert!(table.contains("shout") && table.contains("failed"), "{table}");
    assert!(pool.run(&["nodes"]).ok().stdout.windows(5).any(|word| word == b"first"));
    // For programs the same as the coordinator says it.
    let jobs = pool.run(&["jobs", "--json"]).ok().json();
    assert_eq!(jobs["jobs"], pool.ask("GET /api/v1/jobs", "")["jobs"]);
    let nodes = pool.run(&["nodes", "--json"]).ok().json();
    let named = |nodes: &serde_json::Value| nodes["nodes"][0]["name"].clone();
    assert_eq!(named(&nodes), named(&pool.ask("GET /api/v1/nodes", "")));
    pool.run(&["cancel", "1"]).ok();
}
