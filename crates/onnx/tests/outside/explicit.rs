//! ONNX's own cases once more, those that are said in other words: the built-in engine computes what the cases say.

use std::path::{Path, PathBuf};

use rten::{ModelOptions, Value, ValueOrView};
use rten_tensor::prelude::*;
use shoal_onnx::{Model, Tensor};

use crate::material::{folder, read};

/// Cases that come out right; more may come, none may go.
const LEAST_RIGHT: usize = 96;

enum Told {
    Right,
    /// The engine lacks something else.
    Refused(String),
    Wrong(String),
}

#[test]
fn in_other_words_the_cases_say_the_same() {
    let Some(folder) = folder() else { return };
    let nodes = folder.join("onnx/onnx/backend/test/data/node");
    let entries = std::fs::read_dir(&nodes).expect("the cases");
    let mut cases: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    cases.sort();
    let (mut right, mut wrong) = (0, Vec::new());
    for case in &cases {
        let name = case.file_name().expect("a name").to_string_lossy().into_owned();
        match told(case) {
            None => {}
            Some(Told::Right) => right += 1,
            Some(Told::Refused(why)) => eprintln!("{name} is refused: {why}"),
            Some(Told::Wrong(what)) => wrong.push(format!("{name}: {what}")),
        }
    }
    eprintln!("{right} right");
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert!(right >= LEAST_RIGHT, "only {right} are right");
}

/// None for cases that are said as they are, and for those of types that the engine does not compute with.
fn told(case: &Path) -> Option<Told> {
    let model = Model::read(read(&case.join("model.onnx"))).ok()?;
    let file = model.explicit()?.to_bytes();
    Model::read(file.clone()).unwrap_or_else(|error| panic!("{}: {error}", case.display()));
    let data = case.join("test_data_set_0");
    let tensor = |kind: &str, at: usize| {
        value(&Tensor::read_alone(read(&data.join(format!("{kind}_{at}.pb")))).ok()?)
    };
    let given =
        model.inputs().enumerate().map(|(at, one)| Some((one.name(), tensor("input", at)?)));
    let given = given.collect::<Option<Vec<_>>>()?;
    let outputs = model.outputs().iter().enumerate();
    let expected = outputs.map(|(at, one)| Some((one.name(), tensor("output", at)?)));
    let expected = expected.collect::<Option<Vec<_>>>()?;
    let engine = match ModelOptions::with_all_ops().load(file.to_vec()) {
        Ok(engine) => engine,
        Err(error) => return Some(Told::Refused(error.to_string())),
    };
    let id = |name: &str| engine.node_id(name).expect("its name stays");
    let given = given.into_iter().map(|(name, value)| (id(name), ValueOrView::from(value)));
    let ids: Vec<_> = expected.iter().map(|(name, _)| id(name)).collect();
    let made = match engine.run(given.collect(), &ids, None) {
        Ok(made) => made,
        Err(error) => return Some(Told::Refused(error.to_string())),
    };
    let pairs = made.iter().zip(&expected);
    let differs = pairs.into_iter().find(|(made, (_, expected))| !is_near(made, expected));
    Some(match differs {
        None => Told::Right,
        Some((made, (_, expected))) => Told::Wrong(format!("{made:?}, not {expected:?}")),
    })
}

fn value(tensor: &Tensor) -> Option<Value> {
    let bytes = tensor.bytes()?;
    let dims: Vec<usize> = tensor.ty().dims.iter().map(|dim| *dim as usize).collect();
    let (fours, eights) = (bytes.as_chunks::<4>().0.iter(), bytes.as_chunks::<8>().0.iter());
    match tensor.ty().dtype.name() {
        "float32" => shaped(&dims, fours.map(|n| f32::from_le_bytes(*n)).collect()),
        "int32" => shaped(&dims, fours.map(|n| i32::from_le_bytes(*n)).collect()),
        "int64" => {
            let numbers = eights.map(|n| i32::try_from(i64::from_le_bytes(*n)));
            shaped(&dims, numbers.collect::<Result<_, _>>().ok()?)
        }
        "bool" => shaped(&dims, bytes.iter().map(|n| i32::from(*n)).collect()),
        "uint8" => shaped(&dims, bytes.to_vec()),
        "int8" => shaped(&dims, bytes.iter().map(|n| *n as i8).collect()),
        _ => None,
    }
}

fn shaped<T>(dims: &[usize], numbers: Vec<T>) -> Option<Value>
where
    Value: From<rten_tensor::Tensor<T>>,
{
    Value::from_shape(dims, numbers).ok()
}

/// As ONNX compares: one in a thousand for floats, nothing for whole numbers.
fn is_near(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::FloatTensor(a), Value::FloatTensor(b)) => {
            let near = |(a, b): (&f32, &f32)| a == b || (a - b).abs() <= 1e-5 + 1e-3 * b.abs();
            a.shape() == b.shape() && a.iter().zip(b.iter()).all(near)
        }
        (Value::Int32Tensor(a), Value::Int32Tensor(b)) => a == b,
        (Value::Int8Tensor(a), Value::Int8Tensor(b)) => a == b,
        (Value::UInt8Tensor(a), Value::UInt8Tensor(b)) => a == b,
        _ => false,
    }
}
