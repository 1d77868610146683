//! ONNX's own cases, one operator each: what is inferred is what their outputs are.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use shoal_onnx::{Given, Model, Tensor};

use crate::material::{folder, read};

/// Cases of operators that have a rule; more may come, none may go.
const LEAST_TOLD: usize = 1_430;

enum Told {
    Same,
    Missing(String),
    NoTensors,
    Wrong(String),
}

#[test]
fn inferred_shapes_are_those_of_the_cases() {
    let Some(folder) = folder() else { return };
    let nodes = folder.join("onnx/onnx/backend/test/data/node");
    let mut cases: Vec<PathBuf> = std::fs::read_dir(&nodes)
        .expect("the cases")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    cases.sort();
    let (mut same, mut strange, mut wrong) = (0, 0, Vec::new());
    let mut missing: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for case in &cases {
        match told(case) {
            Told::Same => same += 1,
            Told::NoTensors => strange += 1,
            Told::Wrong(what) => wrong.push(what),
            Told::Missing(why) => {
                let name = case.file_name().expect("a name").to_string_lossy().into_owned();
                missing.entry(why).or_default().push(name);
            }
        }
    }
    for (why, cases) in &missing {
        eprintln!("{} not told: {why} ({})", cases.len(), cases[0]);
    }
    eprintln!("{same} of {} told; {strange} have no tensors", cases.len());
    assert!(cases.len() > 1_600, "{} cases", cases.len());
    assert!(same >= LEAST_TOLD, "only {same} cases told");
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

fn told(case: &Path) -> Told {
    let name = case.display();
    let bytes = read(&case.join("model.onnx"));
    let model = Model::read(bytes.clone()).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(model.bytes(), &bytes[..]);
    let data = case.join("test_data_set_0");
    let tensor = |kind: &str, at: usize| {
        let file = data.join(format!("{kind}_{at}.pb"));
        Tensor::read_alone(read(&file)).ok()
    };
    let mut given = Vec::new();
    for (at, input) in model.inputs().enumerate() {
        // Sequences and optional values are no tensors.
        if input.declared().is_none_or(|declared| declared.dtype.is_none()) {
            return Told::NoTensors;
        }
        let Some(tensor) = tensor("input", at) else { return Told::NoTensors };
        let mut one = Given::new(input.name(), tensor.ty().clone());
        one.value = tensor.value();
        given.push(one);
    }
    let shapes = match model.shapes(&given) {
        Ok(shapes) => shapes,
        Err(error) => return Told::Wrong(format!("{name}: {error}")),
    };
    if let Some(missing) = shapes.missing().first() {
        return Told::Missing(missing.why.clone());
    }
    for (at, output) in model.outputs().iter().enumerate() {
        if output.declared().is_none_or(|declared| declared.dtype.is_none()) {
            return Told::NoTensors;
        }
        let Some(tensor) = tensor("output", at) else { return Told::NoTensors };
        let told = shapes.of(output.name());
        if told != Some(tensor.ty()) {
            return Told::Wrong(format!("{name}: {told:?}, not {}", tensor.ty()));
        }
        if let (Some(told), Some(value)) = (shapes.value(output.name()), tensor.value())
            && *told != value
        {
            return Told::Wrong(format!("{name}: {told:?}, not {value:?}"));
        }
    }
    Told::Same
}
