//! What two connections say to each other: a line of JSON, and bytes behind it. The same words as in
//! `web/sdk/src/gpu-p2p/words.ts`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::capability::Capabilities;
use crate::error::{Code, PeerError};

/// Of the words; both ends must have the same.
pub const VERSION: u32 = 1;
/// Everything but buffers' bytes.
pub const CONTROL: u16 = 1;
/// Channels for bytes: what is below the one that crews use themselves. Buffers take turns on them.
pub const FIRST_DATA: u16 = 2;
/// How many they are.
pub const DATA_CHANNELS: u32 = 13;
/// Longest words: a shader and its buffers.
pub const MAX_WORDS_BYTES: usize = 512 << 10;

/// Which handle is meant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Claim {
    pub(crate) buffer: u32,
    pub(crate) token: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Binding {
    pub(crate) group: u32,
    pub(crate) binding: u32,
    #[serde(flatten)]
    pub(crate) claim: Claim,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Version {
    pub(crate) buffer: u32,
    pub(crate) version: u64,
}

/// One message of a buffer's bytes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Part {
    pub(crate) id: u64,
    /// Of a write.
    pub(crate) to_owner: bool,
    pub(crate) offset: u64,
    pub(crate) last: bool,
    /// Of the whole, with the last one.
    pub(crate) version: u64,
    pub(crate) hash: String,
}

/// `id` is the asker's, and comes back with the answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub(crate) enum Words {
    Hello {
        version: u32,
        #[serde(flatten)]
        can: Capabilities,
    },
    Say {
        value: Value,
    },
    Read {
        id: u64,
        have: u64,
        #[serde(flatten)]
        claim: Claim,
    },
    /// `onto`: -1 for whatever is there.
    Write {
        id: u64,
        size: u64,
        onto: i64,
        #[serde(flatten)]
        claim: Claim,
    },
    Part(Part),
    Took {
        id: u64,
        from_owner: bool,
        bytes: u64,
    },
    Same {
        id: u64,
        version: u64,
        hash: String,
    },
    Wrote {
        id: u64,
        version: u64,
    },
    Run {
        id: u64,
        code: String,
        entry_point: String,
        constants: BTreeMap<String, f64>,
        workgroups: Vec<u32>,
        bindings: Vec<Binding>,
    },
    Ran {
        id: u64,
        versions: Vec<Version>,
    },
    Failed {
        id: u64,
        code: Code,
        message: String,
    },
    Version(Version),
    Revoked {
        buffer: u32,
    },
    Bye {
        code: Code,
        message: String,
    },
}

pub(crate) fn data_channel(buffer: u32) -> u16 {
    FIRST_DATA + (buffer % DATA_CHANNELS) as u16
}

pub(crate) fn pack(words: &Words, bytes: &[u8]) -> Result<Vec<u8>, PeerError> {
    let text = serde_json::to_vec(words)
        .map_err(|error| PeerError::new(Code::Protocol, format!("this cannot be said: {error}")))?;
    if text.len() > MAX_WORDS_BYTES {
        let message =
            format!("{} bytes of words; at most {MAX_WORDS_BYTES} can be said at once", text.len());
        return Err(PeerError::new(Code::Size, message));
    }
    let mut packed = Vec::with_capacity(4 + text.len() + bytes.len());
    packed.extend((text.len() as u32).to_le_bytes());
    packed.extend(text);
    packed.extend(bytes);
    Ok(packed)
}

pub(crate) fn unpack(message: &[u8]) -> Result<(Words, &[u8]), PeerError> {
    let split = message.split_first_chunk::<4>().and_then(|(length, rest)| {
        let length = u32::from_le_bytes(*length) as usize;
        (length <= MAX_WORDS_BYTES).then(|| rest.split_at_checked(length))?
    });
    let Some((text, bytes)) = split else {
        let size = message.len();
        let message = format!("a message of {size} bytes that does not say how long its words are");
        return Err(PeerError::new(Code::Protocol, message));
    };
    let words = serde_json::from_slice(text).map_err(|error| {
        let message = format!("the peer said what is not understood here: {error}");
        PeerError::new(Code::Protocol, message)
    })?;
    Ok((words, bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pages read the same file in their tests.
    #[test]
    fn pages_and_native_applications_have_the_same_words() {
        let all: Vec<Value> =
            serde_json::from_str(include_str!("../tests/words.json")).expect("json");
        for said in all {
            let words: Words = serde_json::from_value(said.clone()).expect("words");
            let packed = pack(&words, b"bytes").expect("packed");
            assert_eq!(unpack(&packed).expect("unpacked"), (words.clone(), b"bytes".as_slice()));
            let again = serde_json::to_value(&words).expect("json");
            // Whole numbers of limits are written with a point, which is the same to a page.
            if !matches!(words, Words::Hello { .. }) {
                assert_eq!(again, said);
            }
        }
    }
}
