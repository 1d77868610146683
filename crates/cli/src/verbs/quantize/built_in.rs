//! Two models on the same data, by the engine that every node has.

use std::path::PathBuf;
use std::time::Instant;

use serde_json::{Value, json};
use shoal_engine::intake;
use shoal_engine::onnx::{Model, Threads};
use shoal_kinds::OnnxWork;
use shoal_kinds::onnx::{Batch, Column, Element, Head, Unit};
use shoal_protocol::Span;

/// How two models differ.
pub(super) struct Compared {
    pub(super) before_ms: f64,
    pub(super) after_ms: f64,
    /// The largest of all outputs.
    pub(super) difference: f64,
    /// The part of items for which the largest number is at the same place of the first output.
    pub(super) agreement: f64,
}

impl Compared {
    pub(super) fn json(&self) -> Value {
        json!({
            "beforeMs": self.before_ms,
            "afterMs": self.after_ms,
            "difference": self.difference,
            "agreement": self.agreement,
        })
    }
}

/// None without data; why the engine cannot run one of them, if it cannot.
pub(super) fn compare(
    files: (&[u8], &[u8]),
    work: &OnnxWork,
    data: &[(PathBuf, Column)],
    items: u64,
) -> Option<Result<Compared, String>> {
    (items > 0).then(|| try_compare(files, work, data, items))
}

fn try_compare(
    (before, after): (&[u8], &[u8]),
    work: &OnnxWork,
    data: &[(PathBuf, Column)],
    items: u64,
) -> Result<Compared, String> {
    let mut inputs = Vec::new();
    for (path, column) in data {
        let file = std::fs::read(path).map_err(|error| error.to_string())?;
        let (_, _, bytes) = crate::npy::tensor(&file).map_err(|error| error.to_string())?;
        let most = column.bytes().unwrap_or(0).saturating_mul(items) as usize;
        inputs.push(bytes.get(..most).unwrap_or(bytes).to_vec());
    }
    let columns: Vec<Column> = data.iter().map(|(_, column)| column.clone()).collect();
    let mut one = Side::open(before, work, &columns, inputs.clone(), items)?;
    let mut other = Side::open(after, work, &columns, inputs, items)?;
    // In turn, so that a busy moment of the machine is not one model's alone.
    while one.unit.goes_on() {
        one.step()?;
        other.step()?;
    }
    let each = |seconds: f64| seconds * 1e3 / items as f64;
    let (before_ms, after_ms) = (each(one.seconds), each(other.seconds));
    let rows = (one.unit.into_rows(), other.unit.into_rows());
    let (difference, agreement) = differ(&one.batch, (&rows.0, &rows.1));
    Ok(Compared { before_ms, after_ms, difference, agreement })
}

/// One of the two on its way through the data.
struct Side {
    model: Model,
    work: OnnxWork,
    batch: Batch,
    unit: Unit<Vec<u8>>,
    seconds: f64,
}

impl Side {
    fn open(
        file: &[u8],
        work: &OnnxWork,
        columns: &[Column],
        inputs: Vec<Vec<u8>>,
        items: u64,
    ) -> Result<Side, String> {
        let plan = intake::model(file).map_err(|error| error.message)?;
        let work = OnnxWork { inputs: plan.inputs, outputs: plan.outputs, ..work.clone() };
        let heads: Vec<Head> = columns.iter().map(head).collect();
        let planned = intake::batch(file, &heads, false).map_err(|error| error.message)?;
        let outputs = work.outputs.iter().zip(planned.outputs).map(|(port, dims)| Column {
            name: port.name.clone(),
            element: port.element,
            dims,
            leads: false,
        });
        let batch = Batch {
            feeds: Vec::new(),
            inputs: columns.to_vec(),
            outputs: outputs.collect(),
            at_once: 1,
        };
        let model = Model::load(file.to_vec(), &work, &Threads::new(1));
        let model = model.map_err(|failure| failure.to_string())?;
        let unit = Unit::new(&batch, Span::new(0, items), inputs);
        Ok(Side { model, work, batch, unit, seconds: 0.0 })
    }

    fn step(&mut self) -> Result<(), String> {
        let Side { model, work, batch, unit, seconds } = self;
        let began = Instant::now();
        let stepped = unit.step(batch, |request| model.run(work, request));
        *seconds += began.elapsed().as_secs_f64();
        stepped.map_err(|failure| failure.to_string())
    }
}

/// What an item has, as the model takes it.
fn head(column: &Column) -> Head {
    let dims = column.leads.then_some(1).into_iter().chain(column.dims.iter().copied()).collect();
    Head { name: column.name.clone(), element: column.element, dims }
}

fn differ(batch: &Batch, (one, other): (&[u8], &[u8])) -> (f64, f64) {
    let row = batch.row_bytes().max(1) as usize;
    let (mut difference, mut same, mut items) = (0.0_f64, 0_usize, 0_usize);
    for (a, b) in one.chunks(row).zip(other.chunks(row)) {
        items += 1;
        let mut at = 0;
        for (number, column) in batch.outputs.iter().enumerate() {
            let until = at + column.bytes().unwrap_or(0) as usize;
            let (Some(a), Some(b)) = (a.get(at..until), b.get(at..until)) else { break };
            at = until;
            if column.element != Element::F32 {
                same += usize::from(number == 0 && a == b);
                continue;
            }
            let (a, b) = (floats(a), floats(b));
            let apart = a.iter().zip(&b).map(|(a, b)| f64::from((a - b).abs()));
            difference = apart.fold(difference, f64::max);
            same += usize::from(number == 0 && largest(&a) == largest(&b));
        }
    }
    (difference, same as f64 / items.max(1) as f64)
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks::<4>().0.iter().map(|number| f32::from_le_bytes(*number)).collect()
}

/// Where the largest number is, the first of equal ones.
fn largest(numbers: &[f32]) -> usize {
    let mut best = 0;
    for (at, number) in numbers.iter().enumerate() {
        if *number > numbers[best] {
            best = at;
        }
    }
    best
}
