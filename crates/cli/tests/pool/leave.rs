//! Clients that go away, and others that bring their results home.

use crate::material::{example, npy, program, read_npy};
use crate::onnx_file::negative_part;
use crate::process::shoal;
use crate::world::{Folder, Pool};
use std::io::Write;
use std::process::Stdio;

const SQUARE: &str = "
    @group(0) @binding(0) var<storage, read> input: array<f32>;
    @group(0) @binding(1) var<storage, read_write> output: array<f32>;
    @compute @workgroup_size(64)
    fn main(@builtin(global_invocation_id) id: vec3<u32>) {
        if id.x < arrayLength(&output) { output[id.x] = input[id.x] * input[id.x]; }
    }";

#[test]
fn a_detached_job_is_fetched_by_its_number() {
    let (pool, _node) = Pool::with_node();
    let here = Folder::new();
    let kernel = here.file("square.wgsl", SQUARE);
    let input = here.file("in.npy", npy("(4,)", &[1.0, 2.0, 3.0, 4.0]));
    let path = |name: &str| here.path(name).display().to_string();

    let done = pool.run(&["map", &kernel, &input, "--detach"]).ok();
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(said.contains("job 1 (square.wgsl) runs") && said.contains("shoal watch 1"), "{said}");
    let said =
        pool.run(&["map", &kernel, &input, "--detach", "--owner", "Ada", "--json"]).ok().json();
    assert_eq!((&said["job"]["id"], &said["job"]["owner"]), (&2.into(), &"Ada".into()), "{said}");

    // Whoever watches can save the result, too.
    pool.run(&["watch", "1", "-o", &path("watched.npy")]).ok();
    assert_eq!(read_npy(&here.read("watched.npy")).1, [1.0, 4.0, 9.0, 16.0]);
    pool.run(&["watch", "2"]).ok();
    pool.run(&["result", "2", "-o", &path("fetched.npy")]).ok();
    assert_eq!(read_npy(&here.read("fetched.npy")).1, [1.0, 4.0, 9.0, 16.0]);
    pool.run(&["result", "2", "-o", &path("raw.f32")]).ok();
    assert_eq!(here.read("raw.f32").len(), 16);
    pool.run(&["result", "2"]).fails(2, &["-o out.npy"]);

    // A total that nobody brought together does not look like one.
    let many = here.file("many.npy", npy("(600,)", &[1.0; 600]));
    pool.run(&["map", &kernel, &many, "--reduce", "sum"]).ok();
    let done = pool.run(&["watch", "3", "-o", &path("blocks.npy")]).ok();
    assert!(done.stderr.contains("a value for each block"), "{}", done.stderr);
    pool.run(&["result", "9", "-o", &path("x")]).fails(2, &["9"]);
}

#[test]
fn results_of_programs_keep_their_names() {
    let (pool, _node) = Pool::with_node();
    let here = Folder::new();
    let (a, b) = (here.file("a.txt", "hello"), here.file("b.txt", ""));
    let out = here.path("out").display().to_string();
    pool.run(&["exec", program(), &a, &b, "-o", &out, "--detach", "--", "name"]).ok();
    pool.run(&["watch", "1"]).ok();
    let again = here.path("again").display().to_string();
    pool.run(&["result", "1", "-o", &again]).ok();
    assert_eq!(here.read("again/a.txt"), b"a.txt:5");
    assert_eq!(here.read("again/b.txt"), b"b.txt:0");
    pool.run(&["result", "1"]).fails(2, &["-o outputs/"]);

    pool.run_with(&["exec", program(), "--lines", "--", "bare"], b"x\ny\n").ok();
    assert_eq!(pool.run(&["result", "2"]).ok().stdout, b"<x>\n<y>\n");
    let said = pool.run(&["result", "2", "--json"]).ok().json();
    assert_eq!(said["answers"], serde_json::json!(["<x>", "<y>"]));
    pool.run_with(&["exec", program()], b"once").ok();
    assert_eq!(pool.run(&["result", "3"]).ok().stdout, b"ONCE");
}

#[test]
fn a_picture_is_fetched_as_a_picture() {
    let (pool, _node) = Pool::with_node();
    let here = Folder::new();
    let kernel = example("path.wgsl");
    let (first, second) = (here.path("a.png"), here.path("b.png"));
    let (first, second) = (first.display().to_string(), second.display().to_string());
    let size = ["--size", "64x64", "--tile", "64"];
    pool.run(&[&["render", &kernel, "-o", &first], &size[..]].concat()).ok();
    pool.run(&["result", "1", "-o", &second]).ok();
    assert!(here.read("a.png") == here.read("b.png") && here.read("a.png").starts_with(b"\x89PNG"));
    pool.run(&["result", "1", "-o", "b.jpg"]).fails(2, &[".png"]);
}

