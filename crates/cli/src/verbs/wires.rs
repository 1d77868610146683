//! `shoal model add --calibrate`: what each form in which tensors travel between devices does to a model's outputs. Slices
//! run here one after another, by the engine that every node has, and hand on what they would send.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::{Value, json};
use shoal_engine::intake;
use shoal_engine::onnx::{Model, Stage, Threads};
use shoal_kinds::OnnxWork;
use shoal_kinds::onnx::{
    Batch, CutAsk, CutPart, CutPlan, MOST_PARTS, Part, Port, Tensor, Unit, Wire, wire,
};
use shoal_protocol::{BlobRef, Failure, Hash, Span};

use super::calibration::{Apart, Data, MOST_COMPARED, one_by_one, rows};
use super::many::{Chosen, port_json};
use super::refused;
use crate::args::{ModelAdd, Sight, WireArg};
use crate::fail::Fail;
use crate::show;

/// Slices that are tried where nobody says how many there will be.
const USUAL_SLICES: usize = 2;

/// What is asked of tensors between devices.
pub(super) struct Between {
    pub(super) shapes: BTreeMap<String, Vec<u64>>,
    pub(super) wire: Option<Wire>,
}

impl Between {
    /// Refused where the model is to stay whole: nothing is between devices then.
    pub(super) fn of(args: &ModelAdd) -> Result<Between, Fail> {
        if let Some(flag) = first_flag(args).filter(|_| !is_split(args)) {
            let message = format!("{flag} is for a model on several devices: give --split as well");
            return Err(Fail::input(message));
        }
        let asked = &args.between;
        let wire = asked.wire.map(|wire| match wire {
            WireArg::F32 => Wire::F32,
            WireArg::F16 => Wire::F16,
            WireArg::Int8 => Wire::Int8,
        });
        Ok(Between { shapes: asked.shape.iter().cloned().collect(), wire })
    }
}

fn is_split(args: &ModelAdd) -> bool {
    args.split.as_deref().is_some_and(|split| split != "never")
}

/// The first of them that is given.
pub(super) fn first_flag(args: &ModelAdd) -> Option<&'static str> {
    let asked = &args.between;
    let flags = [(asked.wire.is_some(), "--wire"), (asked.by.is_some(), "--by")];
    let first = flags.into_iter().find(|(is_given, _)| *is_given).map(|(_, flag)| flag);
    first.or_else(|| first_onnx_flag(args))
}

/// The first of those that mean nothing for a language model.
pub(super) fn first_onnx_flag(args: &ModelAdd) -> Option<&'static str> {
    let asked = &args.between;
    let flags =
        [(!asked.calibrate.is_empty(), "--calibrate"), (!asked.shape.is_empty(), "--shape")];
    flags.into_iter().find(|(is_given, _)| *is_given).map(|(_, flag)| flag)
}

/// What was found on the calibration data.
pub(super) struct Report {
    slices: usize,
    items: u64,
    forms: Vec<(Wire, Form)>,
}

struct Form {
    /// Sent from slice to slice for an item.
    bytes: u64,
    apart: Apart,
}

/// None without calibration data.
pub(super) fn calibrate(
    args: &ModelAdd,
    file: &[u8],
    shapes: &BTreeMap<String, Vec<u64>>,
) -> Result<Option<Report>, Fail> {
    let asked = &args.between;
    if asked.calibrate.is_empty() {
        return Ok(None);
    }
    let ask = CutAsk { shapes, most: MOST_PARTS };
    let cut = intake::parts(file, &ask).map_err(|error| refused(&args.file, error))?;
    if cut.parts.len() < 2 {
        return Err(Fail::input("the model has no place where it could be split"));
    }
    let mut chosen = Chosen::open(&args.file)?;
    chosen.model.inputs = cut.inputs.iter().map(port_json).collect();
    let sight = Sight::preparing(asked.task, asked.fit, asked.normalize);
    let data = Data::open(&chosen, &asked.calibrate, &sight)?;
    let slices = args.split.as_deref().and_then(|split| split.parse().ok());
    let slices = slices.unwrap_or(USUAL_SLICES).clamp(2, cut.parts.len());
    let tried = try_forms(file, cut, slices, &data);
    let forms = tried.map_err(|why| {
        Fail::input(format!("the model cannot be tried on the calibration data here: {why}"))
    })?;
    Ok(Some(Report { slices, items: data.items.min(MOST_COMPARED), forms }))
}

fn try_forms(
    file: &[u8],
    cut: CutPlan,
    slices: usize,
    data: &Data,
) -> Result<Vec<(Wire, Form)>, String> {
    let items = data.items.min(MOST_COMPARED);
    let inputs = rows(&data.arrays, items)?;
    let columns: Vec<_> = data.arrays.iter().map(|(_, column)| column.clone()).collect();
    let threads = Threads::new(std::thread::available_parallelism().map_or(1, usize::from));
    let model = BlobRef { hash: Hash([0; 32]), size: file.len() as u64 };
    let (files, parts) = cut.parts.into_iter().map(part).unzip();
    let work = OnnxWork {
        model,
        inputs: cut.inputs,
        outputs: cut.outputs,
        parts,
        wire: Wire::F32,
        batch: None,
    };
    let batch = one_by_one(file, &work, &columns)?;
    let whole = Model::load(file.to_vec(), &work, &threads).map_err(|why| why.to_string())?;
    let run = |request: &[u8]| whole.run(&work, request);
    let right = all(&batch, &inputs, items, run)?;
    drop(whole);
    let chain = Slices::load(files, &work, slices, &threads).map_err(|why| why.to_string())?;
    let mut forms = Vec::with_capacity(Wire::ALL.len());
    for wire in Wire::ALL {
        let mut sent = 0;
        let run = |request: &[u8]| chain.run(request, wire, &mut sent);
        let came = all(&batch, &inputs, items, run)?;
        let apart = Apart::of(&batch, (&right, &came));
        forms.push((wire, Form { bytes: sent / items.max(1), apart }));
    }
    Ok(forms)
}

