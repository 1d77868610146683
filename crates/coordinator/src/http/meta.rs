//! About the coordinator itself: is it well, what does it count, what can it do.

use std::fmt::Write;
use std::time::Duration;

use axum::Extension;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use tokio::time::timeout;
use utoipa::openapi::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::App;
use crate::driver::event::Counts;
use crate::driver::handle::Stopped;
use crate::error::{ApiError, MetricsError};
use crate::relay::RelayCounts;
use shoal_api::{ErrorJson, schema};

/// A driver that needs longer than this for a question does not keep up.
const DRIVER_WITHIN: Duration = Duration::from_secs(2);

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(healthz)).routes(routes!(metrics)).routes(routes!(openapi))
}

/// The document as it is served: written once.
#[derive(Clone)]
pub(super) struct Served(Bytes);

impl Served {
    pub(super) fn new(document: &OpenApi) -> Served {
        // The document is plain data: writing it cannot fail.
        let mut document = serde_json::to_value(document).unwrap_or_default();
        schema::inline(&mut document);
        schema::say_malformed(&mut document);
        Served(document.to_string().into())
    }
}

/// Whether the coordinator answers
#[utoipa::path(
    get, path = "/healthz", tag = "meta",
    responses(
        (status = 200, body = String, content_type = "text/plain"),
        (status = 503, description = "Degraded: the text says why; nothing new is taken until that is over", body = String, content_type = "text/plain"),
    )
)]
async fn healthz(State(app): State<App>) -> Response {
    let degraded =
        |why: &str| (StatusCode::SERVICE_UNAVAILABLE, format!("degraded: {why}\n")).into_response();
    if let Some(trouble) = app.driver.trouble() {
        return degraded(&trouble.to_string());
    }
    // Through the driver, because a coordinator whose driver hangs is not well.
    match timeout(DRIVER_WITHIN, app.driver.counts()).await {
        Ok(Ok(_)) => "ok".into_response(),
        Ok(Err(Stopped)) => degraded("the coordinator is stopping"),
        Err(_elapsed) => match app.driver.trouble() {
            Some(trouble) => degraded(&trouble.to_string()),
            None => degraded("the coordinator is too busy to answer"),
        },
    }
}

/// Counters for Prometheus
#[utoipa::path(
    get, path = "/metrics", tag = "meta",
    responses(
        (status = 200, body = String, content_type = "text/plain"),
        (status = 503, description = "It is stopping, or cannot answer now", body = ErrorJson),
    )
)]
async fn metrics(State(app): State<App>) -> Result<Response, ApiError> {
    let counts = timeout(DRIVER_WITHIN, app.driver.counts()).await;
    let busy = |_elapsed| MetricsError::Busy { trouble: app.driver.trouble() };
    let mut text = render(&counts.map_err(busy)??);
    text.push_str(&relayed(&app.relay.counts()));
    text.push_str(&total(
        "shoal_blob_bytes_served_total",
        "Bytes of blobs given to nodes",
        app.pieces.served(),
    ));
    let kind = [(header::CONTENT_TYPE, "text/plain; version=0.0.4")];
    Ok((StatusCode::OK, kind, text).into_response())
}

/// This document
#[utoipa::path(
    get, path = "/api/v1/openapi.json", tag = "meta",
    responses((status = 200, body = serde_json::Value, content_type = "application/json"))
)]
async fn openapi(Extension(Served(document)): Extension<Served>) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], document).into_response()
}

fn render(counts: &Counts) -> String {
    let trips = counts.round_trip_micros as f64 / 1e6;
    let seconds = counts.commit_micros as f64 / 1e6;
    let lines: [(&str, &str, &str, f64); 21] = [
        ("shoal_nodes", "gauge", "Connected nodes", counts.nodes as f64),
        ("shoal_jobs", "gauge", "Jobs that are known", counts.jobs as f64),
        ("shoal_jobs_open", "gauge", "Jobs that are running", counts.jobs_open as f64),
        ("shoal_jobs_submitted_total", "counter", "Jobs taken in", counts.jobs_submitted as f64),
        ("shoal_units_merged_total", "counter", "Units merged", counts.units_merged as f64),
        ("shoal_units_failed_total", "counter", "Failures of units", counts.units_failed as f64),
        (
            "shoal_units_checked_total",
            "counter",
            "Units that another device checked",
            counts.units_checked as f64,
        ),
        (
            "shoal_answers_rejected_total",
            "counter",
            "Wrong answers",
            counts.answers_rejected as f64,
        ),
        (
            "shoal_units_taken_back_total",
            "counter",
            "Merged units undone",
            counts.units_taken_back as f64,
        ),
        (
            "shoal_comparisons_total",
            "counter",
            "Answers compared byte for byte",
            counts.comparisons as f64,
        ),
        (
            "shoal_late_copies_total",
            "counter",
            "Copies lent because others were late, in ended jobs",
            counts.late_copies as f64,
        ),
        ("shoal_round_trips_total", "counter", "Pings that came back", counts.round_trips as f64),
        ("shoal_round_trip_seconds_total", "counter", "Time those took", trips),
        ("shoal_driver_batches_total", "counter", "Batches of the driver", counts.batches as f64),
        ("shoal_driver_events_total", "counter", "Events of the driver", counts.events as f64),
        ("shoal_commit_seconds_total", "counter", "Time in making facts durable", seconds),
        (
            "shoal_blob_bytes_exchanged_total",
            "counter",
            "Bytes of blobs that went from node to node",
            counts.blob_bytes as f64,
        ),
        (
            "shoal_blobs_shared",
            "gauge",
            "Stored blobs that nodes have or need and give each other",
            counts.blobs_known as f64,
        ),
        ("shoal_crews", "gauge", "Crews at work", counts.crews as f64),
        ("shoal_epochs_total", "counter", "Changes of crews' members", counts.epochs as f64),
        ("shoal_disk_full", "gauge", "1 while the disk is full", f64::from(counts.disk_full)),
    ];
    let mut text = String::new();
    for (name, kind, help, value) in lines {
        // Writing to a String cannot fail.
        let _ = write!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}\n");
    }
    text
}

fn total(name: &str, help: &str, value: u64) -> String {
    format!("# HELP {name} {help}\n# TYPE {name} counter\n{name} {value}\n")
}

/// What nodes said to each other through the coordinator.
fn relayed(counts: &RelayCounts) -> String {
    let mut text = String::new();
    let totals = [
        ("shoal_relay_frames_total", "Frames passed on between nodes", counts.frames),
        ("shoal_relay_bytes_total", "Bytes of those", counts.bytes),
        ("shoal_relay_quic_in_bytes_total", "Of those, came by QUIC", counts.quic_in),
        ("shoal_relay_quic_out_bytes_total", "Of those, left by QUIC", counts.quic_out),
        ("shoal_relay_quic_opened_total", "Ways by QUIC", counts.quic_opened),
        ("shoal_relay_quic_refused_total", "Strangers by QUIC", counts.quic_refused),
    ];
    for (name, help, value) in totals {
        text.push_str(&total(name, help, value));
    }
    let name = "shoal_relay_dropped_total";
    let _ = write!(text, "# HELP {name} Frames not passed on\n# TYPE {name} counter\n");
    for (reason, value) in counts.dropped() {
        let _ = writeln!(text, "{name}{{reason=\"{reason}\"}} {value}");
    }
    text
}
