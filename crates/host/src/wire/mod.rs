//! Just enough HTTP/1.1 for bulk bytes between a node and its coordinator: one blocking connection
//! that is kept, bodies of known length, read in large pieces straight from the socket. A general
//! client would copy every body once more and hand it between threads, which is what a map over
//! large arrays can least afford.

#[cfg(test)]
mod tests;

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};

use super::beside::HEADER;

/// Read at a time: stays in a core's own cache on its way to the GPU's memory.
const PIECE: usize = 256 << 10;
/// Longest head of an answer; ours have a few hundred bytes.
const MAX_HEAD: usize = 16 << 10;
/// Silence in the middle of a transfer after which the connection counts as dead.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Where the coordinator is.
#[derive(Clone)]
pub(super) struct Origin {
    host: String,
    port: u16,
    tls: Option<Arc<ClientConfig>>,
}

impl Origin {
    /// From a base URL; `None` if it is none.
    pub(super) fn new(base: &str, tls: ClientConfig) -> Option<Origin> {
        let url = reqwest::Url::parse(base).ok()?;
        let host = url.host_str()?.trim_matches(['[', ']']).to_owned();
        let port = url.port_or_known_default()?;
        let tls = (url.scheme() == "https").then(|| Arc::new(tls));
        Some(Origin { host, port, tls })
    }

    pub(super) fn host(&self) -> &str {
        &self.host
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    pub(super) fn tls(&self) -> Option<Arc<ClientConfig>> {
        self.tls.clone()
    }

    fn connect(&self) -> io::Result<Stream> {
        let socket = TcpStream::connect((self.host.as_str(), self.port))?;
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(TIMEOUT))?;
        socket.set_write_timeout(Some(TIMEOUT))?;
        let Some(tls) = &self.tls else { return Ok(Stream::Plain(socket)) };
        let name = ServerName::try_from(self.host.clone()).map_err(io::Error::other)?;
        let session = ClientConnection::new(tls.clone(), name).map_err(io::Error::other)?;
        Ok(Stream::Tls(Box::new(StreamOwned::new(session, socket))))
    }
}

enum Stream {
    Plain(TcpStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl Stream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = match self {
                Stream::Plain(socket) => socket.read(into),
                Stream::Tls(socket) => socket.read(into),
            };
            match read {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                other => return other,
            }
        }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Stream::Plain(socket) => socket.write_all(bytes),
            Stream::Tls(socket) => socket.write_all(bytes).and_then(|()| socket.flush()),
        }
    }
}

/// One request. The body may be empty.
pub(super) struct Request<'a> {
    pub(super) method: &'a str,
    pub(super) path: &'a str,
    pub(super) token: &'a str,
    /// First and last byte wanted.
    pub(super) range: Option<(u64, u64)>,
    /// The word that proves that this node reads the coordinator's folder.
    pub(super) beside: Option<&'a str>,
    pub(super) body: &'a [u8],
}

/// A connection that is opened when needed and kept while it works.
pub(super) struct Wire {
    origin: Origin,
    stream: Option<Stream>,
    buffer: Vec<u8>,
}

impl Wire {
    pub(super) fn new(origin: Origin) -> Wire {
        Wire { origin, stream: None, buffer: vec![0; PIECE] }
    }

    /// Sends a request and hands the answer's body to `each` with its position. Every piece but the
    /// last is full, so that positions stay multiples of four. Answers the status.
    pub(super) fn exchange(
        &mut self,
        request: &Request<'_>,
        each: &mut dyn FnMut(u64, &[u8]) -> io::Result<()>,
    ) -> io::Result<u16> {
        let kept = self.stream.take();
        let was_kept = kept.is_some();
        let stream = kept.map_or_else(|| self.origin.connect(), Ok)?;
        match self.on(stream, request, each) {
            // The coordinator closed an idle connection just now: that says nothing about this
            // request.
            Err(Broke::BeforeAnswer(_)) if was_kept => {
                let stream = self.origin.connect()?;
                self.on(stream, request, each).map_err(Broke::into_error)
            }
            other => other.map_err(Broke::into_error),
        }
    }

