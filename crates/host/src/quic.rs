//! The node's way for frames by QUIC (WebTransport), beside its socket: when to have it is the brain's business. One
//! task has it; the node's loop hands frames over and hears, and never waits for it.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use shoal_node::Input;
use shoal_protocol::QuicOffer;
use shoal_protocol::frame::HEADER_BYTES;
use shoal_protocol::limit::LINK_WINDOW;
use shoal_protocol::quic::{ACCEPTED, PATH, frame_size, greeting};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio::time::timeout;
use wtransport::config::QuicTransportConfig;
use wtransport::quinn::{IdleTimeout, VarInt};
use wtransport::tls::Sha256Digest;
use wtransport::tls::client::{ServerHashVerification, build_default_tls_config};
use wtransport::{ClientConfig, Connection, Endpoint, RecvStream, SendStream};

use super::{Host, MAX_BURST};

/// Where UDP is closed nothing answers at all.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// A way on which nothing arrives for this long is lost; what is less than the coordinator's holds for both.
const SILENT_AFTER: Duration = Duration::from_secs(2);
const ALIVE_EVERY: Duration = Duration::from_millis(400);
/// Frames that wait to leave, in bytes: what two busy neighbours may have under way, as for the socket.
const MAX_WAITING_BYTES: usize = 2 * LINK_WINDOW as usize;
/// The same in frames: small ones are acknowledgements.
const MAX_WAITING: usize = 4096;
/// Frames that came and wait for the loop: half a window of full ones. More waits at the coordinator.
const MAX_HEARD: usize = 32;
/// Frames written together.
const MAX_TOGETHER: usize = 16;
/// What HTTP/3 itself needs of the other end.
const MOST_STREAMS: u32 = 8;
/// Nobody sends datagrams, but the protocol wants to be able to.
const DATAGRAM_BYTES: usize = 16 << 10;

/// What became of the way with this number.
pub(super) struct Heard {
    way: u64,
    news: News,
}

enum News {
    Up,
    Down,
    Frame(Vec<u8>),
}

pub(super) struct Quic {
    tell: mpsc::Sender<Heard>,
    present: Option<QuicWay>,
    last: u64,
}

struct QuicWay {
    number: u64,
    frames: mpsc::Sender<Vec<u8>>,
    waiting: Arc<AtomicUsize>,
    is_up: bool,
    task: AbortHandle,
}

impl Drop for QuicWay {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Quic {
    pub(super) fn new() -> (Quic, mpsc::Receiver<Heard>) {
        let (tell, heard) = mpsc::channel(MAX_HEARD);
        (Quic { tell, present: None, last: 0 }, heard)
    }

    /// Must be called in a tokio runtime.
    fn open(&mut self, host: IpAddr, offer: QuicOffer, session: &str) {
        self.last += 1;
        let (frames, queue) = mpsc::channel(MAX_WAITING);
        let waiting = Arc::new(AtomicUsize::new(0));
        let (way, greeting) = (self.last, greeting(session));
        let task = Task { way, tell: self.tell.clone(), waiting: waiting.clone() };
        let task = tokio::spawn(task.work(host, offer, greeting, queue)).abort_handle();
        self.present = Some(QuicWay { number: way, frames, waiting, is_up: false, task });
    }

    pub(super) fn close(&mut self) {
        self.present = None;
    }

    /// Gives a frame back if there is no such way. Frames are dropped when too many wait: links repeat them.
    pub(super) fn pass(&self, frame: Vec<u8>) -> Option<Vec<u8>> {
        let Some(way) = self.present.as_ref().filter(|way| way.is_up) else { return Some(frame) };
        let size = frame.len();
        let before = way.waiting.fetch_add(size, Ordering::Relaxed);
        let sent = match before + size > MAX_WAITING_BYTES {
            true => Err(mpsc::error::TrySendError::Full(frame)),
            false => way.frames.try_send(frame),
        };
        let Err(error) = sent else { return None };
        way.waiting.fetch_sub(size, Ordering::Relaxed);
        match error {
            mpsc::error::TrySendError::Full(_) => None,
            // It ended, and that is about to be heard.
            mpsc::error::TrySendError::Closed(frame) => Some(frame),
        }
    }
}

impl Host<'_> {
    pub(super) fn open_quic(&mut self, offer: QuicOffer) {
        let host = self.connection.peer();
        let session = self.node.session().map(str::to_owned);
        match (host, session) {
            (Some(host), Some(session)) => self.quic.open(host, offer, &session),
            (None, _) | (_, None) => self.replies.tell_brain(Input::QuicDown),
        }
    }

    /// What was heard of the way, and all that came with it.
    pub(super) fn quic_heard(&mut self, first: Heard, more: &mut mpsc::Receiver<Heard>) {
        let mut first = Some(first);
        for _ in 0..MAX_BURST {
            let Some(heard) = first.take().or_else(|| more.try_recv().ok()) else { return };
            let Heard { way, news } = heard;
            // Of a way that was given up nothing counts.
            if let Some(present) = self.quic.present.as_mut().filter(|it| it.number == way) {
                match news {
                    News::Up => {
                        present.is_up = true;
                        self.input(Input::QuicUp);
                    }
                    News::Down => {
                        self.quic.close();
                        self.input(Input::QuicDown);
                    }
                    News::Frame(frame) => {
                        self.crew_frame(&frame);
                        self.settle();
                    }
                }
            }
        }
    }
}

