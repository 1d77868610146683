//! Programs over lines and files.

use reqwest::StatusCode;
use serde_json::json;
use shoal_kinds::exec::left;
use shoal_kinds::form::{End, Mark, Record, length};
use shoal_kinds::{ExecItems, Kind};
use shoal_protocol::{Failure, Span};

use crate::node::{Node, answers};
use crate::world::{World, eventually, problem};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_come_back_in_order_whole_and_one_by_one() {
    let world = World::start();
    let _one = Node::join(&world, "one").await.work(answers);
    let _two = Node::join(&world, "two").await.work(answers);
    let module = world.api.blob(*b"\0asm1234").await;
    let text: String = (0..3000).map(|i| format!("line {i}\n")).collect();
    let lines = world.api.blob(text).await;
    let job = json!({"kind": "exec", "module": module, "lines": {"blob": lines}});
    let id = world.api.submit(job).await;
    let job = world.api.ended(id).await;
    assert_eq!(job["state"], "done", "{job}");
    let expected: Vec<String> = (0..3000).map(|i| format!("answer {i}\n")).collect();
    let whole = expected.concat();
    let result =
        json!({"form": "answers", "bytes": whole.len(), "itemBytes": null, "bytesLeft": 0});
    assert_eq!(job["result"], result);
    let path = format!("/api/v1/jobs/{id}");
    assert!(world.api.bytes(&format!("{path}/result")).await == whole.as_bytes());
    let ends = world.api.bytes(&format!("{path}/ends")).await;
    let ends: Vec<u64> =
        ends.chunks_exact(8).map(|end| u64::from_le_bytes(end.try_into().unwrap())).collect();
    assert_eq!(ends.len(), 3000);
    assert_eq!(ends[0], 9);
    assert_eq!(*ends.last().unwrap(), whole.len() as u64);
    for item in [0, 1, 1234, 2999] {
        let answer = world.api.bytes(&format!("{path}/result/items/{item}")).await;
        assert_eq!(answer, expected[item].as_bytes());
    }
    for from in [0, 1234, 2999, 3000] {
        assert_eq!(so_far(&world, &path, from).await, expected[from..].concat().as_bytes());
    }
    let beyond = world.api.get(&format!("{path}/answers?from=3001")).await;
    assert_eq!(problem(beyond).await.0, StatusCode::NOT_FOUND);
    let beyond = world.api.get(&format!("{path}/result/items/3000")).await;
    assert_eq!(problem(beyond).await.0, StatusCode::NOT_FOUND);
    let tile = world.api.get(&format!("{path}/tiles/0")).await;
    assert_eq!(problem(tile).await.1, "wrong_kind");
    world.stop().await;
}

/// The answers from an item on, one after the other, asked for until there is no more.
async fn so_far(world: &World, path: &str, from: usize) -> Vec<u8> {
    let (mut at, mut all) = (from, Vec::new());
    loop {
        let answer = world.api.get(&format!("{path}/answers?from={at}")).await;
        assert_eq!(answer.status(), StatusCode::OK);
        let header = |name: &str| answer.headers()[name].to_str().unwrap().to_owned();
        assert_eq!(header("x-shoal-taken-back"), "0");
        let runs = header("x-shoal-runs");
        let bytes = answer.bytes().await.unwrap();
        let mut rest = &bytes[..];
        for runs in runs.split(',').filter(|runs| !runs.is_empty()) {
            let runs: usize = runs.parse().unwrap();
            let (table, answers) = rest.split_at(runs * 4);
            let (lengths, _) = table.as_chunks::<4>();
            let size: u32 = lengths.iter().map(|length| u32::from_le_bytes(*length)).sum();
            all.extend_from_slice(&answers[..size as usize]);
            (rest, at) = (&answers[size as usize..], at + runs);
        }
        assert!(rest.is_empty());
        if runs.is_empty() {
            return all;
        }
    }
}

