//! All that is said, as schemas: the ones of the OpenAPI document, without its paths. The SDK's types are made from
//! them (`cargo xtask types`); a test of the coordinator sees to it that its document has these and no others.

use serde_json::{Map, Value, json};
use utoipa::OpenApi;
use utoipa::openapi::{Components, OpenApi as Document};

use crate::*;

/// What clients send.
#[derive(OpenApi)]
#[openapi(components(schemas(
    DraftRequest,
    JobRequest,
    KernelRequest,
    PlacedRequest,
    PokeRequest,
    ServiceRequest,
    SizeRequest,
    SubmitJobRequest
)))]
struct Requests;

/// What the coordinator says.
#[derive(OpenApi)]
#[openapi(components(schemas(
    BlobJson,
    DraftJson,
    ErrorJson,
    ExplainJson,
    ExplainServiceJson,
    FailuresJson,
    FileJson,
    LeftListJson,
    InputsJson,
    JobJson,
    JobsJson,
    KernelJson,
    LiveJson,
    MissingJson,
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

/// What the document says of requests in parts, each closed to fields that it does not know: together they would let
/// nothing through. Here every kind's request becomes one object with the fields that all kinds have.
pub fn inline(document: &mut Value) {
    let schemas = document["components"]["schemas"].clone();
    for (whole, common) in [
        ("JobRequest", Some("CommonRequest")),
        ("ServiceRequest", Some("ServiceCommon")),
        ("WorkRequest", None),
    ] {
        let kinds = schemas["WorkRequest"]["oneOf"].as_array().into_iter().flatten();
        let kinds: Vec<Value> = kinds.map(|kind| one_object(&schemas, common, kind)).collect();
        let about = schemas[whole]["description"].clone();
        let mut schema = json!({"oneOf": kinds});
        if !about.is_null() {
            schema["description"] = about;
        }
        document["components"]["schemas"][whole] = schema;
    }
}

/// One kind's request: its own fields, those of all kinds, and its name.
fn one_object(schemas: &Value, common: Option<&str>, kind: &Value) -> Value {
    let own = kind["allOf"].as_array().into_iter().flatten().map(|part| {
        let name = part["$ref"].as_str().and_then(|path| path.rsplit('/').next());
        name.map_or(part, |name| &schemas[name])
    });
    let (mut properties, mut required) = (Map::new(), Vec::new());
    for part in common.map(|name| &schemas[name]).into_iter().chain(own) {
        properties.extend(part["properties"].as_object().cloned().unwrap_or_default());
        required.extend(part["required"].as_array().cloned().unwrap_or_default());
    }
    let title = properties["kind"]["enum"][0].clone();
    json!({
        "type": "object", "title": title, "description": kind["description"],
        "properties": properties, "required": required, "additionalProperties": false,
    })
}

/// Whatever takes something can be given something that is malformed.
pub fn say_malformed(document: &mut Value) {
    let paths = document["paths"].as_object_mut().into_iter().flat_map(Map::values_mut);
    for operation in paths.filter_map(Value::as_object_mut).flat_map(Map::values_mut) {
        let takes = operation.get("requestBody").is_some() || operation.get("parameters").is_some();
        let is_ours = operation.get("security").is_some();
        if takes && is_ours && operation["responses"]["400"].is_null() {
            operation["responses"]["400"] = json!({
                "description": "A part of the path, the query, a header or the body is not what it must be",
                "content": {"application/json": {"schema": {"$ref": "#/components/schemas/ErrorJson"}}},
            });
        }
    }
}
