//! What Shoal writes into a model's own metadata, so that it travels with the file: how a model is cut, and which part
//! of it a slice is. Plain JSON, for whoever looks.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::error::MetadataError;
use crate::limit::{MOST_METADATA_BYTES, MOST_PARTS};
use crate::model::Model;
use crate::parts::Parts;
use crate::wire::Pieces;

pub(crate) const PARTS: &str = "shoal.parts";
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
    /// The file with this way to cut it in its metadata.
    pub fn with_parts(&self, parts: &Parts) -> Pieces {
        // Numbers and names: nothing that JSON could not say.
        self.with_metadata(PARTS, &serde_json::to_string(parts).unwrap_or_default())
    }

    /// The way to cut it that was written into the file, if there is one.
    pub fn parts(&self) -> Result<Option<Parts>, MetadataError> {
        let Some(parts) = self.note::<Parts>(PARTS)? else { return Ok(None) };
        let last = self.steps().len();
        let follow = parts.parts.windows(2).all(|two| two[0].to == two[1].from);
        let ends =
            (parts.parts.first().map(|part| part.from), parts.parts.last().map(|part| part.to));
        let is_whole = follow
            && ends == (Some(0), Some(last))
            && parts.parts.iter().all(|part| part.from < part.to)
            && parts.parts.len() <= MOST_PARTS;
        match is_whole {
            true => Ok(Some(parts)),
            false => Err(MetadataError {
                key: PARTS,
                why: format!("its parts are not a row from 0 to {last}"),
            }),
        }
    }

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