    fn on(
        &mut self,
        mut stream: Stream,
        request: &Request<'_>,
        each: &mut dyn FnMut(u64, &[u8]) -> io::Result<()>,
    ) -> Result<u16, Broke> {
        let head = self.head(request);
        // A refusal may come while the body is still on its way, so the answer counts more than the
        // write.
        let sent = stream.write(head.as_bytes()).and_then(|()| stream.write(request.body));
        let mut filled = 0;
        let head_end = loop {
            let read =
                stream.read(&mut self.buffer[filled..MAX_HEAD]).map_err(Broke::BeforeAnswer)?;
            filled += read;
            if let Some(at) = find(&self.buffer[..filled], b"\r\n\r\n") {
                break at + 4;
            }
            if filled == MAX_HEAD {
                return Err(Broke::During(io::Error::other("the answer's head is too long")));
            }
        };
        let answer = Answer::parse(&self.buffer[..head_end]).map_err(Broke::During)?;
        self.buffer.copy_within(head_end..filled, 0);
        self.body(&mut stream, filled - head_end, answer.length, each).map_err(Broke::During)?;
        if sent.is_ok() && !answer.closes {
            self.stream = Some(stream);
        }
        Ok(answer.status)
    }

    /// Reads a body of `length` bytes of which `filled` lie in the buffer already.
    fn body(
        &mut self,
        stream: &mut Stream,
        mut filled: usize,
        length: u64,
        each: &mut dyn FnMut(u64, &[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut at = 0;
        while at < length {
            let want = (length - at).min(PIECE as u64) as usize;
            while filled < want {
                filled += stream.read(&mut self.buffer[filled..want])?;
            }
            each(at, &self.buffer[..want])?;
            at += want as u64;
            filled = filled.saturating_sub(want);
        }
        Ok(())
    }

    fn head(&self, request: &Request<'_>) -> String {
        let Request { method, path, token, range, beside, body } = request;
        let host = &self.origin.host;
        let port = self.origin.port;
        let host =
            if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
        let mut head = format!(
            "{method} {path} HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {token}\r\n\
             content-length: {}\r\n",
            body.len()
        );
        if let Some((first, last)) = range {
            head.push_str(&format!("range: bytes={first}-{last}\r\n"));
        }
        if let Some(word) = beside {
            head.push_str(&format!("{HEADER}: {word}\r\n"));
        }
        head.push_str("\r\n");
        head
    }
}

enum Broke {
    /// Not one byte of an answer came.
    BeforeAnswer(io::Error),
    During(io::Error),
}

impl Broke {
    fn into_error(self) -> io::Error {
        match self {
            Broke::BeforeAnswer(error) | Broke::During(error) => error,
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
struct Answer {
    status: u16,
    length: u64,
    closes: bool,
}

impl Answer {
    fn parse(head: &[u8]) -> io::Result<Answer> {
        let bad = |what: &str| io::Error::other(format!("cannot parse the HTTP answer: {what}"));
        let head = std::str::from_utf8(head).map_err(|_| bad("its head is not text"))?;
        let mut lines = head.split("\r\n");
        let first = lines.next().unwrap_or_default();
        let status = first
            .strip_prefix("HTTP/1.1 ")
            .and_then(|rest| rest.get(..3)?.parse().ok())
            .ok_or_else(|| bad("no status"))?;
        let (mut length, mut closes) = (None, false);
        for line in lines {
            let Some((name, value)) = line.split_once(':') else { continue };
            let value = value.trim();
            if name.eq_ignore_ascii_case("content-length") {
                length = value.parse().ok();
            } else if name.eq_ignore_ascii_case("connection") {
                closes = value.eq_ignore_ascii_case("close");
            }
        }
        let length = length.or((status == 204).then_some(0)).ok_or_else(|| bad("no length"))?;
        Ok(Answer { status, length, closes })
    }
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}
