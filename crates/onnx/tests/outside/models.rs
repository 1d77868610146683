//! Real models: the shapes that are inferred are those of a run, and slices one after another say what the whole says,
//! bit for bit. Parts that stand side by side, joined again, say the same as an engine that fuses operators does.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rten::{ModelOptions, Value, ValueOrView};
use rten_tensor::prelude::*;
use shoal_onnx::{Cuts, DType, Given, Model, Shapes, Slice, TensorType};

use crate::material::{folder, read};

/// A model, and the shape of its one input.
struct Case {
    path: &'static str,
    input: &'static [u64],
    /// Ways to cut it that are tried without an engine that fuses operators, so that all bits are the same.
    rounds: usize,
    /// Those that are tried with one, as nodes run it; the larger models have a few further below.
    fused: usize,
}

/// Ways to join parts that are tried.
const JOINED: usize = 5;

const BLAZEFACE: Case = Case {
    path: "blazeface/package/ONNX/face_detection_front_128x128_barracuda.onnx",
    input: &[1, 128, 128, 3],
    rounds: 100,
    fused: 50,
};
const BLAZEFACE_BACK: Case = Case {
    path: "blazeface/package/ONNX/face_detection_back_256x256_barracuda.onnx",
    input: &[1, 256, 256, 3],
    rounds: 50,
    fused: 50,
};
const YOLO: Case = Case {
    path: "yolov8n/package/lib/model/yolov8n.onnx",
    input: &[1, 3, 640, 640],
    rounds: 50,
    fused: 0,
};
/// Of any size: a small one takes a tenth of the time.
const MOBILENET: Case =
    Case { path: "mobilenetv2/mobilenetv2.onnx", input: &[1, 3, 64, 64], rounds: 50, fused: 50 };
/// The one that is committed.
const CIFAR: Case =
    Case { path: "examples/cifar10/cifar10.onnx", input: &[2, 3, 32, 32], rounds: 100, fused: 50 };
const OCR_DETECT: Case = Case {
    path: "ppocr/rapidocr_onnxruntime/models/ch_PP-OCRv4_det_infer.onnx",
    input: &[1, 3, 160, 224],
    rounds: 50,
    fused: 0,
};
const OCR_READ: Case = Case {
    path: "ppocr/rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx",
    input: &[2, 3, 48, 100],
    rounds: 50,
    fused: 0,
};
const OCR_TURN: Case = Case {
    path: "ppocr/rapidocr_onnxruntime/models/ch_ppocr_mobile_v2.0_cls_infer.onnx",
    input: &[1, 3, 48, 192],
    rounds: 50,
    fused: 0,
};

#[test]
fn the_small_face_detector_is_cut() {
    check(&BLAZEFACE);
}

#[test]
fn the_large_face_detector_is_cut() {
    check(&BLAZEFACE_BACK);
}

#[test]
fn the_object_detector_is_cut() {
    check(&YOLO);
}

#[test]
fn the_large_classifier_is_cut() {
    check(&MOBILENET);
}

#[test]
fn the_small_classifier_is_cut() {
    check(&CIFAR);
}

#[test]
fn the_text_detector_is_cut() {
    check(&OCR_DETECT);
}

#[test]
fn the_text_reader_is_cut() {
    check(&OCR_READ);
}

#[test]
fn the_text_turner_is_cut() {
    check(&OCR_TURN);
}

fn check(case: &Case) {
    let Some(folder) = folder() else { return };
    let path: PathBuf = match case.path.starts_with("examples/") {
        true => Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(case.path),
        false => folder.join(case.path),
    };
    let model = load(&path);
    let input = model.inputs().next().expect("an input").name().to_string();
    let given = Given::new(&input, TensorType::new(DType::Float32, case.input));
    let shapes = model.shapes(&[given]).unwrap_or_else(|error| panic!("{}: {error}", case.path));
    assert_eq!(shapes.missing(), [], "{}", case.path);
    let given = BTreeMap::from([(input, picture(case.input))]);
    shapes_are_those_of_a_run(&model, &shapes, &given);
    let cuts = model.cuts(&shapes);
    let outputs: Vec<String> = model.outputs().iter().map(|one| one.name().to_string()).collect();
    let whole = run(model.bytes(), &given, &outputs, false);
    let mut draws = Draws(7);
    for _ in 0..case.rounds {
        let cut = random_cut(&cuts, &mut draws);
        let parts = run_in_slices(&cuts, &cut, &given, false);
        for name in &outputs {
            assert!(
                same_bits(&whole[name], &parts[name]),
                "{}: `{name}` cut at {cut:?}",
                case.path
            );
        }
    }
    parts_are_good(case, &model, &cuts, &given, &outputs);
}

