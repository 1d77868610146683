//! Frames: what two nodes say to each other, directly or through the relay. A fixed header, then a payload.
//! The relay reads the header only; everything else is in the payload, which is sealed on the relay's way.
//!
//! | bytes | field | | bytes | field |
//! |---|---|---|---|---|
//! | 0 | version | | 16..24 | destination |
//! | 1 | kind | | 24..32 | crew |
//! | 2..4 | channel | | 32..36 | epoch |
//! | 4..8 | payload bytes | | 36..40 | reserved, 0 |
//! | 8..16 | source | | 40..48 | sequence |
//!
//! Numbers are little-endian. A sequence number is used once in each direction of a link, also when
//! the same words are said again, so that it can be the nonce of the seal.

use core::fmt;

use crate::id::{CrewId, Epoch, NodeId};
use crate::limit::MAX_LINK_FRAME;

/// The layout of the header. Raised when an older peer could misread it. No message of the coordinator's begins
/// with a byte of 128 or more, so frames and messages share a socket.
pub const FRAME_VERSION: u8 = 0xf1;
/// A frame's header, which says how long the rest is.
pub const HEADER_BYTES: usize = 48;
/// Where in the header the length of the rest is: 32 bits, little-endian.
pub const LENGTH_AT: usize = 4;
/// Where in the header the crew is: 64 bits, little-endian.
pub const CREW_AT: usize = 24;
/// Bytes on a socket that begin with this or more are a frame, and no message to or from the coordinator.
pub const FIRST_OF_FRAMES: u8 = 0x80;
/// Largest payload, seal included: what a frame has beside its header.
pub const MAX_FRAME_PAYLOAD: usize = MAX_LINK_FRAME - HEADER_BYTES;

/// What the payload is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum FrameKind {
    /// A step of the key agreement between the two nodes.
    Handshake = 1,
    /// Words of the link, sealed between the two nodes.
    Sealed = 2,
    /// Words of the link on a direct way, which has its own seal.
    Plain = 3,
}

impl FrameKind {
    fn from_byte(byte: u8) -> Option<FrameKind> {
        let kinds = [FrameKind::Handshake, FrameKind::Sealed, FrameKind::Plain];
        kinds.into_iter().find(|kind| *kind as u8 == byte)
    }
}

/// Where a frame comes from, where it goes, and what it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    pub kind: FrameKind,
    pub channel: u16,
    /// Bytes of the payload, seal included.
    pub length: u32,
    pub source: NodeId,
    pub destination: NodeId,
    pub crew: CrewId,
    pub epoch: Epoch,
    pub sequence: u64,
}

impl Header {
    pub fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[0] = FRAME_VERSION;
        bytes[1] = self.kind as u8;
        bytes[2..4].copy_from_slice(&self.channel.to_le_bytes());
        bytes[LENGTH_AT..8].copy_from_slice(&self.length.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.source.0.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.destination.0.to_le_bytes());
        bytes[CREW_AT..32].copy_from_slice(&self.crew.0.to_le_bytes());
        bytes[32..36].copy_from_slice(&self.epoch.0.to_le_bytes());
        bytes[40..48].copy_from_slice(&self.sequence.to_le_bytes());
        bytes
    }

    /// What is in the reserved bytes is a newer peer's and skipped.
    pub fn decode(bytes: &[u8; HEADER_BYTES]) -> Result<Header, FrameError> {
        if bytes[0] != FRAME_VERSION {
            return Err(FrameError::Version(bytes[0]));
        }
        let kind = FrameKind::from_byte(bytes[1]).ok_or(FrameError::UnknownKind(bytes[1]))?;
        let length = u32::from_le_bytes(part(bytes, LENGTH_AT));
        if length as usize > MAX_FRAME_PAYLOAD {
            return Err(FrameError::TooLong(length));
        }
        Ok(Header {
            kind,
            channel: u16::from_le_bytes(part(bytes, 2)),
            length,
            source: NodeId(u64::from_le_bytes(part(bytes, 8))),
            destination: NodeId(u64::from_le_bytes(part(bytes, 16))),
            crew: CrewId(u64::from_le_bytes(part(bytes, CREW_AT))),
            epoch: Epoch(u32::from_le_bytes(part(bytes, 32))),
            sequence: u64::from_le_bytes(part(bytes, 40)),
        })
    }
}

/// What the relay needs of a frame. It passes kinds it does not know, and frames as long as any message on a
/// socket; whether the payload is one is for the receiver to find out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address {
    pub source: NodeId,
    pub destination: NodeId,
    pub crew: CrewId,
    pub epoch: Epoch,
}

impl Address {
    /// Of a whole frame, whose length must be what its header says.
    pub fn read(frame: &[u8]) -> Result<Address, FrameError> {
        let (header, payload) =
            frame.split_first_chunk::<HEADER_BYTES>().ok_or(FrameError::Short(frame.len()))?;
        if header[0] != FRAME_VERSION {
            return Err(FrameError::Version(header[0]));
        }
        let length = u32::from_le_bytes(part(header, LENGTH_AT));
        if payload.len() != length as usize {
            return Err(FrameError::WrongLength { said: length, came: payload.len() });
        }
        Ok(Address {
            source: NodeId(u64::from_le_bytes(part(header, 8))),
            destination: NodeId(u64::from_le_bytes(part(header, 16))),
            crew: CrewId(u64::from_le_bytes(part(header, CREW_AT))),
            epoch: Epoch(u32::from_le_bytes(part(header, 32))),
        })
    }
}

