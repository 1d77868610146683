//! Work in plain values, for a shell whose language does not read it from bytes.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use shoal_protocol::BlobRef;

use crate::feed::InputSplit;
use crate::kind::{About, packed};

#[derive(Clone, Debug, PartialEq)]
pub enum Plain {
    Text(String),
    Number(f64),
    Truth(bool),
    Bytes(Vec<u8>),
    List(Vec<Plain>),
    /// Fields that are left out are absent, not empty.
    Object(Vec<(&'static str, Plain)>),
}

impl Plain {
    /// `{"hash", "size"}`.
    pub(crate) fn blob(blob: &BlobRef) -> Plain {
        let (hash, size) = (Plain::Text(blob.hash.to_string()), Plain::Number(blob.size as f64));
        Plain::Object([("hash", hash), ("size", size)].into())
    }

    /// Work for a GPU: its bytes, which only the engine reads, and what has to be fetched for it.
    pub(crate) fn kernel(work: &dyn About) -> Plain {
        let bytes = Plain::Bytes(packed(work));
        let kind = Plain::Text(work.name().into());
        Plain::Object([("kind", kind), ("bytes", bytes), ("inputs", Plain::feeds(work))].into())
    }

    /// What has to be fetched for a unit.
    pub(crate) fn feeds(work: &dyn About) -> Plain {
        let inputs = work.feeds().iter().map(|feed| {
            let mut fields = Vec::from([("blob", Plain::blob(&feed.blob))]);
            if let InputSplit::PerItem { bytes, reach } = feed.split {
                fields.push(("perItem", Plain::number(bytes)));
                fields.push(("reach", Plain::number(reach)));
            }
            Plain::Object(fields)
        });
        Plain::List(inputs.collect())
    }

    pub(crate) fn number(number: u32) -> Plain {
        Plain::Number(number.into())
    }
}
