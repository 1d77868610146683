//! `shoal model`, `models` and `infer`: ONNX models that nodes keep ready.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use crate::material::{npy, npy_of, outside, read_npy};
use crate::onnx_file::{Graph, negative_part, weights_elsewhere};
use crate::proxy::Proxy;
use crate::world::{Pool, Process};

/// A pool whose only node is the operator's own, with a model.
fn with_model() -> (Pool, Process) {
    let pool = Pool::start();
    let node = own(&pool, "own");
    let file = pool.folder.file("part.onnx", negative_part());
    pool.run(&["model", "add", &file]).ok();
    (pool, node)
}

fn own(pool: &Pool, name: &str) -> Process {
    let key = pool.key.clone();
    pool.node(name, &["--no-gpu", "--key", &key])
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_model_is_added_run_listed_and_removed() {
    let pool = Pool::start();
    let _node = own(&pool, "own");
    let file = pool.folder.file("part.onnx", negative_part());
    let told = text(&pool.run(&["model", "add", &file, "--name", "neg"]).ok().stdout);
    for words in [
        "neg: 1",
        "takes x float32[nx3]",
        "gives y float32[nx3]",
        "3 operators: Abs 1, Relu 1, Sub 1",
        "  own can run it with onnx ",
        "ready on own; run it with: shoal infer neg --input x=FILE.npy",
    ] {
        assert!(told.contains(words), "{words}: {told}");
    }
    let x = pool.folder.file("x.npy", npy("(2, 3)", &[1.0, -2.0, 0.0, -4.5, 5.0, -6.0]));
    let input = format!("x={x}");
    let told = text(&pool.run(&["infer", "neg", "--input", &input]).ok().stdout);
    assert!(
        told.contains("y: float32[2x3]; least 0, mean 2.08333, most 6; 0, 2, 0, 4.5, 0, 6"),
        "{told}"
    );
    let out = pool.folder.path("out").display().to_string();
    pool.run(&["infer", "neg", "--input", &input, "-o", &out]).ok();
    let (shape, values) = read_npy(&pool.folder.read("out/y.npy"));
    assert_eq!((shape.as_str(), &values[..]), ("(2, 3)", &[0.0, 2.0, 0.0, 4.5, 0.0, 6.0][..]));
    let said = pool.run(&["infer", "neg", "--input", &input, "--json"]).ok().json();
    assert_eq!(said["outputs"][0]["data"][3], 4.5);
    let list = text(&pool.run(&["models"]).ok().stdout);
    assert!(list.contains("neg: ready on own; 3 answered, 0 failed"), "{list}");
    assert!(list.contains("takes x FP32[?x3]"), "{list}");
    pool.run(&["model", "add", &file, "--name", "neg"]).fails(2, &["neg"]);
    pool.run(&["model", "rm", "neg"]).ok();
    pool.run(&["infer", "neg", "--input", &input]).fails(2, &["no model named \"neg\""]);
    assert!(text(&pool.run(&["models"]).ok().stdout).contains("no models"));
}

#[test]
fn an_answer_that_breaks_off_on_the_way_is_asked_for_again() {
    let (pool, _node) = with_model();
    let numbers: Vec<f32> = (0..300_000).map(|at| at as f32 - 150_000.0).collect();
    let x = pool.folder.file("x.npy", npy("(100000, 3)", &numbers));
    let (input, out) = (format!("x={x}"), pool.folder.path("out").display().to_string());
    let proxy = Proxy::breaks(&pool.join, 2, 500_000);
    let args = ["infer", "part", "--input", &input, "-o", &out];
    pool.run(&[&args[..], &["--url", proxy.url(), "--key", &pool.key]].concat()).ok();
    let (shape, values) = read_npy(&pool.folder.read("out/y.npy"));
    assert_eq!(shape, "(100000, 3)");
    assert!(values.iter().zip(&numbers).all(|(found, number)| *found == (-number).max(0.0)));
    assert_eq!(proxy.changed(), 2);
}

/// Whoever asked is told so at once, whatever the node is doing, and the name can be used again.
#[test]
#[cfg(unix)]
fn a_model_that_is_removed_while_it_runs_leaves_nobody_waiting() {
    let (pool, node) = with_model();
    let x = pool.folder.file("x.npy", npy("(1, 3)", &[-1.0, 2.0, -3.5]));
    let input = format!("x={x}");
    crate::process::signal("-STOP", node.id());
    let asked = pool.begin(&["infer", "part", "--input", &input, "--json"], b"");
    let running = || pool.ask("GET /api/v1/services", "")["services"][0]["running"] == 1;
    pool.wait("the node has the request", running);
    pool.run(&["model", "rm", "part"]).ok();
    asked.end().fails(2, &["the service has been removed"]);
    crate::process::signal("-CONT", node.id());
    pool.run(&["model", "add", &pool.folder.file("part.onnx", negative_part())]).ok();
    let said = pool.run(&["infer", "part", "--input", &input, "--json"]).ok().json();
    assert_eq!(said["outputs"][0]["data"], serde_json::json!([1.0, 0.0, 3.5]));
}

#[test]
fn devices_that_can_run_a_model_are_told_and_why_others_cannot() {
    let pool = Pool::start();
    let _own = own(&pool, "own");
    let _guest = pool.node("guest", &["--no-gpu"]);
    let file = pool.folder.file("part.onnx", negative_part());
    let told = text(&pool.run(&["model", "add", &file]).ok().stdout);
    let words =
        "guest cannot run it: it belongs to somebody else, and strangers may not serve this";
    assert!(told.contains("own can run it") && told.contains(words), "{told}");
    let said = pool.run(&["model", "add", &file, "--name", "again", "--json"]).ok().json();
    let can = |at: usize| (&said["devices"][at]["name"], &said["devices"][at]["can"]);
    assert_eq!(can(0), (&"own".into(), &"whole".into()), "{said}");
    assert_eq!(can(1), (&"guest".into(), &"nothing".into()), "{said}");
    let why = text(&pool.run(&["explain", "again"]).ok().stdout);
    assert!(why.contains("guest cannot keep it ready: it belongs to somebody else"), "{why}");
}

#[test]
fn wrong_tensors_are_refused_with_what_was_expected() {
    let (pool, _node) = with_model();
    let file = |name: &str, bytes: Vec<u8>| format!("x={}", pool.folder.file(name, bytes));
    let infer = |input: &str| pool.run(&["infer", "part", "--input", input]);
    let flat = file("flat.npy", npy("(6,)", &[0.0; 6]));
    infer(&flat).fails(2, &["\"x\" has the shape [6]: expected float32[nx3]"]);
    let wide = file("wide.npy", npy("(1, 4)", &[0.0; 4]));
    infer(&wide).fails(2, &["[1, 4]: expected float32[nx3]"]);
    let whole = file("whole.npy", npy_of("<i8", "False", "(1, 3)", &[0; 24]));
    infer(&whole).fails(2, &["\"x\" is int64: expected float32"]);
    let z = flat.replace("x=", "z=");
    infer(&z).fails(2, &["no input \"z\", only x"]);
    pool.run(&["infer", "part"]).fails(2, &["\"x\" is missing: expected float32[nx3]"]);
    infer("x=nowhere.npy").fails(2, &["nowhere.npy"]);
    let garbage = file("garbage.npy", b"PK\x03\x04".to_vec());
    infer(&garbage).fails(2, &["garbage.npy", "not a .npy file"]);
    let strange = file("strange.npy", npy_of("<c8", "False", "(1, 3)", &[0; 24]));
    infer(&strange).fails(2, &["complex64", "which no model takes"]);
    // Nothing of it reached the model, and it still answers.
    let x = file("x.npy", npy("(1, 3)", &[-1.0, f32::NAN, 2.0]));
    let done = infer(&x).ok();
    assert!(text(&done.stdout).contains("1 are not numbers (NaN)"), "{done:?}");
    assert!(done.stderr.contains("1 values of the input x are not numbers"), "{done:?}");
}

#[test]
fn files_that_no_node_can_run_are_refused_by_name() {
    let pool = Pool::start();
    let _node = own(&pool, "own");
    let add =
        |name: &str, bytes: &[u8]| pool.run(&["model", "add", &pool.folder.file(name, bytes)]);
    add("page.onnx", b"<html>404</html>").fails(2, &["page.onnx", "not an ONNX file"]);
    add("page.gguf", b"<html>404</html>").fails(2, &["page.gguf", "not a GGUF file"]);
    let whole = negative_part();
    add("cut.onnx", &whole[..whole.len() / 2]).fails(2, &["cut.onnx"]);
    let inputs: &[(&str, &[u8])] = &[("x", &[1])];
    let outputs: &[(&str, &[u8])] = &[("y", &[1])];
    let nobody = Graph { nodes: &[("Relu", &["z"], "y")], inputs, outputs };
    add("nobody.onnx", &nobody.file()).fails(2, &["node 0 `step 0` (Relu)", "`z`"]);
    let unknown = Graph { nodes: &[("Warp", &["x"], "y")], inputs, outputs };
    add("unknown.onnx", &unknown.file()).fails(1, &["no node can run the model", "step 0", "Warp"]);
    let elsewhere = weights_elsewhere("part.onnx.data");
    let words = ["elsewhere.onnx", "in another file, \"part.onnx.data\"", "save them in the model"];
    add("elsewhere.onnx", &elsewhere).fails(2, &words);
    pool.run(&["model", "add", "nowhere.onnx"]).fails(2, &["nowhere.onnx"]);
    assert!(text(&pool.run(&["models"]).ok().stdout).contains("no models"));
}

/// A chain that an engine walks on its stack must not end a node, which others need.
#[test]
fn a_deep_model_runs_and_a_deeper_one_is_refused() {
    let pool = Pool::start();
    let _node = own(&pool, "own");
    let chain = |steps: usize| {
        let names: Vec<String> = (0..=steps).map(|at| format!("h{at}")).collect();
        let names: Vec<[&str; 1]> = names.iter().map(|name| [name.as_str()]).collect();
        let (first, last) = (names[0][0], names[steps][0]);
        let nodes: Vec<_> =
            names.windows(2).map(|pair| ("Neg", &pair[0][..], pair[1][0])).collect();
        Graph { nodes: &nodes, inputs: &[(first, &[1])], outputs: &[(last, &[1])] }.file()
    };
    let deeper = pool.folder.file("deeper.onnx", chain(10_001));
    let words = "the model has 10001 operators in a row; at most 10000 are allowed";
    pool.run(&["model", "add", &deeper]).fails(2, &[words]);
    pool.run(&["model", "add", &pool.folder.file("deep.onnx", chain(10_000))]).ok();
    let x = pool.folder.file("x.npy", npy("(1,)", &[-1.5]));
    let told = text(&pool.run(&["infer", "deep", "--input", &format!("h0={x}")]).ok().stdout);
    assert!(told.contains("-1.5"), "{told}");
}

#[test]
fn a_run_that_no_memory_could_hold_is_refused_and_the_node_lives() {
    let pool = Pool::start();
    let _node = own(&pool, "own");
    let nodes: &[_] = &[("Add", &["a", "b"][..], "all"), ("ReduceMax", &["all"][..], "most")];
    let inputs: &[(&str, &[u8])] = &[("a", &[0, 1]), ("b", &[1, 0])];
    let table = Graph { nodes, inputs, outputs: &[("most", &[1, 1])] };
    pool.run(&["model", "add", &pool.folder.file("table.onnx", table.file())]).ok();
    let ask = |side: usize| {
        let ones = vec![1.0; side];
        let a = pool.folder.file("a.npy", npy(&format!("({side}, 1)"), &ones));
        let b = pool.folder.file("b.npy", npy(&format!("(1, {side})"), &ones));
        pool.run(&["infer", "table", "--input", &format!("a={a}"), "--input", &format!("b={b}")])
    };
    ask(1_000_000).fails(1, &["the model needs", "MiB; at most 2048 are allowed"]);
    assert!(text(&ask(100).ok().stdout).contains("most: float32[1x1]; least 2"));
    let round = Graph {
        nodes: &[("Loop", &["a"], "most")],
        inputs: &[("a", &[1])],
        outputs: &[("most", &[1])],
    };
    let round = pool.folder.file("round.onnx", round.file());
    pool.run(&["model", "add", &round]).fails(1, &["(Loop)", "runs no loops"]);
}

#[test]
fn a_large_request_passes_and_a_larger_one_is_refused() {
    let (pool, _node) = with_model();
    // More than one message holds.
    let rows = 500_000;
    let values: Vec<f32> = (0..rows * 3).map(|i| -(i as f32)).collect();
    let x = pool.folder.file("x.npy", npy(&format!("({rows}, 3)"), &values));
    let (input, out) = (format!("x={x}"), pool.folder.path("out").display().to_string());
    pool.run(&["infer", "part", "--input", &input, "-o", &out]).ok();
    let (_, answers) = read_npy(&pool.folder.read("out/y.npy"));
    assert!(answers.iter().enumerate().all(|(i, answer)| *answer == i as f32));
    let rows = 6_000_000;
    let zeros = vec![0; rows * 12];
    let x = npy_of("<f4", "False", &format!("({rows}, 3)"), &zeros);
    let input = format!("x={}", pool.folder.file("huge.npy", x));
    pool.run(&["infer", "part", "--input", &input]).fails(2, &["bytes"]);
}

/// 4 GiB, said before they are sent, or in pieces that never end: refused with the limit, and nothing is held.
#[test]
fn a_request_of_four_gigabytes_is_refused_whether_or_not_it_says_its_size() {
    let (pool, _node) = with_model();
    let open = |length: &str| {
        let host = pool.url.trim_start_matches("http://").trim_end_matches('/');
        let mut line = TcpStream::connect(host).expect("the coordinator");
        let key = &pool.key;
        let head = format!(
            "POST /v2/models/part/infer HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {key}\r\n{length}\r\n\r\n"
        );
        line.write_all(head.as_bytes()).expect("it listens");
        line
    };
    let refused = |said: &str| {
        assert!(said.starts_with("HTTP/1.1 413"), "{said}");
        assert!(said.contains("larger than the 134217728 bytes allowed here"), "{said}");
    };
    // Nothing of it is sent: whoever waits for it waits for ever.
    let mut line = open("content-length: 4294967296\r\nconnection: close");
    line.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
    let mut said = String::new();
    let _ = line.read_to_string(&mut said);
    refused(&said);

    let mut line = open("transfer-encoding: chunked\r\nconnection: close");
    let mut ears = line.try_clone().expect("the same connection");
    let heard = std::thread::spawn(move || {
        let mut said = Vec::new();
        let _ = ears.read_to_end(&mut said);
        text(&said)
    });
    let chunk = [b"100000\r\n".as_slice(), &vec![b' '; 1 << 20], b"\r\n"].concat();
    let sent = (0..4096).take_while(|_| line.write_all(&chunk).is_ok()).count();
    assert!(sent < 1024, "{sent} MiB were taken");
    drop(line);
    refused(&heard.join().expect("it heard"));
    let x = pool.folder.file("x.npy", npy("(1, 3)", &[-1.0, 2.0, -3.0]));
    let told = pool.run(&["infer", "part", "--input", &format!("x={x}")]).ok().stdout;
    assert!(text(&told).contains("1, 0, 3"));
}

#[test]
fn another_node_takes_over_and_a_restart_forgets_no_model() {
    let (mut pool, mut node) = with_model();
    let x = pool.folder.file("x.npy", npy("(1, 3)", &[-1.0, 2.0, -3.0]));
    let input = format!("x={x}");
    let _second = own(&pool, "second");
    node.kill();
    let infer = |pool: &Pool| text(&pool.run(&["infer", "part", "--input", &input]).ok().stdout);
    assert!(infer(&pool).contains("1, 0, 3"));
    pool.crash_and_restart();
    assert!(infer(&pool).contains("1, 0, 3"));
}

#[test]
fn a_model_waits_for_a_node_that_can_run_it() {
    let pool = Pool::start();
    let file = pool.folder.file("part.onnx", negative_part());
    let told = text(&pool.run(&["model", "add", &file, "--wait", "0"]).ok().stdout);
    assert!(told.contains("no node has it ready yet"), "{told}");
    let x = pool.folder.file("x.npy", npy("(1, 3)", &[-1.0, 2.0, -3.0]));
    let input = format!("x={x}");
    let asked = pool.begin(&["infer", "part", "--input", &input], b"");
    let _node = own(&pool, "late");
    assert!(text(&asked.end().ok().stdout).contains("1, 0, 3"));
}

#[test]
fn a_detector_finds_what_is_in_a_picture() {
    let Some(folder) = outside() else { return };
    let pool = Pool::start();
    let _node = own(&pool, "own");
    let file = |name: &str| folder.join(name).display().to_string();
    pool.run(&["model", "add", &file("yolov8n/package/lib/model/yolov8n.onnx")]).ok();
    let bus = file("pictures/ultralytics/assets/bus.jpg");
    let infer = |more: &[&str]| {
        let args = [&["infer", "yolov8n", "--image", &bus, "--task", "detect"], more].concat();
        pool.run(&args)
    };
    let found = infer(&["--json"]).ok().json();
    let boxes = found["boxes"].as_array().expect("a list");
    let names: Vec<_> = boxes.iter().map(|one| one["name"].as_str().expect("a name")).collect();
    assert_eq!(names, ["person", "person", "person", "bus", "person"], "{found}");
    // As other programs place it, within some pixels of a picture of 810 x 1080.
    let near =
        |at: usize, place: f64| (boxes[3]["box"][at].as_f64().expect("one") - place).abs() < 8.0;
    assert!(near(0, 30.0) && near(1, 230.0) && near(2, 803.0) && near(3, 778.0), "{found}");
    let png = pool.folder.path("boxes.png").display().to_string();
    let told = text(&infer(&["--score", "0.5", "-o", &png]).ok().stdout);
    assert_eq!(told.lines().filter(|line| line.contains("person from ")).count(), 3, "{told}");
    assert!(pool.folder.read("boxes.png").starts_with(b"\x89PNG"));
    infer(&["-o", "boxes.gif"]).fails(2, &["boxes.gif", ".png"]);
    infer(&["--score", "7"]).fails(2, &["--score", "0 to 1"]);
    let text = pool.folder.file("no.jpg", "not a picture");
    pool.run(&["infer", "yolov8n", "--image", &text])
        .fails(2, &["no.jpg", "cannot be read as a picture"]);
}

#[test]
fn a_classifier_says_what_it_sees_and_names_nothing_that_nobody_named() {
    let pool = Pool::start();
    let _node = own(&pool, "own");
    let examples = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/cifar10");
    let mut png = std::io::Cursor::new(Vec::new());
    let image =
        image::RgbImage::from_fn(32, 32, |x, y| image::Rgb([8 * x as u8, 8 * y as u8, 200]));
    image.write_to(&mut png, image::ImageFormat::Png).expect("a PNG");
    let picture = pool.folder.file("picture.png", png.into_inner());
    let labels = pool.folder.file("labels.txt", "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\n");
    let flags = ["--task", "classify", "--fit", "stretch", "--normalize", "none", "--json"];
    let mut likely = Vec::new();
    for name in ["cifar10", "cifar10-uint8"] {
        let file = examples.join(format!("{name}.onnx")).display().to_string();
        pool.run(&["model", "add", &file]).ok();
        let args = [&["infer", name, "--image", &picture][..], &flags].concat();
        let said = pool.run(&args).ok().json();
        let first = said["classes"][0]["name"].as_str().expect("a name").to_owned();
        assert!(first.starts_with("class "), "{said}");
        let named = pool.run(&[&args[..], &["--labels", &labels]].concat()).ok().json();
        assert_eq!(named["classes"][0]["name"].as_str().map(str::len), Some(1), "{named}");
        likely.push((first, said["classes"][0]["probability"].as_f64().expect("a part")));
    }
    // Floats and pixels are the same picture.
    assert_eq!(likely[0].0, likely[1].0);
    assert!((likely[0].1 - likely[1].1).abs() < 1e-4, "{likely:?}");
}

#[test]
fn a_model_without_pictures_says_so() {
    let (pool, _node) = with_model();
    let mut png = std::io::Cursor::new(Vec::new());
    let image = image::RgbImage::from_pixel(8, 4, image::Rgb([255, 0, 0]));
    image.write_to(&mut png, image::ImageFormat::Png).expect("a PNG");
    let red = pool.folder.file("red.png", png.into_inner());
    pool.run(&["infer", "part", "--image", &red]).fails(2, &["part takes no picture"]);
    let inputs: &[(&str, &[u8])] = &[("image", &[1, 3, 4, 8])];
    let nodes: &[_] = &[("Identity", &["image"][..], "same")];
    let same = Graph { nodes, inputs, outputs: &[("same", &[1, 3, 4, 8])] };
    pool.run(&["model", "add", &pool.folder.file("same.onnx", same.file())]).ok();
    let said = pool.run(&["infer", "same", "--image", &red, "--json"]).ok().json();
    let data = said["outputs"][0]["data"].as_array().expect("numbers");
    assert!(data[..32].iter().all(|n| *n == 1.0) && data[32..].iter().all(|n| *n == 0.0), "{said}");
}
