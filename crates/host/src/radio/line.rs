//! How a TURN server is reached: by datagrams, or by a stream where no UDP gets out, plain or within TLS. A stream
//! that does not keep up loses datagrams like any network; the radio never waits for it.

use std::io;
use std::mem::MaybeUninit;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use rustls::ClientConfig;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{CertificateDer, ServerName};
use shoal_turn::{By, OutOfStep, Place, Stream, is_data};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UdpSocket};
use tokio_rustls::TlsConnector;

use super::ports::MAX_DATAGRAM;

/// A connection is open after this time, or there is none.
const PATIENCE: Duration = Duration::from_secs(10);
/// Bytes that wait for a stream. Half of it is kept free of datagrams, so that questions get through. More would
/// only make datagrams late: their senders slow down when some are lost.
const MAX_WAITING: usize = 128 << 10;
/// Read of a stream at a time: a record of TLS.
const PIECE: usize = 16 << 10;

pub(super) enum Line {
    Datagrams(UdpSocket),
    Stream(Box<Streaming>),
}

pub(super) struct Streaming {
    socket: Box<dyn Bytes>,
    local: SocketAddr,
    came: Stream,
    waiting: Vec<u8>,
}

/// Plain or within TLS.
trait Bytes: AsyncRead + AsyncWrite + Unpin + Send + Sync {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send + Sync> Bytes for T {}

impl Line {
    /// To a server at this place. Beside the system's authorities, `roots` vouch for it.
    pub(super) async fn open(
        place: Place,
        roots: Vec<CertificateDer<'static>>,
    ) -> io::Result<Line> {
        let opened = tokio::time::timeout(PATIENCE, Line::open_patiently(place, roots)).await;
        opened.unwrap_or_else(|_| Err(io::Error::other("it does not answer")))
    }

    async fn open_patiently(place: Place, roots: Vec<CertificateDer<'static>>) -> io::Result<Line> {
        let Place { host, port, by } = place;
        let found = tokio::net::lookup_host((host.as_str(), port)).await?.next();
        let server = found.ok_or_else(|| io::Error::other(format!("{host} has no address")))?;
        match by {
            By::Udp => Ok(Line::Datagrams(datagrams(server).await?)),
            By::Tcp => {
                let (socket, local) = connect(server).await?;
                Ok(Line::stream(Box::new(socket), local))
            }
            By::Tls => {
                let (socket, local) = connect(server).await?;
                let name = ServerName::try_from(host).map_err(io::Error::other)?;
                let socket = TlsConnector::from(trust(roots)?).connect(name, socket).await?;
                Ok(Line::stream(Box::new(socket), local))
            }
        }
    }

    fn stream(socket: Box<dyn Bytes>, local: SocketAddr) -> Line {
        let (came, waiting) = (Stream::default(), Vec::new());
        Line::Stream(Box::new(Streaming { socket, local, came, waiting }))
    }

    pub(super) fn local(&self) -> io::Result<SocketAddr> {
        match self {
            Line::Datagrams(socket) => socket.local_addr(),
            Line::Stream(stream) => Ok(stream.local),
        }
    }

    /// To the server, at once or as soon as it can be. What cannot wait is lost.
    pub(super) async fn send(&mut self, bytes: &[u8]) {
        match self {
            Line::Datagrams(socket) => {
                let _ = socket.send(bytes).await;
            }
            Line::Stream(stream) => stream.wait(bytes),
        }
    }

    /// One message of the server into `into`. An error ends the line.
    pub(super) fn poll_next(
        &mut self,
        context: &mut Context<'_>,
        into: &mut [u8; MAX_DATAGRAM],
    ) -> Poll<io::Result<usize>> {
        match self {
            Line::Datagrams(socket) => loop {
                let mut buffer = ReadBuf::new(into);
                // Somebody refused an earlier datagram: that says nothing about the next.
                if ready!(socket.poll_recv(context, &mut buffer)).is_ok() {
                    return Poll::Ready(Ok(buffer.filled().len()));
                }
            },
            Line::Stream(stream) => stream.poll_next(context, into),
        }
    }

    /// Writes what waits, as far as that goes without waiting.
    pub(super) fn poll_write(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        match self {
            Line::Datagrams(_) => Ok(()),
            Line::Stream(stream) => stream.poll_write(context),
        }
    }
}

impl Streaming {
    fn wait(&mut self, bytes: &[u8]) {
        let most = if is_data(bytes) { MAX_WAITING / 2 } else { MAX_WAITING };
        if self.waiting.len() + bytes.len() <= most {
            self.waiting.extend_from_slice(bytes);
        }
    }

    fn poll_write(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        let mut written = 0;
        while written < self.waiting.len() {
            match Pin::new(&mut self.socket).poll_write(context, &self.waiting[written..]) {
                Poll::Ready(Ok(0)) => return Err(io::ErrorKind::WriteZero.into()),
                Poll::Ready(count) => written += count?,
                Poll::Pending => break,
            }
        }
        self.waiting.drain(..written);
        match Pin::new(&mut self.socket).poll_flush(context) {
            Poll::Ready(done) => done,
            Poll::Pending => Ok(()),
        }
    }

    fn poll_next(
        &mut self,
        context: &mut Context<'_>,
        into: &mut [u8; MAX_DATAGRAM],
    ) -> Poll<io::Result<usize>> {
        loop {
            match self.came.next(into) {
                // It was too long for anything that WebRTC sends.
                Ok(Some(0)) => continue,
                Ok(Some(length)) => return Poll::Ready(Ok(length)),
                Ok(None) => {}
                Err(OutOfStep) => {
                    return Poll::Ready(Err(io::Error::other("its answer makes no sense")));
                }
            }
            let mut piece = [const { MaybeUninit::uninit() }; PIECE];
            let mut buffer = ReadBuf::uninit(&mut piece);
            ready!(Pin::new(&mut self.socket).poll_read(context, &mut buffer))?;
            if buffer.filled().is_empty() {
                return Poll::Ready(Err(io::Error::other("it closed the connection")));
            }
            self.came.push(buffer.filled());
        }
    }
}

async fn datagrams(server: SocketAddr) -> io::Result<UdpSocket> {
    let any = match server {
        SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
        SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
    };
    let socket = UdpSocket::bind(any).await?;
    socket.connect(server).await?;
    Ok(socket)
}

async fn connect(server: SocketAddr) -> io::Result<(TcpStream, SocketAddr)> {
    let socket = TcpStream::connect(server).await?;
    socket.set_nodelay(true)?;
    let local = socket.local_addr()?;
    Ok((socket, local))
}

/// In whom the system trusts. A coordinator is known by its fingerprint; a TURN server is anybody's.
fn trust(roots: Vec<CertificateDer<'static>>) -> io::Result<Arc<ClientConfig>> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let verifier =
        rustls_platform_verifier::Verifier::new_with_extra_roots(roots, provider.clone())
            .map_err(io::Error::other)?;
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?;
    let builder = builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier));
    Ok(Arc::new(builder.with_no_client_auth()))
}
