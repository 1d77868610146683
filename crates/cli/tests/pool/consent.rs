//! Whose code a node runs: only what somebody signed, and only whose the donor allows.

use crate::material::{example, npy, program};
use crate::proxy::Proxy;
use crate::world::{Folder, Pool, Process};

/// Two nodes behind somebody who changes things: a job fails only once two nodes refuse it.
fn behind(pool: &Pool, proxy: &Proxy) -> [Process; 2] {
    ["one", "two"].map(|name| pool.node_by(&proxy.link, name, &[]))
}

#[test]
fn a_changed_byte_of_a_kernel_is_refused_by_the_node() {
    let pool = Pool::start();
    let proxy = Proxy::changes_code(&pool.join, "sin", "cos");
    let nodes = behind(&pool, &proxy);
    let here = Folder::new();
    let input = here.file("in.npy", npy("(1000,)", &[1.0; 1000]));
    let out = here.path("out.npy").display().to_string();
    let args = ["map", &example("wave.wgsl"), &input, "-o", &out, "--verify", "none"];
    pool.run(&args).fails(1, &["the code was refused", "is not what the key", "signed"]);
    assert!(proxy.changed() >= 2);
    for node in nodes {
        let said = node.line(|line| ["refuses", "works"].iter().any(|it| line["event"] == *it));
        assert_eq!(said["event"], "refuses", "nothing ran: {said}");
    }
    assert_eq!(pool.job(1).expect("the job")["unitsDone"], 0);
}

#[test]
fn code_without_a_signature_is_refused_by_the_node() {
    let pool = Pool::start();
    let proxy = Proxy::strips_signature(&pool.join);
    let _nodes = behind(&pool, &proxy);
    let args = ["exec", program(), "--lines", "--verify", "none"];
    pool.run_with(&args, b"a\nb\n").fails(1, &["the code was refused", "nobody signed"]);
    assert_eq!(pool.job(1).expect("the job")["unitsDone"], 0);
}

#[test]
fn a_donor_chooses_whose_work_is_run() {
    let pool = Pool::start();
    let honest = pool.node("first", &["--no-gpu"]);
    let args = ["exec", program(), "--lines", "--name", "shout"];
    pool.run_with(&args, b"a\n").ok();
    let said = honest.line(|line| line["event"] == "works");
    assert_eq!(said["asker"]["name"], "shout");
    let job = pool.job(1).expect("the job");
    let key = job["signedBy"].as_str().expect("signed").to_owned();
    assert_eq!((&said["asker"]["key"], &job["signedHere"]), (&key.clone().into(), &false.into()));
    drop(honest);
    // One who never works for this key, and one who only works for another.
    let other = "7".repeat(64);
    let never = pool.node("never", &["--no-gpu", "--never", &key]);
    let only = pool.node("only", &["--no-gpu", "--only", &other]);
    let waiting = pool.begin(&args, b"b\nc\n");
    for node in [&never, &only] {
        node.line(|line| line["event"] == "declines");
    }
    pool.wait("both declined", || {
        pool.job(2).is_some()
            && pool.explain("2").contains("refused to run code signed with this key")
    });
    let willing = pool.node("willing", &["--no-gpu"]);
    assert_eq!(waiting.end().ok().stdout, b"B\nC\n");
    let job = pool.job(2).expect("the job");
    let shares = job["shares"].as_array().expect("shares");
    assert!(shares.iter().all(|share| share["name"] == "willing"), "{job}");
    drop((never, only, willing));
    // Another signer is another matter.
    let signer = pool.folder.path("other.key").display().to_string();
    let _never = pool.node("never", &["--no-gpu", "--never", &key]);
    let args = [&args[..], &["--signer-key", &signer]].concat();
    assert_eq!(pool.run_with(&args, b"d\n").ok().stdout, b"D\n");
    assert_ne!(pool.job(3).expect("the job")["signedBy"], key);
}
