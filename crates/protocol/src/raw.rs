//! Bytes in one piece instead of one by one, as serde would take a `Vec<u8>`: on the wire it is the same, and bodies of
//! requests and results are megabytes. For fields that are `Vec<u8>` or [`bytes::Bytes`], by `#[serde(with = "raw")]`.

use alloc::vec::Vec;
use core::fmt;
use serde::de::{Error, Visitor};
use serde::{Deserializer, Serializer};

pub fn serialize<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
    to.serialize_bytes(bytes)
}

pub fn deserialize<'de, D, B>(from: D) -> Result<B, D::Error>
where
    D: Deserializer<'de>,
    B: From<Vec<u8>>,
{
    from.deserialize_byte_buf(Bytes).map(B::from)
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

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;
    use serde::{Deserialize, Serialize};

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct OneByOne(Vec<u8>);

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Whole(#[serde(with = "crate::raw")] Vec<u8>);

    #[test]
    fn on_the_wire_nothing_tells_it_from_a_list() {
        for length in [0, 1, 127, 128, 70_000] {
            let bytes: Vec<u8> = (0..length).map(|at| (at % 251) as u8).collect();
            let wire = postcard::to_allocvec(&OneByOne(bytes.clone())).expect("it can be written");
            assert_eq!(
                postcard::to_allocvec(&Whole(bytes.clone())).expect("it can be written"),
                wire
            );
            assert_eq!(postcard::from_bytes(&wire), Ok(Whole(bytes)));
            let cut = wire.len() - usize::from(length > 0);
            let short = postcard::from_bytes::<Whole>(&wire[..cut]);
            assert_eq!(short.is_err(), length > 0, "{length} bytes, of which one is missing");
        }
    }
}
