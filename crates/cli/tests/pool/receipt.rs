//! Receipts of every kind of job, checked without the coordinator; and every way to change one.

use serde_json::{Value, json};

use crate::material::{example, npy, program};
use crate::world::{Done, Folder, Pool, Running};

/// Fetches a job's receipt to a file.
fn fetch(pool: &Pool, here: &Folder, job: u64) -> String {
    let path = here.path(&format!("job{job}.json")).display().to_string();
    pool.run(&["receipt", &job.to_string(), "-o", &path]).ok();
    path
}

/// `shoal verify` where no pool is: offline, with this key.
fn verify(here: &Folder, key: &str, args: &[&str]) -> Done {
    let data = here.path("elsewhere").display().to_string();
    let args = [&["verify", "--key", key, "--json"], args].concat();
    Running::start(&args, &[("SHOAL_DATA", &data)], b"").end()
}

#[track_caller]
fn holds(done: Done, wanted: &[&str]) {
    let said = done.ok().json();
    assert_eq!(said["holds"], true, "{said}");
    let checks = said["checks"].as_array().expect("checks");
    for wanted in wanted {
        let found = checks.iter().find(|check| check["what"] == *wanted);
        assert_eq!(found.map(|it| &it["verdict"]), Some(&"holds".into()), "{wanted}: {said}");
    }
}

#[track_caller]
fn fails(done: Done, wanted: &str) {
    let said = done.fails(1, &["is not valid"]).json();
    let checks = said["checks"].as_array().expect("checks");
    let failed = checks.iter().any(|it| it["what"] == wanted && it["verdict"] == "fails");
    assert!(failed, "{wanted}: {said}");
}

#[test]
fn every_kind_of_job_has_a_receipt_that_holds() {
    let (pool, _node) = Pool::with_node();
    let here = Folder::new();
    let values: Vec<f32> = (0..5000).map(|i| i as f32).collect();
    let input = here.file("in.npy", npy("(5000,)", &values));
    let (out, png) = (here.path("out.npy"), here.path("out.png"));
    let (out, png) = (out.display().to_string(), png.display().to_string());
    let answers = here.path("answers.txt").display().to_string();
    let (wave, path) = (example("wave.wgsl"), example("path.wgsl"));
    pool.run(&["map", &wave, &input, "-o", &out, "--unit", "512"]).ok();
    pool.run(&["render", &path, "--size", "100x70", "--tile", "32", "-o", &png]).ok();
    pool.run_with(&["exec", program(), "--lines", "-o", &answers], b"a\nbc\n").ok();
    pool.run(&["noop", "--items", "100", "--json"]).ok();
    let key = fetch_key(&pool, &here);

    let map = fetch(&pool, &here, 1);
    let files = ["--result", &out, "--code", &wave, "--input", &input];
    let all = ["signature", "code", "units", "nodes", "result", "answers", "code file", "input"];
    holds(verify(&here, &key, &[&[map.as_str()][..], &files].concat()), &all);
    let render = fetch(&pool, &here, 2);
    holds(verify(&here, &key, &[&render, "--result", &png, "--code", &path]), &["result"]);
    let lines = here.file("lines.txt", "a\nbc\n");
    let exec = fetch(&pool, &here, 3);
    let files = ["--result", &answers, "--code", program(), "--input", &lines];
    holds(verify(&here, &key, &[&[exec.as_str()][..], &files].concat()), &all[..5]);
    let noop = fetch(&pool, &here, 4);
    holds(verify(&here, &key, &[&noop]), &["signature", "units"]);

    // Other files than the job's.
    let wrong = here.file("wrong.npy", npy("(5000,)", &values));
    fails(verify(&here, &key, &[&map, "--result", &wrong]), "result");
    fails(verify(&here, &key, &[&map, "--code", &path]), "code file");
    fails(verify(&here, &key, &[&map, "--input", &out]), "input");
    fails(verify(&here, &key, &[&render, "--result", &lines]), "result");
    // For people, and with the key in the coordinator's own folder.
    let said = String::from_utf8(pool.run(&["verify", &map]).ok().stdout).expect("text");
    assert!(said.contains("the receipt is valid") && said.contains("wave.wgsl"), "{said}");
    // Nobody says whose key it is.
    let data = here.path("elsewhere").display().to_string();
    Running::start(&["verify", &map], &[("SHOAL_DATA", &data)], b"").end().fails(2, &["--key"]);
}

#[test]
fn every_tampering_is_found() {
    let pool = Pool::start();
    let _one = pool.node("one", &["--no-gpu", "--cpus", "1"]);
    let _two = pool.node("two", &["--no-gpu", "--cpus", "1"]);
    let here = Folder::new();
    let args = ["exec", program(), "--lines", "--unit", "1", "--verify", "quorum:2"];
    pool.run_with(&args, b"a\nb\nc\nd\n").ok();
    let key = fetch_key(&pool, &here);
    let path = fetch(&pool, &here, 1);
    holds(verify(&here, &key, &[&path]), &["signature", "units", "checking"]);
    let good: Value = serde_json::from_slice(&here.read("job1.json")).expect("a receipt");
    let (other, hash) = ("7".repeat(64), "0".repeat(64));
    let node = |of: &Value| of.as_u64().map(|node| json!(3 - node)).expect("node 1 or 2");
    let changes = [
        ("/receipt/units/0/node", node(&good["receipt"]["units"][0]["node"])),
        ("/receipt/units/1/hash", json!(hash)),
        ("/receipt/units/2/checkedBy", json!([1, 2])),
        ("/receipt/units/0/at", json!(1)),
        ("/receipt/output/hash", json!(hash)),
        ("/receipt/policy/verify", json!("quorum:3")),
        ("/receipt/code/hash", json!(hash)),
        ("/receipt/code/signedBy", json!(other)),
        ("/receipt/nodes/0/identity", json!(other)),
        ("/receipt/owner", json!("somebody else")),
        ("/signature", json!("0".repeat(128))),
        ("/key", json!(other)),
    ];
    for (place, value) in changes {
        let mut changed = good.clone();
        *changed.pointer_mut(place).expect(place) = value;
        let path = here.file("changed.json", changed.to_string());
        fails(verify(&here, &key, &[&path]), "signature");
    }
    // A whole other coordinator's receipt, rightly signed by that one.
    fails(verify(&here, &other, &[&path]), "signature");
    let mut short = good.clone();
    short["receipt"]["units"].as_array_mut().expect("units").pop();
    let path = here.file("short.json", short.to_string());
    fails(verify(&here, &key, &[&path]), "units");
    pool.run(&["receipt", "9"]).fails(2, &["9"]);
}

/// The coordinator's public key, as any of its receipts shows it.
fn fetch_key(pool: &Pool, here: &Folder) -> String {
    fetch(pool, here, 1);
    let receipt: Value = serde_json::from_slice(&here.read("job1.json")).expect("a receipt");
    receipt["key"].as_str().expect("a key").to_owned()
}
