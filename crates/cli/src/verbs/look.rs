//! `shoal jobs`, `nodes`, `watch`, `cancel` and `rm`: looking, stopping and removing.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::json;
use shoal_api::{JobJson, StateJson};

use super::Context;
use super::result::Place;
use crate::args::{Cancel, Jobs, Nodes, Rm, StderrArg, Watch};
use crate::client::{Client, Job, verdict};
use crate::fail::Fail;
use crate::interrupt::Interrupts;
use crate::show;

pub(super) async fn jobs(context: &Context, args: Jobs) -> Result<(), Fail> {
    let list = context.client(&args.server)?.jobs().await?;
    if context.json { show::json(&list) } else { show::line(&show::jobs(&list.jobs)) }
}

pub(super) async fn nodes(context: &Context, args: Nodes) -> Result<(), Fail> {
    let list = context.client(&args.server)?.nodes(args.all).await?;
    if context.json {
        return show::json(&list);
    }
    show::line(&show::nodes(&list.nodes))?;
    if list.left.is_empty() { Ok(()) } else { show::line(&show::left(&list.left)) }
}

pub(super) async fn watch(context: &Context, args: Watch) -> Result<(), Fail> {
    let client = context.client(&args.server)?.known();
    let job = client.job(args.job).await?;
    let output = args.output.as_deref();
    let place = match output {
        Some(_) => Some(Place::open(context, &client, &job, output).await?),
        None => None,
    };
    let interrupts = Interrupts::listen();
    let on = context.manner.go_on("watch", args.job);
    let stopped = || Fail::Interrupted {
        message: format!("stopped watching; job {} keeps running; to go on: {on}", args.job),
    };
    if context.json {
        let lines = show::JsonLines::default();
        let job = tokio::select! {
            job = client.until_end(job, &lines) => job?,
            () = interrupts.after(0) => return Err(stopped()),
            () = interrupts.hung_up() => return Err(Fail::HungUp),
        };
        lines.last(&job)?;
        let place = partly(context, &client, &job, (place, &args)).await?;
        let job = verdict(job, false)?;
        return match place {
            Some(place) => place.fill(context, &client, &job, output, (None, StderrArg::Few)).await,
            None => Ok(()),
        };
    }
    let bar = show::JobBar::new();
    let ended = tokio::select! {
        job = client.until_end(job, &bar) => job,
        () = interrupts.after(0) => Err(stopped()),
        () = interrupts.hung_up() => Err(Fail::HungUp),
    };
    bar.clear();
    let job = ended?;
    let place = interrupts.guard(partly(context, &client, &job, (place, &args))).await?;
    let job = verdict(job, false)?;
    if let Some(place) = place {
        let id = job.id;
        interrupts.advise(format!("job {id} is done; to fetch its result: shoal result {id}"));
        let filled = place.fill(context, &client, &job, output, (None, StderrArg::Few));
        return interrupts.guard(filled).await;
    }
    show::line(&show::jobs(std::slice::from_ref(&*job)))
}

/// Of a job that ended otherwise than done, saves what is done of it if that is wanted; then why it is not done.
async fn partly(
    context: &Context,
    client: &Client,
    job: &Job,
    (place, args): (Option<Place>, &Watch),
) -> Result<Option<Place>, Fail> {
    match (verdict(job.clone(), false), place) {
        (Err(fail), Some(place)) if args.partial => {
            Err(place.fill_partly(context, client, job, args.output.as_deref(), fail).await)
        }
        (Err(fail), _) => Err(fail),
        (Ok(_), place) => Ok(place),
    }
}

pub(super) async fn rm(context: &Context, args: Rm) -> Result<(), Fail> {
    let client = context.client(&args.server)?;
    let mut jobs = Vec::new();
    match args.older {
        None => {
            for job in &args.jobs {
                jobs.push(JobJson::clone(&*client.job(*job).await?));
            }
        }
        Some(age) => {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            let before = u64::try_from(now.saturating_sub(age).as_millis()).unwrap_or(u64::MAX);
            let is_old = |job: &&JobJson| job.ended.is_some_and(|ended| ended < before);
            jobs.extend(client.jobs().await?.jobs.iter().filter(is_old).cloned());
        }
    }
    // Looked at before any is removed, so that a mistake removes none.
    if let Some(job) = jobs.iter().find(|job| !job.state.has_ended() && !args.force) {
        let (id, name) = (job.id, &job.name);
        let message = format!(
            "job {id} ({name}) is still running: stop it first (shoal cancel {id}), or add --force"
        );
        return Err(Fail::Input { code: "still_running".into(), message });
    }
    for job in &jobs {
        if !job.state.has_ended() {
            client.cancel(job.id).await?;
        }
        client.remove(job.id).await?;
    }
    if context.json {
        let removed: Vec<u64> = jobs.iter().map(|job| job.id).collect();
        return show::json(&json!({"removed": removed}));
    }
    show::line(&match jobs.as_slice() {
        [] => "there was nothing to remove".into(),
        [one] => format!("job {} ({}) and its result were removed", one.id, one.name),
        all => format!("{} jobs and their results were removed", all.len()),
    })
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
