//! `shoal model quantize`: our own classifier, made smaller by onnxruntime's quantiser.

use std::path::{Path, PathBuf};

use crate::material::{npy, npy_of, outside, read_npy};
use crate::process::{Folder, Running};
use crate::world::Pool;

const SIDE: usize = 32;
const COUNT: usize = 200;

fn model() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/cifar10/cifar10.onnx");
    path.display().to_string()
}

/// A Python with onnxruntime and onnx; none if nobody named it and it is not required.
fn python() -> Option<PathBuf> {
    let python = std::env::var_os("SHOAL_QUANTIZER").map(PathBuf::from);
    let is_required = std::env::var("SHOAL_REQUIRE_ALL").is_ok_and(|it| it == "1");
    assert!(python.is_some() || !is_required, "SHOAL_QUANTIZER names no Python");
    python
}

/// The first pictures of CIFAR-10's test set, as the model takes them, in an .npy file.
fn pictures(outside: &Path) -> Vec<u8> {
    let path = outside.join("cifar10/package/test_batch.png");
    // One picture in each row.
    let all = image::open(path).expect("the pictures").into_rgb8();
    let (pixels, each) = (all.as_raw(), SIDE * SIDE * 3);
    let mut numbers = Vec::with_capacity(COUNT * each);
    for picture in pixels.chunks(each).take(COUNT) {
        for colour in 0..3 {
            numbers.extend(picture.iter().skip(colour).step_by(3).map(|n| f32::from(*n) / 255.0));
        }
    }
    npy("(200, 3, 32, 32)", &numbers)
}

fn shoal(folder: &Folder, args: &[&str]) -> Running {
    let data = folder.path("data").display().to_string();
    Running::start(args, &[("SHOAL_DATA", &data)], b"")
}

#[test]
fn a_smaller_classifier_says_the_same_of_most_pictures() {
    let (Some(python), Some(outside)) = (python(), outside()) else { return };
    let pool = Pool::start();
    let key = pool.key.clone();
    let _node = pool.node("own", &["--no-gpu", "--cpus", "1", "--key", &key]);
    let data = pool.folder.file("pictures.npy", pictures(&outside));
    let small = pool.folder.path("small.onnx").display().to_string();
    let (model, python) = (model(), python.display().to_string());
    let quantize = ["model", "quantize", &model, "--calibrate", &data, "--python", &python];
    let args = [&quantize[..], &["-o", &small, "--json"]].concat();
    let said = pool.run(&args).ok().json();
    assert_eq!(said["how"], "static");
    let number = |value: &serde_json::Value| value.as_f64().expect("a number");
    assert!(number(&said["bytesAfter"]) < 0.45 * number(&said["bytesBefore"]), "{said}");
    for engine in ["onnxruntime", "builtIn"] {
        let found = &said[engine];
        assert!(number(&found["agreement"]) >= 0.95, "{engine}: {said}");
        let difference = number(&found["difference"]);
        assert!(difference > 0.0 && difference < 1.5, "{engine}: {said}");
        assert!(number(&found["beforeMs"]) > 0.0 && number(&found["afterMs"]) > 0.0, "{said}");
    }
    // The pool runs it as it runs any other.
    let classes = |model: &str, name: &str| {
        let out = pool.folder.path(name).display().to_string();
        pool.run(&["infer", model, "--batch", &data, "-o", &out]).ok();
        let (shape, numbers) = read_npy(&pool.folder.read(name));
        assert_eq!(shape, "(200, 10)");
        let largest = |row: &[f32]| (0..10).max_by(|a, b| row[*a].total_cmp(&row[*b]));
        numbers.chunks(10).map(largest).collect::<Vec<_>>()
    };
    let (before, after) = (classes(&model, "before.npy"), classes(&small, "after.npy"));
    let same = before.iter().zip(&after).filter(|(a, b)| a == b).count();
    assert!(same >= 190, "{same} of 200");
    // Without calibration, scales are found in every run, and convolutions stay as they are.
    let args = [&quantize[..], &["--dynamic", "-o", &small]].concat();
    let told = String::from_utf8_lossy(&pool.run(&args).ok().stdout).into_owned();
    assert!(told.contains("dynamic") && told.contains("built in"), "{told}");
    assert!(told.contains("on 200 items of the calibration data"), "{told}");
}

#[test]
fn what_is_missing_is_said_and_nothing_is_written() {
    let folder = Folder::new();
    let (model, out) = (model(), folder.path("small.onnx").display().to_string());
    let args = ["model", "quantize", &model, "-o", &out, "--python", "no-such-python"];
    let words = ["no-such-python cannot quantize models", "pip install onnxruntime onnx"];
    shoal(&folder, &args).end().fails(2, &words);
    let data = folder.file("wide.npy", npy("(2, 3, 32, 31)", &vec![0.0; 2 * 3 * 32 * 31]));
    let with = |data: &str, words: &[&str]| {
        let args = [&args[..], &["--calibrate", data]].concat();
        shoal(&folder, &args).end().fails(2, words);
    };
    with(&data, &["expected float32[", "float32[2, 3, 32, 31]"]);
    let bytes = npy_of("|u1", "False", "(2, 3, 32, 32)", &vec![0; 2 * 3 * 32 * 32]);
    with(&folder.file("bytes.npy", bytes), &["is uint8: expected float32"]);
    with("nowhere.npy", &["nowhere.npy"]);
    let empty = folder.path("empty");
    std::fs::create_dir(&empty).expect("a folder");
    with(&empty.display().to_string(), &["holds no pictures"]);
    let text = folder.file("text.onnx", b"no model");
    let args = ["model", "quantize", &text, "-o", &out];
    shoal(&folder, &args).end().fails(2, &["text.onnx"]);
    assert!(!folder.path("small.onnx").exists());
}
