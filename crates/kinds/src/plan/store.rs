//! What planning asks of whoever keeps blobs.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use shoal_protocol::id::clip;
use shoal_protocol::{BlobRef, Hash};

use super::error::{PlanError, StoreError};

/// Stored bytes, by their hashes.
pub trait Store {
    fn find(&self, hash: Hash) -> Result<Option<BlobRef>, StoreError>;

    /// Gives a blob's bytes in order, piece by piece, until `take` wants no more. Says whether it is there.
    fn read(&self, hash: Hash, take: &mut dyn FnMut(&[u8]) -> bool) -> Result<bool, StoreError>;

    fn put(&self, bytes: &[u8]) -> Result<BlobRef, StoreError>;

    /// Its bytes are not those of its hash any more: it is gone, so that it can be uploaded again.
    fn drop_torn(&self, hash: Hash);
}

/// A hash as it was written in a request; `what` says where.
pub(crate) fn parse_hash(what: &str, text: &str) -> Result<Hash, PlanError> {
    text.parse().map_err(|_| PlanError::BadHash { what: what.into(), hash: clip(text.into(), 80) })
}

/// A blob named in a request; `what` says where.
pub(crate) fn blob(store: &dyn Store, what: &str, hash: &str) -> Result<BlobRef, PlanError> {
    let hash = parse_hash(what, hash)?;
    let found = store.find(hash).map_err(PlanError::Disk)?;
    found.ok_or(PlanError::NoBlob { what: what.to_string(), hash })
}

/// All of a blob.
pub(crate) fn read_whole(store: &dyn Store, blob: BlobRef) -> Result<Vec<u8>, PlanError> {
    let mut bytes = Vec::with_capacity(usize::try_from(blob.size).unwrap_or(0));
    let take = &mut |piece: &[u8]| {
        bytes.extend_from_slice(piece);
        true
    };
    let is_there = store.read(blob.hash, take).map_err(PlanError::Disk)?;
    let what = || String::from("blob");
    if is_there { Ok(bytes) } else { Err(PlanError::NoBlob { what: what(), hash: blob.hash }) }
}
