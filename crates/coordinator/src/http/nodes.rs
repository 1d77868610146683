//! Who computes.

use axum::Json;
use axum::extract::State;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::App;
use crate::error::ApiError;
use crate::json::{ErrorJson, NodeJson, NodesJson, OffersJson, PoolJson};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(get_nodes)).routes(routes!(get_pool))
}

/// The nodes that are connected
#[utoipa::path(
    get, path = "/api/v1/nodes", tag = "nodes", security(("key" = [])),
    responses((status = 200, body = NodesJson), (status = 401, body = ErrorJson))
)]
async fn get_nodes(State(app): State<App>) -> Result<Json<NodesJson>, ApiError> {
    Ok(Json(NodesJson { nodes: app.driver.nodes().await? }))
}

/// How to join, and what all nodes together offer
#[utoipa::path(
    get, path = "/api/v1/pool", tag = "nodes", security(("key" = [])),
    responses((status = 200, body = PoolJson), (status = 401, body = ErrorJson))
)]
async fn get_pool(State(app): State<App>) -> Result<Json<PoolJson>, ApiError> {
    let nodes = app.driver.nodes().await?;
    Ok(Json(PoolJson {
        join: app.urls.join.clone(),
        version: env!("CARGO_PKG_VERSION"),
        nodes: nodes.len() as u64,
        offers: offers(&nodes),
    }))
}

fn offers(nodes: &[NodeJson]) -> OffersJson {
    let mut offers = OffersJson::default();
    for node in nodes {
        offers.cpu_slots += u64::from(node.cpu_slots);
        let Some(gpu) = &node.gpu else { continue };
        offers.gpu_nodes += 1;
        offers.largest_buffer = offers.largest_buffer.max(gpu.buffer_bytes);
        offers.workgroup_invocations = offers.workgroup_invocations.max(gpu.workgroup_invocations);
        offers.workgroup_bytes = offers.workgroup_bytes.max(gpu.workgroup_bytes);
        offers.storage_buffers = offers.storage_buffers.max(gpu.storage_buffers);
    }
    offers
}
