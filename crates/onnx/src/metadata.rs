//! What Shoal writes into a slice's own metadata, so that it travels with the file: which part of a model it is. Plain
//! JSON, for whoever looks.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::error::MetadataError;
use crate::limit::MOST_METADATA_BYTES;
use crate::model::Model;

pub(crate) const SLICE: &str = "shoal.slice";

/// What a slice's file says of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SliceNote {
    /// Positions in the model it was cut from.
    pub from: usize,
    pub to: usize,
    /// The model's last position.
    pub steps: usize,
    /// As in [`Slice`](crate::Slice).
    pub takes: Vec<String>,
    pub gives: Vec<String>,
    pub passes: Vec<String>,
}

impl fmt::Display for SliceNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&serde_json::to_string(self).map_err(|_| fmt::Error)?)
    }
}

impl Model {
    /// Which part of a model this is, if it is one.
    pub fn slice_note(&self) -> Result<Option<SliceNote>, MetadataError> {
        self.note(SLICE)
    }

    fn note<T: DeserializeOwned>(&self, key: &'static str) -> Result<Option<T>, MetadataError> {
        let Some((_, text)) = self.metadata().find(|(own, _)| *own == key) else { return Ok(None) };
        if text.len() > MOST_METADATA_BYTES {
            let why = format!("it is longer than {MOST_METADATA_BYTES} bytes");
            return Err(MetadataError { key, why });
        }
        let read = serde_json::from_str(text);
        read.map(Some).map_err(|error| MetadataError { key, why: error.to_string() })
    }
}