fn part(part: CutPart) -> (Vec<u8>, Part) {
    let blob = BlobRef { hash: Hash([0; 32]), size: part.file.len() as u64 };
    let CutPart { file, inputs, outputs, operators, parameters, work, out_bytes, .. } = part;
    (file, Part { blob, inputs, outputs, operators, parameters, work, memory: 0, out_bytes })
}

/// The rows of all items.
fn all(
    batch: &Batch,
    inputs: &[Vec<u8>],
    items: u64,
    mut run: impl FnMut(&[u8]) -> Result<Vec<u8>, Failure>,
) -> Result<Vec<u8>, String> {
    let mut unit = Unit::new(batch, Span::new(0, items), inputs.iter().collect::<Vec<_>>());
    while unit.goes_on() {
        unit.step(batch, &mut run).map_err(|failure| failure.to_string())?;
    }
    Ok(unit.into_rows())
}

/// A model in slices, all of them here.
struct Slices {
    /// With what enters each.
    stages: Vec<(Stage, Vec<Port>)>,
}

impl Slices {
    fn load(
        files: Vec<Vec<u8>>,
        work: &OnnxWork,
        slices: usize,
        threads: &Threads,
    ) -> Result<Slices, Failure> {
        let mut files = files.into_iter();
        let works: Vec<u64> = work.parts.iter().map(|part| part.work).collect();
        let mut stages = Vec::with_capacity(slices);
        for span in spans(&works, slices) {
            let own = files.by_ref().take(span.len as usize).collect();
            let enters = work.crossing(span.start as usize).into_iter().cloned().collect();
            stages.push((Stage::load(own, work, span, threads)?, enters));
        }
        Ok(Slices { stages })
    }

    /// As devices do it: what leaves one slice is made small, and what comes is what the next one computes on.
    fn run(&self, request: &[u8], form: Wire, sent: &mut u64) -> Result<Vec<u8>, Failure> {
        let mut at = Cow::Borrowed(request);
        for (number, (stage, enters)) in self.stages.iter().enumerate() {
            if number > 0 {
                let wrong = |error: wire::WireError| Failure::Model { message: error.to_string() };
                let left = wire::receive(&at, enters).map_err(wrong)?.tensors;
                let left = left.iter().map(|(head, bytes)| Tensor { head: head.clone(), bytes });
                let small = wire::send(&left.collect::<Vec<_>>(), form, None);
                *sent += small.len() as u64;
                at = Cow::Owned(small);
            }
            at = Cow::Owned(stage.run(&at)?);
        }
        Ok(at.into_owned())
    }
}

/// As many slices of about equal work, each of one part at least.
fn spans(works: &[u64], slices: usize) -> Vec<Span> {
    let (parts, all) = (works.len(), works.iter().map(|work| u128::from(*work)).sum::<u128>());
    let (mut spans, mut start, mut done) = (Vec::with_capacity(slices), 0, 0u128);
    for (at, work) in works.iter().enumerate() {
        done += u128::from(*work);
        let behind = slices - spans.len() - 1;
        let is_due = done * slices as u128 >= all * (spans.len() as u128 + 1);
        let is_last = parts - at - 1 == behind;
        if behind == 0 || !(is_due || is_last) || parts - at - 1 < behind {
            continue;
        }
        spans.push(Span::new(start, (at + 1) as u64 - start));
        start = (at + 1) as u64;
    }
    spans.push(Span::new(start, parts as u64 - start));
    spans
}

impl Report {
    pub(super) fn json(&self) -> Value {
        let form = |(wire, form): &(Wire, Form)| {
            json!({
                "wire": wire.name(),
                "bytesPerItem": form.bytes,
                "difference": form.apart.difference,
                "agreement": form.apart.agreement,
            })
        };
        let forms: Vec<Value> = self.forms.iter().map(form).collect();
        json!({"slices": self.slices, "items": self.items, "forms": forms})
    }

    pub(super) fn table(&self) -> String {
        let row = |(wire, Form { bytes, apart }): &(Wire, Form)| {
            let difference = format!("{:.2e}", apart.difference);
            let agreement = format!("{:.1} %", apart.agreement * 100.0);
            [wire.name().into(), show::size(*bytes), difference, agreement]
        };
        let rows: Vec<_> = self.forms.iter().map(row).collect();
        format!(
            "{}\non {} items of the calibration data, in {} slices of about equal work, against the whole model",
            show::forms(&rows),
            self.items,
            self.slices
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_are_as_many_as_asked_and_of_about_equal_work() {
        let lens = |works: &[u64], slices| -> Vec<u64> {
            spans(works, slices).iter().map(|span| span.len).collect()
        };
        assert_eq!(lens(&[1, 1, 1, 1, 1, 1], 3), [2, 2, 2]);
        assert_eq!(lens(&[9, 1, 1, 1], 2), [1, 3]);
        assert_eq!(lens(&[1, 1, 1, 9], 2), [3, 1]);
        assert_eq!(lens(&[9, 9, 9], 3), [1, 1, 1]);
        assert_eq!(lens(&[0, 0, 0, 0], 2), [1, 3]);
    }
}
