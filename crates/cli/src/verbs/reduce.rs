//! `shoal map --reduce`: brings the outputs of all items together. Each job folds blocks of items into one; its
//! result is folded again until one block is left.

use std::path::Path;

use bytes::Bytes;
use serde_json::Value;
use shoal_api::{
    CommonRequest, JobJson, JobRequest, MapInputRequest, MapRequest, OpJson, ReduceJson,
    WorkRequest,
};
use shoal_kinds::FoldPlan;
use shoal_kinds::map::fold::How;
use shoal_kinds::map::map_code;
use shoal_kinds::npy;

use super::{Context, read_kernel};
use crate::client::{Client, Source};
use crate::fail::Fail;
use crate::interrupt::Interrupts;
use crate::show;

/// What the user asked for.
pub(super) struct Reduction {
    pub(super) how: How,
    is_mean: bool,
}

impl Reduction {
    /// One of the built-in ways, or a file.
    pub(super) fn read(text: &str) -> Result<Reduction, Fail> {
        let (how, is_mean) = match text {
            "sum" => (How::Sum, false),
            "mean" => (How::Sum, true),
            "min" => (How::Min, false),
            "max" => (How::Max, false),
            file if Path::new(file).extension().is_some_and(|end| end == "wgsl") => {
                (How::Combine(read_kernel(Path::new(file))?), false)
            }
            other => {
                return Err(Fail::input(format!(
                    "--reduce {other}: expected sum, min, max, mean or a file with `fn combine`, such as \
                     argmax.wgsl"
                )));
            }
        };
        Ok(Reduction { how, is_mean })
    }

    /// As a request has it.
    pub(super) fn json(&self) -> ReduceJson {
        match &self.how {
            How::Sum => ReduceJson::Op(OpJson::Sum),
            How::Min => ReduceJson::Op(OpJson::Min),
            How::Max => ReduceJson::Op(OpJson::Max),
            How::Combine(source) => ReduceJson::Code { wgsl: source.clone() },
        }
    }
}

/// What is signed of the jobs that go on.
pub(super) fn code(folding: &FoldPlan) -> Vec<u8> {
    map_code(&folding.copy, &folding.combine).into_bytes()
}

/// Folds what a job left until it is one. `next` has what these jobs have in common with the first, and their
/// own signature.
pub(super) async fn finish(
    context: &Context,
    client: &Client,
    job: &JobJson,
    folding: &FoldPlan,
    mut next: CommonRequest,
    interrupts: &Interrupts,
) -> Result<Vec<u8>, Fail> {
    next.unit = None;
    let (mut id, mut blocks) = (job.id, job.items);
    loop {
        let bytes = fetch(client, id).await?;
        if blocks <= 1 {
            return Ok(bytes);
        }
        let bar = show::Bytes::new("sending blocks", 0);
        let blob = client.upload(&Source::Memory(Bytes::from(bytes)), &bar).await;
        bar.clear();
        let work = WorkRequest::Map(again(folding, blob?.hash));
        let request = JobRequest { common: next.clone(), work };
        let job = context.run(client, &request, interrupts).await?;
        (id, blocks) = (job.id, job.items);
    }
}

/// A map that folds blocks once more.
fn again(folding: &FoldPlan, blob: String) -> MapRequest {
    let columns = Some(folding.fold.columns);
    MapRequest {
        wgsl: folding.copy.clone(),
        inputs: vec![MapInputRequest { blob, per_item: columns, ..MapInputRequest::default() }],
        out_per_item: columns,
        reduce: Some(ReduceJson::Code { wgsl: folding.combine.clone() }),
        ..MapRequest::default()
    }
}

async fn fetch(client: &Client, job: u64) -> Result<Vec<u8>, Fail> {
    let mut bytes = Vec::new();
    let bar = show::Bytes::new("fetching blocks", 0);
    let fetched = client
        .result(job, &bar, |piece| {
            bytes.extend_from_slice(piece);
            Ok(())
        })
        .await;
    bar.clear();
    fetched.map(|()| bytes)
}

