//! Messages as bytes: postcard behind nothing but the enum's own number, so that a kind this build does
//! not know can be told from garbage and skipped.

use alloc::vec::Vec;
use bytes::Bytes;
use core::fmt;
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::id::{Attempt, JobId};
use crate::limit::MAX_FRAME_BYTES;
use crate::message::{FromNode, ToNode};

/// A message enum with its number of known kinds.
pub trait Wire: Serialize + DeserializeOwned {
    const KINDS: u8;

    fn encode(&self) -> Vec<u8> {
        self.encode_behind(Vec::new())
    }

    /// Behind what is there already: so bytes that a message carries are copied to where they are sent from, and nowhere
    /// else.
    fn encode_behind(&self, before: Vec<u8>) -> Vec<u8> {
        postcard::to_extend(self, before).unwrap_or_default()
    }

    fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        if bytes.len() > MAX_FRAME_BYTES {
            return Err(DecodeError::TooLarge(bytes.len()));
        }
        let kind = *bytes.first().ok_or(DecodeError::Garbled)?;
        if kind >= Self::KINDS && kind < 0x80 {
            return Err(DecodeError::UnknownKind(kind));
        }
        // Bytes after the message are fields of a newer peer: allowed.
        postcard::take_from_bytes(bytes)
            .map(|(message, _)| message)
            .map_err(|_| DecodeError::Garbled)
    }
}

impl Wire for FromNode {
    const KINDS: u8 = 14;
}

impl FromNode {
    /// The same of memory that is shared: a part of an answer stays where it came to.
    pub fn decode_shared(message: &Bytes) -> Result<FromNode, DecodeError> {
        if message.first() != Some(&ANSWER) {
            return FromNode::decode(message);
        }
        let (call, at, part, last) = fields::<(Attempt, u64, &[u8], bool)>(message)?;
        Ok(FromNode::Answer { call, at, part: held(message, part), last })
    }
}

impl Wire for ToNode {
    const KINDS: u8 = 17;
}

impl ToNode {
    /// The same of memory that is shared: the body of a request stays where it came to.
    pub fn decode_shared(message: &Bytes) -> Result<ToNode, DecodeError> {
        match message.first() {
            Some(&ASK) => {
                let (call, job, body, rest) = fields::<(Attempt, JobId, &[u8], u64)>(message)?;
                Ok(ToNode::Ask { call, job, body: held(message, body), rest })
            }
            Some(&ASK_MORE) => {
                let (call, body) = fields::<(Attempt, &[u8])>(message)?;
                Ok(ToNode::AskMore { call, body: held(message, body) })
            }
            _ => ToNode::decode(message),
        }
    }

    /// [`ToNode::AskMore`] but for its body of this length, which must follow: so it is sent from where it lies.
    pub fn ask_more_behind(call: Attempt, length: usize, before: Vec<u8>) -> Vec<u8> {
        postcard::to_extend(&(ASK_MORE, call, length), before).unwrap_or_default()
    }
}

/// Numbers of the kinds that carry megabytes, by their places in the lists.
const ANSWER: u8 = 13;
const ASK: u8 = 14;
const ASK_MORE: u8 = 15;

/// What a message is made of, behind the number of its kind.
fn fields<'a, T: Deserialize<'a>>(message: &'a [u8]) -> Result<T, DecodeError> {
    if message.len() > MAX_FRAME_BYTES {
        return Err(DecodeError::TooLarge(message.len()));
    }
    let read = postcard::take_from_bytes(message.get(1..).unwrap_or_default());
    read.map(|(fields, _)| fields).map_err(|_| DecodeError::Garbled)
}

