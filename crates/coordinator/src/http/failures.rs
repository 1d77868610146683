//! The inputs on which a program failed: how it ended, and the end of its stderr.

use std::io;

use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use shoal_kinds::form::End;
use shoal_protocol::{Failure, JobId, LimitKind, Limits};
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::App;
use super::extract::{Path, Query};
use super::jobs::{number, parse};
use super::left::{self, Noted};
use super::result::open;
use crate::driver::event::Merged;
use crate::error::{ApiError, JobError};
use shoal_api::{ErrorJson, FailureJson, FailuresJson, LimitJson};

/// Told at once: with the ends of stderr at most two MiB.
const MOST: usize = 1000;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(get_failures))
}

#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct Which {
    /// Leave out the items before this one. An answer lists 1000 failures at most, and `next` says where the rest begin.
    #[param(value_type = Option<u64>)]
    from: Option<String>,
}

/// The inputs on which the program failed
///
/// Exec: of all runs so far, those that trapped, went over a limit or ended with an exit code that is not in `okExit`. Other kinds have none.
#[utoipa::path(
    get, path = "/api/v1/jobs/{id}/failures", tag = "results", security(("key" = [])),
    params(("id" = u64, Path), Which),
    responses(
        (status = 200, body = FailuresJson),
        (status = 400, description = "`from` is no number", body = ErrorJson),
        (status = 401, body = ErrorJson),
        (status = 404, body = ErrorJson),
    )
)]
async fn get_failures(
    State(app): State<App>,
    Path(id): Path<String>,
    Query(which): Query<Which>,
) -> Result<Json<FailuresJson>, ApiError> {
    let id = parse(&id)?;
    let from = which.from.map(|from| number("from", &from)).transpose()?.unwrap_or(0);
    let merged = app.driver.merged(id).await?.ok_or(JobError::Missing { job: id.0 })?;
    let work = move || list(&app, id, &merged, from);
    let listed = tokio::task::spawn_blocking(work).await;
    let listed = listed.map_err(|error| JobError::Disk(io::Error::other(error)))?;
    Ok(Json(listed?))
}

/// Why a run failed, in a sentence.
pub(super) fn why(end: End, stderr: &str, limits: &Limits) -> String {
    match (words(end, limits), stderr.trim()) {
        (end, "") => format!("it failed: {end}"),
        (end, stderr) => format!("it failed: {end}; the end of its stderr: {stderr}"),
    }
}

/// How a run ended, with the limit it went over.
fn words(end: End, limits: &Limits) -> String {
    let End::Limit(which) = end else { return end.to_string() };
    let allowed = match which {
        LimitKind::Time => limits.time.0,
        LimitKind::Memory => limits.memory,
        LimitKind::Output => limits.output,
    };
    Failure::Limit { item: None, which, allowed, stderr: String::new() }.to_string()
}

fn list(app: &App, id: JobId, merged: &Merged, from: u64) -> Result<FailuresJson, JobError> {
    let mut told = FailuresJson::default();
    let placed = merged.segments.iter().filter_map(|(span, place)| place.map(|it| (*span, it)));
    let mut units = placed.filter(|(span, it)| it.failed.items > 0 && span.end() > from).peekable();
    if units.peek().is_none() {
        return Ok(told);
    }
    let (file, names) = (open(app, id)?, Names::of(app, merged));
    for (span, place) in units {
        for noted in left::noted(&file, span, place).map_err(JobError::Disk)? {
            let Noted { item, .. } = noted;
            let Some(end) = noted.record.end.filter(|_| item >= from) else { continue };
            if told.failures.len() == MOST {
                told.next = Some(item);
                return Ok(told);
            }
            let (exit_code, limit) = match end {
                End::Exit(code) => (Some(code), None),
                End::Trap => (None, None),
                End::Limit(LimitKind::Time) => (None, Some(LimitJson::Time)),
                End::Limit(LimitKind::Memory) => (None, Some(LimitJson::Memory)),
                End::Limit(LimitKind::Output) => (None, Some(LimitJson::Output)),
            };
            let (input, message) = (names.name(app, merged, item), words(end, &merged.spec.limits));
            let stderr = noted.stderr(&file).map_err(JobError::Disk)?;
            told.failures.push(FailureJson { item, input, exit_code, limit, message, stderr });
        }
    }
    Ok(told)
}

/// What the user calls items.
pub(super) struct Names(Vec<String>);

impl Names {
    /// Of files, which are listed in one blob.
    pub(super) fn of(app: &App, merged: &Merged) -> Names {
        let inputs = merged.spec.work.inputs(&app.blobs);
        let files = inputs.into_iter().filter(|input| input.role == "file");
        Names(files.filter_map(|file| file.name).collect())
    }

    pub(super) fn name(&self, app: &App, merged: &Merged, item: u64) -> Option<String> {
        if self.0.is_empty() {
            return merged.spec.work.item_name(item, &merged.note, &app.blobs);
        }
        self.0.get(usize::try_from(item).ok()?).cloned()
    }
}
