//! ONNX's own cases, one operator each, by the built-in engine. What becomes of every case is written down in
//! `conformance/onnx.txt`: whoever makes one right, or breaks one, changes that list.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use shoal_engine::onnx::{Model as Engine, Threads, work_of};
use shoal_kinds::onnx::tensor::{f16, pack, unpack};
use shoal_kinds::onnx::{Element, Head, Tensor as Given};
use shoal_onnx::{Model, Tensor};

/// Models whose operators count: detectors, classifiers, and readers of text.
const MODELS: [&str; 4] = ["blazeface", "yolov8n", "ppocr", "mobilenetv2"];
/// What other vision models have beside them.
const MORE: [&str; 24] = [
    "ArgMax",
    "BatchNormalization",
    "DequantizeLinear",
    "Erf",
    "Exp",
    "Expand",
    "Floor",
    "Gather",
    "Gemm",
    "GlobalMaxPool",
    "HardSwish",
    "InstanceNormalization",
    "LeakyRelu",
    "Max",
    "Min",
    "PRelu",
    "Pad",
    "QuantizeLinear",
    "ReduceMin",
    "ReduceSum",
    "Sqrt",
    "Tanh",
    "Unsqueeze",
    "Where",
];
/// With this in the environment the list is written anew, for whoever changed what is right.
const WRITE: &str = "SHOAL_WRITE_LIST";
/// Of the engine's words.
const MOST_WORDS: usize = 200;

/// What became of a case.
enum Told {
    Right,
    /// Refused, in these words.
    Refused(String),
    Wrong(String),
    /// It has something that no request carries.
    NotCarried(String),
}

impl Told {
    /// The line under which it stands in the list; none for what is right.
    fn heading(&self) -> Option<String> {
        // What was given differs from case to case.
        let short = |words: &str| -> String {
            let first = words.lines().next().unwrap_or_default();
            let first = first.split(" Inputs were").next().unwrap_or_default();
            first.chars().take(MOST_WORDS).collect()
        };
        match self {
            Told::Right => None,
            Told::Refused(why) => Some(format!("refused: {}", short(why))),
            // The numbers differ from processor to processor.
            Told::Wrong(_) => Some("wrong".into()),
            Told::NotCarried(what) => Some(format!("not carried: {what}")),
        }
    }
}

#[test]
fn vision_operators_compute_what_their_cases_say() {
    let Some(folder) = outside() else { return };
    let known = operators(&folder);
    let nodes = folder.join("onnx/onnx/backend/test/data/node");
    let entries = std::fs::read_dir(nodes).expect("the cases");
    let mut cases: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    cases.sort();
    let threads = Threads::new(1);
    let mut told = Vec::new();
    for case in &cases {
        let model = Model::read(read(&case.join("model.onnx"))).expect("a model");
        if model.operators().keys().all(|operator| known.contains(operator)) {
            let name = case.file_name().expect("a name").to_string_lossy().into_owned();
            told.push((name, ask(case, &model, &threads)));
        }
    }
    for (name, told) in &told {
        if let Told::Wrong(what) = told {
            eprintln!("{name}: {what}");
        }
    }
    let found = listed(known.len(), &told);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/onnx.txt");
    if std::env::var_os(WRITE).is_some() {
        std::fs::write(&path, &found).expect("the list is written");
    }
    let expected = std::fs::read_to_string(&path).expect("the list");
    let other = found.lines().zip(expected.lines()).find(|(found, expected)| found != expected);
    assert!(found == expected, "not as in the list ({WRITE}=1 writes it anew): {other:?}\n{found}");
}

/// Where the material lies; none if nobody fetched it and it is not required.
fn outside() -> Option<PathBuf> {
    let folder = std::env::var_os("SHOAL_OUTSIDE").map(PathBuf::from).filter(|it| it.is_dir());
    let is_required = std::env::var("SHOAL_REQUIRE_ALL").is_ok_and(|it| it == "1");
    assert!(folder.is_some() || !is_required, "SHOAL_OUTSIDE names no folder");
    folder
}

fn ask(case: &Path, model: &Model, threads: &Threads) -> Told {
    let (inputs, outputs) = match tensors(case, model) {
        Ok(tensors) => tensors,
        Err(what) => return Told::NotCarried(what),
    };
    let work = match work_of(model.bytes()) {
        Ok(work) => work,
        Err(failure) => return Told::Refused(failure.to_string()),
    };
    let tensors = inputs.iter().map(|(head, bytes)| Given { head: head.clone(), bytes });
    let request = pack(&tensors.collect::<Vec<_>>());
    let answer = Engine::load(model.bytes().clone(), &work, threads)
        .and_then(|engine| engine.run(&work, &request));
    let answer = match answer {
        Ok(answer) => answer,
        Err(failure) => return Told::Refused(failure.to_string()),
    };
    let found = unpack(&answer).expect("tensors");
    let differs = found.iter().zip(&outputs).find_map(|(found, right)| differs(found, right));
    differs.map_or(Told::Right, Told::Wrong)
}

