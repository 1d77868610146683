//! `shoal map`: a kernel over the elements of arrays.

use std::path::PathBuf;
use std::time::Instant;

use serde_json::json;
use shoal_api::{JobRequest, MapInputRequest, MapRequest, WorkRequest};
use shoal_engine::intake::{self as engine, EngineIntake};
use shoal_kinds::map::fold::How;
use shoal_kinds::map::map_code;
use shoal_kinds::plan::Intake;

use super::reduce::{self, Numbers, Reduction};
use super::{
    Context, check_stdout, common, finished, params, partial, policy, read_kernel, refused,
};
use crate::args::Map;
use crate::arrays::{Arrays, Layout, Summary};
use crate::client::{Client, Job, Sink};
use crate::fail::Fail;
use crate::interrupt::Interrupts;
use crate::show;

pub(super) async fn run(context: &Context, args: Map, interrupts: &Interrupts) -> Result<(), Fail> {
    if let Some(output) = &args.output {
        check_stdout(context, output)?;
    }
    let reduction = args.reduce.as_deref().map(Reduction::read).transpose()?;
    let began = Instant::now();
    let wgsl = read_kernel(&args.kernel)?;
    let params = params(&args.kernel_args.params)?;
    let entry = args.kernel_args.entry.as_deref();
    let unfit = |error| refused(&args.kernel, error);
    let plan = EngineIntake.map_kernel(&wgsl, entry, &params).map_err(unfit)?;
    let arrays = Arrays::open(&args, &wgsl, &plan)?;
    let layout = arrays.layout(&args, &plan)?;
    // Here too, so that nothing is sent for a kernel that is refused.
    let ask = arrays.ask(&args);
    EngineIntake.map_reading(&wgsl, entry, &params, &ask).map_err(unfit)?;
    let folding = match &reduction {
        Some(Reduction { how, .. }) => {
            let folding = engine::fold(how, &plan.output, args.out_per, layout.items);
            Some(folding.map_err(|error| refused(&reduce_file(&args), error))?)
        }
        None => None,
    };
    // Opened before any work, so that a place that cannot be written shows at once.
    let sink = args.output.as_deref().map(Sink::create).transpose()?;

    let client = context.client(&args.server)?;
    let mut common = common(&args.kernel, &args.job)?;
    let code = code(&wgsl, reduction.as_ref());
    policy::add(context, &client, &args.job.policy, code.as_bytes(), &mut common).await?;
    let work = WorkRequest::Map(MapRequest {
        wgsl,
        entry: args.kernel_args.entry.clone(),
        inputs: upload(context, &client, &arrays).await?,
        items: arrays.none_is_split().then_some(layout.items),
        out_per_item: Some(args.out_per),
        params,
        edge: Some(args.edge.into()),
        reduce: reduction.as_ref().map(Reduction::json),
    });
    let request = JobRequest { common: common.clone(), work };
    let job = match context.run(&client, &request, interrupts).await {
        Ok(job) => job,
        Err(fail) => return Err(save_part(context, &client, &args, fail, &layout, sink).await),
    };
    let is_vec3 = plan.output.name.starts_with("vec3");
    match (reduction.zip(folding), sink) {
        (None, Some(mut sink)) => {
            save(context, &client, job.id, &layout, &mut sink).await?;
            sink.finish()?;
            partial::complete(context, args.output.as_deref());
            finished(context, &job, args.output.as_deref(), began, &told(&layout))
        }
        (None, None) => show_summary(context, &client, (&job, began), &layout, is_vec3).await,
        (Some((reduction, folding)), sink) => {
            policy::sign(context, &args.job.policy, &reduce::code(&folding), &mut common)?;
            let numbers = reduce::finish(context, &client, &job, &folding, common, interrupts);
            let numbers = Numbers::read(&reduction, &job, numbers.await?, is_vec3)?;
            tell(context, &args, &job, &numbers, sink)?;
            let what = format!("{} items reduced", show::count(layout.items as f64));
            if context.json {
                Ok(())
            } else {
                finished(context, &job, args.output.as_deref(), began, &what)
            }
        }
    }
}

/// How much came out.
fn told(layout: &Layout) -> String {
    format!("{} items, {}", show::count(layout.items as f64), show::size(layout.bytes))
}

/// What is done of a job that did not end well, if that is wanted; the failure stays one.
async fn save_part(
    context: &Context,
    client: &Client,
    args: &Map,
    fail: Fail,
    layout: &Layout,
    sink: Option<Sink>,
) -> Fail {
    let wanted = args.output.as_deref().filter(|_| args.partial);
    let (Some(mut sink), Some(job)) = (sink, partial::ended(&fail)) else {
        return fail;
    };
    let save = async |client: &Client| {
        save(context, client, job, layout, &mut sink).await?;
        sink.finish()
    };
    partial::deliver(context, client, fail, wanted, save).await
}