/// Bytes of a message, where they came to if they are most of it. What is counted is their length, so they must not keep
/// much more memory from being freed: whatever stands behind a message's fields is allowed, and a stranger may send it.
fn held(message: &Bytes, part: &[u8]) -> Bytes {
    if part.len() >= message.len() / 2 {
        message.slice_ref(part)
    } else {
        Bytes::copy_from_slice(part)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecodeError {
    /// A newer peer's message: skip it.
    UnknownKind(u8),
    TooLarge(usize),
    Garbled,
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DecodeError::UnknownKind(kind) => write!(f, "a message of unknown kind {kind}"),
            DecodeError::TooLarge(size) => {
                write!(f, "a message of {size} bytes; at most {MAX_FRAME_BYTES} are allowed")
            }
            DecodeError::Garbled => f.write_str("bytes that are no message"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::caps::{Caps, Engine, GpuCaps, NodeKind};
    use crate::id::{BlobRef, Hash, NodeId, Span};
    use crate::job::{Footprint, Limits};
    use crate::message::{Finished, Lease, UnitOutput};
    use crate::swarm::{SwarmSay, SwarmTold};
    use crate::time::Micros;
    use crate::work::Work;
    use alloc::{boxed::Box, string::String, vec};
    use proptest::prelude::*;

    #[test]
    fn golden_bytes() {
        let lease = Lease { attempt: Attempt::new(1, 2), job: JobId(3), span: Span::new(4, 5) };
        let lend = ToNode::Lend(vec![lease]);
        assert_eq!(lend.encode(), [3, 1, 0x82, 0x80, 0x80, 0x80, 0x10, 3, 4, 5]);
        let done = FromNode::Done(vec![Finished {
            attempt: Attempt(7),
            took: Micros(8),
            output: UnitOutput::Inline(vec![9]),
        }]);
        assert_eq!(done.encode(), [1, 1, 7, 8, 0, 1, 9]);
        let quic = ToNode::Quic(crate::QuicOffer { port: 7420, hashes: vec![[5; 32]] });
        assert_eq!(quic.encode(), [[11, 0xfc, 0x39, 1].as_slice(), &[5; 32]].concat());
        let blob = BlobRef { hash: Hash([1; 32]), size: 2 };
        let got = FromNode::Swarm(SwarmSay::Got { blob, piece: 3, from: Some(NodeId(4)) });
        assert_eq!(got.encode(), [&[11, 2][..], &[1; 32], &[2, 3, 1, 4]].concat());
        let part = FromNode::Swarm(SwarmSay::Part { blob, has: vec![3], needs: vec![4, 5] });
        assert_eq!(part.encode(), [&[11, 0][..], &[1; 32], &[2, 1, 3, 2, 4, 5]].concat());
        let take = ToNode::Swarm(SwarmTold::Take { blob, pieces: vec![5], from: None });
        assert_eq!(take.encode(), [&[12, 0][..], &[1; 32], &[2, 1, 5, 0]].concat());
        let ask = ToNode::Ask { call: Attempt(7), job: JobId(8), body: vec![9].into(), rest: 0 };
        assert_eq!(ask.encode(), [14, 7, 8, 1, 9, 0]);
        let more = ToNode::AskMore { call: Attempt(7), body: vec![9].into() };
        assert_eq!(more.encode(), [15, 7, 1, 9]);
        assert_eq!(ToNode::Link.encode(), [16]);
        let answer =
            FromNode::Answer { call: Attempt(7), at: 3, part: vec![8, 9].into(), last: true };
        assert_eq!(answer.encode(), [13, 7, 3, 2, 8, 9, 1]);
    }

    #[test]
    fn golden_bytes_of_what_a_node_offers() {
        let gpu = GpuCaps {
            name: "g".into(),
            backend: "b".into(),
            software: true,
            memory: Some(5),
            buffer_bytes: 6,
            workgroup_invocations: 7,
            workgroup_bytes: 8,
            storage_buffers: 9,
            slots: 2,
        };
        let caps = FromNode::Caps(Caps {
            kind: NodeKind::Browser,
            name: "n".into(),
            cpu_slots: 3,
            gpu: Some(gpu),
            memory: 512,
            threads: 4,
            engines: vec![Engine::new("e", "1")],
            speed: 100,
            class: 1,
        });
        let gpu = [1, 1, b'g', 1, b'b', 1, 1, 5, 6, 7, 8, 9, 2];
        let rest = [0x80, 4, 4, 1, 1, b'e', 1, b'1', 100, 1];
        assert_eq!(caps.encode(), [&[4, 1, 1, b'n', 3][..], &gpu, &rest].concat());
        let job = ToNode::Job {
            job: JobId(1),
            name: "j".into(),
            owner: "o".into(),
            items: 2,
            work: Box::new(Work { kind: "noop".into(), body: vec![] }),
            limits: Limits { time: Micros(1), memory: 2, output: 3 },
            takes: Footprint { memory: 4, gpu_memory: 5, threads: 6 },
            signed: None,
        };
        let work = [4, b'n', b'o', b'o', b'p', 0];
        let said = [&[2, 1, 1, b'j', 1, b'o', 2][..], &work, &[1, 2, 3, 4, 5, 6, 0]];
        assert_eq!(job.encode(), said.concat());
    }

    #[test]
    fn kinds_are_counted_right() {
        let answer = FromNode::Answer { call: Attempt(1), at: 0, part: vec![2].into(), last: true };
        assert_eq!(answer.encode()[0], FromNode::KINDS - 1);
        assert_eq!(ToNode::Link.encode()[0], ToNode::KINDS - 1);
    }

    #[test]
    fn an_unknown_kind_is_told_from_garbage() {
        assert_eq!(ToNode::decode(&[99, 1, 2]), Err(DecodeError::UnknownKind(99)));
        assert_eq!(ToNode::decode(&[]), Err(DecodeError::Garbled));
        assert_eq!(ToNode::decode(&[0]), Err(DecodeError::Garbled));
    }

    #[test]
    fn a_newer_peers_extra_fields_are_skipped() {
        let welcome = ToNode::Welcome { node: NodeId(1), session: String::from("s") };
        let mut bytes = welcome.encode();
        bytes.extend([1, 2, 3]);
        assert_eq!(ToNode::decode(&bytes), Ok(welcome));
    }

    #[test]
    fn what_requests_and_answers_carry_stays_where_it_came_to() {
        let (call, job, body) = (Attempt(7), JobId(8), Bytes::from(vec![9; 300]));
        let asks = [
            ToNode::Ask { call, job, body: body.clone(), rest: 5 },
            ToNode::AskMore { call, body: body.clone() },
        ];
        let lies = |part: &Bytes, message: &Bytes| {
            let inside = message.as_ptr_range();
            inside.contains(&part.as_ptr()) && part.len() == 300
        };
        for ask in asks {
            let message = Bytes::from(ask.encode());
            let read = ToNode::decode_shared(&message).expect("a message");
            assert_eq!(read, ask);
            let (ToNode::Ask { body, .. } | ToNode::AskMore { body, .. }) = read else {
                panic!("another message");
            };
            assert!(lies(&body, &message));
        }
        for length in [0, 1, 127, 128, 70_000] {
            let body = Bytes::from(vec![3; length]);
            let before = ToNode::ask_more_behind(call, length, vec![1, 2]);
            let more = ToNode::AskMore { call, body: body.clone() }.encode();
            assert_eq!([&before[..], &body[..]].concat(), [&[1, 2][..], &more].concat());
        }
        let answer = FromNode::Answer { call, at: 3, part: body, last: true };
        let message = Bytes::from(answer.encode());
        let read = FromNode::decode_shared(&message).expect("a message");
        assert!(matches!(&read, FromNode::Answer { part, .. } if lies(part, &message)));
        assert_eq!(read, answer);
        // With much behind it, that would keep the rest too.
        let padded = Bytes::from([&message[..], &[0; 1_000]].concat());
        let read = FromNode::decode_shared(&padded).expect("a message");
        assert!(matches!(&read, FromNode::Answer { part, .. } if !lies(part, &padded)));
        assert_eq!(read, answer);
    }

    proptest! {
        #[test]
        fn shared_memory_changes_nothing_of_what_is_read(
            kind in 0u8..20,
            bytes in prop::collection::vec(any::<u8>(), 0..40),
        ) {
            let message = Bytes::from([vec![kind], bytes].concat());
            prop_assert_eq!(ToNode::decode_shared(&message), ToNode::decode(&message));
            prop_assert_eq!(FromNode::decode_shared(&message), FromNode::decode(&message));
        }

        #[test]
        fn garbage_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = ToNode::decode(&bytes);
            let _ = FromNode::decode(&bytes);
        }

        #[test]
        fn leases_survive_the_trip(raw in prop::collection::vec(any::<(u64, u64, u64, u64)>(), 0..20)) {
            let leases = raw
                .iter()
                .map(|&(a, j, s, l)| Lease { attempt: Attempt(a), job: JobId(j), span: Span::new(s, l) })
                .collect();
            let message = ToNode::Lend(leases);
            prop_assert_eq!(ToNode::decode(&message.encode()), Ok(message));
        }
    }
}
