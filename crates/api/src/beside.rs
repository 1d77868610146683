//! What those say who share the coordinator's data folder: where bytes lie, instead of the bytes.

use serde::{Deserialize, Serialize};

/// The header that proves it: the word `beside` of `running.json`, which the coordinator makes anew at each start.
pub const BESIDE: &str = "x-shoal-beside";

/// A file of the data folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct FileJson {
    /// From the data folder on, parts of the path divided by `/`.
    pub file: String,
    /// What counts of it, in order.
    pub parts: Vec<PartJson>,
}

/// Consecutive bytes of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct PartJson {
    pub offset: u64,
    pub size: u64,
}

/// Bytes that somebody means to store.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct SizeRequest {
    pub size: u64,
}

/// A file that nobody else writes: to be made, filled, and given over under its hash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct DraftJson {
    /// From the data folder on, parts of the path divided by `/`.
    pub file: String,
    /// A blob of that size is stored: it may be the same, which its hash tells.
    pub may_be_here: bool,
}

/// A draft that is complete.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct DraftRequest {
    pub file: String,
}

/// A result that was written where it belongs.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct PlacedRequest {
    pub offset: u64,
    pub size: u64,
    /// BLAKE3 of the bytes, 64 hexadecimal digits.
    pub hash: String,
}