/// Whether bytes from a socket are a frame, and no message to or from the coordinator.
pub fn is_frame(bytes: &[u8]) -> bool {
    bytes.first().is_some_and(|first| *first >= FIRST_OF_FRAMES)
}

/// A frame as it came: its header and its payload, whose length is what the header says.
pub fn split(frame: &[u8]) -> Result<(Header, &[u8]), FrameError> {
    let (header, payload) = frame.split_first_chunk().ok_or(FrameError::Short(frame.len()))?;
    let header = Header::decode(header)?;
    if payload.len() != header.length as usize {
        return Err(FrameError::WrongLength { said: header.length, came: payload.len() });
    }
    Ok((header, payload))
}

fn part<const N: usize>(bytes: &[u8; HEADER_BYTES], from: usize) -> [u8; N] {
    core::array::from_fn(|at| bytes[from + at])
}

/// Why bytes are no frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameError {
    Short(usize),
    Version(u8),
    UnknownKind(u8),
    TooLong(u32),
    WrongLength { said: u32, came: usize },
}

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FrameError::Short(size) => {
                write!(f, "a frame of {size} bytes; its header alone has {HEADER_BYTES}")
            }
            FrameError::Version(version) => {
                write!(f, "a frame of version {version}; expected {FRAME_VERSION}")
            }
            FrameError::UnknownKind(kind) => write!(f, "a frame of unknown kind {kind}"),
            FrameError::TooLong(length) => {
                write!(f, "a payload of {length} bytes; at most {MAX_FRAME_PAYLOAD} are allowed")
            }
            FrameError::WrongLength { said, came } => {
                write!(f, "a payload of {came} bytes whose header says {said}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    fn header() -> Header {
        Header {
            kind: FrameKind::Sealed,
            channel: 0x0203,
            length: 5,
            source: NodeId(6),
            destination: NodeId(7),
            crew: CrewId(8),
            epoch: Epoch(9),
            sequence: 0x0a0b,
        }
    }

    #[test]
    fn golden_bytes() {
        let expected = [
            [0xf1, 2, 3, 2, 5, 0, 0, 0],
            [6, 0, 0, 0, 0, 0, 0, 0],
            [7, 0, 0, 0, 0, 0, 0, 0],
            [8, 0, 0, 0, 0, 0, 0, 0],
            [9, 0, 0, 0, 0, 0, 0, 0],
            [0x0b, 0x0a, 0, 0, 0, 0, 0, 0],
        ];
        assert_eq!(header().encode().as_slice(), expected.concat());
    }

    #[test]
    fn what_is_no_frame_is_named() {
        let mut bytes = header().encode().to_vec();
        assert_eq!(split(&bytes[..47]), Err(FrameError::Short(47)));
        assert_eq!(split(&bytes), Err(FrameError::WrongLength { said: 5, came: 0 }));
        bytes.extend([1, 2, 3, 4, 5]);
        assert_eq!(split(&bytes), Ok((header(), [1, 2, 3, 4, 5].as_slice())));
        bytes[1] = 99;
        assert_eq!(split(&bytes), Err(FrameError::UnknownKind(99)));
        bytes[0] = 2;
        assert_eq!(split(&bytes), Err(FrameError::Version(2)));
        let long = Header { length: MAX_FRAME_PAYLOAD as u32 + 1, ..header() };
        assert_eq!(Header::decode(&long.encode()), Err(FrameError::TooLong(long.length)));
    }

    #[test]
    fn an_address_is_read_of_kinds_and_lengths_that_no_node_has() {
        let long = Header { length: MAX_FRAME_PAYLOAD as u32 + 1, ..header() };
        let mut bytes = long.encode().to_vec();
        bytes[1] = 99;
        assert!(matches!(Address::read(&bytes), Err(FrameError::WrongLength { came: 0, .. })));
        bytes.resize(HEADER_BYTES + long.length as usize, 0);
        let (source, destination) = (NodeId(6), NodeId(7));
        let address = Address { source, destination, crew: CrewId(8), epoch: Epoch(9) };
        assert_eq!(Address::read(&bytes), Ok(address));
        bytes[0] = 0xf0;
        assert_eq!(Address::read(&bytes), Err(FrameError::Version(0xf0)));
        assert_eq!(Address::read(&bytes[..40]), Err(FrameError::Short(40)));
    }

    #[test]
    fn reserved_bytes_are_skipped() {
        let mut bytes = header().encode();
        bytes[36..40].fill(0xff);
        assert_eq!(Header::decode(&bytes), Ok(header()));
    }

    proptest! {
        #[test]
        fn garbage_never_panics(mut bytes in prop::collection::vec(any::<u8>(), 0..80), kind in 0u8..6) {
            let _ = (split(&bytes), Address::read(&bytes));
            if let [version, second, ..] = &mut bytes[..] {
                (*version, *second) = (FRAME_VERSION, kind);
            }
            let _ = (split(&bytes), Address::read(&bytes));
        }

        #[test]
        fn headers_survive_the_trip(numbers: [u64; 4], channel: u16, epoch: u32, length in 0..MAX_FRAME_PAYLOAD as u32) {
            let [source, destination, crew, sequence] = numbers;
            let header = Header {
                kind: FrameKind::Plain,
                channel,
                length,
                source: NodeId(source),
                destination: NodeId(destination),
                crew: CrewId(crew),
                epoch: Epoch(epoch),
                sequence,
            };
            let bytes: Vec<u8> = header.encode().to_vec();
            prop_assert_eq!(bytes.len(), HEADER_BYTES);
            prop_assert_eq!(Header::decode(&header.encode()), Ok(header));
        }
    }
}
