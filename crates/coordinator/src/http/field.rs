//! The field of a simulation: looking at it while it runs, and stirring it.

use std::io::{self, Cursor};
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use image::codecs::png::{CompressionType, FilterType, PngEncoder};
use image::{ExtendedColorType, ImageEncoder};
use serde::Deserialize;
use shoal_protocol::{JobId, Poke};
use tokio::time::{sleep, timeout};
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::App;
use super::blobs::BYTES;
use super::extract::{Path, Query};
use super::jobs::{collect, number, parse};
use crate::driver::event::{CrewEvent, Event};
use crate::error::{ApiError, JobError, PokeError};
use crate::fields::Picture;
use shoal_api::{ErrorJson, PokeRequest, SimJson, StateJson};

/// Which picture an answer is, which step it shows, and its sides.
pub(super) const VERSION: HeaderName = HeaderName::from_static("x-shoal-version");
pub(super) const STEP: HeaderName = HeaderName::from_static("x-shoal-step");
pub(super) const WIDTH: HeaderName = HeaderName::from_static("x-shoal-width");
pub(super) const HEIGHT: HeaderName = HeaderName::from_static("x-shoal-height");

/// How long an asker waits for a newer picture: below what proxies cut.
const NEWS_WITHIN: Duration = Duration::from_secs(20);
/// Members go on sending pictures for this long after the last look, so that a page that asks for one after
/// the other does not make them stop and start.
const LINGER: Duration = Duration::from_secs(3);
/// A poke is six numbers.
const MAX_POKE_BYTES: usize = 4 << 10;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(get_field)).routes(routes!(post_poke))
}

#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct After {
    /// Wait for a picture newer than this (`X-Shoal-Version` of the last answer); 0 if left out.
    #[param(value_type = Option<u64>)]
    after: Option<String>,
}

/// A running simulation's newest picture, each band as last seen
///
/// As PNG, or as RGBA8 rows (`X-Shoal-Width` times `X-Shoal-Height` pixels) where `Accept` asks for
/// `application/octet-stream`. Members send pictures while somebody asks for them.
#[utoipa::path(
    get, path = "/api/v1/jobs/{id}/field", tag = "results", security(("key" = [])),
    params(("id" = u64, Path), After),
    responses(
        (status = 200, content((Vec<u8> = "image/png"), (Vec<u8> = "application/octet-stream"))),
        (status = 204, description = "No newer picture came within 20 s, or the job has ended"),
        (status = 401, body = ErrorJson),
        (status = 404, body = ErrorJson),
        (status = 409, description = "No simulation", body = ErrorJson),
    )
)]
async fn get_field(
    State(app): State<App>,
    Path(id): Path<String>,
    Query(After { after }): Query<After>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let id = parse(&id)?;
    let after = after.map(|text| number("after", &text)).transpose()?.unwrap_or(0);
    let (_, state) = simulation(&app, id).await?;
    let picture = match state {
        StateJson::Running => news(&app, id, after).await?,
        StateJson::Done | StateJson::Failed | StateJson::Cancelled => app.fields.picture(id),
    };
    match picture.filter(|picture| picture.version > after) {
        None => Ok((StatusCode::NO_CONTENT, [(VERSION, HeaderValue::from(after))]).into_response()),
        Some(picture) if wants_bytes(&headers) => {
            Ok(answer(&picture, BYTES, picture.rgba.to_vec()))
        }
        Some(picture) => {
            let drawn = picture.clone();
            let png = tokio::task::spawn_blocking(move || draw(&drawn)).await;
            let png = png.map_err(io::Error::other).and_then(|png| png).map_err(JobError::Disk)?;
            Ok(answer(&picture, "image/png", png))
        }
    }
}

