//! Models in stages, as a chain of devices runs them, beside the same models whole.

use std::collections::BTreeMap;
use std::path::Path;

use shoal_engine::intake;
use shoal_engine::onnx::{Model, Stage, Threads};
use shoal_kinds::OnnxWork;
use shoal_kinds::onnx::sight::{Boxes, Fit, Normalize, Pictured};
use shoal_kinds::onnx::tensor::{pack, pack_asked, unpack};
use shoal_kinds::onnx::{CutAsk, CutPlan, Element, Head, MOST_PARTS, Part, Sight, Tensor, Wire};
use shoal_protocol::{BlobRef, Failure, Hash, Span};

/// The classifier of `examples/cifar10`, in parts.
struct Cut {
    file: Vec<u8>,
    files: Vec<Vec<u8>>,
    work: OnnxWork,
}

fn file() -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/cifar10/cifar10.onnx");
    std::fs::read(path).expect("the committed model")
}

fn cut(wire: Wire) -> Cut {
    let shapes = BTreeMap::from([("image".to_string(), vec![1, 3, 32, 32])]);
    cut_file(file(), shapes, wire)
}

fn cut_file(file: Vec<u8>, shapes: BTreeMap<String, Vec<u64>>, wire: Wire) -> Cut {
    let plan = intake::parts(&file, &CutAsk { shapes: &shapes, most: MOST_PARTS });
    let CutPlan { inputs, outputs, parts } = plan.expect("parts");
    let blob = |size: usize| BlobRef { hash: Hash([0; 32]), size: size as u64 };
    let mut files = Vec::new();
    let mut row = Vec::new();
    for part in parts {
        row.push(Part {
            blob: blob(part.file.len()),
            inputs: part.inputs,
            outputs: part.outputs,
            operators: part.operators,
            parameters: part.parameters,
            work: part.work,
            memory: 0,
            out_bytes: part.out_bytes,
        });
        files.push(part.file);
    }
    let work = OnnxWork { model: blob(file.len()), inputs, outputs, parts: row, wire, batch: None };
    Cut { file, files, work }
}

impl Cut {
    fn stages(&self, bounds: &[usize]) -> Vec<Stage> {
        let threads = Threads::new(1);
        let stage = |two: &[usize]| {
            let span = Span::new(two[0] as u64, (two[1] - two[0]) as u64);
            Stage::load(self.files[two[0]..two[1]].to_vec(), &self.work, span, &threads)
        };
        bounds.windows(2).map(|two| stage(two).expect("it loads")).collect()
    }

    fn whole(&self, request: &[u8]) -> Vec<f32> {
        numbers(&self.whole_answer(request))
    }

    fn whole_answer(&self, request: &[u8]) -> Vec<u8> {
        let whole = OnnxWork { parts: Vec::new(), ..self.work.clone() };
        let model = Model::load(self.file.clone(), &whole, &Threads::new(1)).expect("it loads");
        model.run(&whole, request).expect("it runs")
    }
}

/// What stage after stage makes of a request.
fn run(stages: &[Stage], request: &[u8]) -> Result<Vec<f32>, Failure> {
    answer(stages, request).map(|bytes| numbers(&bytes))
}

fn answer(stages: &[Stage], request: &[u8]) -> Result<Vec<u8>, Failure> {
    stages.iter().try_fold(request.to_vec(), |bytes, stage| stage.run(&bytes))
}

fn numbers(packed: &[u8]) -> Vec<f32> {
    let tensors = unpack(packed).expect("tensors");
    assert_eq!(tensors.len(), 1);
    assert_eq!(
        (tensors[0].head.name.as_str(), &tensors[0].head.dims[..]),
        ("logits", &[1, 10][..])
    );
    let (numbers, _) = tensors[0].bytes.as_chunks::<4>();
    numbers.iter().map(|number| f32::from_le_bytes(*number)).collect()
}

