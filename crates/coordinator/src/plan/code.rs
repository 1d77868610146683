//! Who stands for a job's code.

use shoal_protocol::id::clip;
use shoal_protocol::sign::code_statement;
use shoal_protocol::work::map_code;
use shoal_protocol::{Hash, PublicKey, Signature, Signed};

use super::error::PlanError;
use crate::json::{ReduceJson, SignatureJson, WorkRequest};
use crate::keys::{Signer, has_signed};

/// The submitter's signature if there is one and it is right; else the coordinator's own, so that nodes
/// need only one rule: all code is signed.
pub(super) fn signed(
    given: Option<&SignatureJson>,
    code: Option<Hash>,
    signer: &Signer,
) -> Result<Option<Signed>, PlanError> {
    let Some(code) = code else {
        return if given.is_some() { Err(PlanError::NothingToSign) } else { Ok(None) };
    };
    let statement = code_statement(&code);
    let Some(SignatureJson { key, signature }) = given else {
        let (by, signature) = (signer.public(), signer.sign(&statement));
        return Ok(Some(Signed { by, signature }));
    };
    let bad = |error: String| PlanError::BadSignature(error);
    let by: PublicKey = key.parse().map_err(|error| bad(format!("\"key\": {error}")))?;
    let signature: Signature =
        signature.parse().map_err(|error| bad(format!("\"signature\": {error}")))?;
    if !has_signed(&by, &statement, &signature) {
        return Err(bad(format!(
            "the key {by} did not sign the code with the hash {code}: sign the text or the module exactly as it is submitted"
        )));
    }
    Ok(Some(Signed { by, signature }))
}

/// The hash of the code that a request brings or names.
pub(super) fn hash(work: &WorkRequest) -> Result<Option<Hash>, PlanError> {
    let of = |text: &str| Some(Hash(*blake3::hash(text.as_bytes()).as_bytes()));
    match work {
        WorkRequest::Noop(_) => Ok(None),
        WorkRequest::Map(map) => Ok(match &map.reduce {
            Some(ReduceJson::Code { wgsl }) => of(&map_code(&map.wgsl, wgsl)),
            Some(ReduceJson::Op(_)) | None => of(&map.wgsl),
        }),
        WorkRequest::Render(render) => Ok(of(&render.wgsl)),
        WorkRequest::Sim(sim) => Ok(of(&sim.source)),
        WorkRequest::Exec(exec) => exec.module.parse().map(Some).map_err(|_| PlanError::BadHash {
            what: "module".into(),
            hash: clip(exec.module.clone(), 80),
        }),
    }
}
