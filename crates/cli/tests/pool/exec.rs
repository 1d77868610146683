//! `shoal exec`: lines, files, once, and what the program is given.

use crate::material::{component, program};
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
fn components_run_like_modules() {
    let (pool, _node) = Pool::with_node();
    let here = Folder::new();
    std::fs::create_dir_all(here.path("words")).expect("a folder");
    here.file("words/one.txt", "shared\n");
    let words = here.path("words").display().to_string();
    let input: String = (0..300).map(|i| format!("line {i}\n")).collect();
    let done = pool.run_with(&["exec", component(), "--lines"], input.as_bytes()).ok();
    assert_eq!(String::from_utf8_lossy(&done.stdout), input.to_uppercase());
    let args = ["exec", component(), "--folder", &words, "--", "data", "/data/one.txt"];
    pool.run(&args).fails(2, &["components get no folder", "wasm32-wasip1"]);
    let stop = |flags: &[&str], mode: &str| {
        let args = [&["exec", component(), "--lines", "--stop-on-error"], flags, &["--", mode]];
        pool.run_with(&args.concat(), b"3\n5\n7\n")
    };
    // Of its exit code, a component says only whether it is 0.
    stop(&[], "exit").fails(1, &["exit code 1", "line 2", "five is too much"]);
    stop(&[], "trap").fails(1, &["line 1", "no threes"]);
    stop(&["--limit-seconds", "1"], "spin").fails(1, &["time limit", "line 3"]);
    stop(&["--limit-output", "1"], "flood").fails(1, &["output limit", "line 1"]);
    let requests = ["service", "add", "loud", component(), "--strangers"];
    pool.run(&requests).ok();
    assert_eq!(pool.run_with(&["ask", "loud"], b"hello").ok().stdout, b"HELLO");
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
    let args = ["exec", program(), "--lines", "--stop-on-error", "--", "exit"];
    pool.run_with(&args, b"5\n").fails(1, &["code 9"]);
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

#[test]
fn one_failed_input_does_not_take_the_others_answers() {
    let (pool, _node) = Pool::with_node();
    let here = Folder::new();
    let input: String = (1..=50).map(|i| format!("{i}\n")).collect();
    let list = here.path("failed.jsonl").display().to_string();
    let args = ["exec", program(), "--lines", "--failures", &list, "--", "exit"];
    let done = pool.run_with(&args, input.as_bytes());
    let done = done.fails(123, &["line 5: the program ended with exit code 9", "five is too much"]);
    assert_eq!(String::from_utf8_lossy(&done.stdout), input.replacen("\n5\n", "\n", 1));
    let job = pool.job(1).expect("the job");
    assert_eq!((&job["state"], &job["itemsFailed"]), (&"done".into(), &1.into()));
    let told = pool.ask("GET /api/v1/jobs/1/failures", "");
    let failure = &told["failures"][0];
    assert_eq!((&failure["item"], &failure["exitCode"]), (&4.into(), &9.into()), "{told}");
    assert_eq!(
        pool.ask("GET /api/v1/jobs/1/failures?from=5", "")["failures"],
        serde_json::json!([])
    );
    let lines = pool.run(&["explain", "1/4"]).ok();
    let lines = String::from_utf8(lines.stdout).expect("text");
    assert!(lines.contains("it failed: the program ended with exit code 9"), "{lines}");
    assert!(
        !String::from_utf8_lossy(&pool.run(&["explain", "1/5"]).ok().stdout).contains("failed")
    );
    // A program that is better runs only on what failed.
    let only = ["exec", program(), "--lines", "--only", &list];
    assert_eq!(pool.run_with(&only, input.as_bytes()).ok().stdout, b"5\n");
    let again = [&only[..], &["--failures", &list, "--", "exit"]].concat();
    pool.run_with(&again, input.as_bytes()).fails(123, &["line 5: "]);
    pool.run_with(&only, b"1\n").fails(2, &["give the same lines as before"]);
}

#[test]
fn a_run_that_goes_over_a_limit_takes_no_other_answers_with_it() {
    let (pool, mut node) = Pool::with_node();
    let flags = ["--limit-seconds", "1", "--limit-memory", "64", "--limit-output", "1"];
    let args = [&["exec", program(), "--lines", "--json"], &flags[..], &["--", "limits"]].concat();
    let done = pool.run_with(&args, b"1\n2\n3\n4\n5\n").fails(123, &["runs_failed"]).json();
    assert_eq!(done["answers"], serde_json::json!(["1\n", "", "", "", "5\n"]));
    let told = done["failures"].as_array().expect("a list").iter();
    let told = told.map(|it| (it["input"].as_str(), it["limit"].as_str(), it["message"].as_str()));
    let told: Vec<_> = told.collect();
    let expected = [
        (Some("line 2"), Some("time"), Some("over the time limit of 1.000 s")),
        (Some("line 3"), Some("memory"), Some("over the memory limit of 64 MiB")),
        (Some("line 4"), Some("output"), Some("over the output limit of 1048576 bytes")),
    ];
    assert_eq!(told, expected);
    assert!(node.is_alive());
    let lines = String::from_utf8(pool.run(&["explain", "1/1"]).ok().stdout).expect("text");
    assert!(lines.contains("it failed: over the time limit of 1.000 s"), "{lines}");
}

#[test]
fn failed_files_are_left_out_of_the_folder_and_can_be_run_again() {
    let (pool, _node) = Pool::with_node();
    let here = Folder::new();
    let files = ["3", "4", "5"].map(|number| here.file(&format!("{number}.txt"), number));
    let [three, four, five] = &files;
    let out = here.path("out").display().to_string();
    let list = here.path("failed.jsonl").display().to_string();
    let common = ["exec", program(), three, four, five, "-o", &out];
    let args = [&common[..], &["--failures", &list, "--", "trap"]].concat();
    pool.run(&args).fails(123, &["3.txt: the program trapped", "no threes"]);
    assert_eq!(here.read("out/4.txt"), b"4");
    assert!(!here.path("out/3.txt").exists(), "nobody takes half an answer for a whole one");
    // Nor does who fetches the result later.
    let later = here.path("later").display().to_string();
    let fetched = pool.run(&["result", "1", "-o", &later]);
    fetched.fails(123, &["3.txt: the program trapped", "failed on 1 of 3 inputs"]);
    assert_eq!(here.read("later/4.txt"), b"4");
    assert!(!here.path("later/3.txt").exists());
    pool.run(&[&common[..], &["--only", &list]].concat()).ok();
    assert_eq!(here.read("out/3.txt"), b"3");
    let json = [&common[..], &["--json", "--", "trap"]].concat();
    let done = pool.run(&json).fails(123, &["runs_failed"]);
    assert_eq!(done.json()["failures"][0]["input"], "3.txt");
}

#[test]
fn exit_codes_can_be_good_and_failed_runs_tried_again_with_other_random_numbers() {
    let (pool, _node) = Pool::with_node();
    let run = |flags: &[&str], mode: &str| {
        pool.run_with(&[&["exec", program(), "--lines"], flags, &["--", mode]].concat(), b"5\n6\n")
    };
    run(&["--ok-exit", "0,9"], "exit").ok();
    assert_eq!(pool.job(1).expect("the job")["itemsFailed"], 0);
    run(&["--ok-exit", "9"], "exit").fails(123, &["line 2: the program ended with exit code 0"]);
    // It fails with three of four random bytes: with so many tries somewhere not.
    run(&["--retry", "60"], "chance").ok();
    assert_eq!(pool.ask("GET /api/v1/jobs/3/failures", "")["failures"], serde_json::json!([]));
    run(&["--retry", "101"], "chance").fails(2, &["101"]);
}

#[test]
fn devices_that_compute_the_same_agree_on_how_runs_failed() {
    let (pool, _one) = Pool::with_node();
    let _two = pool.node("second", &[]);
    let input: String = (1..=40).map(|i| format!("{i}\n")).collect();
    for (mode, words) in [("exit", "line 5: "), ("trap", "line 3: ")] {
        let args =
            ["exec", program(), "--lines", "--unit", "7", "--verify", "quorum:2", "--", mode];
        pool.run_with(&args, input.as_bytes()).fails(123, &[words]);
    }
    let job = pool.job(2).expect("the job");
    assert_eq!((&job["itemsFailed"], &job["unitsChecked"]), (&1.into(), &6.into()), "{job}");
    let flags = ["--unit", "7", "--verify", "quorum:2", "--limit-seconds", "1"];
    let args = [&["exec", program(), "--lines"], &flags[..], &["--", "spin"]].concat();
    pool.run_with(&args, input.as_bytes()).fails(123, &["line 7: over the time limit"]);
}

#[test]
fn with_resume_only_what_is_missing_or_changed_runs() {
    let (pool, _node) = Pool::with_node();
    let here = Folder::new();
    let path = |name: &str| here.path(name).display().to_string();
    let (kept, out, folder) = (path("lines.resume"), path("lines.out"), path("out"));
    let lines = |input: &[u8], mode: &str| {
        let args = ["exec", program(), "--lines", "--resume", &kept, "-o", &out, "--", mode];
        pool.run_with(&args, input)
    };
    let items = |job| pool.job(job).map(|job| job["items"].clone());
    // One fails, and runs again when the rest is there already.
    lines(b"4\n5\n6\n", "exit").fails(123, &["line 2: "]);
    assert_eq!(here.read("lines.out"), b"4\n6\n");
    lines(b"4\n5\n6\n", "exit").fails(123, &["line 2: ", "2 done before"]);
    assert_eq!((items(1), items(2)), (Some(3.into()), Some(1.into())));
    // New and other lines run, in their places; others go.
    lines(b"8\n4\n7\n6\n", "exit").ok();
    assert_eq!((here.read("lines.out"), items(3)), (b"8\n4\n7\n6\n".to_vec(), Some(2.into())));
    let done = lines(b"8\n4\n7\n6\n", "exit").ok();
    assert!(done.stderr.contains("all 4 answers are there") && pool.job(4).is_none());
    // Other arguments make other answers.
    lines(b"4\n", "bare").ok();
    assert_eq!((here.read("lines.out"), items(4)), (b"<4>\n".to_vec(), Some(1.into())));
    // Two runs over the same line are two.
    lines(b"4\n4\n", "bare").ok();
    assert_eq!((here.read("lines.out"), items(5)), (b"<4>\n<4>\n".to_vec(), Some(1.into())));

    let kept = path("files.resume");
    let (a, b) = (here.file("a", "1"), here.file("b", "2"));
    let files = |mode: &str| {
        pool.run(&["exec", program(), &a, &b, "-o", &folder, "--resume", &kept, "--", mode])
    };
    files("upper").ok();
    here.file("b", "other");
    files("upper").ok();
    assert_eq!((here.read("out/b"), items(7)), (b"OTHER".to_vec(), Some(1.into())));
    std::fs::remove_file(here.path("out/a")).expect("removed");
    files("upper").ok();
    assert_eq!((here.read("out/a"), items(8)), (b"1".to_vec(), Some(1.into())));
    assert!(files("upper").ok().stderr.contains("all 2 answers are there"));
    pool.run(&["exec", program(), "-", "--resume", &kept]).fails(2, &["several inputs"]);
    for files in [["--out-files", folder.as_str()], ["--stderr", "files"]] {
        let lines = ["exec", program(), "--lines", "--resume", &kept];
        pool.run(&[&lines[..], &files].concat()).fails(2, &["keeps answers but not files"]);
    }
}

#[test]
fn files_left_in_out_come_back_beside_the_answers() {
    let (pool, _node) = Pool::with_node();
    let here = Folder::new();
    let (a, b, c) = (here.file("a", "one"), here.file("a.out", "two"), here.file("c", ""));
    let out = here.path("out").display().to_string();
    let run = |flags: &[&str], words: &[&str]| {
        let args = [&["exec", program(), &a, &b, &c, "-o", &out], flags, &["--", "leave"], words];
        pool.run(&args.concat())
    };
    let done = run(&[], &[]).ok();
    assert!(done.stderr.contains("4 files that the program left in /out"), "{}", done.stderr);
    assert!(done.stderr.contains("a: left one\na.out: left two\n"), "{}", done.stderr);
    assert_eq!((here.read("out/a"), here.read("out/c")), (b"one".to_vec(), Vec::new()));
    // An answer has the usual name of another one's folder, which gives way.
    assert_eq!(here.read("out/a.out"), b"two");
    assert_eq!(here.read("out/a.out.out/loud"), b"TWO");
    assert_eq!(here.read("out/a.out.out.out/loud"), b"ONE");
    assert_eq!(here.read("out/a.out.out.out/deep/er/size"), b"3");
    assert!(!here.path("out/c.out").exists());
    // The same from the job, later.
    let again = here.path("again").display().to_string();
    let told = pool.run(&["result", "1", "-o", &again, "--json"]).ok().json();
    assert_eq!(here.read("again/a.out.out.out/deep/er/size"), b"3");
    let first = serde_json::json!({"item": 0, "input": "a", "stderr": "left one\n",
        "files": [{"path": "deep/er/size", "size": 1}, {"path": "loud", "size": 3}]});
    assert_eq!((told["left"].as_array().map(Vec::len), &told["left"][0]), (Some(2), &first));
    assert_eq!(run(&["--json"], &[]).ok().json()["left"], told["left"]);
    let explained = pool.run(&["explain", "1/0"]).ok();
    let said = String::from_utf8_lossy(&explained.stdout).into_owned();
    assert!(said.contains("2 files in /out") && said.contains("left one"), "{said}");
    // A name that cannot be one here is said, and all else is written.
    let done = run(&[], &["back\\slash"]);
    done.fails(
        1,
        &["2 files were not written, because their names cannot be used here", "back\\slash"],
    );
    assert_eq!(here.read("out/a.out.out/loud"), b"TWO");
}

#[test]
fn without_a_folder_it_is_said_that_files_were_left() {
    let (pool, _node) = Pool::with_node();
    let here = Folder::new();
    let done = pool.run_with(&["exec", program(), "--lines", "--", "leave"], b"x\n\ny\n").ok();
    assert_eq!(String::from_utf8_lossy(&done.stdout), "x\ny\n");
    let how = "4 files in /out (6 B): `shoal result 1 --out-files DIR` fetches them";
    assert!(done.stderr.contains(how), "{}", done.stderr);
    let out = here.path("later").display().to_string();
    let done = pool.run(&["result", "1", "--out-files", &out]).ok();
    assert_eq!(String::from_utf8_lossy(&done.stdout), "x\ny\n");
    assert_eq!(here.read("later/line-3.out/loud"), b"Y\n");
    assert!(!here.path("later/line-2.out").exists());
    let out = here.path("now").display().to_string();
    let args = ["exec", program(), "--out-files", &out, "--", "leave"];
    assert_eq!(pool.run_with(&args, b"all").ok().stdout, b"all");
    assert_eq!(here.read("now/stdin.out/loud"), b"ALL");
}

#[test]
fn what_programs_say_on_stderr_is_shown_as_asked() {
    let (pool, _node) = Pool::with_node();
    let here = Folder::new();
    let input: String = (0..50).map(|i| format!("{i}\n")).collect();
    let say = |flags: &[&str]| {
        let args = [&["exec", program(), "--lines"], flags, &["--", "leave"]].concat();
        pool.run_with(&args, input.as_bytes()).ok().stderr
    };
    let few = say(&[]);
    assert!(few.contains("line 20: left 19") && !few.contains("left 20"), "{few}");
    assert!(few.contains("and 30 more lines on stderr: --stderr all shows them"), "{few}");
    assert_eq!(say(&["--stderr", "all"]).matches(": left ").count(), 50);
    assert_eq!(say(&["--stderr", "none"]).matches(": left ").count(), 0);
    let out = here.path("said").display().to_string();
    let told = say(&["--stderr", "files", "--out-files", &out]);
    assert_eq!(
        (told.matches(": left ").count(), here.read("said/line-7.stderr")),
        (0, b"left 6\n".to_vec())
    );
    let args = ["exec", program(), "--lines", "--stderr", "files", "--", "leave"];
    pool.run_with(&args, b"1\n").fails(2, &["--out-files DIR"]);
    // Of failed runs too.
    let args =
        ["exec", program(), "--lines", "--stderr", "files", "--out-files", &out, "--", "exit"];
    pool.run_with(&args, b"4\n5\n").fails(123, &["line 2"]);
    assert_eq!(here.read("said/line-2.stderr"), b"five is too much\n");
}

#[test]
fn with_resume_a_lost_file_runs_its_input_again() {
    let (pool, _node) = Pool::with_node();
    let here = Folder::new();
    let (a, b) = (here.file("a", "1"), here.file("b", "2"));
    let path = |name: &str| here.path(name).display().to_string();
    let (out, kept) = (path("out"), path("files.resume"));
    let run = || {
        pool.run(&["exec", program(), &a, &b, "-o", &out, "--resume", &kept, "--", "leave"]).ok()
    };
    run();
    assert!(run().stderr.contains("all 2 answers are there"));
    std::fs::remove_file(here.path("out/b.out/deep/er/size")).expect("removed");
    run();
    assert_eq!(pool.job(2).expect("the job")["items"], 1);
    assert_eq!(here.read("out/b.out/deep/er/size"), b"1");
    assert!(run().stderr.contains("all 2 answers are there"));
}
