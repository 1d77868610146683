//! From a request to a job: the kinds plan; here stands what they need of this shell, its store and its key.

use std::io::Read;

use shoal_kinds::ServiceSpec;
use shoal_kinds::plan::{
    self, Intake, JobRequest, PlanError, Planned, ServiceRequest, SignatureJson, Store, StoreError,
    Tools,
};
use shoal_protocol::sign::code_statement;
use shoal_protocol::{BlobRef, Hash, PublicKey, Signature, Signed};

use crate::keys::{Signer, has_signed};
use crate::store::blobs::Blobs;

/// Read at a time.
const CHUNK: usize = 256 << 10;

pub(crate) fn plan(
    request: &JobRequest,
    intake: &dyn Intake,
    blobs: &Blobs,
    signer: &Signer,
) -> Result<Planned, PlanError> {
    let code = request.work.ask().code()?;
    let signed = signed(request.common.signature.as_ref(), code, signer)?;
    plan::plan(request, signed, &Tools { intake, store: blobs })
}

pub(crate) fn serve(
    request: &ServiceRequest,
    intake: &dyn Intake,
    blobs: &Blobs,
    signer: &Signer,
) -> Result<ServiceSpec, PlanError> {
    let code = request.work.ask().code()?;
    let signed = signed(request.common.signature.as_ref(), code, signer)?;
    plan::serve(request, signed, &Tools { intake, store: blobs })
}

/// The submitter's signature if there is one and it is right; else the coordinator's own, so that nodes
/// need only one rule: all code is signed.
fn signed(
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

impl Store for Blobs {
    fn find(&self, hash: Hash) -> Result<Option<BlobRef>, StoreError> {
        Ok(Blobs::find(self, hash)?)
    }

    fn read(&self, hash: Hash, take: &mut dyn FnMut(&[u8]) -> bool) -> Result<bool, StoreError> {
        let Some((mut file, _)) = self.open_blob(hash)? else { return Ok(false) };
        let mut buffer = vec![0; CHUNK];
        loop {
            let read = file.read(&mut buffer)?;
            if read == 0 || !take(&buffer[..read]) {
                return Ok(true);
            }
        }
    }

    fn put(&self, bytes: &[u8]) -> Result<BlobRef, StoreError> {
        Ok(Blobs::put(self, bytes)?)
    }

    fn drop_torn(&self, hash: Hash) {
        Blobs::drop_torn(self, hash);
    }
}
