//! Server-sent events. A stream asks the driver for what changed since it last asked, no more often than
//! a reader can use; a slow reader gets fewer and larger steps, never a growing queue.

use std::convert::Infallible;
use std::time::Duration;

use axum::extract::State;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::Stream;
use futures_util::stream;
use serde::Serialize;
use shoal_protocol::JobId;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::App;
use super::extract::Path;
use super::jobs::parse;
use crate::error::{ApiError, JobError};
use shoal_api::{ErrorJson, StateJson, TilesJson};

/// Between two `jobs` or `job` events: five a second look smooth.
const JOBS_EVERY: Duration = Duration::from_millis(200);
/// Between two `nodes` events.
const NODES_EVERY: Duration = Duration::from_secs(1);
/// A line that keeps proxies from closing a quiet stream.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// One ahead of the reader: the follower looks again only when the reader has taken the last.
const AHEAD: usize = 1;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(get_events)).routes(routes!(get_job_events))
}

/// All jobs and nodes as they change
///
/// Event `jobs`: a list of jobs that changed (first all of them), at most 5 a second.
/// Event `nodes`: all nodes, at most one a second, when changed.
#[utoipa::path(
    get, path = "/api/v1/events", tag = "events", security(("key" = [])),
    responses(
        (status = 200, body = String, content_type = "text/event-stream"),
        (status = 401, body = ErrorJson),
    )
)]
async fn get_events(State(app): State<App>) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let (events, received) = mpsc::channel(AHEAD);
    tokio::spawn(follow_all(app, events));
    streamed(received)
}

/// One job as it changes, until it has ended
///
/// Event `job`: the job, at most 5 a second. Event `tiles` (render only): tiles newly done.
#[utoipa::path(
    get, path = "/api/v1/jobs/{id}/events", tag = "events", security(("key" = [])),
    params(("id" = u64, Path)),
    responses(
        (status = 200, body = String, content_type = "text/event-stream"),
        (status = 401, body = ErrorJson),
        (status = 404, body = ErrorJson),
    )
)]
async fn get_job_events(
    State(app): State<App>,
    Path(id): Path<String>,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, ApiError> {
    let id = parse(&id)?;
    app.driver.job(id).await?.ok_or(JobError::Missing { job: id.0 })?;
    let (events, received) = mpsc::channel(AHEAD);
    tokio::spawn(follow_job(app, id, events));
    Ok(streamed(received))
}

/// Nobody listens any more, or nobody speaks.
struct Over;

type Events = mpsc::Sender<Event>;

fn streamed(received: mpsc::Receiver<Event>) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let stream = stream::unfold(received, async |mut received| {
        let event = received.recv().await?;
        Some((Ok(event), received))
    });
    Sse::new(stream).keep_alive(KeepAlive::new().interval(KEEP_ALIVE))
}

async fn follow_all(app: App, events: Events) -> Result<(), Over> {
    let mut changes = app.driver.changes();
    let mut closing = app.closing.clone();
    let mut since = 0;
    let mut nodes_shown = None;
    let mut nodes_due = Instant::now();
    loop {
        changes.mark_unchanged();
        let (jobs, version) = app.driver.jobs(since).await.map_err(|_| Over)?;
        if since == 0 || !jobs.is_empty() {
            send(&events, "jobs", &jobs).await?;
        }
        since = version;
        if Instant::now() >= nodes_due {
            let nodes = app.driver.nodes().await.map_err(|_| Over)?;
            if nodes_shown.as_ref() != Some(&nodes) {
                send(&events, "nodes", &nodes).await?;
                nodes_shown = Some(nodes);
            }
            nodes_due = Instant::now() + NODES_EVERY;
        }
        tokio::select! {
            () = sleep(JOBS_EVERY) => {}
            () = events.closed() => return Err(Over),
        }
        // Loads fade without any event, so look again after a while even if nothing changed.
        tokio::select! {
            changed = timeout(NODES_EVERY, changes.changed()) => {
                if matches!(changed, Ok(Err(_))) { return Err(Over) }
            }
            () = events.closed() => return Err(Over),
            _ = closing.wait_for(|closing| *closing) => return Err(Over),
        }
    }
}

async fn follow_job(app: App, id: JobId, events: Events) -> Result<(), Over> {
    let mut changes = app.driver.changes();
    let mut closing = app.closing.clone();
    let mut tiles_sent = 0;
    let mut shown = String::new();
    loop {
        changes.mark_unchanged();
        // The job first: tiles done after it are then at worst told early.
        let job = app.driver.job(id).await.map_err(|_| Over)?.ok_or(Over)?;
        if job.shown.render.is_some() {
            let (spans, next) = app.driver.log(id, tiles_sent).await.map_err(|_| Over)?;
            tiles_sent = next;
            let tiles: Vec<u64> = spans.iter().flat_map(|span| span.start..span.end()).collect();
            if !tiles.is_empty() {
                send(&events, "tiles", &TilesJson { tiles }).await?;
            }
        }
        let text = serde_json::to_string(&job).map_err(|_| Over)?;
        if text != shown {
            events.send(Event::default().event("job").data(&text)).await.map_err(|_| Over)?;
            shown = text;
        }
        if job.state != StateJson::Running {
            return Ok(());
        }
        // An end is told at once, progress not more often than it can be seen.
        let ended = app.driver.job_end(id);
        tokio::select! {
            _ = timeout(JOBS_EVERY, ended) => {}
            () = events.closed() => return Err(Over),
        }
        tokio::select! {
            changed = timeout(NODES_EVERY, changes.changed()) => {
                if matches!(changed, Ok(Err(_))) { return Err(Over) }
            }
            () = events.closed() => return Err(Over),
            _ = closing.wait_for(|closing| *closing) => return Err(Over),
        }
    }
}

async fn send(events: &Events, name: &str, data: &impl Serialize) -> Result<(), Over> {
    let text = serde_json::to_string(data).map_err(|_| Over)?;
    events.send(Event::default().event(name).data(text)).await.map_err(|_| Over)
}
