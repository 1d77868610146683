//! `shoal infer --batch` and `--images`: a model over many inputs, as a job.

use crate::material::{npy, npy_of, read_npy};
use crate::onnx_file::{Graph, negative_part};
use crate::world::{Pool, Process};

fn own(pool: &Pool, name: &str) -> Process {
    let key = pool.key.clone();
    pool.node(name, &["--no-gpu", "--cpus", "1", "--key", &key])
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Rows of three, of which every other number is negative.
fn numbers(rows: usize) -> Vec<f32> {
    (0..rows * 3).map(|at| if at % 2 == 0 { at as f32 } else { -(at as f32) }).collect()
}

fn negative(numbers: &[f32]) -> Vec<f32> {
    numbers.iter().map(|number| (-number).max(0.0)).collect()
}

#[test]
fn a_model_runs_over_the_rows_of_an_array_on_several_nodes() {
    let pool = Pool::start();
    let _nodes = [own(&pool, "one"), own(&pool, "two")];
    let model = pool.folder.file("part.onnx", negative_part());
    let values = numbers(1000);
    let input = pool.folder.file("x.npy", npy("(1000, 3)", &values));
    let out = pool.folder.path("y.npy").display().to_string();
    let said =
        pool.run(&["infer", &model, "--batch", &input, "-o", &out, "--unit", "16", "--json"]);
    let said = said.ok().json();
    assert_eq!((&said["job"]["items"], &said["job"]["kind"]), (&1000.into(), &"onnx".into()));
    assert_eq!(said["job"]["tensors"][0]["name"], "y");
    assert_eq!(said["job"]["shares"].as_array().map(Vec::len), Some(2), "both had a part: {said}");
    let (shape, found) = read_npy(&pool.folder.read("y.npy"));
    assert_eq!((shape.as_str(), found), ("(1000, 3)", negative(&values)));
    // By the name of a model that was added, and by the name of its input; the result is an array for others too.
    pool.run(&["model", "add", &model]).ok();
    let named = format!("x={input}");
    let told = pool.run(&["infer", "part", "--batch", &named, "-o", &out]).ok();
    assert!(told.stderr.contains("items, "), "{}", told.stderr);
    assert_eq!(read_npy(&pool.folder.read("y.npy")).1, negative(&values));
    let id = said["job"]["id"].to_string();
    let receipt = pool.folder.path("receipt.json").display().to_string();
    pool.run(&["receipt", &id, "-o", &receipt]).ok();
    pool.run(&["verify", &receipt]).ok();
}

#[test]
fn models_for_one_item_and_several_arrays_and_outputs() {
    let pool = Pool::start();
    let _node = own(&pool, "own");
    // No axis counts items in `b`, and one only in `a`: each item runs alone.
    let graph = Graph {
        nodes: &[("Add", &["a", "b"], "sum"), ("Sub", &["a", "b"], "difference")],
        inputs: &[("a", &[1, 3]), ("b", &[3])],
        outputs: &[("sum", &[1, 3]), ("difference", &[1, 3])],
    };
    let model = pool.folder.file("two.onnx", graph.file());
    let (a, b) = (numbers(50), vec![10.0; 150]);
    let a_file = pool.folder.file("a.npy", npy("(50, 3)", &a));
    let b_file = pool.folder.file("b.npy", npy("(50, 3)", &b));
    let (a_named, b_named) = (format!("a={a_file}"), format!("b={b_file}"));
    let out = pool.folder.path("out").display().to_string();
    pool.run(&["infer", &model, "--batch", &a_named, "--input", &b_named, "-o", &out]).ok();
    let sums: Vec<f32> = a.iter().map(|number| number + 10.0).collect();
    let differences: Vec<f32> = a.iter().map(|number| number - 10.0).collect();
    assert_eq!(read_npy(&pool.folder.read("out/sum.npy")), ("(50, 3)".into(), sums));
    assert_eq!(read_npy(&pool.folder.read("out/difference.npy")).1, differences);
    // What does not fit is told before anything is sent, in the words of the arrays.
    let infer = |batch: &[&str], words: &[&str]| {
        let args: Vec<&str> = [&["infer", &model][..], batch, &["-o", &out]].concat();
        pool.run(&args).fails(2, words);
    };
    infer(
        &["--batch", &a_file],
        &["the model has 2 inputs (a, b): say which one it is for with NAME="],
    );
    infer(&["--batch", &a_named], &["the input \"b\" is missing: expected float32[3]"]);
    let short = format!("b={}", pool.folder.file("short.npy", npy("(49, 3)", &b[..147])));
    infer(&["--batch", &a_named, "--batch", &short], &["\"a\" has 50 items, but \"b\" has 49"]);
    let wide = format!("b={}", pool.folder.file("wide.npy", npy("(50, 2)", &b[..100])));
    infer(&["--batch", &a_named, "--batch", &wide], &["expected float32[3]", "float32[50, 2]"]);
    let whole = npy_of("<i4", "False", "(50, 3)", &[0; 600]);
    let whole = format!("b={}", pool.folder.file("whole.npy", whole));
    infer(&["--batch", &a_named, "--batch", &whole], &["\"b\" is int32: expected float32"]);
    let args = ["infer", &model, "--batch", &a_named, "--batch", &b_named, "-o", "both.npy"];
    pool.run(&args).fails(2, &["the model has 2 outputs: name a folder"]);
    pool.run(&args[..6]).fails(2, &["say with -o where they go"]);
    pool.run(&["infer", "nobody", "--batch", &a_named, "-o", &out]).fails(2, &["nobody"]);
}

#[test]
fn what_is_no_number_passes_through() {
    let pool = Pool::start();
    let _node = own(&pool, "own");
    let model = pool.folder.file("part.onnx", negative_part());
    let input = npy("(2, 3)", &[f32::NAN, -1.0, 2.0, -3.0, f32::NAN, f32::NEG_INFINITY]);
    let input = pool.folder.file("x.npy", input);
    let out = pool.folder.path("y.npy").display().to_string();
    pool.run(&["infer", &model, "--batch", &input, "-o", &out]).ok();
    let found = read_npy(&pool.folder.read("y.npy")).1;
    assert!(found[0].is_nan() && found[4].is_nan(), "{found:?}");
    assert_eq!([found[1], found[2], found[3], found[5]], [1.0, 0.0, 3.0, f32::INFINITY]);
}

#[test]
fn a_model_that_is_removed_while_a_job_runs_it_changes_nothing() {
    let pool = Pool::start();
    let model = pool.folder.file("part.onnx", negative_part());
    let values = numbers(4000);
    let input = pool.folder.file("x.npy", npy("(4000, 3)", &values));
    let out = pool.folder.path("y.npy").display().to_string();
    let first = own(&pool, "first");
    pool.run(&["model", "add", &model]).ok();
    drop(first);
    // Nobody is there to compute: the job waits, and its model goes.
    let args = ["infer", "part", "--batch", &input, "-o", &out, "--unit", "8"];
    let job = pool.begin(&args, b"");
    pool.wait("the job", || {
        let jobs = pool.run(&["jobs", "--json"]).ok().json();
        jobs["jobs"].as_array().is_some_and(|jobs| !jobs.is_empty())
    });
    pool.run(&["model", "rm", "part"]).ok();
    let _second = own(&pool, "second");
    job.end().ok();
    assert_eq!(read_npy(&pool.folder.read("y.npy")).1, negative(&values));
}

/// A picture of one colour.
fn picture(red: u8, green: u8, blue: u8) -> Vec<u8> {
    let mut bytes = std::io::Cursor::new(Vec::new());
    let image = image::RgbImage::from_pixel(8, 8, image::Rgb([red, green, blue]));
    image.write_to(&mut bytes, image::ImageFormat::Png).expect("a PNG");
    bytes.into_inner()
}

#[test]
fn many_pictures_are_told_one_by_one_and_what_is_none_is_named() {
    let pool = Pool::start();
    let _node = own(&pool, "own");
    // Its classes are the colours: how much there is of each.
    let graph = Graph {
        nodes: &[("GlobalAveragePool", &["picture"], "mean"), ("Flatten", &["mean"], "y")],
        inputs: &[("picture", &[0, 3, 4, 4])],
        outputs: &[("y", &[0, 3])],
    };
    let model = pool.folder.file("colours.onnx", graph.file());
    let folder = pool.folder.path("photos");
    std::fs::create_dir(&folder).expect("a folder");
    let pictures = [("a.png", picture(255, 0, 0)), ("b.png", picture(0, 0, 255))];
    let mut files = pictures.to_vec();
    files.extend([("c.png", b"no picture".to_vec()), ("d.PNG", picture(0, 255, 0))]);
    files.push(("notes.txt", b"not asked for".to_vec()));
    for (name, bytes) in files {
        std::fs::write(folder.join(name), bytes).expect("a file");
    }
    let labels = pool.folder.file("labels.txt", b"red\ngreen\nblue\n");
    let photos = folder.display().to_string();
    let out = pool.folder.path("results.jsonl").display().to_string();
    let rest = ["--task", "classify", "--normalize", "none", "--labels", &labels];
    let args = [&["infer", &model, "--images", &photos, "-o", &out][..], &rest].concat();
    pool.run(&args)
        .fails(2, &["c.png cannot be read as a picture", "1 of 4 files are no pictures"]);
    let results = text(&pool.folder.read("results.jsonl"));
    let lines: Vec<serde_json::Value> =
        results.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let likeliest: Vec<&str> =
        lines.iter().map(|line| line["classes"][0]["name"].as_str().unwrap_or("none")).collect();
    assert_eq!(likeliest, ["red", "blue", "none", "green"]);
    assert!(
        lines[2]["error"]
            .as_str()
            .is_some_and(|words| words.contains("cannot be read as a picture"))
    );
    assert!(lines[3]["file"].as_str().is_some_and(|file| file.ends_with("d.PNG")));
    let one = folder.join("a.png").display().to_string();
    let args = [&["infer", &model, "--images", &one][..], &rest].concat();
    let told = text(&pool.run(&args).ok().stdout);
    assert!(told.contains("a.png: ") && told.contains("% red, "), "{told}");
    pool.run(&["infer", &model, "--images", &one]).fails(2, &["--task"]);
    let empty = pool.folder.path("empty");
    std::fs::create_dir(&empty).expect("a folder");
    let empty = empty.display().to_string();
    pool.run(&[&["infer", &model, "--images", &empty][..], &rest].concat())
        .fails(2, &["holds no pictures"]);
}
