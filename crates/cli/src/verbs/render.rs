//! `shoal render`: a kernel over the tiles of a picture.

use std::path::Path;
use std::time::Instant;

use shoal_engine::intake::EngineIntake;
use shoal_kinds::plan::Intake;

use super::{Context, check_stdout, finished, params, policy, read_kernel, refused, request};
use crate::args::Render;
use crate::client::Sink;
use crate::fail::Fail;
use crate::interrupt::Interrupts;
use crate::picture::Picture;
use crate::show;

pub(super) async fn run(
    context: &Context,
    args: Render,
    interrupts: &Interrupts,
) -> Result<(), Fail> {
    check_stdout(context, &args.output)?;
    check_extension(&args.output)?;
    let began = Instant::now();
    let wgsl = read_kernel(&args.kernel)?;
    let params = params(&args.kernel_args.params)?;
    EngineIntake
        .render_kernel(&wgsl, args.kernel_args.entry.as_deref(), &params)
        .map_err(|error| refused(&args.kernel, error))?;
    let mut sink = Sink::create(&args.output)?;

    let client = context.client(&args.server)?;
    let (width, height) = args.size;
    let mut request = request("render", &args.kernel, &args.job)?;
    policy::add(context, &client, &args.job.policy, wgsl.as_bytes(), &mut request).await?;
    request.insert("wgsl".into(), wgsl.into());
    request.insert("width".into(), width.into());
    request.insert("height".into(), height.into());
    request.insert("samples".into(), args.samples.into());
    request.insert("params".into(), params.into());
    if let Some(tile) = args.tile {
        request.insert("tile".into(), tile.into());
    }
    if let Some(entry) = &args.kernel_args.entry {
        request.insert("entry".into(), entry.clone().into());
    }
    let job = context.run(&client, &request.into(), interrupts).await?;

    let about =
        job.render.as_ref().ok_or_else(|| Fail::world("bad_answer", "the job is not a picture"))?;
    let mut picture = Picture::new(about)?;
    let bar =
        show::Bytes::new("fetching the picture", if context.json { 0 } else { picture.bytes() });
    let fetched = client.result(job.id, &bar, |piece| picture.push(piece)).await;
    bar.clear();
    fetched?;
    sink.write(&picture.png()?)?;
    sink.finish()?;
    finished(context, &job, Some(&args.output), began, &format!("{width} × {height} pixels"))
}

/// Pictures are PNG files: a name that says otherwise would mislead whoever opens it.
pub(super) fn check_extension(output: &Path) -> Result<(), Fail> {
    match output.extension() {
        Some(extension) if !extension.eq_ignore_ascii_case("png") => Err(Fail::input(format!(
            "cannot write {}: pictures are PNG files, so name it .png",
            output.display()
        ))),
        _ => Ok(()),
    }
}
