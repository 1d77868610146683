//! `shoal infer`: a model run on tensors from files, or on a picture.

use std::path::{Path, PathBuf};
use std::time::Instant;

use serde_json::{Value, json};
use shoal_kinds::onnx::Tensor;

use super::render::check_extension;
use super::{Context, many, pictures};
use crate::args::{Infer, Sight, Task};
use crate::client::Client;
use crate::fail::Fail;
use crate::interrupt::Interrupts;
use crate::show;
use crate::sight::{self, Found, Seen};
use crate::tensors::Array;

pub(super) async fn run(
    context: &Context,
    args: Infer,
    interrupts: &Interrupts,
) -> Result<(), Fail> {
    if !(args.deadline > 0.0 && args.deadline <= 3600.0) {
        return Err(Fail::input("--deadline must be more than 0 and at most 3600 seconds"));
    }
    let client = context.client(&args.server)?;
    let Sight { score, overlap, task, .. } = &args.sight;
    for (flag, part) in [("--score", score), ("--overlap", overlap)] {
        if !(0.0..=1.0).contains(part) {
            return Err(Fail::input(format!("{flag} must be from 0 to 1")));
        }
    }
    if !args.sight.images.is_empty() {
        return pictures::run(context, &client, args, interrupts).await;
    }
    if !args.batch.is_empty() {
        return many::run(context, &client, args, interrupts).await;
    }
    if let Some(path) = &args.sight.image {
        let model = client.model(&args.model).await?;
        let (input, seen) = sight::open(path, &model, &args.sight)?;
        if let Some(task) = *task {
            return look(context, &client, &args, (input, seen), task).await;
        }
        return tensors(context, &client, &args, &[input]).await;
    }
    let inputs = args.input.iter().map(|(name, file)| Array::open(name, Path::new(file)));
    let inputs: Vec<Array> = inputs.collect::<Result<_, _>>()?;
    inputs.iter().for_each(warn_of_nan);
    tensors(context, &client, &args, &inputs).await
}

/// What the model sees in a picture.
async fn look(
    context: &Context,
    client: &Client,
    args: &Infer,
    (input, seen): (Array, Seen),
    task: Task,
) -> Result<(), Fail> {
    if let Some(path) = &args.output {
        match task {
            Task::Detect => check_extension(path)?,
            Task::Classify => {
                return Err(Fail::input("--task classify writes no file: leave out -o"));
            }
        }
    }
    let began = Instant::now();
    let outputs = ask(client, args, &[input]).await?;
    let took = began.elapsed().as_secs_f64();
    let found = Found::read(&outputs, seen, task, &args.sight)?;
    let (mut json, lines) = (found.json(), found.lines());
    if let Some(path) = &args.output {
        found.save(path)?;
        json["file"] = path.display().to_string().into();
    }
    if context.json {
        json["seconds"] = took.into();
        return show::json(&json);
    }
    lines.iter().try_for_each(|line| show::line(line))?;
    let to = args.output.as_ref().map(|path| format!("{}: ", path.display())).unwrap_or_default();
    eprintln!("{to}answered in {}", show::duration(took));
    Ok(())
}

async fn tensors(
    context: &Context,
    client: &Client,
    args: &Infer,
    inputs: &[Array],
) -> Result<(), Fail> {
    let began = Instant::now();
    let outputs = ask(client, args, inputs).await?;
    let took = began.elapsed().as_secs_f64();
    let files = match &args.output {
        Some(folder) => save(folder, &outputs)?,
        None => Vec::new(),
    };
    if context.json {
        return show::json(&told(&outputs, &files, took));
    }
    for output in &outputs {
        show::line(&output.summary())?;
    }
    let to =
        args.output.as_ref().map(|folder| format!("{}: ", folder.display())).unwrap_or_default();
    let plural = if outputs.len() == 1 { "output" } else { "outputs" };
    eprintln!("{to}{} {plural} in {}", outputs.len(), show::duration(took));
    Ok(())
}

async fn ask(client: &Client, args: &Infer, inputs: &[Array]) -> Result<Vec<Array>, Fail> {
    let tensors: Vec<Tensor<'_>> = inputs.iter().map(Array::tensor).collect();
    let millis = (args.deadline * 1e3).ceil() as u64;
    let outputs = client.infer(&args.model, &tensors, millis).await?;
    Ok(outputs.into_iter().map(|(head, bytes)| Array { head, bytes }).collect())
}

/// A model computes with them, and mostly gives nothing else.
fn warn_of_nan(input: &Array) {
    let count = input.numbers().iter().filter(|number| number.is_nan()).count();
    if count > 0 {
        let name = &input.head.name;
        eprintln!("warning: {count} values of the input {name} are not numbers (NaN)");
    }
}

/// Each output in a file of its own.
fn save(folder: &Path, outputs: &[Array]) -> Result<Vec<PathBuf>, Fail> {
    let files = files(folder, outputs.iter().map(|output| output.head.name.as_str()))?;
    outputs.iter().zip(&files).try_for_each(|(output, path)| output.save(path))?;
    Ok(files)
}

/// A file for each output in a folder, which is made.
pub(super) fn files<'a>(
    folder: &Path,
    outputs: impl Iterator<Item = &'a str>,
) -> Result<Vec<PathBuf>, Fail> {
    std::fs::create_dir_all(folder).map_err(|error| Fail::writing(folder, &error))?;
    let mut files = Vec::new();
    for output in outputs {
        // Two names may differ only in what no file name has, or in case.
        let lower = |path: &PathBuf| path.to_string_lossy().to_lowercase();
        let name = file_name(output);
        let mut path = folder.join(format!("{name}.npy"));
        let mut count = 1;
        while files.iter().any(|other| lower(other) == lower(&path)) {
            count += 1;
            path = folder.join(format!("{name}-{count}.npy"));
        }
        files.push(path);
    }
    Ok(files)
}

/// Names of values come out of a file: none may lead out of the folder.
fn file_name(name: &str) -> String {
    let plain = |c: char| if c.is_alphanumeric() || "-_.".contains(c) { c } else { '_' };
    let name: String = name.chars().map(plain).take(100).collect();
    if name.starts_with('.') || name.is_empty() { format!("_{name}") } else { name }
}

fn told(outputs: &[Array], files: &[PathBuf], took: f64) -> Value {
    let shown = |(at, output): (usize, &Array)| {
        let mut shown = output.json();
        if let Some(file) = files.get(at) {
            shown["data"] = Value::Null;
            shown["file"] = file.display().to_string().into();
        }
        shown
    };
    let outputs: Vec<Value> = outputs.iter().enumerate().map(shown).collect();
    json!({"outputs": outputs, "seconds": took})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_output_leads_out_of_the_folder() {
        assert_eq!(file_name("output0"), "output0");
        assert_eq!(file_name("../../etc/passwd"), "_.._.._etc_passwd");
        assert_eq!(file_name("StatefulPartitionedCall:0"), "StatefulPartitionedCall_0");
        assert_eq!(file_name(""), "_");
    }
}
