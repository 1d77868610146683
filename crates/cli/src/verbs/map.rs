//! `shoal map`: a kernel over the elements of arrays.

use std::time::Instant;

use serde_json::{Value, json};

use super::{Context, check_stdout, finished, params, policy, read_kernel, refused, request};
use crate::args::Map;
use crate::arrays::{Arrays, Layout};
use crate::client::{Client, Sink};
use crate::fail::Fail;
use crate::interrupt::Interrupts;
use crate::{intake, npy, show};

pub(super) async fn run(context: &Context, args: Map, interrupts: &Interrupts) -> Result<(), Fail> {
    check_stdout(context, &args.output)?;
    let began = Instant::now();
    let wgsl = read_kernel(&args.kernel)?;
    let params = params(&args.kernel_args.params)?;
    let plan = intake::map_kernel(&wgsl, args.kernel_args.entry.as_deref(), &params)
        .map_err(|error| refused(&args.kernel, error))?;
    let arrays = Arrays::open(&args, &wgsl, &plan)?;
    let layout = arrays.layout(&args, &plan)?;
    // Here too, so that nothing is sent for a kernel that is refused.
    let entry = args.kernel_args.entry.as_deref();
    intake::map_reading(&wgsl, entry, &params, &arrays.ask(&args))
        .map_err(|error| refused(&args.kernel, error))?;
    // Opened before any work, so that a place that cannot be written shows at once.
    let mut sink = Sink::create(&args.output)?;

    let client = context.client(&args.server)?;
    let mut request = request("map", &args.kernel, &args.job)?;
    policy::add(context, &client, &args.job.policy, wgsl.as_bytes(), &mut request).await?;
    request.insert("wgsl".into(), wgsl.into());
    request.insert("inputs".into(), upload(context, &client, &arrays).await?);
    request.insert("outPerItem".into(), args.out_per.into());
    request.insert("params".into(), params.into());
    request.insert("edge".into(), args.edge.name().into());
    if let Some(entry) = &args.kernel_args.entry {
        request.insert("entry".into(), entry.clone().into());
    }
    if arrays.none_is_split() {
        request.insert("items".into(), layout.items.into());
    }
    let job = context.run(&client, &request.into(), interrupts).await?;
    save(context, &client, job.id, &layout, &mut sink).await?;
    sink.finish()?;
    let what = format!("{} items, {}", show::count(layout.items as f64), show::size(layout.bytes));
    finished(context, &job, Some(&args.output), began, &what)
}

async fn upload(context: &Context, client: &Client, arrays: &Arrays) -> Result<Value, Fail> {
    let mut inputs = Vec::new();
    for array in &arrays.inputs {
        let size = if context.json { 0 } else { array.source.size() };
        let bar = show::Bytes::new(&format!("sending {}", array.name), size);
        let blob = client.upload(&array.source, &bar).await;
        bar.clear();
        inputs.push(json!({
            "blob": blob?.hash, "whole": array.is_whole, "perItem": array.per_item,
            "overlap": array.overlap,
        }));
    }
    Ok(Value::Array(inputs))
}

async fn save(
    context: &Context,
    client: &Client,
    job: u64,
    layout: &Layout,
    sink: &mut Sink,
) -> Result<(), Fail> {
    if let Some((dtype, shape)) = &layout.npy {
        sink.write(&npy::header(*dtype, shape))?;
    }
    let bar = show::Bytes::new("fetching the result", if context.json { 0 } else { layout.bytes });
    let mut got = 0;
    let fetched = client
        .result(job, &bar, |piece| {
            got += piece.len() as u64;
            sink.write(piece)
        })
        .await;
    bar.clear();
    fetched?;
    if got != layout.bytes {
        let wanted = layout.bytes;
        return Err(Fail::world(
            "bad_answer",
            format!("the result has {got} bytes instead of {wanted}"),
        ));
    }
    Ok(())
}
