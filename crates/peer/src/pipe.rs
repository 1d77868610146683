//! What an application says to the node that carries for it, and hears from it, over two pipes: `shoal talk --pipe` is
//! that node. A record is its length, a kind, the peer's number, which meeting with it is meant, a channel, and bytes.

use std::io::{self, Read, Write};

use shoal_protocol::limit::MAX_MESSAGE_BYTES;

/// Kind, peer, meeting and channel.
const HEAD_BYTES: usize = 13;
/// Longest record: the longest message of a link.
const MAX_RECORD_BYTES: usize = HEAD_BYTES + MAX_MESSAGE_BYTES as usize;

/// From the application to its node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToCarrier {
    /// Call that node. Leads to `Met` or `NotMet`.
    Meet { peer: u64 },
    /// Carry this, whole and in order on its channel. Of a meeting that is over nothing is carried.
    Say { peer: u64, meeting: u16, channel: u16, message: Vec<u8> },
    /// Nothing more is said to that node, or heard, until they meet anew.
    Part { peer: u64, meeting: u16 },
}

/// From the node to its application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FromCarrier {
    /// In the pool, with this number.
    Joined {
        node: u64,
    },
    /// They can talk, whoever called.
    Met {
        peer: u64,
        meeting: u16,
    },
    /// There is no such node, or it takes no calls now.
    NotMet {
        peer: u64,
    },
    Heard {
        peer: u64,
        channel: u16,
        message: Vec<u8>,
    },
    /// What is said from now on goes directly, or through the relay.
    Using {
        peer: u64,
        direct: bool,
    },
    /// It left, or was left.
    Parted {
        peer: u64,
    },
    /// More was to be said than the link takes, and something was not.
    Refused {
        peer: u64,
    },
}

impl ToCarrier {
    pub fn write(&self, to: &mut impl Write) -> io::Result<()> {
        match self {
            ToCarrier::Meet { peer } => put(to, (1, *peer, 0, 0), &[]),
            ToCarrier::Say { peer, meeting, channel, message } => {
                put(to, (2, *peer, *meeting, *channel), message)
            }
            ToCarrier::Part { peer, meeting } => put(to, (3, *peer, *meeting, 0), &[]),
        }
    }

    /// `None` where the pipe ends between two records.
    pub fn read(from: &mut impl Read) -> io::Result<Option<ToCarrier>> {
        let Some(Record { kind, peer, meeting, channel, bytes }) = take(from)? else {
            return Ok(None);
        };
        Ok(Some(match kind {
            1 => ToCarrier::Meet { peer },
            2 => ToCarrier::Say { peer, meeting, channel, message: bytes },
            3 => ToCarrier::Part { peer, meeting },
            _ => return Err(unknown(kind)),
        }))
    }
}

impl FromCarrier {
    pub fn write(&self, to: &mut impl Write) -> io::Result<()> {
        match self {
            FromCarrier::Joined { node } => put(to, (1, *node, 0, 0), &[]),
            FromCarrier::Met { peer, meeting } => put(to, (2, *peer, *meeting, 0), &[]),
            FromCarrier::NotMet { peer } => put(to, (3, *peer, 0, 0), &[]),
            FromCarrier::Heard { peer, channel, message } => {
                put(to, (4, *peer, 0, *channel), message)
            }
            FromCarrier::Using { peer, direct } => put(to, (5, *peer, 0, u16::from(*direct)), &[]),
            FromCarrier::Parted { peer } => put(to, (6, *peer, 0, 0), &[]),
            FromCarrier::Refused { peer } => put(to, (7, *peer, 0, 0), &[]),
        }
    }

    /// `None` where the pipe ends between two records.
    pub fn read(from: &mut impl Read) -> io::Result<Option<FromCarrier>> {
        let Some(Record { kind, peer, meeting, channel, bytes }) = take(from)? else {
            return Ok(None);
        };
        Ok(Some(match kind {
            1 => FromCarrier::Joined { node: peer },
            2 => FromCarrier::Met { peer, meeting },
            3 => FromCarrier::NotMet { peer },
            4 => FromCarrier::Heard { peer, channel, message: bytes },
            5 => FromCarrier::Using { peer, direct: channel != 0 },
            6 => FromCarrier::Parted { peer },
            7 => FromCarrier::Refused { peer },
            _ => return Err(unknown(kind)),
        }))
    }
}

struct Record {
    kind: u8,
    peer: u64,
    meeting: u16,
    channel: u16,
    bytes: Vec<u8>,
}

fn put(
    to: &mut impl Write,
    (kind, peer, meeting, channel): (u8, u64, u16, u16),
    bytes: &[u8],
) -> io::Result<()> {
    let length = HEAD_BYTES + bytes.len();
    check(length)?;
    let mut head = [0; 4 + HEAD_BYTES];
    head[..4].copy_from_slice(&(length as u32).to_le_bytes());
    head[4] = kind;
    head[5..13].copy_from_slice(&peer.to_le_bytes());
    head[13..15].copy_from_slice(&meeting.to_le_bytes());
    head[15..].copy_from_slice(&channel.to_le_bytes());
    to.write_all(&head)?;
    to.write_all(bytes)
}

fn take(from: &mut impl Read) -> io::Result<Option<Record>> {
    let mut length = [0; 4];
    // A pipe that ends here ends well; one that ends later was cut.
    loop {
        match from.read(&mut length[..1]) {
            Ok(0) => return Ok(None),
            Ok(_) => break,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    from.read_exact(&mut length[1..])?;
    let length = u32::from_le_bytes(length) as usize;
    check(length)?;
    let (mut kind, mut peer, mut meeting, mut channel) = ([0], [0; 8], [0; 2], [0; 2]);
    from.read_exact(&mut kind)?;
    from.read_exact(&mut peer)?;
    from.read_exact(&mut meeting)?;
    from.read_exact(&mut channel)?;
    let mut bytes = vec![0; length - HEAD_BYTES];
    from.read_exact(&mut bytes)?;
    let (peer, kind) = (u64::from_le_bytes(peer), kind[0]);
    let (meeting, channel) = (u16::from_le_bytes(meeting), u16::from_le_bytes(channel));
    Ok(Some(Record { kind, peer, meeting, channel, bytes }))
}

fn check(length: usize) -> io::Result<()> {
    if (HEAD_BYTES..=MAX_RECORD_BYTES).contains(&length) {
        return Ok(());
    }
    let message =
        format!("a record of {length} bytes: expected {HEAD_BYTES} to {MAX_RECORD_BYTES}");
    Err(io::Error::new(io::ErrorKind::InvalidData, message))
}

fn unknown(kind: u8) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("a record of the unknown kind {kind}"))
}