fn load(path: &Path) -> Model {
    let bytes = read(path);
    let model =
        Model::read(bytes.clone()).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert_eq!(model.bytes(), &bytes[..]);
    model
}

/// All values that are made while it runs, the engine's own inference switched off.
fn shapes_are_those_of_a_run(model: &Model, shapes: &Shapes, given: &BTreeMap<String, Value>) {
    let names: Vec<String> =
        model.nodes().iter().flat_map(|node| node.outputs()).cloned().collect();
    let made = run(model.bytes(), given, &names, false);
    for name in &names {
        let dims: Vec<u64> = made[name].shape().iter().map(|dim| *dim as u64).collect();
        let told = shapes.of(name).unwrap_or_else(|| panic!("`{name}` is not told"));
        assert_eq!(told.dims, dims, "`{name}`");
        if let (Some(shoal_onnx::Value::Ints(told)), Value::Int32Tensor(made)) =
            (shapes.value(name), &made[name])
        {
            let made: Vec<i64> = made.iter().map(|int| i64::from(*int)).collect();
            assert_eq!(*told, made, "`{name}`");
        }
    }
}

/// As a scheduler takes it: twelve parts, three members.
fn parts_are_good(
    case: &Case,
    model: &Model,
    cuts: &Cuts<'_>,
    given: &BTreeMap<String, Value>,
    outputs: &[String],
) {
    let parts = cuts.parts(12);
    assert!(parts.parts.len() >= 6, "{}: {parts:?}", case.path);
    let all: u64 = parts.parts.iter().map(|part| part.work).sum();
    let largest = parts.parts.iter().map(|part| part.work).max().unwrap_or(0);
    assert!(largest * 3 <= all, "{}: a part has a third of all work", case.path);
    eprintln!("{}: {} steps", case.path, cuts.steps());
    for part in &parts.parts {
        eprintln!(
            "  {:>3}..{:<3} {:>5.1} % work, weights {:>8}, peak {:>8}, out {:>8} in {}",
            part.from,
            part.to,
            part.work as f64 * 100.0 / all as f64,
            part.weight_bytes,
            part.peak_bytes,
            part.out_bytes,
            part.out_tensors
        );
    }
    // An engine that fuses what stands side by side may round otherwise where a cut is between.
    let thirds: Vec<usize> =
        (1..3).map(|at| parts.parts[parts.parts.len() * at / 3].from).collect();
    let whole = run(model.bytes(), given, outputs, true);
    let sliced = run_in_slices(cuts, &thirds, given, true);
    for name in outputs {
        let off = farthest(&whole[name], &sliced[name]);
        assert!(off <= 1e-4, "{}: `{name}` is off by {off}", case.path);
    }
    let mut draws = Draws(3);
    for _ in 0..case.fused {
        let cut = random_cut(cuts, &mut draws);
        let sliced = run_in_slices(cuts, &cut, given, true);
        for name in outputs {
            let off = farthest(&whole[name], &sliced[name]);
            assert!(off <= 1e-4, "{}: `{name}` cut at {cut:?} is off by {off}", case.path);
        }
    }
    for _ in 0..JOINED {
        let at: Vec<usize> = parts.parts.iter().skip(1).map(|part| part.from).collect();
        let joined = run_joined(cuts, &at, 1 + draws.below(at.len()), given);
        for name in outputs {
            let off = farthest(&whole[name], &joined[name]);
            assert!(off <= 1e-4, "{}: `{name}` is off by {off}", case.path);
        }
    }
    let size: usize = slices(cuts, &thirds).iter().map(|slice| slice.file.len()).sum();
    assert!(size < model.bytes().len() * 11 / 10 + 100_000, "slices have only their weights");
}

fn slices(cuts: &Cuts<'_>, at: &[usize]) -> Vec<Slice> {
    let bounds: Vec<usize> = [&[0], at, &[cuts.steps()]].concat();
    let slice = |bound: &[usize]| cuts.slice(bound[0], bound[1]);
    bounds
        .windows(2)
        .map(|bound| slice(bound).unwrap_or_else(|e| panic!("{bound:?}: {e}")))
        .collect()
}