/// The task's side.
struct Task {
    way: u64,
    tell: mpsc::Sender<Heard>,
    waiting: Arc<AtomicUsize>,
}

impl Task {
    async fn work(
        self,
        host: IpAddr,
        offer: QuicOffer,
        greeting: Vec<u8>,
        queue: mpsc::Receiver<Vec<u8>>,
    ) {
        let opened = timeout(CONNECT_TIMEOUT, open(host, offer, &greeting)).await;
        match opened.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())) {
            Ok((connection, send, receive)) => {
                self.tell(News::Up).await;
                let error = tokio::select! {
                    error = self.read(receive) => error,
                    error = self.write(queue, send) => error,
                };
                tracing::debug!("frames go by the socket: {error}");
                connection.close(wtransport::VarInt::from_u32(0), b"");
            }
            Err(error) => tracing::debug!("no way by QUIC: {error}"),
        }
        self.tell(News::Down).await;
    }

    /// The loop may have ended meanwhile.
    async fn tell(&self, news: News) {
        let _ = self.tell.send(Heard { way: self.way, news }).await;
    }

    async fn read(&self, mut receive: RecvStream) -> io::Error {
        loop {
            match next_frame(&mut receive).await {
                Ok(frame) => self.tell(News::Frame(frame)).await,
                Err(error) => return error,
            }
        }
    }

    async fn write(&self, mut queue: mpsc::Receiver<Vec<u8>>, mut send: SendStream) -> io::Error {
        let mut frames = Vec::with_capacity(MAX_TOGETHER);
        while queue.recv_many(&mut frames, MAX_TOGETHER).await > 0 {
            let size: usize = frames.iter().map(Vec::len).sum();
            let mut chunks: Vec<bytes::Bytes> = frames.drain(..).map(Into::into).collect();
            if let Err(error) = send.quic_stream_mut().write_all_chunks(&mut chunks).await {
                return error.into();
            }
            self.waiting.fetch_sub(size, Ordering::Relaxed);
        }
        io::ErrorKind::NotConnected.into()
    }
}

async fn next_frame(receive: &mut RecvStream) -> io::Result<Vec<u8>> {
    let mut header = [0; HEADER_BYTES];
    AsyncReadExt::read_exact(receive, &mut header).await?;
    let size = frame_size(&header).map_err(|error| io::Error::other(error.to_string()))?;
    let mut frame = Vec::with_capacity(size);
    frame.extend_from_slice(&header);
    while frame.len() < size {
        let mut rest = (&mut *receive).take((size - frame.len()) as u64);
        if rest.read_buf(&mut frame).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(frame)
}

async fn open(
    host: IpAddr,
    offer: QuicOffer,
    greeting: &[u8],
) -> io::Result<(Connection, SendStream, RecvStream)> {
    let here = match host {
        IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    };
    let url = format!("https://{}{PATH}", SocketAddr::new(host, offer.port));
    let trust = ServerHashVerification::new(offer.hashes.into_iter().map(Sha256Digest::new));
    let tls =
        build_default_tls_config(Arc::new(rustls::RootCertStore::empty()), Some(Arc::new(trust)));
    let config = ClientConfig::builder()
        .with_bind_address(SocketAddr::new(here, 0))
        .with_custom_tls_and_transport(tls, transport()?)
        .build();
    let connection = Endpoint::client(config)?.connect(url).await.map_err(io::Error::other)?;
    let opening = connection.open_bi().await.map_err(io::Error::other)?;
    let (mut send, mut receive) = opening.await.map_err(io::Error::other)?;
    AsyncWriteExt::write_all(&mut send, greeting).await?;
    let mut answer = [0];
    AsyncReadExt::read_exact(&mut receive, &mut answer).await?;
    if answer != [ACCEPTED] {
        return Err(io::Error::other("the coordinator does not take frames by QUIC"));
    }
    Ok((connection, send, receive))
}

fn transport() -> io::Result<QuicTransportConfig> {
    let mut transport = QuicTransportConfig::default();
    transport
        .max_idle_timeout(Some(IdleTimeout::try_from(SILENT_AFTER).map_err(io::Error::other)?));
    transport.keep_alive_interval(Some(ALIVE_EVERY));
    transport.max_concurrent_bidi_streams(VarInt::from_u32(MOST_STREAMS));
    transport.max_concurrent_uni_streams(VarInt::from_u32(MOST_STREAMS));
    let window = VarInt::from_u32(LINK_WINDOW as u32);
    transport.stream_receive_window(window).receive_window(window).send_window(LINK_WINDOW);
    transport.datagram_receive_buffer_size(Some(DATAGRAM_BYTES));
    transport.datagram_send_buffer_size(DATAGRAM_BYTES);
    Ok(transport)
}
