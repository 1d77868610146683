//! What an ended job can show for itself, signed.

use std::io;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use shoal_kinds::plan::{NamedInput, verify_words};
use shoal_kinds::{JobSpec, Kind};
use shoal_protocol::sign::receipt_statement;
use shoal_protocol::{Dtype, Hash, Time, Tolerance};
use shoal_scheduler::{JobState, Proof, Receipt, ReceiptNode, ReceiptUnit};
use tokio::sync::Semaphore;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::App;
use super::digest::output;
use super::extract::Path;
use super::jobs::parse;
use crate::driver::event::{Merged, Proven};
use crate::error::{ApiError, JobError};
use crate::store::blobs::Blobs;
use shoal_api::{
    CodeJson, ErrorJson, RECEIPT_FORMAT, ReceiptInputJson, ReceiptJson, ReceiptNodeJson,
    ReceiptOutputJson, ReceiptPolicyJson, ReceiptToleranceJson, ReceiptUnitJson, SignedReceiptJson,
    StateJson,
};

/// Receipts written at a time: one of a job with a million units takes hundreds of megabytes.
static WRITING: Semaphore = Semaphore::const_new(2);

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(get_receipt))
}

/// Who computed and who checked what, signed by the coordinator
#[utoipa::path(
    get, path = "/api/v1/jobs/{id}/receipt", tag = "results", security(("key" = [])),
    params(("id" = u64, Path)),
    responses(
        (status = 200, body = SignedReceiptJson),
        (status = 401, body = ErrorJson),
        (status = 404, body = ErrorJson),
        (status = 409, description = "The job is still running", body = ErrorJson),
        (status = 500, description = "The result is damaged: nothing is signed", body = ErrorJson),
    )
)]
async fn get_receipt(State(app): State<App>, Path(id): Path<String>) -> Result<Response, ApiError> {
    let id = parse(&id)?;
    let missing = || JobError::Missing { job: id.0 };
    let job = app.driver.job(id).await?.ok_or_else(missing)?;
    if job.state == StateJson::Running {
        return Err(JobError::NoReceipt { job: id.0 }.into());
    }
    // Never closed, so there is always a permit to come.
    let _turn = WRITING.acquire().await;
    let proven = app.driver.receipt(id).await?.ok_or_else(missing)?;
    let written = tokio::task::spawn_blocking(move || write(&app, proven)).await;
    let text = written.unwrap_or_else(|error| Err(JobError::Disk(io::Error::other(error))))?;
    let mut response = Response::new(Body::from(text));
    let kind = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    Ok(response)
}

/// The signed receipt. Its text goes out as it was signed.
fn write(app: &App, proven: Proven) -> Result<String, JobError> {
    let output = match proven.receipt.state {
        JobState::Done => output(app, &proven)?,
        JobState::Running | JobState::Failed | JobState::Cancelled => None,
    };
    let text = serde_json::to_string(&receipt_json(proven, output, &app.blobs))
        .map_err(|error| JobError::Disk(error.into()))?;
    let hash = Hash(*blake3::hash(text.as_bytes()).as_bytes());
    let (key, signature) = (app.signer.public(), app.signer.sign(&receipt_statement(&hash)));
    Ok(format!(r#"{{"key":"{key}","receipt":{text},"signature":"{signature}"}}"#))
}

fn receipt_json(proven: Proven, output: Option<ReceiptOutputJson>, blobs: &Blobs) -> ReceiptJson {
    let Proven { receipt, names, merged: Merged { spec, .. } } = proven;
    let Receipt { job, name, owner, state, items, policy, submitted, ended, nodes, units } =
        receipt;
    ReceiptJson {
        code: code(&spec),
        ended: ended.map(millis),
        format: RECEIPT_FORMAT.into(),
        inputs: inputs(&spec, blobs),
        items,
        job: job.0,
        kind: spec.work.name().into(),
        name,
        nodes: nodes.iter().zip(names).map(|(node, name)| node_json(node, name)).collect(),
        output,
        owner,
        policy: ReceiptPolicyJson {
            tolerance: tolerance(&policy.tolerance),
            verify: verify_words(policy.verify),
        },
        settings: spec.work.settings(),
        state: match state {
            JobState::Running => StateJson::Running,
            JobState::Done => StateJson::Done,
            JobState::Failed => StateJson::Failed,
            JobState::Cancelled => StateJson::Cancelled,
        },
        submitted: millis(submitted),
        units: units.into_iter().map(unit_json).collect(),
        work: work_hash(&spec.work),
    }
}

fn node_json(node: &ReceiptNode, name: String) -> ReceiptNodeJson {
    ReceiptNodeJson {
        class: (node.class != 0).then(|| format!("{:016x}", node.class)),
        identity: node.identity.map(|identity| Hash(identity.0).to_string()),
        name,
        node: node.node.0,
    }
}

fn unit_json(unit: ReceiptUnit) -> ReceiptUnitJson {
    let Proof { by, sure, vouched } = unit.proof.unwrap_or_default();
    ReceiptUnitJson {
        at: millis(unit.at),
        checked_by: by.into_iter().map(|node| node.0).collect(),
        hash: unit.place.map(|place| place.hash.to_string()),
        len: unit.span.len,
        node: unit.node.0,
        own: vouched,
        size: unit.place.map_or(0, |place| place.size),
        start: unit.span.start,
        sure,
    }
}

fn tolerance(tolerance: &Tolerance) -> ReceiptToleranceJson {
    ReceiptToleranceJson {
        abs: tolerance.abs.to_string(),
        dtype: match tolerance.dtype {
            Dtype::Bytes => "bytes",
            Dtype::Unorm8 => "unorm8",
            Dtype::F16 => "f16",
            Dtype::F32 => "f32",
        }
        .into(),
        rel: tolerance.rel.to_string(),
        ulps: tolerance.ulps,
    }
}

fn code(spec: &JobSpec) -> Option<CodeJson> {
    Some(CodeJson {
        hash: spec.work.code()?.hash.to_string(),
        signature: spec.signed.map(|signed| signed.signature.to_string()),
        signed_by: spec.signed.map(|signed| signed.by.to_string()),
    })
}

/// Of all that nodes are told to do, so that nothing that shapes the result is left open.
fn work_hash(work: &Kind) -> String {
    // Work is plain data: writing it cannot fail.
    let bytes = postcard::to_allocvec(work).unwrap_or_default();
    Hash(*blake3::hash(&bytes).as_bytes()).to_string()
}

pub(super) fn inputs(spec: &JobSpec, blobs: &Blobs) -> Vec<ReceiptInputJson> {
    let inputs = spec.work.inputs(blobs).into_iter();
    let json = |NamedInput { role, name, hash, size }| {
        let role = role.into();
        ReceiptInputJson { hash, name, role, size }
    };
    inputs.map(json).collect()
}

fn millis(time: Time) -> u64 {
    time.0 / 1_000
}
