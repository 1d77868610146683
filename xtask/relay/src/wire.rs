//! A client's end: whole messages over a WebSocket or over bare TCP, as lean as can be, so that what is measured is
//! what stands between two of them.

use std::io::{Read, Write};
use std::net::TcpStream;

use ed25519_dalek::{Signer, SigningKey};
use shoal_protocol::codec::Wire as _;
use shoal_protocol::limit::PROTOCOL_VERSION;
use shoal_protocol::sign::join_statement;
use shoal_protocol::{Caps, FromNode, Hello, Identity, NodeId, NodeKind, Signature, ToNode};

use crate::Outcome;

/// As large as what a read gives at best.
const BUFFER: usize = 256 << 10;

/// How messages are framed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// A client's frames, with this mask. Nothing costs nothing; browsers draw one by chance.
    WebSocket { mask: [u8; 4] },
    /// Four bytes of length.
    Bare,
}

pub(crate) struct Wire {
    stream: TcpStream,
    framing: Framing,
    buffer: Vec<u8>,
    /// What is read and not used: this part of the buffer.
    from: usize,
    to: usize,
}

impl Wire {
    pub(crate) fn bare(stream: TcpStream) -> Outcome<Wire> {
        stream.set_nodelay(true)?;
        Ok(Wire { stream, framing: Framing::Bare, buffer: vec![0; BUFFER], from: 0, to: 0 })
    }

    pub(crate) fn socket(place: &str, path: &str, mask: [u8; 4]) -> Outcome<Wire> {
        let mut wire = Wire::bare(TcpStream::connect(place)?)?;
        write!(
            wire.stream,
            "GET {path} HTTP/1.1\r\nHost: {place}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        )?;
        loop {
            let came = &wire.buffer[..wire.to];
            if let Some(end) = came.windows(4).position(|four| four == b"\r\n\r\n") {
                if !came.starts_with(b"HTTP/1.1 101") {
                    return Err(format!("{place} does not upgrade").into());
                }
                wire.from = end + 4;
                break;
            }
            wire.fill()?;
        }
        wire.framing = Framing::WebSocket { mask };
        Ok(wire)
    }

    /// A node of a coordinator.
    pub(crate) fn join(
        place: &str,
        token: &str,
        number: u64,
        mask: [u8; 4],
    ) -> Outcome<(Wire, NodeId, String)> {
        let mut wire = Wire::socket(place, "/node/socket", mask)?;
        let ToNode::Challenge { nonce, coordinator } = wire.word()? else {
            return Err("expected a challenge".into());
        };
        let mut seed = [9; 32];
        seed[..8].copy_from_slice(&number.to_le_bytes());
        let key = SigningKey::from_bytes(&seed);
        let proof = key.sign(&join_statement(&coordinator, &nonce));
        let hello = FromNode::Hello(Box::new(Hello {
            version: PROTOCOL_VERSION,
            token: token.into(),
            identity: Identity(key.verifying_key().to_bytes()),
            proof: Signature::new(&proof.to_bytes()),
            caps: Caps {
                kind: NodeKind::Simulated,
                name: format!("client {number}"),
                cpu_slots: 0,
                gpu: None,
                memory: 0,
                threads: 0,
                engines: Vec::new(),
                speed: 100,
                class: 0,
            },
            held: Vec::new(),
        }));
        let framed = wire.framed(&hello.encode());
        wire.send(&framed)?;
        let answer = wire.word()?;
        let ToNode::Welcome { node, session } = answer else {
            return Err(format!("expected a welcome, got {answer:?}").into());
        };
        Ok((wire, node, session))
    }

    /// A message with its head, made once and sent often.
    pub(crate) fn framed(&self, payload: &[u8]) -> Vec<u8> {
        let Framing::WebSocket { mask } = self.framing else {
            return [&(payload.len() as u32).to_le_bytes(), payload].concat();
        };
        let mut bytes = vec![0x82];
        match payload.len() {
            short @ ..126 => bytes.push(0x80 | short as u8),
            middling @ ..0x1_0000 => {
                bytes.push(0x80 | 126);
                bytes.extend((middling as u16).to_be_bytes());
            }
            long => {
                bytes.push(0x80 | 127);
                bytes.extend((long as u64).to_be_bytes());
            }
        }
        bytes.extend(mask);
        bytes.extend(payload.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask));
        bytes
    }

    /// What [`Wire::framed`] made.
    pub(crate) fn send(&mut self, framed: &[u8]) -> Outcome {
        Ok(self.stream.write_all(framed)?)
    }

    /// Takes the next message, and throws it away; its size.
    pub(crate) fn skip(&mut self) -> Outcome<usize> {
        let size = self.head()?;
        let mut rest = size;
        loop {
            let here = rest.min(self.to - self.from);
            self.from += here;
            rest -= here;
            if rest == 0 {
                return Ok(size);
            }
            self.fill()?;
        }
    }

    /// Takes the next message.
    pub(crate) fn message(&mut self) -> Outcome<Vec<u8>> {
        let size = self.head()?;
        let mut message = Vec::with_capacity(size);
        loop {
            let here = (size - message.len()).min(self.to - self.from);
            message.extend(&self.buffer[self.from..self.from + here]);
            self.from += here;
            if message.len() == size {
                return Ok(message);
            }
            self.fill()?;
        }
    }

    /// The same connection, for another thread to write to.
    pub(crate) fn writer(&self) -> Outcome<TcpStream> {
        Ok(self.stream.try_clone()?)
    }

    /// The next message that is a coordinator's.
    pub(crate) fn word(&mut self) -> Outcome<ToNode> {
        let size = self.head()?;
        while self.to - self.from < size {
            self.fill()?;
        }
        let bytes = &self.buffer[self.from..self.from + size];
        self.from += size;
        ToNode::decode(bytes).map_err(|error| format!("an unknown word: {error:?}").into())
    }

    /// The size of the next message with bytes in it; pings pass by.
    fn head(&mut self) -> Outcome<usize> {
        loop {
            if let Some((is_data, head, size)) = self.peek() {
                self.from += head;
                if is_data {
                    return Ok(size);
                }
                while self.to - self.from < size {
                    self.fill()?;
                }
                self.from += size;
            } else {
                self.fill()?;
            }
        }
    }

    fn peek(&self) -> Option<(bool, usize, usize)> {
        let came = &self.buffer[self.from..self.to];
        if self.framing == Framing::Bare {
            let size = u32::from_le_bytes(*came.first_chunk()?);
            return Some((true, 4, size as usize));
        }
        let &[first, second, ref rest @ ..] = came else { return None };
        let (head, size) = match second {
            126 => (4, u16::from_be_bytes(*rest.first_chunk()?).into()),
            127 => (10, u64::from_be_bytes(*rest.first_chunk()?) as usize),
            short => (2, short.into()),
        };
        Some((first & 0x0f == 2, head, size))
    }

    fn fill(&mut self) -> Outcome {
        if self.from == self.to {
            (self.from, self.to) = (0, 0);
        } else if self.to == self.buffer.len() {
            self.buffer.copy_within(self.from..self.to, 0);
            (self.from, self.to) = (0, self.to - self.from);
        }
        match self.stream.read(&mut self.buffer[self.to..])? {
            0 => Err("the other end hung up".into()),
            size => {
                self.to += size;
                Ok(())
            }
        }
    }
}
