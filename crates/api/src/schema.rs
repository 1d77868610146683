//! All that is said, as schemas: the ones of the OpenAPI document, without its paths. The SDK's types are made from
//! them (`cargo xtask types`); a test of the coordinator sees to it that its document has these and no others.

use utoipa::OpenApi;
use utoipa::openapi::{Components, OpenApi as Document};

use crate::*;

/// What clients send.
#[derive(OpenApi)]
#[openapi(components(schemas(
    JobRequest,
    KernelRequest,
    PokeRequest,
    ServiceRequest,
    SubmitJobRequest
)))]
struct Requests;

/// What the coordinator says.
#[derive(OpenApi)]
#[openapi(components(schemas(
    BlobJson,
    ErrorJson,
    ExplainJson,
    ExplainServiceJson,
    JobJson,
    JobsJson,
    KernelJson,
    LiveJson,
    ModelJson,
    NodesJson,
    PartialJson,
    PoolJson,
    ReadyJson,
    ServerJson,
    ServiceJson,
    ServicesJson,
    SignedReceiptJson,
    SubmitJobJson,
    TilesJson,
    UnitsJson
)))]
struct Answers;

/// What clients send, with all that it is made of.
pub fn requests() -> Components {
    components(Requests::openapi())
}

/// What the coordinator says, with all that it is made of.
pub fn answers() -> Components {
    components(Answers::openapi())
}

fn components(document: Document) -> Components {
    document.components.unwrap_or_default()
}
