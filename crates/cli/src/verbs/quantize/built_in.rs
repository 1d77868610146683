//! Two models on the same data, by the engine that every node has.

use std::path::PathBuf;
use std::time::Instant;

use serde_json::{Value, json};
use shoal_engine::intake;
use shoal_engine::onnx::{Model, Threads};
use shoal_kinds::OnnxWork;
use shoal_kinds::onnx::{Batch, Column, Unit};
use shoal_protocol::Span;

use crate::verbs::calibration::{Apart, one_by_one, rows};

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
    let inputs = rows(data, items)?;
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
    let Apart { difference, agreement } = Apart::of(&one.batch, (&rows.0, &rows.1));
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
        let batch = one_by_one(file, &work, columns)?;
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
