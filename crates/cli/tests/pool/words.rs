//! How a job was checked is said in the same words by the line that ends it, the table, `explain` and the
//! receipt, and nobody calls work checked that nobody else saw.

use crate::material::{example, npy};
use crate::world::{Done, Folder, Pool};

fn map(pool: &Pool, here: &Folder, flags: &[&str]) -> Done {
    let values: Vec<f32> = (0..5120).map(|i| i as f32).collect();
    let input = here.file("in.npy", npy("(5120,)", &values));
    let out = here.path("out.npy").display().to_string();
    let wave = example("wave.wgsl");
    let args = ["map", &wave, &input, "-o", &out, "--unit", "512"];
    pool.run(&[&args, flags].concat()).ok()
}

/// The same words in every place, and the counts that clients read.
#[track_caller]
fn said(pool: &Pool, here: &Folder, done: &Done, job: u64, words: &str, counts: [u64; 3]) {
    assert!(done.stderr.contains(&format!("; {words} (job {job})")), "{}", done.stderr);
    let explained = pool.explain(&job.to_string());
    assert!(explained.contains(words), "{explained}");
    let path = here.path("receipt.json").display().to_string();
    pool.run(&["receipt", &job.to_string(), "-o", &path]).ok();
    let verified = pool.run(&["verify", &path, "--json"]).json();
    assert!(verified.to_string().contains(words), "{verified}");
    let job = pool.job(job).expect("the job");
    let fields = ["unitsChecked", "unitsOwn", "unitsUnchecked"];
    assert_eq!(fields.map(|field| job[field].as_u64().expect("a count")), counts, "{job}");
}

#[test]
fn your_own_devices_work_is_not_called_checked() {
    let pool = Pool::start();
    let _own = pool.node("own", &["--key", &pool.key]);
    let here = Folder::new();
    let done = map(&pool, &here, &[]);
    let words = "10 units computed by your own devices, not checked";
    said(&pool, &here, &done, 1, words, [0, 10, 0]);
    let table = String::from_utf8(pool.run(&["jobs"]).ok().stdout).expect("text");
    assert!(table.contains("0 of 10, 10 own"), "{table}");
    let unit = pool.explain("1/700");
    assert!(unit.contains("computed by your own device, not checked"), "{unit}");
}

#[test]
fn a_lone_strangers_work_is_not_checked_and_a_quorum_says_how_many_agreed() {
    let (pool, _first) = Pool::with_node();
    let here = Folder::new();
    let done = map(&pool, &here, &[]);
    said(&pool, &here, &done, 1, "10 units not checked", [0, 0, 10]);
    let _second = pool.node("second", &[]);
    let done = map(&pool, &here, &["--verify", "quorum:2"]);
    said(&pool, &here, &done, 2, "10 units agreed by 2 devices", [10, 0, 0]);
    let unit = pool.explain("2/700");
    assert!(unit.contains("agreed by 2 devices: nodes "), "{unit}");
}
