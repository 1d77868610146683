//! `shoal count`, the example of CONTRIBUTING.md, on a real node.

use crate::material::{npy, npy_of};
use crate::world::{Folder, Pool};

#[test]
fn a_value_is_counted_in_units_and_the_receipt_names_it() {
    let (pool, _node) = Pool::with_node();
    let here = Folder::new();
    let numbers = (0..300_000_u32).map(|i| i % 13);
    let sevens = numbers.clone().filter(|number| *number == 7).count();
    let bytes: Vec<u8> = numbers.flat_map(u32::to_le_bytes).collect();
    let input = here.file("in.npy", npy_of("<u4", "False", "(300, 1000)", &bytes));
    let done = pool.run(&["count", &input, "--value", "7", "--unit", "50"]).ok();
    assert_eq!(String::from_utf8_lossy(&done.stdout).trim(), sevens.to_string());
    let job = pool.job(1).expect("the job");
    assert_eq!((&job["items"], &job["unitsDone"]), (&293.into(), &6.into()), "{job}");
    let receipt = here.path("receipt.json").display().to_string();
    pool.run(&["receipt", "1", "-o", &receipt]).ok();
    assert!(String::from_utf8_lossy(&here.read("receipt.json")).contains("\"value\""));
    pool.run(&["verify", &receipt, "--input", &input]).ok();
}

#[test]
fn numbers_of_another_type_are_refused_before_anything_is_sent() {
    let pool = Pool::start();
    let here = Folder::new();
    let input = here.file("in.npy", npy("(2,)", &[1.0, 7.0]));
    pool.run(&["count", &input, "--value", "7"]).fails(2, &["in.npy", "float32", "uint32"]);
    assert!(pool.job(1).is_none());
}
