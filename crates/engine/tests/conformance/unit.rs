//! Units on a GPU, of whatever kind; and cases of kinds that need no more than that: the request is planned as a
//! coordinator does it, and computed unit by unit.

use std::collections::BTreeMap;

use pollster::block_on;
use serde_json::Value;
use shoal_engine::intake::EngineIntake;
use shoal_engine::wgsl::{Gpu, Input};
use shoal_kinds::plan::{self, Planned, Store, StoreError, Tools};
use shoal_kinds::{InputSplit, IntakeError, Kind};
use shoal_protocol::{BlobRef, Failure, Hash, Span, hash};

use crate::case::Case;
use crate::data::{bytes, compare};
use crate::prepared;

pub(crate) fn run(gpu: &Gpu, case: &Case) -> Result<(), String> {
    let arrays = case.json["blobs"].as_array().into_iter().flatten();
    let blobs: Vec<_> = arrays.map(|array| bytes(case, array)).collect();
    let shelf = Shelf(blobs.into_iter().map(|blob| (hash(&blob), blob)).collect());
    let Some(planned) = case.judge_intake(planned(case, &shelf))? else {
        return Ok(());
    };
    let (work, items) = (planned.spec.work, planned.spec.items);
    let inputs = work.feeds().iter().map(|feed| shelf.0[&feed.blob.hash].clone());
    let inputs: Vec<_> = inputs.collect();
    prepared::write_work(case, items, &work, &inputs);
    // However items are put into units, the bits are the same.
    for unit in [case.number("unit", items), items, 1] {
        let found = block_on(compute(gpu, &work, items, unit, &inputs));
        let found = found.map_err(|failure| failure.to_string())?;
        compare(case, &case.json["expect"], &found)?;
    }
    Ok(())
}

fn planned(case: &Case, shelf: &Shelf) -> Result<Planned, IntakeError> {
    let mut request = case.json["request"].clone();
    request["kind"] = case.kind().into();
    let mut text = request.to_string();
    for (at, array) in case.json["blobs"].as_array().into_iter().flatten().enumerate() {
        let name = hash(&bytes(case, array)).to_string();
        text = text.replace(&format!("\"blob {at}\""), &Value::from(name).to_string());
    }
    let planned = plan::read(text.as_bytes()).and_then(|request| {
        plan::plan(&request, None, &Tools { intake: &EngineIntake, store: shelf })
    });
    planned.map_err(|error| IntakeError::plain(error.code(), error.to_string()))
}

/// The result of all items; `blobs` are what the kind's feeds name, in their order.
pub(crate) async fn compute(
    gpu: &Gpu,
    work: &Kind,
    items: u64,
    unit: u64,
    blobs: &[Vec<u8>],
) -> Result<Vec<u8>, Failure> {
    let pipeline = gpu.prepare_work(work).await?;
    let mut shared = Vec::new();
    for (input, blob) in work.feeds().iter().zip(blobs) {
        shared.push(match input.split {
            InputSplit::Whole => {
                let mut stage = gpu.stage(blob.len() as u64).await?;
                stage.write(0, blob)?;
                Some(gpu.share(stage).await?)
            }
            InputSplit::PerItem { .. } => None,
        });
    }
    let mut result = Vec::new();
    for start in (0..items).step_by(unit as usize) {
        let span = Span::new(start, unit.min(items - start));
        let mut inputs: Vec<Input> = Vec::new();
        for ((input, blob), shared) in work.feeds().iter().zip(blobs).zip(&shared) {
            inputs.push(match (input.split, shared) {
                (InputSplit::PerItem { .. }, _) => {
                    let (start, end) = input.range(span);
                    let part = start as usize..end as usize;
                    let mut stage = gpu.stage(part.len() as u64).await?;
                    stage.write(0, &blob[part])?;
                    stage.into()
                }
                (InputSplit::Whole, shared) => shared.clone().unwrap().into(),
            });
        }
        result.extend_from_slice(&gpu.run(&pipeline, work, items, span, inputs).await?);
    }
    Ok(result)
}

/// The case's blobs, as planning asks for them.
struct Shelf(BTreeMap<Hash, Vec<u8>>);

impl Store for Shelf {
    fn find(&self, hash: Hash) -> Result<Option<BlobRef>, StoreError> {
        Ok(self.0.get(&hash).map(|blob| BlobRef { hash, size: blob.len() as u64 }))
    }

    fn read(&self, hash: Hash, take: &mut dyn FnMut(&[u8]) -> bool) -> Result<bool, StoreError> {
        Ok(self.0.get(&hash).map(|blob| take(blob)).is_some())
    }

    fn put(&self, _bytes: &[u8]) -> Result<BlobRef, StoreError> {
        Err("cases store nothing".into())
    }

    fn drop_torn(&self, _hash: Hash) {}
}