fn picture(name: &str, dims: &[u64]) -> Vec<u8> {
    let count: u64 = dims.iter().product();
    let pixel = |at: u64| ((at * 37 % 256) as f32 / 255.0).to_le_bytes();
    let bytes: Vec<u8> = (0..count).flat_map(pixel).collect();
    let head = Head { name: name.into(), element: Element::F32, dims: dims.into() };
    pack(&[Tensor { head, bytes: &bytes }])
}

fn farthest(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

#[test]
fn stages_one_after_another_say_what_the_whole_model_says() {
    let cut = cut(Wire::F32);
    let last = cut.files.len();
    assert!((12..=MOST_PARTS).contains(&last), "{last} parts");
    let request = picture("image", &[1, 3, 32, 32]);
    let whole = cut.whole(&request);
    let every: Vec<usize> = (0..=last).collect();
    for bounds in [vec![0, last], vec![0, last / 3, last * 2 / 3, last], vec![0, 1, last], every] {
        let made = run(&cut.stages(&bounds), &request).expect("all run");
        let off = farthest(&whole, &made);
        assert!(off <= 1e-4, "off by {off} in {bounds:?}");
    }
}

#[test]
fn what_travels_in_fewer_bits_says_nearly_the_same() {
    let request = picture("image", &[1, 3, 32, 32]);
    let mut sizes = Vec::new();
    for (wire, most) in [(Wire::F32, 1e-4), (Wire::F16, 0.05), (Wire::Int8, 0.5)] {
        let cut = cut(wire);
        let last = cut.files.len();
        let stages = cut.stages(&[0, last / 3, last * 2 / 3, last]);
        sizes.push(stages[0].run(&request).expect("it runs").len());
        let off = farthest(&cut.whole(&request), &run(&stages, &request).expect("all run"));
        assert!(off <= most, "{wire}: off by {off}");
    }
    assert!(sizes[1] * 10 < sizes[0] * 6 && sizes[2] * 10 < sizes[0] * 4, "{sizes:?}");
}

#[test]
fn a_wrong_request_is_told_so_by_the_first_stage_and_wrong_bytes_by_any() {
    let cut = cut(Wire::F32);
    let last = cut.files.len();
    let stages = cut.stages(&[0, last / 2, last]);
    let says = |request: &[u8]| match stages[0].run(request) {
        Err(Failure::Model { message }) => message,
        other => panic!("{other:?}"),
    };
    let wrong = says(&picture("picture", &[1, 3, 32, 32]));
    assert_eq!(wrong, "the model has no input \"picture\", only image");
    let wrong = says(&picture("image", &[2, 3, 32, 32]));
    assert!(wrong.contains("expected float32[1x3x32x32]"), "{wrong}");
    assert!(stages[1].run(&picture("image", &[1, 3, 32, 32])).is_err());
    assert!(stages[1].run(&[1, 2, 3]).is_err());
}

/// Takes pictures of 8x8, and gives their numbers as boxes: corners, score and class.
fn detector() -> Vec<u8> {
    fn message(field: u8, bytes: &[u8]) -> Vec<u8> {
        let length = bytes.len();
        let length = if length < 128 {
            vec![length as u8]
        } else {
            vec![length as u8 | 128, (length >> 7) as u8]
        };
        [&[field << 3 | 2][..], &length, bytes].concat()
    }
    let text = |field: u8, text: &str| message(field, text.as_bytes());
    let number = |field: u8, number: u8| vec![field << 3, number];
    let node = |op: &str, inputs: &[&str], output: &str| {
        let inputs: Vec<u8> = inputs.iter().flat_map(|name| text(1, name)).collect();
        message(1, &[inputs, text(2, output), text(4, op)].concat())
    };
    let value = |field: u8, name: &str, dims: &[u8]| {
        let dims: Vec<u8> = dims.iter().flat_map(|dim| message(1, &number(1, *dim))).collect();
        let tensor = [number(1, 1), message(2, &dims)].concat();
        message(field, &[text(1, name), message(2, &message(1, &tensor))].concat())
    };
    let sides: Vec<u8> = [1i64, 32, 6].iter().flat_map(|side| side.to_le_bytes()).collect();
    let shape = [number(1, 3), number(2, 7), text(8, "sides"), message(9, &sides)].concat();
    let graph = [
        node("Relu", &["images"], "a"),
        node("Neg", &["a"], "b"),
        node("Abs", &["b"], "c"),
        node("Reshape", &["c", "sides"], "boxes"),
        text(2, "detector"),
        message(5, &shape),
        value(11, "images", &[1, 3, 8, 8]),
        value(12, "boxes", &[1, 32, 6]),
    ];
    [number(1, 8), message(8, &number(2, 17)), message(7, &graph.concat())].concat()
}

#[test]
fn the_last_stage_finds_the_boxes_of_a_picture_that_only_the_first_one_saw() {
    let pixels: Vec<u8> = (0..4 * 16 * 3u32).map(|at| (at * 89 % 256) as u8).collect();
    let head = Head { name: "images".into(), element: Element::U8, dims: vec![1, 4, 16, 3] };
    let picture = Pictured { name: "images".into(), fit: Fit::Stretch, normalize: Normalize::None };
    let boxes = Some(Boxes { score: 0.4, overlap: 0.9, classes: None });
    let sight = Sight { pictures: vec![picture], boxes };
    let request = pack_asked(&[Tensor { head, bytes: &pixels }], &sight);
    for wire in [Wire::F32, Wire::F16] {
        let cut = cut_file(detector(), BTreeMap::new(), wire);
        let last = cut.files.len();
        assert!(last >= 3, "{last} parts");
        let whole = cut.whole_answer(&request);
        let split = answer(&cut.stages(&[0, 1, 2, last]), &request).expect("all run");
        let (whole, split) = (unpack(&whole).expect("boxes"), unpack(&split).expect("boxes"));
        assert_eq!(whole[0].head, split[0].head);
        assert!(whole[0].head.dims[1] > 0, "it finds something");
        let floats = |bytes: &[u8]| -> Vec<f32> {
            bytes.as_chunks::<4>().0.iter().map(|one| f32::from_le_bytes(*one)).collect()
        };
        let off = farthest(&floats(whole[0].bytes), &floats(split[0].bytes));
        assert!(off <= if wire == Wire::F32 { 0.0 } else { 0.01 }, "{wire}: off by {off}");
    }
}

#[test]
fn files_of_other_parts_do_not_load() {
    let cut = cut(Wire::F32);
    let threads = Threads::new(1);
    let load = |files: &[Vec<u8>], start: u64| {
        let span = Span::new(start, 2);
        Stage::load(files.to_vec(), &cut.work, span, &threads).err().map(|it| format!("{it:?}"))
    };
    assert!(load(&cut.files[2..4], 2).is_none());
    assert!(load(&[cut.files[2].clone(), cut.files[4].clone()], 2).is_some());
    assert!(load(&cut.files[2..3], 2).is_some());
    assert!(load(&cut.files[2..4], 3).is_some());
    assert!(load(&cut.files[2..4], u64::MAX).is_some());
}

#[test]
fn open_dimensions_must_be_given() {
    let shapes = BTreeMap::new();
    let none = CutAsk { shapes: &shapes, most: MOST_PARTS };
    let error = intake::parts(&file(), &none).expect_err("n is open").message;
    assert!(error.contains("dimension 0 (n) of \"image\", which is float32[nx3x32x32]"), "{error}");
    let shapes = BTreeMap::from([("picture".to_string(), vec![1])]);
    let other = CutAsk { shapes: &shapes, ..none };
    let error = intake::parts(&file(), &other).expect_err("no such input").message;
    assert_eq!(error, "a shape is given for \"picture\", but the model has only image");
    let shapes = BTreeMap::from([("image".to_string(), vec![1, 4, 32, 32])]);
    let wrong = CutAsk { shapes: &shapes, ..none };
    assert!(intake::parts(&file(), &wrong).is_err());
}
