//! `shoal model quantize`: a model with 8-bit numbers, made by onnxruntime's own quantiser, and compared with the original:
//! by onnxruntime, and by the engine that every node has.

mod built_in;
mod python;

use std::path::Path;

use serde_json::{Value, json};

use super::Context;
use super::calibration::{Data, MOST_CALIBRATED, MOST_COMPARED};
use super::many::Chosen;
use crate::args::{ModelQuantize, Sight};
use crate::client::Sink;
use crate::fail::Fail;
use crate::show;
use built_in::Compared;

pub(super) fn run(context: &Context, args: ModelQuantize) -> Result<(), Fail> {
    let chosen = Chosen::open(&args.file)?;
    let sight = Sight::preparing(args.task, args.fit, args.normalize);
    let data = Data::open(&chosen, &args.calibrate, &sight)?;
    let is_dynamic = args.dynamic || data.arrays.is_empty();
    // Opened before any work, so that a place that cannot be written shows at once.
    let mut sink = Sink::create(&args.output)?;
    let made = data.path("quantized.onnx");
    let compared = data.items.min(MOST_COMPARED);
    let inputs: Vec<Value> = data
        .arrays
        .iter()
        .map(|(path, column)| {
            let file = path.display().to_string();
            json!({"name": column.name, "file": file, "leads": column.leads})
        })
        .collect();
    let python = python::find(context, args.python.as_deref(), args.install)?;
    let told = python.quantize(&json!({
        "model": args.file.display().to_string(),
        "out": made.display().to_string(),
        "inputs": inputs,
        "dynamic": is_dynamic,
        "calibrate": data.items.min(MOST_CALIBRATED),
        "compare": compared,
    }))?;
    let before = std::fs::read(&args.file).map_err(|error| Fail::reading(&args.file, &error))?;
    let after = std::fs::read(&made).map_err(|error| Fail::reading(&made, &error))?;
    sink.write(&after)?;
    sink.finish()?;
    let built_in = built_in::compare((&before, &after), &chosen.work(), &data.arrays, compared);
    let report = Report { before: before.len(), after: after.len(), is_dynamic, told, built_in };
    if context.json {
        return show::json(&report.json(&args.output));
    }
    show::line(&report.table(&args.output, compared))
}

/// What came of it.
struct Report {
    before: usize,
    after: usize,
    is_dynamic: bool,
    /// What onnxruntime found.
    told: Value,
    /// What the built-in engine found, or why it cannot run the new model. None without data.
    built_in: Option<Result<Compared, String>>,
}

impl Report {
    fn how(&self) -> &'static str {
        if self.is_dynamic { "dynamic" } else { "static" }
    }

    fn json(&self, output: &Path) -> Value {
        let built_in = match &self.built_in {
            Some(Ok(compared)) => compared.json(),
            Some(Err(why)) => json!({"error": why}),
            None => Value::Null,
        };
        let onnxruntime = self.told.get("beforeMs").map_or(Value::Null, |_| self.told.clone());
        json!({
            "output": output.display().to_string(),
            "how": self.how(),
            "bytesBefore": self.before,
            "bytesAfter": self.after,
            "onnxruntime": onnxruntime,
            "builtIn": built_in,
        })
    }

    fn table(&self, output: &Path, compared: u64) -> String {
        let (before, after) = (show::size(self.before as u64), show::size(self.after as u64));
        let mut text = format!("{}: {}, {before} -> {after}", output.display(), self.how());
        let onnxruntime = self.told.get("beforeMs").map(|_| {
            let number = |name: &str| self.told[name].as_f64().unwrap_or(0.0);
            Ok(Compared {
                before_ms: number("beforeMs"),
                after_ms: number("afterMs"),
                difference: number("difference"),
                agreement: number("agreement"),
            })
        });
        let rows: Vec<_> =
            [("onnxruntime", onnxruntime.as_ref()), ("built in", self.built_in.as_ref())]
                .into_iter()
                .filter_map(|(engine, found)| Some((engine, found?)))
                .collect();
        if rows.is_empty() {
            return text + "\ngive data with --calibrate to compare it with the original";
        }
        text += &format!("\n{}", show::compared(&rows.iter().map(row).collect::<Vec<_>>()));
        text + &format!("\non {compared} items of the calibration data, in one thread")
    }
}

fn row((engine, found): &(&str, &Result<Compared, String>)) -> [String; 5] {
    match found {
        Ok(Compared { before_ms, after_ms, difference, agreement }) => [
            (*engine).into(),
            format!("{before_ms:.2} ms"),
            format!("{after_ms:.2} ms"),
            format!("{difference:.4}"),
            format!("{:.1} %", agreement * 100.0),
        ],
        Err(why) => [(*engine).into(), String::new(), why.clone(), String::new(), String::new()],
    }
}