#[test]
fn a_field_is_fetched_as_the_job_saved_it() {
    let (pool, _node) = Pool::with_node();
    let here = Folder::new();
    let path = |name: &str| here.path(name).display().to_string();
    let kernel = example("reaction-diffusion.wgsl");
    let grid = ["sim", &kernel, "--grid", "64x48", "--steps", "20", "-o", &path("saved.npy")];
    pool.run(&grid).ok();
    pool.run(&["result", "1", "-o", &path("fetched.npy")]).ok();
    assert!(here.read("fetched.npy") == here.read("saved.npy"));
    let (shape, values) = read_npy(&here.read("fetched.npy"));
    assert_eq!((shape.as_str(), values.len()), ("(48, 64, 2)", 48 * 64 * 2));
    assert!(values.iter().any(|value| *value != values[0]), "something happened");
    // Without its head where the name does not ask for one.
    pool.run(&["result", "1", "-o", &path("fetched.f32")]).ok();
    assert!(here.read("saved.npy").ends_with(&here.read("fetched.f32")));
    assert_eq!(here.read("fetched.f32").len(), values.len() * 4);
    pool.run(&["result", "1"]).fails(2, &["-o out.npy"]);
}

#[test]
fn what_a_model_made_of_many_is_fetched_by_number() {
    let pool = Pool::start();
    let key = pool.key.clone();
    let _node = pool.node("own", &["--no-gpu", "--cpus", "1", "--key", &key]);
    let here = Folder::new();
    let path = |name: &str| here.path(name).display().to_string();
    let model = here.file("part.onnx", negative_part());
    let input =
        here.file("x.npy", npy("(3, 3)", &[1.0, -2.0, 3.0, -4.0, 5.0, -6.0, 7.0, -8.0, 9.0]));
    let saved = path("saved.npy");
    pool.run(&["infer", &model, "--batch", &input, "-o", &saved]).ok();
    pool.run(&["result", "1", "-o", &path("fetched.npy")]).ok();
    assert!(here.read("fetched.npy") == here.read("saved.npy"));
    let (shape, values) = read_npy(&here.read("fetched.npy"));
    assert_eq!(shape, "(3, 3)");
    assert_eq!(values, [0.0, 2.0, 0.0, 4.0, 0.0, 6.0, 0.0, 8.0, 0.0]);
    // A file for each output where the place is no array.
    pool.run(&["result", "1", "-o", &path("outputs")]).ok();
    assert!(here.read("outputs/y.npy") == here.read("saved.npy"));
    pool.run(&["result", "1"]).fails(2, &["-o outputs/"]);
}

#[test]
fn jobs_are_removed_by_number_and_by_age() {
    let (pool, _node) = Pool::with_node();
    for _ in 0..3 {
        pool.run(&["noop", "--items", "1"]).ok();
    }
    let done = pool.run(&["rm", "1", "3"]).ok();
    assert!(String::from_utf8_lossy(&done.stdout).contains("2 jobs"));
    assert!(pool.job(1).is_none() && pool.job(2).is_some() && pool.job(3).is_none());
    pool.run(&["rm", "3"]).fails(2, &["3"]);
    pool.run(&["rm", "--older", "1d"]).ok();
    assert!(pool.job(2).is_some(), "it is not that old");
    pool.run(&["rm", "--older", "0s"]).ok();
    assert!(pool.job(2).is_none());

    let spinning = ["exec", program(), "--lines", "--detach", "--", "spin"];
    pool.run_with(&spinning, b"7\n").ok();
    pool.run(&["result", "4"]).fails(2, &["still running", "shoal watch 4"]);
    pool.run(&["rm", "4"]).fails(2, &["still running", "--force"]);
    pool.run(&["rm", "4", "--force"]).ok();
    assert!(pool.job(4).is_none());
}

