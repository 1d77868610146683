//! Typical inputs of a model, by which two ways of running it are compared.

use std::path::{Path, PathBuf};

use shoal_engine::intake;
use shoal_kinds::OnnxWork;
use shoal_kinds::onnx::{Batch, Column, Element, Head, columns};

use super::many::Chosen;
use super::pictures;
use crate::args::Sight;
use crate::fail::Fail;

/// Items that calibrate at most: ranges hardly change after some hundred.
pub(super) const MOST_CALIBRATED: u64 = 512;
/// Items that are compared at most: enough for an agreement in percent.
pub(super) const MOST_COMPARED: u64 = 256;

/// Files with typical inputs.
pub(super) struct Data {
    /// What an item has of each.
    pub(super) arrays: Vec<(PathBuf, Column)>,
    pub(super) items: u64,
    folder: Folder,
}

impl Data {
    /// Each is an .npy file, or a folder of pictures that is made into one.
    pub(super) fn open(chosen: &Chosen, given: &[String], sight: &Sight) -> Result<Data, Fail> {
        let folder = Folder::new()?;
        let mut arrays: Vec<(PathBuf, Head)> = Vec::new();
        for text in given {
            if Path::new(text).is_dir() {
                let sight = sight.clone();
                let array = pictures::calibrating(text, &chosen.model, sight, MOST_CALIBRATED)?;
                let path = folder.0.join(format!("{}.npy", arrays.len()));
                array.save(&path)?;
                arrays.push((path, array.head));
            } else {
                let (path, array) = chosen.array(text)?;
                arrays.push((path, array.head));
            }
        }
        if arrays.is_empty() {
            return Ok(Data { arrays: Vec::new(), items: 0, folder });
        }
        let heads: Vec<Head> = arrays.iter().map(|(_, head)| head.clone()).collect();
        let checked = columns(&chosen.work(), &heads);
        let (items, columns) = checked.map_err(|error| Fail::input(error.to_string()))?;
        if items == 0 {
            return Err(Fail::input("the calibration data is empty"));
        }
        let arrays = arrays.into_iter().map(|(path, _)| path).zip(columns).collect();
        Ok(Data { arrays, items, folder })
    }

    /// A place that goes with the data.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.0.join(name)
    }
}

/// What the first items have of each array.
pub(super) fn rows(arrays: &[(PathBuf, Column)], items: u64) -> Result<Vec<Vec<u8>>, String> {
    let mut rows = Vec::new();
    for (path, column) in arrays {
        let file = std::fs::read(path).map_err(|error| error.to_string())?;
        let (_, _, bytes) = crate::npy::tensor(&file).map_err(|error| error.to_string())?;
        let most = column.bytes().unwrap_or(0).saturating_mul(items) as usize;
        rows.push(bytes.get(..most).unwrap_or(bytes).to_vec());
    }
    Ok(rows)
}

/// How such items go through a model, each in a run of its own.
pub(super) fn one_by_one(
    file: &[u8],
    work: &OnnxWork,
    columns: &[Column],
) -> Result<Batch, String> {
    let heads: Vec<Head> = columns.iter().map(head).collect();
    let planned = intake::batch(file, &heads, false).map_err(|error| error.message)?;
    let outputs = work.outputs.iter().zip(planned.outputs).map(|(port, dims)| Column {
        name: port.name.clone(),
        element: port.element,
        dims,
        leads: false,
    });
    let outputs = outputs.collect();
    Ok(Batch { feeds: Vec::new(), inputs: columns.to_vec(), outputs, at_once: 1 })
}

/// What an item has, as the model takes it.
fn head(column: &Column) -> Head {
    let dims = column.leads.then_some(1).into_iter().chain(column.dims.iter().copied()).collect();
    Head { name: column.name.clone(), element: column.element, dims }
}

/// How far two results of the same items are from each other.
pub(super) struct Apart {
    /// The largest of all outputs.
    pub(super) difference: f64,
    /// The part of items for which the largest number is at the same place of the first output.
    pub(super) agreement: f64,
}

impl Apart {
    pub(super) fn of(batch: &Batch, (one, other): (&[u8], &[u8])) -> Apart {
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
        Apart { difference, agreement: same as f64 / items.max(1) as f64 }
    }
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

/// A folder that goes with the command.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Result<Folder, Fail> {
        let mut random = [0; 8];
        getrandom::fill(&mut random)
            .map_err(|error| Fail::world("internal", format!("no random numbers: {error}")))?;
        let name = format!("shoal-calibrate-{:x}", u64::from_le_bytes(random));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).map_err(|error| Fail::writing(&path, &error))?;
        Ok(Folder(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
