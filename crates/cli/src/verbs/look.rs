//! `shoal jobs`, `nodes`, `watch` and `cancel`: looking, and stopping.

use shoal_api::StateJson;

use super::Context;
use crate::args::{Cancel, Jobs, Nodes, Watch};
use crate::client::verdict;
use crate::fail::Fail;
use crate::interrupt::Interrupts;
use crate::show;

pub(super) async fn jobs(context: &Context, args: Jobs) -> Result<(), Fail> {
    let list = context.client(&args.server)?.jobs().await?;
    if context.json { show::json(&list) } else { show::line(&show::jobs(&list.jobs)) }
}

pub(super) async fn nodes(context: &Context, args: Nodes) -> Result<(), Fail> {
    let list = context.client(&args.server)?.nodes().await?;
    if context.json { show::json(&list) } else { show::line(&show::nodes(&list.nodes)) }
}

pub(super) async fn watch(context: &Context, args: Watch) -> Result<(), Fail> {
    let client = context.client(&args.server)?;
    let job = client.job(args.job).await?;
    let interrupts = Interrupts::listen();
    let stopped =
        || Fail::Interrupted { message: "stopped watching; the job keeps running".into() };
    if context.json {
        let lines = show::JsonLines::default();
        let job = tokio::select! {
            job = client.until_end(job, &lines) => job?,
            () = interrupts.after(0) => return Err(stopped()),
        };
        lines.last(&job)?;
        return verdict(job, false).map(drop);
    }
    let bar = show::JobBar::new();
    let ended = tokio::select! {
        job = client.until_end(job, &bar) => job,
        () = interrupts.after(0) => Err(stopped()),
    };
    bar.clear();
    let job = verdict(ended?, false)?;
    show::line(&show::jobs(std::slice::from_ref(&*job)))
}

pub(super) async fn cancel(context: &Context, args: Cancel) -> Result<(), Fail> {
    let job = context.client(&args.server)?.cancel(args.job).await?;
    if context.json {
        return show::json(&job);
    }
    match job.state {
        StateJson::Cancelled | StateJson::Running => {
            show::line(&format!("job {} ({}) was stopped", job.id, job.name))
        }
        StateJson::Done | StateJson::Failed => show::line(&format!(
            "job {} ({}) had already ended: {}",
            job.id,
            job.name,
            job.state.word()
        )),
    }
}