/// All that is not right, with the cases of each kind, and how many there are.
fn listed(operators: usize, told: &[(String, Told)]) -> String {
    let mut groups: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (name, told) in told {
        if let Some(heading) = told.heading() {
            groups.entry(heading).or_default().push(name);
        }
    }
    let count = |of: fn(&Told) -> bool| told.iter().filter(|(_, told)| of(told)).count();
    let mut text = format!("{} cases of {operators} operators\n", told.len());
    let _ = writeln!(text, "{} right", count(|told| matches!(told, Told::Right)));
    let _ = writeln!(text, "{} refused", count(|told| matches!(told, Told::Refused(_))));
    let _ = writeln!(text, "{} wrong", count(|told| matches!(told, Told::Wrong(_))));
    let _ = writeln!(text, "{} not carried", count(|told| matches!(told, Told::NotCarried(_))));
    for (heading, names) in groups {
        let _ = writeln!(text, "\n{heading}");
        for name in names {
            let _ = writeln!(text, "  {name}");
        }
    }
    text
}

/// Everything that vision models are made of.
fn operators(folder: &Path) -> BTreeSet<String> {
    let mut waiting: Vec<PathBuf> = MODELS.iter().map(|name| folder.join(name)).collect();
    let mut found = BTreeSet::from(MORE.map(String::from));
    while let Some(path) = waiting.pop() {
        if path.is_dir() {
            let inside = std::fs::read_dir(&path).expect("a folder");
            waiting.extend(inside.map(|entry| entry.expect("an entry").path()));
        } else if path.extension().is_some_and(|end| end == "onnx") {
            found.extend(Model::read(read(&path)).expect("a model").operators().into_keys());
        }
    }
    found
}

type Tensors = Vec<(Head, Vec<u8>)>;

/// What a case gives and expects, or what of it no request carries.
fn tensors(case: &Path, model: &Model) -> Result<(Tensors, Tensors), String> {
    let data = case.join("test_data_set_0");
    let tensor = |kind: &str, at: usize, name: &str| {
        let none = || "values that are no tensors".to_owned();
        let file = std::fs::read(data.join(format!("{kind}_{at}.pb"))).map_err(|_| none())?;
        let tensor = Tensor::read_alone(file).map_err(|_| none())?;
        let dtype = tensor.ty().dtype.name();
        let element = Element::ALL.iter().find(|element| element.name() == dtype);
        let element = *element.ok_or_else(|| dtype.to_owned())?;
        let head = Head { name: name.into(), element, dims: tensor.ty().dims.clone() };
        Ok((head, tensor.bytes().ok_or_else(none)?.to_vec()))
    };
    let inputs = model.inputs().enumerate().map(|(at, input)| tensor("input", at, input.name()));
    let outputs = model.outputs().iter().enumerate();
    let outputs = outputs.map(|(at, output)| tensor("output", at, output.name()));
    Ok((inputs.collect::<Result<_, String>>()?, outputs.collect::<Result<_, String>>()?))
}

/// As ONNX compares: one in a thousand for floats, nothing for whole numbers.
fn differs(found: &Given<'_>, right: &(Head, Vec<u8>)) -> Option<String> {
    let (Given { head, bytes }, (right_head, right_bytes)) = (found, right);
    if (&head.dims, head.element) != (&right_head.dims, right_head.element) {
        let Head { element, dims, .. } = right_head;
        return Some(format!("{} {:?}, not {element} {dims:?}", head.element, head.dims));
    }
    if head.element == Element::F16 {
        let halves = |bytes: &[u8]| -> Vec<f32> {
            let (halves, _) = bytes.as_chunks::<2>();
            halves.iter().map(|half| f16::from_le_bytes(*half).to_f32()).collect()
        };
        return apart(&halves(bytes), &halves(right_bytes));
    }
    if head.element != Element::F32 {
        return (bytes != right_bytes).then(|| format!("other {} numbers", head.element));
    }
    let floats = |bytes: &[u8]| -> Vec<f32> {
        bytes.as_chunks::<4>().0.iter().map(|number| f32::from_le_bytes(*number)).collect()
    };
    apart(&floats(bytes), &floats(right_bytes))
}

fn apart(found: &[f32], right: &[f32]) -> Option<String> {
    let near = |(a, b): (&f32, &f32)| {
        a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= 1e-5 + 1e-3 * b.abs()
    };
    let at = found.iter().zip(right).position(|pair| !near(pair))?;
    Some(format!("number {at} is {}, not {}", found[at], right[at]))
}

fn read(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
