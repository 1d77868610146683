//! Who computes.

use axum::Json;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use qrcode::QrCode;
use qrcode::render::svg::Color;
use serde::Deserialize;
use shoal_protocol::NodeId;
use shoal_protocol::id::clip;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::App;
use super::extract::{Path, Query};
use super::jobs::number;
use crate::driver::event::Explain;
use crate::error::{ApiError, JoinCodeError, NodeError, RequestError};
use crate::relay::RelayCounts;
use shoal_api::{
    ErrorJson, ExplainJson, NodeJson, NodesJson, OffersJson, PoolBlobsJson, PoolJson, RelayJson,
    WayJson,
};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(get_nodes))
        .routes(routes!(explain_node))
        .routes(routes!(get_pool))
        .routes(routes!(get_join_code))
}

#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct Which {
    /// 1: also devices that computed here and are not connected.
    #[param(value_type = Option<String>)]
    all: Option<String>,
}

/// The nodes that are connected, and those that were
#[utoipa::path(
    get, path = "/api/v1/nodes", tag = "nodes", security(("key" = [])),
    params(Which),
    responses(
        (status = 200, body = NodesJson),
        (status = 400, body = ErrorJson),
        (status = 401, body = ErrorJson),
    )
)]
async fn get_nodes(
    State(app): State<App>,
    Query(which): Query<Which>,
) -> Result<Json<NodesJson>, ApiError> {
    let left = match which.all.as_deref() {
        None | Some("0" | "false") => Vec::new(),
        Some("" | "1" | "true") => app.driver.left().await?,
        Some(other) => {
            let (value, expected) = (clip(other.into(), 80), "0 or 1");
            return Err(RequestError::Malformed { what: "all", value, expected }.into());
        }
    };
    Ok(Json(NodesJson { nodes: app.driver.nodes().await?, left }))
}

/// Why a node is treated as it is: in sentences
#[utoipa::path(
    get, path = "/api/v1/nodes/{id}/explain", tag = "nodes", security(("key" = [])),
    params(("id" = u64, Path)),
    responses(
        (status = 200, body = ExplainJson),
        (status = 401, body = ErrorJson),
        (status = 404, body = ErrorJson),
    )
)]
async fn explain_node(
    State(app): State<App>,
    Path(id): Path<String>,
) -> Result<Json<ExplainJson>, ApiError> {
    let node = NodeId(number("the node's number", &id)?);
    let lines = app.driver.explain(Explain::Node(node)).await?;
    Ok(Json(ExplainJson { lines: lines.ok_or(NodeError::Missing { node: node.0 })? }))
}

/// How to join, and what all nodes together offer
#[utoipa::path(
    get, path = "/api/v1/pool", tag = "nodes", security(("key" = [])),
    responses((status = 200, body = PoolJson), (status = 401, body = ErrorJson))
)]
async fn get_pool(State(app): State<App>) -> Result<Json<PoolJson>, ApiError> {
    let nodes = app.driver.nodes().await?;
    let counts = app.driver.counts().await?;
    Ok(Json(PoolJson {
        join: app.urls.join.clone(),
        reachable: !app.urls.lan.is_empty(),
        key: app.signer.public().to_string(),
        version: env!("CARGO_PKG_VERSION").into(),
        nodes: nodes.len() as u64,
        offers: offers(&nodes),
        crews: counts.crews,
        epochs: counts.epochs,
        relay: relay(&app.relay.counts()),
        blobs: PoolBlobsJson {
            served: app.pieces.served(),
            exchanged: counts.blob_bytes,
            links: counts.blob_links,
        },
    }))
}

/// The join link as a QR code
#[utoipa::path(
    get, path = "/api/v1/join.svg", tag = "nodes", security(("key" = [])),
    responses(
        (status = 200, body = String, content_type = "image/svg+xml"),
        (status = 401, body = ErrorJson),
        (status = 404, description = "The link is too long for a code", body = ErrorJson),
    )
)]
async fn get_join_code(State(app): State<App>) -> Result<Response, ApiError> {
    let code = QrCode::new(&app.urls.join).map_err(|_| JoinCodeError::TooLong)?;
    // Whoever sees it may join, so no cache keeps it.
    let headers = [(header::CONTENT_TYPE, "image/svg+xml"), (header::CACHE_CONTROL, "no-store")];
    Ok((headers, code.render::<Color>().build()).into_response())
}

fn relay(counts: &RelayCounts) -> RelayJson {
    let RelayCounts { frames, bytes, quic_opened, quic_refused, .. } = *counts;
    let quic = WayJson { came: counts.quic_in, left: counts.quic_out };
    let socket = WayJson {
        came: bytes.saturating_sub(counts.quic_in),
        left: bytes.saturating_sub(counts.quic_out),
    };
    let dropped = counts.dropped().map(|(reason, count)| (reason.into(), count)).into();
    RelayJson { frames, bytes, socket, quic, quic_opened, quic_refused, dropped }
}

fn offers(nodes: &[NodeJson]) -> OffersJson {
    let mut offers = OffersJson::default();
    for node in nodes {
        offers.cpu_slots += u64::from(node.cpu_slots);
        offers.memory = offers.memory.saturating_add(node.memory);
        offers.largest_memory = offers.largest_memory.max(node.memory);
        let Some(gpu) = &node.gpu else { continue };
        offers.gpu_nodes += 1;
        offers.largest_buffer = offers.largest_buffer.max(gpu.buffer_bytes);
        offers.workgroup_invocations = offers.workgroup_invocations.max(gpu.workgroup_invocations);
        offers.workgroup_bytes = offers.workgroup_bytes.max(gpu.workgroup_bytes);
        offers.storage_buffers = offers.storage_buffers.max(gpu.storage_buffers);
    }
    offers
}