/// The numbers of a reduction, column by column.
pub(super) struct Numbers {
    /// For people and JSON.
    pub(super) shown: Vec<Value>,
    /// NumPy's type, and the bytes.
    descr: &'static str,
    bytes: Vec<u8>,
}

impl Numbers {
    /// Of a job's last block. A `vec3` has a fourth number in memory, which is none.
    pub(super) fn read(
        reduction: &Reduction,
        job: &JobJson,
        mut bytes: Vec<u8>,
        is_vec3: bool,
    ) -> Result<Numbers, Fail> {
        let (Some(of), Some(reduced)) = (&job.output, &job.reduced) else {
            return Err(Fail::world("bad_answer", "the coordinator returned no reduced result"));
        };
        let scalar = of.scalar.as_str();
        if is_vec3 {
            let size = if matches!(scalar, "u64" | "i64") { 8 } else { 4 };
            let rows = bytes.chunks_exact(4 * size).map(|row| &row[..3 * size]);
            bytes = rows.collect::<Vec<_>>().concat();
        }
        if reduction.is_mean {
            return Numbers::mean(scalar, &bytes, reduced.items);
        }
        let (descr, shown) = match scalar {
            "f32" => ("<f4", each(&bytes, |it| single(f32::from_le_bytes(it)))),
            "i32" => ("<i4", each(&bytes, |it| i32::from_le_bytes(it).into())),
            "u32" => ("<u4", each(&bytes, |it| u32::from_le_bytes(it).into())),
            "u64" => ("<u8", each(&bytes, |it| u64::from_le_bytes(it).into())),
            "i64" => ("<i8", each(&bytes, |it| i64::from_le_bytes(it).into())),
            other => return Err(odd(other)),
        };
        Ok(Numbers { shown, descr, bytes })
    }

    /// The sum, divided: in double precision, as a whole number's mean is no whole number.
    fn mean(scalar: &str, sum: &[u8], items: u64) -> Result<Numbers, Fail> {
        let sums: Vec<f64> = match scalar {
            "f32" => each(sum, |it| f32::from_le_bytes(it).into()),
            "u64" => each(sum, |it| u64::from_le_bytes(it) as f64),
            "i64" => each(sum, |it| i64::from_le_bytes(it) as f64),
            other => return Err(odd(other)),
        };
        let means: Vec<f64> = sums.into_iter().map(|sum| sum / items as f64).collect();
        let shown = means.iter().map(|mean| float(*mean)).collect();
        let bytes = means.iter().flat_map(|mean| mean.to_le_bytes()).collect();
        Ok(Numbers { shown, descr: "<f8", bytes })
    }

    /// As a file of that name: one number, or a row of them.
    pub(super) fn file(&self, path: &Path) -> Vec<u8> {
        let is_npy = path.extension().is_some_and(|end| end.eq_ignore_ascii_case("npy"));
        let shape: &[u64] = match self.shown.len() as u64 {
            1 => &[],
            ref count => &[*count],
        };
        let head = if is_npy { npy::head(self.descr, shape) } else { Vec::new() };
        [head, self.bytes.clone()].concat()
    }
}

fn each<const N: usize, T>(bytes: &[u8], read: impl Fn([u8; N]) -> T) -> Vec<T> {
    bytes.as_chunks::<N>().0.iter().map(|chunk| read(*chunk)).collect()
}

/// The shortest text that is this float.
fn single(value: f32) -> Value {
    value.to_string().parse().map_or_else(|_| value.to_string().into(), float)
}

/// JSON has no word for what is no number.
fn float(value: f64) -> Value {
    serde_json::Number::from_f64(value).map_or_else(|| value.to_string().into(), Value::Number)
}

fn odd(scalar: &str) -> Fail {
    Fail::world(
        "bad_answer",
        format!("the reduction returned numbers of the unexpected type {scalar}"),
    )
}
