//! The HTTP surface, one file for each concern. Every route is registered together with its part of the
//! OpenAPI document, so that neither can be forgotten.

mod answers;
mod beside;
mod blobs;
mod chat;
mod crew_data;
mod digest;
mod events;
mod extract;
mod failures;
mod field;
mod guard;
mod inputs;
mod jobs;
mod kernels;
mod left;
mod meta;
mod models;
mod node_data;
mod nodes;
mod npy;
mod pages;
mod partial;
mod picture;
mod range;
mod receipt;
mod result;
mod services;
mod submit_job;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use axum::Router;
use axum::middleware::from_fn_with_state;
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use self::guard::Schemes;
use crate::auth::Auth;
use crate::driver::handle::Handle;
use crate::error::{ApiError, RequestError};
use crate::fields::Fields;
use crate::keys::Signer;
use crate::language::Languages;
use crate::network::Networks;
use crate::options::Urls;
use crate::quic::Offered;
use crate::relay::Relay;
use crate::store::blobs::Blobs;
use crate::store::pieces::Pieces;
use shoal_kinds::plan::Intake;

/// What every request may need.
#[derive(Clone)]
pub(crate) struct App(Arc<Shared>);

pub(crate) struct Shared {
    pub(crate) auth: Auth,
    pub(crate) blobs: Blobs,
    pub(crate) results: std::path::PathBuf,
    pub(crate) signer: Arc<Signer>,
    pub(crate) pieces: Pieces,
    /// Checkpoints of simulations.
    pub(crate) kept: Blobs,
    pub(crate) fields: Arc<Fields>,
    pub(crate) networks: Networks,
    /// A proxy on this machine says who really asks.
    pub(crate) behind_proxy: bool,
    pub(crate) driver: Handle,
    pub(crate) relay: Relay,
    /// Where nodes may send frames by QUIC.
    pub(crate) quic: Offered,
    pub(crate) intake: Arc<dyn Intake>,
    pub(crate) languages: Languages,
    pub(crate) urls: Urls,
    pub(crate) last_conn: AtomicU64,
    /// Turns true when the coordinator stops: streams without an end of their own end then.
    pub(crate) closing: tokio::sync::watch::Receiver<bool>,
    /// Held by sockets while they live; weak here, because this outlives them.
    pub(crate) alive: tokio::sync::mpsc::WeakSender<()>,
}

impl App {
    pub(crate) fn new(shared: Shared) -> App {
        App(Arc::new(shared))
    }
}

impl std::ops::Deref for App {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.0
    }
}

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Shoal",
        description = "Turns the devices people already have into one computer. Clients send `Authorization: Bearer KEY`; nodes send the session of their connection.",
        license(name = "MIT OR Apache-2.0", identifier = "MIT OR Apache-2.0")
    ),
    modifiers(&Schemes),
    tags(
        (name = "blobs", description = "Bytes by their BLAKE3 hash"),
        (name = "jobs", description = "Submit, watch, cancel"),
        (name = "results", description = "What jobs gave"),
        (name = "services", description = "Programs that nodes keep ready for requests"),
        (name = "models", description = "Models, by the Open Inference Protocol"),
        (name = "chat", description = "Language models, by OpenAI's API"),
        (name = "nodes", description = "Who computes"),
        (name = "events", description = "Server-sent events"),
        (name = "node", description = "For nodes"),
        (name = "meta", description = "About the coordinator"),
        (name = "pages", description = "For people")
    )
)]
struct Document;

/// All routes and the document that describes them.
fn documented(app: &App) -> OpenApiRouter<App> {
    let keyed = OpenApiRouter::new()
        .merge(blobs::routes())
        .merge(beside::routes())
        .merge(jobs::routes())
        .merge(kernels::routes())
        .merge(inputs::routes())
        .merge(result::routes())
        .merge(answers::routes())
        .merge(failures::routes())
        .merge(left::routes())
        .merge(npy::routes())
        .merge(partial::routes())
        .merge(picture::routes())
        .merge(field::routes())
        .merge(receipt::routes())
        .merge(nodes::routes())
        .merge(events::routes())
        .merge(submit_job::routes())
        .merge(services::routes())
        .merge(models::routes())
        .merge(chat::routes())
        .route_layer(from_fn_with_state(app.clone(), guard::with_key));
    let for_nodes = OpenApiRouter::new()
        .merge(node_data::routes())
        .merge(beside::node_routes())
        .merge(crew_data::routes())
        .route_layer(from_fn_with_state(app.clone(), guard::with_session))
        .routes(routes!(crate::socket::node_socket));
    OpenApiRouter::with_openapi(Document::openapi())
        .merge(keyed)
        .merge(for_nodes)
        .merge(meta::routes())
        .merge(pages::routes())
}

pub(crate) fn router(app: App) -> Router {
    let (router, document) = documented(&app).split_for_parts();
    let document = meta::Served::new(&document);
    router
        .layer(axum::Extension(document))
        .fallback(pages::other)
        .method_not_allowed_fallback(async || ApiError::from(RequestError::NoSuchMethod))
        .layer(axum::extract::DefaultBodyLimit::disable())
        .layer(guard::cors())
        .with_state(app)
}