/// Stirs the field of a running simulation
#[utoipa::path(
    post, path = "/api/v1/jobs/{id}/poke", tag = "jobs", security(("key" = [])),
    params(("id" = u64, Path)), request_body = PokeRequest,
    responses(
        (status = 202, description = "Passed on; it counts for a step to come"),
        (status = 400, body = ErrorJson),
        (status = 401, body = ErrorJson),
        (status = 404, body = ErrorJson),
        (status = 409, description = "No simulation, or one that does not run", body = ErrorJson),
        (status = 422, description = "No poke over this grid", body = ErrorJson),
    )
)]
async fn post_poke(
    State(app): State<App>,
    Path(id): Path<String>,
    body: Body,
) -> Result<StatusCode, ApiError> {
    let id = parse(&id)?;
    let body = collect(body, MAX_POKE_BYTES).await?;
    let (sim, state) = simulation(&app, id).await?;
    if state != StateJson::Running {
        return Err(PokeError::NotRunning { job: id.0, state: state.word() }.into());
    }
    let asked: PokeRequest =
        serde_json::from_slice(&body).map_err(|error| PokeError::Json(error.to_string()))?;
    let poke = read(&asked, &sim)?;
    app.driver.tell(Event::Crew(CrewEvent::Poke { job: id, poke })).await?;
    Ok(StatusCode::ACCEPTED)
}

async fn simulation(app: &App, id: JobId) -> Result<(SimJson, StateJson), JobError> {
    let job = app.driver.job(id).await?.ok_or(JobError::Missing { job: id.0 })?;
    let sim = job.sim.ok_or(JobError::WrongKind { job: id.0, expected: "simulation" })?;
    Ok((sim, job.state))
}

/// Waits for a picture newer than `after`; the members are told that somebody looks.
async fn news(app: &App, id: JobId, after: u64) -> Result<Option<Picture>, ApiError> {
    let mut versions = app.fields.look(id);
    let _looker = Looker { app: app.clone(), id };
    app.driver.tell(Event::Crew(CrewEvent::Watch { job: id })).await?;
    let mut closing = app.closing.clone();
    let newer = async {
        tokio::select! {
            _ = versions.wait_for(|version| *version > after) => {}
            _ = app.driver.job_end(id) => {}
            _ = closing.wait_for(|closing| *closing) => {}
        }
    };
    let _ = timeout(NEWS_WITHIN, newer).await;
    Ok(app.fields.picture(id))
}

/// Looks away when dropped, also when the asker hangs up.
struct Looker {
    app: App,
    id: JobId,
}

impl Drop for Looker {
    fn drop(&mut self) {
        let (app, id) = (self.app.clone(), self.id);
        let looks = app.fields.look_away(id);
        tokio::spawn(async move {
            sleep(LINGER).await;
            if app.fields.lose_interest(id, looks) {
                // If the driver has stopped nobody sends pictures any more.
                let _ = app.driver.tell(Event::Crew(CrewEvent::Watch { job: id })).await;
            }
        });
    }
}

fn wants_bytes(headers: &HeaderMap) -> bool {
    let accept = headers.get_all(header::ACCEPT).iter();
    accept.filter_map(|value| value.to_str().ok()).any(|value| value.contains(BYTES))
}

fn answer(picture: &Picture, kind: &'static str, bytes: Vec<u8>) -> Response {
    let mut response = Response::new(Body::from(bytes));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(VERSION, picture.version.into());
    headers.insert(STEP, picture.step.into());
    headers.insert(WIDTH, picture.width.into());
    headers.insert(HEIGHT, picture.height.into());
    response
}

fn draw(picture: &Picture) -> io::Result<Vec<u8>> {
    let mut png = Cursor::new(Vec::new());
    PngEncoder::new_with_quality(&mut png, CompressionType::Fast, FilterType::Adaptive)
        .write_image(&picture.rgba, picture.width, picture.height, ExtendedColorType::Rgba8)
        .map_err(io::Error::other)?;
    Ok(png.into_inner())
}

fn read(asked: &PokeRequest, sim: &SimJson) -> Result<Poke, PokeError> {
    let PokeRequest { at, by, radius, strength } = *asked;
    let sides = [sim.width as f32, sim.height as f32];
    let inside = |side: usize| (0.0..sides[side]).contains(&at[side]);
    if !inside(0) || !inside(1) {
        return Err(PokeError::Outside { at, width: sim.width, height: sim.height });
    }
    let longest = sides[0].max(sides[1]);
    if by.iter().any(|way| !way.is_finite() || way.abs() > longest) {
        return Err(PokeError::TooFar { by, most: longest });
    }
    if !(radius > 0.0 && radius <= longest) {
        return Err(PokeError::Radius { radius, most: longest });
    }
    if !strength.is_finite() {
        return Err(PokeError::Strength { strength });
    }
    Ok(Poke { at, by, radius, strength })
}
