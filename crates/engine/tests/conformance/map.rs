//! Map cases: intake, then units one after the other, then the whole.

use pollster::block_on;
use serde_json::Value;
use shoal_engine::intake::{self, InputAsk, MapAsk};
use shoal_engine::wgsl::Gpu;
use shoal_kinds::{Edge, Feed, InputSplit, Kind, MapWork};
use shoal_protocol::{BlobRef, Failure, Hash};

use crate::case::Case;
use crate::data::{bytes, compare};
use crate::prepared;
use crate::unit::compute;

pub(crate) fn run(gpu: &Gpu, case: &Case) -> Result<(), String> {
    let source = case.text(&case.json["wgsl"]);
    let inputs: Vec<_> = case.json["inputs"].as_array().into_iter().flatten().collect();
    let (entry, params, ask) = (case.entry(), case.params(), ask(case, &inputs));
    let taken = intake::map_kernel(&source, entry, &params).and_then(|plan| {
        let reading = intake::map_reading(&source, entry, &params, &ask)?;
        Ok((plan, reading))
    });
    let Some((plan, reading)) = case.judge_intake(taken)? else {
        return Ok(());
    };
    let blobs: Vec<_> = inputs.iter().map(|input| bytes(case, input)).collect();
    if inputs.len() != plan.inputs.len() {
        return Err(format!("{} inputs for a kernel of {}", inputs.len(), plan.inputs.len()));
    }
    let mut items = case.json["items"].as_u64();
    let mut map_inputs = Vec::new();
    for ((input, blob), element) in inputs.iter().zip(&blobs).zip(&plan.inputs) {
        let size = blob.len() as u64;
        let split = if input["whole"].as_bool().unwrap_or(false) {
            InputSplit::Whole
        } else {
            let per_item = input["perItem"].as_u64().unwrap_or(1) as u32;
            let each = element.stride * per_item;
            items.get_or_insert(size / u64::from(each));
            InputSplit::PerItem { bytes: each, reach: 0 }
        };
        map_inputs.push(Feed { blob: BlobRef { hash: Hash([0; 32]), size }, split });
    }
    let items = items.unwrap();
    let output_bytes = plan.output.stride * case.number("outPerItem", 1) as u32;
    let whole_groups = reading.whole_groups;
    let mut kernel = plan.kernel;
    for ((input, reading), element) in map_inputs.iter_mut().zip(&reading.inputs).zip(&plan.inputs)
    {
        let split = reading.split(input.split, ask.edge, element.stride, input.blob.size);
        input.split = split.map_err(|too_far| format!("{too_far:?}"))?;
    }
    if let Some(plain) = case.json["plain"].as_bool()
        && plain == reading.windows.is_some()
    {
        return Err(format!("was expected to be run as it is: {plain}"));
    }
    if let Some(windows) = reading.windows {
        kernel.look_through(windows);
    }
    let workgroup = u64::from(kernel.workgroup[0]);
    let work = Kind::Map(MapWork { kernel, inputs: map_inputs, output_bytes, fold: None });
    prepared::write_work(case, items, &work, &blobs);
    let result = block_on(compute(gpu, &work, items, case.number("unit", items), &blobs));
    match result {
        Ok(found) => {
            compare(case, &case.json["expect"], &found)?;
            cut_elsewhere(gpu, case, (&work, items), (workgroup, whole_groups), &found, &blobs)
        }
        Err(failure) => failed_as_expected(case, &failure),
    }
}

/// However items are put into units, the bits are the same, unless a case shows its units.
fn cut_elsewhere(
    gpu: &Gpu,
    case: &Case,
    (work, items): (&Kind, u64),
    (group, whole_groups): (u64, bool),
    found: &[u8],
    blobs: &[Vec<u8>],
) -> Result<(), String> {
    if case.json["unitsShow"].as_bool().unwrap_or(false) {
        return Ok(());
    }
    // A unit of one workgroup, of some, of all; and where that is allowed, of a part of one.
    let odd = (!whole_groups).then_some((items / 3).clamp(1, 4099) | 1);
    for unit in
        [group.max(items.div_ceil(64).next_multiple_of(group)), items].into_iter().chain(odd)
    {
        let again = match block_on(compute(gpu, work, items, unit, blobs)) {
            Ok(again) => again,
            // Its items write each other's places: it says so, and is never wrong.
            Err(Failure::Outside { .. }) => continue,
            Err(failure) => return Err(failure.to_string()),
        };
        if again != found {
            return Err(format!("in units of {unit} the bits are others"));
        }
    }
    Ok(())
}

/// `{"failure": [text]}`: what the words must contain.
fn failed_as_expected(case: &Case, failure: &Failure) -> Result<(), String> {
    let expected = case.json["expect"]["failure"].as_array();
    let words = failure.to_string();
    let all = |parts: &Vec<Value>| parts.iter().all(|part| words.contains(part.as_str().unwrap()));
    if expected.is_some_and(all) { Ok(()) } else { Err(words) }
}

fn ask(case: &Case, inputs: &[&Value]) -> MapAsk {
    let inputs = inputs.iter().map(|input| InputAsk {
        whole: input["whole"].as_bool().unwrap_or(false),
        per_item: input["perItem"].as_u64().unwrap_or(1) as u32,
        overlap: input["overlap"].as_u64().map(|it| it as u32),
    });
    let edge = match case.json["edge"].as_str() {
        None => Edge::Clamp,
        Some("wrap") => Edge::Wrap,
        Some("mirror") => Edge::Mirror,
        Some(other) => panic!("no edge: {other}"),
    };
    MapAsk { inputs: inputs.collect(), out_per_item: case.number("outPerItem", 1) as u32, edge }
}