/// Every third run says something on stderr and leaves two files, every third fails, the others do neither.
fn leaves(_work: &Kind, span: Span) -> Vec<u8> {
    let (mut lengths, mut records, mut behind) = (Vec::new(), Vec::new(), Vec::new());
    let mut answers = Vec::new();
    for item in span.start..span.end() {
        let answer = format!("answer {item}\n");
        let mark = match item % 3 {
            0 => {
                let (stderr, mut files) = (format!("hm {item}"), Vec::new());
                left::pack(&mut files, "a", answer.as_bytes());
                left::pack(&mut files, "b/c", b"deep");
                records.extend(Record::left(stderr.len(), files.len()).bytes());
                behind.extend(stderr.bytes().chain(files));
                Mark::Left
            }
            1 => Mark::Plain,
            _ => {
                records.extend(Record::failed(End::Exit(7), 2).bytes());
                behind.extend(b"no");
                Mark::Failed
            }
        };
        lengths.extend(length(answer.len(), mark).unwrap());
        answers.extend(answer.bytes());
    }
    [lengths, answers, records, behind].concat()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_runs_leave_comes_back_beside_their_answers() {
    let world = World::start();
    let _one = Node::join(&world, "one").await.work(leaves);
    let _two = Node::join(&world, "two").await.work(leaves);
    let module = world.api.blob(*b"\0asm1234").await;
    let text: String = (0..3000).map(|i| format!("line {i}\n")).collect();
    let lines = world.api.blob(text).await;
    let id =
        world.api.submit(json!({"kind": "exec", "module": module, "lines": {"blob": lines}})).await;
    let job = world.api.ended(id).await;
    let whole: String = (0..3000).map(|i| format!("answer {i}\n")).collect();
    assert_eq!((&job["state"], &job["itemsFailed"]), (&json!("done"), &json!(1000)), "{job}");
    assert_eq!(job["result"]["bytes"], whole.len());
    assert!(job["result"]["bytesLeft"].as_u64().unwrap() > 1000 * 40);
    let path = format!("/api/v1/jobs/{id}");
    assert!(world.api.bytes(&format!("{path}/result")).await == whole.as_bytes());
    let list = world.api.json(&format!("{path}/left?from=1")).await;
    assert_eq!((list["left"].as_array().unwrap().len(), &list["next"]), (999, &json!(null)));
    let third = json!({"item": 3, "input": "line 4", "stderr": "hm 3",
        "files": [{"path": "a", "size": 9}, {"path": "b/c", "size": 4}]});
    assert_eq!(list["left"][0], third);
    let failures = world.api.json(&format!("{path}/failures")).await;
    assert_eq!(
        (&failures["failures"][0]["item"], &failures["failures"][0]["stderr"]),
        (&json!(2), &json!("no"))
    );
    let items = format!("{path}/result/items");
    let packed = world.api.bytes(&format!("{items}/3/files")).await;
    assert_eq!(left::unpack(&packed), Some(vec![("a", &b"answer 3\n"[..]), ("b/c", b"deep")]));
    assert_eq!(world.api.bytes(&format!("{items}/3/files?path=b/c")).await, b"deep");
    assert_eq!(world.api.bytes(&format!("{items}/4/files")).await, b"");
    let none = world.api.get(&format!("{items}/3/files?path=../a")).await;
    assert_eq!(problem(none).await.1, "no_such_file");
    let explained = world.api.json(&format!("{path}/explain?item=3")).await.to_string();
    assert!(explained.contains("2 files in /out") && explained.contains("hm 3"), "{explained}");
    for from in [0, 1, 1234, 2999, 3000] {
        assert_eq!(left_from(&world, &path, from).await, 3000 - from, "from {from}");
    }
    world.stop().await;
}

/// Counts the answers from an item on, with what was left beside each of them.
async fn left_from(world: &World, path: &str, from: u64) -> u64 {
    let mut at = from;
    loop {
        let answer = world.api.get(&format!("{path}/answers?from={at}&left=true")).await;
        let groups = answer.headers()["x-shoal-runs"].to_str().unwrap().to_owned();
        let bytes = answer.bytes().await.unwrap();
        let mut rest = &bytes[..];
        for group in groups.split(',').filter(|group| !group.is_empty()) {
            let span = Span::new(at, group.parse().unwrap());
            let wanted = leaves(&shoal_kinds::NoopWork.into(), span);
            let (found, others) = rest.split_at(wanted.len());
            assert!(found == wanted, "{span}");
            (rest, at) = (others, at + span.len);
        }
        assert!(rest.is_empty());
        if groups.is_empty() {
            return at - from;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_are_there_before_the_job_ends_as_far_as_none_is_missing() {
    let world = World::start();
    let mut node = Node::join(&world, "one").await;
    let module = world.api.blob(*b"\0asm1234").await;
    let lines = json!({"blob": world.api.blob("a\nb\nc\n").await});
    let job =
        json!({"kind": "exec", "module": module, "lines": lines, "unit": 1, "verify": "none"});
    let id = world.api.submit(job).await;
    let path = format!("/api/v1/jobs/{id}");
    assert_eq!(so_far(&world, &path, 0).await, b"");
    let (first, second) = (node.lent().await, node.lent().await);
    let work = node.jobs[&first.job].work.clone();
    node.inline(second.attempt, answers(&work, second.span)).await;
    eventually(async || {
        let done = world.api.json(&path).await["itemsDone"].as_u64();
        (done == Some(1)).then_some(())
    })
    .await;
    assert_eq!(so_far(&world, &path, 0).await, b"", "the first is missing");
    node.inline(first.attempt, answers(&work, first.span)).await;
    let there =
        eventually(async || Some(so_far(&world, &path, 0).await).filter(|there| !there.is_empty()));
    assert_eq!(there.await, b"answer 0\nanswer 1\n");
    let noop = world.api.submit(crate::world::noop(1)).await;
    let wrong = world.api.get(&format!("/api/v1/jobs/{noop}/answers")).await;
    assert_eq!(problem(wrong).await.1, "wrong_kind");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_find_where_lines_end_and_what_files_are_called() {
    let world = World::start();
    let mut node = Node::join(&world, "one").await;
    let module = world.api.blob(*b"\0asm1234").await;
    let lines = world.api.blob("a\nbb\nccc\n").await;
    let lines = json!({"blob": lines, "perRun": 2});
    world.api.submit(json!({"kind": "exec", "module": module, "lines": lines})).await;
    let lease = node.lent().await;
    let Kind::Exec(exec) = node.jobs[&lease.job].work.clone() else { panic!("no exec") };
    let ExecItems::Lines { ends, .. } = exec.items else { panic!("no lines") };
    let ends = world.api.bytes(&format!("/api/v1/blobs/{}", ends.hash)).await;
    assert_eq!(ends, [5_u64.to_le_bytes(), 9_u64.to_le_bytes()].concat());

    let file = world.api.blob("content").await;
    let files = json!([{"name": "x.txt", "blob": file}]);
    let folder = json!([{"name": "data/table", "blob": file}]);
    let job = json!({"kind": "exec", "module": module, "files": files, "folder": folder,
        "args": ["-v"], "env": {"A": "1"}});
    let id = world.api.submit(job).await;
    let lease = loop {
        let lease = node.lent().await;
        if lease.job.0 == id {
            break lease;
        }
    };
    let Kind::Exec(exec) = node.jobs[&lease.job].work.clone() else { panic!("no exec") };
    assert_eq!((exec.args, exec.env), (vec!["-v".to_owned()], vec![("A".into(), "1".into())]));
    let ExecItems::Files { manifest } = exec.items else { panic!("no files") };
    for (list, name) in [(manifest, "x.txt"), (exec.folder.unwrap(), "data/table")] {
        let list = world.api.json(&format!("/api/v1/blobs/{}", list.hash)).await;
        assert_eq!(list, json!([{"name": name, "hash": file, "size": 7}]));
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_run_names_its_input_and_ends_with_its_stderr() {
    let world = World::start();
    let mut one = Node::join(&world, "one").await;
    let mut two = Node::join(&world, "two").await;
    let module = world.api.blob(*b"\0asm1234").await;
    let blob = world.api.blob("1\n2\n3\n").await;
    for (input, name) in [
        (json!({"lines": {"blob": blob}}), "line 3"),
        (json!({"lines": {"blob": blob, "perRun": 1}}), "line 3"),
        (
            json!({"files": [{"name": "a", "blob": blob}, {"name": "b", "blob": blob},
            {"name": "third.txt", "blob": blob}]}),
            "third.txt",
        ),
    ] {
        let mut job = json!({"kind": "exec", "module": module, "unit": 3, "onError": "stop"});
        job.as_object_mut().unwrap().extend(input.as_object().unwrap().clone());
        let id = world.api.submit(job).await;
        let working = async |node: &mut Node| loop {
            let lease = node.lent().await;
            let failure = Failure::Exit { item: 2, code: 9, stderr: "too bad\n".into() };
            node.fail(lease.attempt, failure).await;
        };
        let job = tokio::select! {
            job = world.api.ended(id) => job,
            () = working(&mut one) => unreachable!(),
            () = working(&mut two) => unreachable!(),
        };
        let error = &job["error"];
        assert_eq!((&error["item"], &error["input"]), (&json!(2), &json!(name)), "{job}");
        assert_eq!(error["stderr"], "too bad\n");
        let message = error["message"].as_str().unwrap();
        assert!(message.contains("exit code 9") && message.contains(name), "{message}");
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_too_large_for_memory_is_refused_by_name() {
    let world = World::start();
    let module = world.api.blob(*b"\0asm1234").await;
    let large = world.api.blob("large").await;
    let path = world.dir.path().join("blobs").join(&large[..2]).join(&large);
    let file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
    file.set_len((1 << 30) + 1).unwrap();
    for field in ["files", "folder"] {
        let list = json!([{"name": "big.csv", "blob": large}]);
        let (_, code, message) =
            world.api.refused(json!({"kind": "exec", "module": module, field: list})).await;
        assert_eq!(code, "too_large");
        assert!(message.contains("big.csv") && message.contains("1073741824"), "{message}");
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn results_that_do_not_add_up_are_refused() {
    let world = World::start();
    let mut node = Node::join(&world, "one").await;
    let module = world.api.blob(*b"\0asm1234").await;
    let id = world.api.submit(json!({"kind": "exec", "module": module})).await;
    let lease = node.lent().await;
    let wrong = node.put(lease, vec![9, 0, 0, 0, 1]).await;
    assert_eq!(problem(wrong).await.1, "wrong_shape");
    let mut right = 100_000_u32.to_le_bytes().to_vec();
    right.extend(vec![b'x'; 100_000]);
    node.store(lease, right).await;
    let job = world.api.ended(id).await;
    assert_eq!(job["result"]["bytes"], 100_000);
    assert_eq!(world.api.bytes(&format!("/api/v1/jobs/{id}/result")).await, vec![b'x'; 100_000]);
    world.stop().await;
}