/// What stage after stage hands on is all that the next one has.
fn run_in_slices(
    cuts: &Cuts<'_>,
    at: &[usize],
    given: &BTreeMap<String, Value>,
    optimized: bool,
) -> BTreeMap<String, Value> {
    let mut here = given.clone();
    for slice in slices(cuts, at) {
        let bytes = slice.file.to_bytes();
        let read = Model::read(bytes.clone()).unwrap_or_else(|error| panic!("{at:?}: {error}"));
        let note = read.slice_note().expect("a note").expect("a note");
        assert_eq!((note.takes, note.gives), (slice.takes.clone(), slice.gives.clone()));
        let takes = slice.takes.iter().map(|name| (name.clone(), here[name].clone())).collect();
        let mut next = run(&bytes, &takes, &slice.gives, optimized);
        next.extend(slice.passes.iter().map(|name| (name.clone(), here[name].clone())));
        here = next;
    }
    here
}

/// As two devices do that have all parts before one bound and all behind it, each joined to one file.
fn run_joined(
    cuts: &Cuts<'_>,
    at: &[usize],
    first: usize,
    given: &BTreeMap<String, Value>,
) -> BTreeMap<String, Value> {
    let bounds: Vec<usize> = [&[0], at, &[cuts.steps()]].concat();
    let files = slices(cuts, at);
    let read = |slice: &Slice| Model::read(slice.file.to_bytes()).expect("readable");
    let models: Vec<Model> = files.iter().map(read).collect();
    let mut here = given.clone();
    for (from, to) in [(0, first), (first, models.len())] {
        // What crosses its end and is made in it.
        let made = |name: &str| files[from..to].iter().any(|s| s.gives.iter().any(|n| n == name));
        let crossing = cuts.crossing(bounds[to]);
        let gives: Vec<&str> = crossing.iter().map(|one| one.name).filter(|n| made(n)).collect();
        let joined = Model::join(&models[from..to], &gives).expect("they follow each other");
        let bytes = joined.to_bytes();
        let read = Model::read(bytes.clone()).expect("readable");
        let takes = read.inputs().map(|it| (it.name().to_string(), here[it.name()].clone()));
        let names: Vec<String> = gives.iter().map(|name| (*name).to_string()).collect();
        let mut next = run(&bytes, &takes.collect(), &names, true);
        let passes = crossing.iter().filter(|one| !made(one.name));
        next.extend(passes.map(|one| (one.name.to_string(), here[one.name].clone())));
        here = next;
    }
    here
}

fn run(
    bytes: &[u8],
    given: &BTreeMap<String, Value>,
    outputs: &[String],
    optimized: bool,
) -> BTreeMap<String, Value> {
    let mut options = ModelOptions::with_all_ops();
    let engine = options.enable_optimization(optimized).load(bytes.to_vec()).expect("loadable");
    let id = |name: &String| engine.node_id(name).unwrap_or_else(|e| panic!("`{name}`: {e}"));
    let inputs = given.iter().map(|(name, value)| (id(name), ValueOrView::from(value.as_view())));
    let ids: Vec<_> = outputs.iter().map(id).collect();
    let made = engine.run(inputs.collect(), &ids, None).expect("it runs");
    outputs.iter().cloned().zip(made).collect()
}

fn random_cut(cuts: &Cuts<'_>, draws: &mut Draws) -> Vec<usize> {
    let all: Vec<usize> = cuts.iter().map(|cut| cut.at).collect();
    let count = 1 + draws.below(3);
    let mut cut: Vec<usize> = (0..count).map(|_| all[draws.below(all.len())]).collect();
    cut.sort_unstable();
    cut.dedup();
    cut
}

fn picture(dims: &[u64]) -> Value {
    let dims: Vec<usize> = dims.iter().map(|dim| *dim as usize).collect();
    let mut draws = Draws(1);
    let count = dims.iter().product();
    let data: Vec<f32> = (0..count).map(|_| draws.below(1000) as f32 / 500.0 - 1.0).collect();
    Value::from_shape(&dims, data).expect("as many as the shape has")
}

fn same_bits(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::FloatTensor(a), Value::FloatTensor(b)) => {
            a.shape() == b.shape()
                && a.iter().zip(b.iter()).all(|(a, b)| a.to_bits() == b.to_bits())
        }
        (Value::Int32Tensor(a), Value::Int32Tensor(b)) => a == b,
        _ => false,
    }
}

fn farthest(a: &Value, b: &Value) -> f32 {
    let (Value::FloatTensor(a), Value::FloatTensor(b)) = (a, b) else { return f32::NAN };
    assert_eq!(a.shape(), b.shape());
    let off = |(a, b): (&f32, &f32)| (a - b).abs() / a.abs().max(1.0);
    a.iter().zip(b.iter()).map(off).fold(0.0, f32::max)
}

/// Numbers without a pattern, the same in every run.
struct Draws(u64);

impl Draws {
    fn below(&mut self, most: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % most
    }
}
