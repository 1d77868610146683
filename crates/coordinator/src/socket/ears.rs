//! What comes from a node. Large messages are read straight to where they stay; only what came along with something
//! else is copied.

use std::fmt;
use std::io;

use bytes::BufMut;
use shoal_protocol::frame::HEADER_BYTES;
use shoal_protocol::limit::MAX_FRAME_BYTES;
use tokio::io::{AsyncRead, AsyncReadExt};

use super::parcel::Parcel;
use super::ws::{Head, HeadError, Kind, MOST_CLIENT_HEAD, MOST_HEAD, unmask};

/// Room for what is small: some messages at a time. Touched by the system only as far as it is used, so quiet
/// connections cost a page.
const INTAKE: usize = 16 << 10;
/// Read along with the rest of a large message, so that the next one's head needs no read of its own.
const LOOK_AHEAD: usize = MOST_CLIENT_HEAD + HEADER_BYTES;
/// At most so much at once: it is still in the nearest cache when its mask comes off.
const READ_AT_ONCE: usize = 256 << 10;

pub(super) type Reader = Box<dyn AsyncRead + Send + Unpin>;

pub(super) enum Heard {
    /// A whole binary message.
    Message(Parcel),
    Ping(Vec<u8>),
    Pong(Vec<u8>),
    /// A goodbye, and its words.
    Close(Vec<u8>),
}

/// Why nothing more is heard.
#[derive(Debug)]
pub(super) enum Deaf {
    Gone(Option<io::Error>),
    Head(HeadError),
    TooLong(u64),
    /// Nodes and coordinators speak binary.
    Text,
    /// A piece of no message, or a new message amid another.
    OutOfTurn,
}

impl fmt::Display for Deaf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Deaf::Gone(None) => f.write_str("the other end hung up"),
            Deaf::Gone(Some(error)) => write!(f, "the connection broke: {error}"),
            Deaf::Head(error) => write!(f, "no WebSocket frame: {error}"),
            Deaf::TooLong(length) => {
                write!(f, "a message of {length} bytes; at most {MAX_FRAME_BYTES} are allowed")
            }
            Deaf::Text => f.write_str("a message of text; expected a binary one"),
            Deaf::OutOfTurn => f.write_str("a piece of a message out of turn"),
        }
    }
}

pub(super) struct Ears {
    reader: Reader,
    /// Bytes read and not used yet: those from `used` on.
    intake: Vec<u8>,
    used: usize,
    /// A message that comes in pieces, as far as it is there.
    begun: Option<Vec<u8>>,
}

impl Ears {
    /// `early` came along with the request for the connection.
    pub(super) fn new(reader: Reader, early: &[u8]) -> Ears {
        Ears { reader, intake: early.to_vec(), used: 0, begun: None }
    }

    /// Not to be dropped halfway if it is to be called again.
    pub(super) async fn next(&mut self) -> Result<Heard, Deaf> {
        loop {
            let head = self.head().await?;
            match head.kind {
                Kind::Ping => return Ok(Heard::Ping(self.small(head).await?)),
                Kind::Pong => return Ok(Heard::Pong(self.small(head).await?)),
                Kind::Close => return Ok(Heard::Close(self.small(head).await?)),
                Kind::Text => return Err(Deaf::Text),
                Kind::Binary if self.begun.is_some() => return Err(Deaf::OutOfTurn),
                Kind::Continued if self.begun.is_none() => return Err(Deaf::OutOfTurn),
                Kind::Binary | Kind::Continued => {
                    let mut message = self.begun.take().unwrap_or_default();
                    self.payload(head, &mut message).await?;
                    if head.last {
                        return Ok(Heard::Message(Parcel::seal(Kind::Binary, message)));
                    }
                    self.begun = Some(message);
                }
            }
        }
    }

    /// Takes and throws away all that comes, until the other end hangs up.
    pub(super) async fn ignore(&mut self) {
        loop {
            self.intake.clear();
            self.intake.reserve(INTAKE);
            match self.reader.read_buf(&mut self.intake).await {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
        }
    }

    async fn head(&mut self) -> Result<Head, Deaf> {
        loop {
            if let Some(head) = Head::read(&self.intake[self.used..]).map_err(Deaf::Head)? {
                self.used += head.size;
                return Ok(head);
            }
            self.fill().await?;
        }
    }

    /// The payload of a ping, a pong or a goodbye.
    async fn small(&mut self, head: Head) -> Result<Vec<u8>, Deaf> {
        let length = head.length as usize;
        while self.intake.len() - self.used < length {
            self.fill().await?;
        }
        let mut payload = self.intake[self.used..self.used + length].to_vec();
        self.used += length;
        unmask(&mut payload, head.mask, 0);
        Ok(payload)
    }

    /// Appends a frame's payload to a message; empty means that it is the first.
    async fn payload(&mut self, head: Head, message: &mut Vec<u8>) -> Result<(), Deaf> {
        let before = message.len().max(MOST_HEAD);
        let whole = head.length.saturating_add((before - MOST_HEAD) as u64);
        if whole > MAX_FRAME_BYTES as u64 {
            return Err(Deaf::TooLong(whole));
        }
        let length = head.length as usize;
        let here = length.min(self.intake.len() - self.used);
        let is_all_here = here == length;
        if message.is_empty() {
            *message = Parcel::room(if is_all_here { length } else { length + LOOK_AHEAD });
        }
        message.extend_from_slice(&self.intake[self.used..self.used + here]);
        self.used += here;
        unmask(&mut message[before..], head.mask, 0);
        let end = before + length;
        if !is_all_here {
            // All of it was used.
            self.intake.clear();
            self.used = 0;
            message.reserve(end + LOOK_AHEAD - message.len());
        }
        while message.len() < end {
            let had = message.len();
            let most = (end + LOOK_AHEAD - had).min(READ_AT_ONCE);
            read(&mut self.reader, message, most).await?;
            let come = message.len().min(end);
            unmask(&mut message[had..come], head.mask, (had - before) as u64);
        }
        self.intake.extend_from_slice(&message[end..]);
        message.truncate(end);
        Ok(())
    }

    async fn fill(&mut self) -> Result<(), Deaf> {
        self.intake.drain(..self.used);
        self.used = 0;
        self.intake.reserve(INTAKE.saturating_sub(self.intake.len()).max(LOOK_AHEAD));
        let most = self.intake.capacity() - self.intake.len();
        read(&mut self.reader, &mut self.intake, most).await
    }
}

async fn read(reader: &mut Reader, into: &mut Vec<u8>, most: usize) -> Result<(), Deaf> {
    match reader.read_buf(&mut into.limit(most)).await {
        Ok(0) => Err(Deaf::Gone(None)),
        Ok(_) => Ok(()),
        Err(error) => Err(Deaf::Gone(Some(error))),
    }
}