#[cfg(unix)]
#[test]
fn a_lost_terminal_leaves_the_job_running_and_says_nothing() {
    use crate::process::{Running, SHOAL, signal};
    let (pool, _node) = Pool::with_node();
    // Whoever starts the tests under nohup ignores the signal, and so do all processes below.
    let mut hearing = match cfg!(target_os = "linux") {
        true => std::process::Command::new("env"),
        false => std::process::Command::new(SHOAL),
    };
    if cfg!(target_os = "linux") {
        hearing.args(["--default-signal=HUP", SHOAL]);
    }
    hearing.args(["exec", program(), "--lines", "--", "spin"]);
    hearing.env("SHOAL_DATA", pool.folder.path("data"));
    hearing.env_remove("SHOAL_URL").env_remove("SHOAL_KEY");
    let client = Running::spawn(hearing, b"7\n");
    pool.until(|job| job["unitsLeased"].as_u64() > Some(0));
    signal("-HUP", client.id());
    let done = client.end();
    assert_eq!((done.code, done.stderr.as_str()), (Some(129), ""));
    assert_eq!(pool.job(1).expect("the job")["state"], "running");
    pool.run(&["cancel", "1"]).ok();
}

#[cfg(target_os = "linux")]
#[test]
fn under_nohup_a_lost_terminal_is_nothing() {
    use crate::process::{Running, SHOAL, signal};
    let (pool, _node) = Pool::with_node();
    let data = pool.folder.path("data").display().to_string();
    let mut ignoring = std::process::Command::new("sh");
    ignoring.args(["-c", r#"trap "" HUP; exec "$0" "$@""#, SHOAL]);
    ignoring.args(["exec", program(), "--lines", "--unit", "1", "--", "work"]);
    ignoring.env("SHOAL_DATA", data).env_remove("SHOAL_URL").env_remove("SHOAL_KEY");
    let client = Running::spawn(ignoring, "1\n2\n3\n4\n5\n6\n7\n8\n".repeat(5).as_bytes());
    pool.until_done(1);
    signal("-HUP", client.id());
    assert_eq!(client.end().ok().stdout.iter().filter(|byte| **byte == b'\n').count(), 40);
}

#[cfg(unix)]
#[test]
fn an_interrupt_can_leave_the_job_running() {
    use crate::process::signal;
    let (pool, _node) = Pool::with_node();
    let args = ["exec", program(), "--lines", "--on-interrupt", "leave", "--", "spin"];
    let client = pool.begin(&args, b"7\n");
    pool.until(|job| job["unitsLeased"].as_u64() > Some(0));
    signal("-INT", client.id());
    client.end().fails(130, &["keeps running", "shoal watch 1"]);
    assert_eq!(pool.job(1).expect("the job")["state"], "running");
    pool.run(&["cancel", "1"]).ok();
}

/// On a terminal made for it, a person answers the question.
#[cfg(target_os = "linux")]
#[test]
fn at_a_terminal_ctrl_c_asks_once() {
    let (pool, _node) = Pool::with_node();
    let here = Folder::new();
    let seven = here.file("seven", "7");
    let out = here.path("out").display().to_string();
    for (job, answer, state, words) in
        [(1, "\n", "running", "keeps running"), (2, "y\n", "cancelled", "was stopped")]
    {
        let shoal = shoal(&["exec", program(), &seven, "-o", &out, "--", "spin"]);
        let words_of = shoal.get_args().map(|arg| arg.to_string_lossy().into_owned());
        let command =
            format!("{} {}", crate::process::SHOAL, words_of.collect::<Vec<_>>().join(" "));
        let mut terminal = std::process::Command::new("script")
            .args(["--quiet", "--return", "--command", &command, "/dev/null"])
            .env("SHOAL_DATA", pool.folder.path("data"))
            .env_remove("SHOAL_URL")
            .env_remove("SHOAL_KEY")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("script starts");
        let mut keys = terminal.stdin.take().expect("a keyboard");
        let seen = crate::process::Seen::of(terminal.stdout.take().expect("a screen"));
        pool.wait("it runs", || pool.job(job).is_some_and(|job| job["unitsLeased"] != 0));
        keys.write_all(b"\x03").expect("Ctrl-C");
        pool.wait("the question", || seen.text().contains(&format!("cancel job {job}?")));
        keys.write_all(answer.as_bytes()).expect("typed");
        pool.wait("its end", || seen.text().contains(words));
        assert_eq!(terminal.wait().expect("ended").code(), Some(130), "{}", seen.text());
        assert!(seen.text().matches("cancel job").count() == 1, "{}", seen.text());
        pool.wait("the state", || pool.job(job).is_some_and(|job| job["state"] == state));
        pool.run(&["cancel", &job.to_string()]).ok();
    }
}
