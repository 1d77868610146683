//! Lists of files, which travel to nodes as blobs.

use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};
use shoal_protocol::BlobRef;

use crate::plan::{NamedInput, PlanError, Store, read_whole};

/// An entry of the lists that travel to nodes as blobs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) hash: String,
    pub(super) size: u64,
}

pub(super) fn store(entries: &[Entry], store: &dyn Store) -> Result<BlobRef, PlanError> {
    let text = serde_json::to_vec(entries).map_err(|error| PlanError::Disk(error.into()))?;
    store.put(&text).map_err(PlanError::Disk)
}

/// The files of a list; the list itself, if it cannot be read any more.
pub(super) fn named(role: &'static str, list: &BlobRef, store: &dyn Store) -> Vec<NamedInput> {
    let Some(entries) = read(list, store) else {
        return [NamedInput::plain(role, list)].into();
    };
    let named = entries.into_iter().filter(|entry| !entry.name.is_empty());
    let input = |Entry { name, hash, size }| NamedInput { role, name: Some(name), hash, size };
    named.map(input).collect()
}

/// The name of an item, where the list can still be read.
pub(super) fn name_of(item: u64, list: &BlobRef, store: &dyn Store) -> Option<String> {
    let entry = read(list, store)?.into_iter().nth(usize::try_from(item).ok()?)?;
    Some(entry.name).filter(|name| !name.is_empty())
}

fn read(list: &BlobRef, store: &dyn Store) -> Option<Vec<Entry>> {
    serde_json::from_slice(&read_whole(store, *list).ok()?).ok()
}
