//! How a crew's commands and their answers travel between a node and its GPU process. The types are the node
//! brain's, which knows no encoding; here is their shape once more, and the compiler compares.

use serde::{Deserialize, Serialize};
use shoal_node::{SimAnswer, SimCommand};
use shoal_protocol::{
    Attempt, BlobRef, CheckpointPart, Epoch, Failure, JobId, Micros, Poke, Span, UnitOutput,
};

#[derive(Serialize, Deserialize)]
#[serde(remote = "SimCommand")]
pub(super) enum Command {
    Open {
        epoch: Epoch,
        job: JobId,
        rows: Span,
        step: u64,
        kept: Vec<CheckpointPart>,
        apart: bool,
    },
    Step {
        epoch: Epoch,
        step: u64,
        #[serde(with = "raw")]
        above: Vec<u8>,
        #[serde(with = "raw")]
        below: Vec<u8>,
        poke: Option<Poke>,
    },
    Back {
        epoch: Epoch,
    },
    Keep {
        epoch: Epoch,
        step: u64,
    },
    Finish {
        epoch: Epoch,
        step: u64,
        attempt: Attempt,
    },
    Show {
        epoch: Epoch,
        step: u64,
    },
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "SimAnswer")]
pub(super) enum Answer {
    Edges {
        epoch: Epoch,
        step: u64,
        #[serde(with = "raw")]
        top: Vec<u8>,
        #[serde(with = "raw")]
        bottom: Vec<u8>,
        took: Micros,
    },
    Kept {
        epoch: Epoch,
        step: u64,
        blob: BlobRef,
    },
    Final {
        epoch: Epoch,
        output: UnitOutput,
    },
    Shown {
        epoch: Epoch,
    },
    Reduced {
        epoch: Epoch,
        step: u64,
        rows: Vec<f64>,
    },
    Failed {
        epoch: Epoch,
        failure: Failure,
    },
}

/// Bytes in one piece instead of one by one: halos pass here twice in every step.
mod raw {
    use std::fmt;

    use serde::de::{Error, Visitor};
    use serde::{Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
        to.serialize_bytes(bytes)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
        from.deserialize_byte_buf(Bytes)
    }

    struct Bytes;

    impl Visitor<'_> for Bytes {
        type Value = Vec<u8>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("bytes")
        }

        fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Vec<u8>, E> {
            Ok(bytes.to_vec())
        }

        fn visit_byte_buf<E: Error>(self, bytes: Vec<u8>) -> Result<Vec<u8>, E> {
            Ok(bytes)
        }
    }
}