/// What is signed.
fn code(wgsl: &str, reduction: Option<&Reduction>) -> String {
    match reduction.map(|it| &it.how) {
        Some(How::Combine(combine)) => map_code(wgsl, combine),
        Some(_) | None => wgsl.to_owned(),
    }
}

/// What a complaint about a reduction is about.
fn reduce_file(args: &Map) -> PathBuf {
    let how = args.reduce.as_deref().unwrap_or_default();
    if how.ends_with(".wgsl") { how.into() } else { args.kernel.clone() }
}

/// The numbers of a reduction: into a file, or one on each line.
fn tell(
    context: &Context,
    args: &Map,
    job: &Job,
    numbers: &Numbers,
    sink: Option<Sink>,
) -> Result<(), Fail> {
    if let (Some(mut sink), Some(path)) = (sink, &args.output) {
        sink.write(&numbers.file(path))?;
        sink.finish()?;
    }
    if context.json {
        let output = args.output.as_ref().map(|path| path.display().to_string());
        return show::json(&json!({"job": job, "output": output, "result": numbers.shown}));
    }
    if args.output.is_none() {
        for number in &numbers.shown {
            show::line(&number.to_string())?;
        }
    }
    Ok(())
}

/// What came out, in some lines, where nobody says where it goes.
async fn show_summary(
    context: &Context,
    client: &Client,
    (job, began): (&Job, Instant),
    layout: &Layout,
    is_vec3: bool,
) -> Result<(), Fail> {
    let Some((dtype, shape)) = &layout.shown else {
        let text = format!("{} items of {} bytes in all", layout.items, layout.bytes);
        let summary = json!({"items": layout.items, "bytes": layout.bytes});
        return match context.json {
            true => show::json(&json!({"job": job, "output": null, "summary": summary})),
            false => show::line(&format!("{text}; shoal result {} -o FILE saves them", job.id)),
        };
    };
    let mut shape = shape.clone();
    let lanes = if is_vec3 { (4, 3) } else { (1, 1) };
    if let (true, Some(last)) = (is_vec3, shape.last_mut().filter(|last| **last % 4 == 0)) {
        *last = *last / 4 * 3;
    }
    let mut summary = Summary::new(*dtype, &shape, lanes);
    let bar = show::Bytes::new("fetching the result", if context.json { 0 } else { layout.bytes });
    let fetched = client
        .result(job.id, &bar, |piece| {
            summary.push(piece);
            Ok(())
        })
        .await;
    bar.clear();
    fetched?;
    if context.json {
        return show::json(&json!({"job": job, "output": null, "summary": summary.json()}));
    }
    show::line(&summary.to_string())?;
    let what = format!("{} items", show::count(layout.items as f64));
    finished(context, job, None, began, &what)
}

async fn upload(
    context: &Context,
    client: &Client,
    arrays: &Arrays,
) -> Result<Vec<MapInputRequest>, Fail> {
    let mut inputs = Vec::new();
    for array in &arrays.inputs {
        let size = if context.json { 0 } else { array.source.size() };
        let bar = show::Bytes::new(&format!("sending {}", array.name), size);
        let blob = client.upload(&array.source, &bar).await;
        bar.clear();
        inputs.push(MapInputRequest {
            blob: blob?.hash,
            whole: array.is_whole,
            per_item: Some(array.per_item),
            overlap: array.overlap,
            ..MapInputRequest::default()
        });
    }
    Ok(inputs)
}

async fn save(
    context: &Context,
    client: &Client,
    job: u64,
    layout: &Layout,
    sink: &mut Sink,
) -> Result<(), Fail> {
    let bar = show::Bytes::new("fetching the result", if context.json { 0 } else { layout.bytes });
    let fetched = fetch(client, job, &bar, (sink, &layout.head())).await;
    bar.clear();
    let got = fetched?;
    if got != layout.bytes {
        let wanted = layout.bytes;
        return Err(Fail::world(
            "bad_answer",
            format!("the result has {got} bytes instead of {wanted}"),
        ));
    }
    Ok(())
}

/// Brings the bytes of a result into a file, behind its head; says how many.
async fn fetch(
    client: &Client,
    job: u64,
    bar: &show::Bytes,
    (sink, head): (&mut Sink, &[u8]),
) -> Result<u64, Fail> {
    if sink.is_file() {
        sink.write(head)?;
        if let Some(size) = client.copy_result(job, bar, sink).await? {
            return Ok(size);
        }
        sink.rewind()?;
    }
    sink.write(head)?;
    let mut got = 0;
    client
        .result(job, bar, |piece| {
            got += piece.len() as u64;
            sink.write(piece)
        })
        .await?;
    Ok(got)
}
