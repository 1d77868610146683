//! `shoal render`: a kernel over the tiles of a picture.

use std::path::Path;
use std::time::Instant;

use shoal_api::{JobRequest, RenderRequest, WorkRequest};
use shoal_engine::intake::EngineIntake;
use shoal_kinds::plan::Intake;

use super::{
    Context, check_stdout, common, finished, params, partial, policy, read_kernel, refused,
};
use crate::args::Render;
use crate::client::{Client, Job, Sink};
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
    let sink = Sink::create(&args.output)?;

    let client = context.client(&args.server)?;
    let (width, height) = args.size;
    let mut common = common(&args.kernel, &args.job)?;
    policy::add(context, &client, &args.job.policy, wgsl.as_bytes(), &mut common).await?;
    let work = WorkRequest::Render(RenderRequest {
        wgsl,
        entry: args.kernel_args.entry,
        width,
        height,
        samples: Some(args.samples),
        tile: args.tile,
        params,
    });
    let request = JobRequest { common, work };
    let job = match context.run(&client, &request, interrupts).await {
        Ok(job) => job,
        Err(fail) => {
            let Some(job) = partial::ended(&fail) else { return Err(fail) };
            let wanted = Some(args.output.as_path()).filter(|_| args.partial);
            let save = async |client: &Client| {
                let job = client.job(job).await?;
                save(context, client, &job, sink).await
            };
            return Err(partial::deliver(context, &client, fail, wanted, save).await);
        }
    };
    save(context, &client, &job, sink).await?;
    partial::complete(context, Some(&args.output));
    finished(context, &job, Some(&args.output), began, &format!("{width} × {height} pixels"))
}

async fn save(context: &Context, client: &Client, job: &Job, mut sink: Sink) -> Result<(), Fail> {
    let about = job.shown.render;
    let about = about.ok_or_else(|| Fail::world("bad_answer", "the job is not a picture"))?;
    let mut picture = Picture::new(&about)?;
    let bar =
        show::Bytes::new("fetching the picture", if context.json { 0 } else { picture.bytes() });
    let fetched = client.result(job.id, &bar, |piece| picture.push(piece)).await;
    bar.clear();
    fetched?;
    sink.write(&picture.png()?)?;
    sink.finish()
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
