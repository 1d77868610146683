//! Frames by QUIC, where UDP is open: a node that is in a crew opens one stream (WebTransport) beside its socket, and
//! its frames go and come there. Messages stay on the socket, and so do frames when there is no such way or it is
//! lost. What the relay checks and holds is the same on both.
//!
//! - [`cert`]: certificates that browsers accept by their hash
//! - [`door`]: who may come in, [`stream`]: frames on a stream

mod cert;
mod door;
mod stream;

use std::io;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use shoal_protocol::QuicOffer;
use shoal_protocol::limit::LINK_WINDOW;
use tokio::sync::{mpsc, watch};
use tokio::time::interval;
use wtransport::proto::WEBTRANSPORT_ALPN;
use wtransport::quinn::crypto::rustls::QuicServerConfig;
use wtransport::quinn::{self, EndpointConfig, IdleTimeout, TokioRuntime, TransportConfig, VarInt};

use self::cert::{Certificates, Hashes};
use self::door::Door;
use crate::http::App;

/// A way on which nothing arrives for this long is lost, and frames go by the socket. Links give a peer up after
/// four seconds, and must have said again what was lost before. Browsers wait a second less than they are told.
const SILENT_AFTER: Duration = Duration::from_millis(2_500);
/// Something is said this often, so that silence means something.
const ALIVE_EVERY: Duration = Duration::from_millis(400);
/// What may be on its way to a node: a link's window.
const SEND_WINDOW: u64 = LINK_WINDOW;
/// What a node may send ahead of the relay, which reads at once; a stranger less, because there are many.
const RECEIVE_WINDOW: u32 = LINK_WINDOW as u32;
const STRANGERS_WINDOW: u32 = 64 << 10;
/// The session's, ours, and room for one that is ending; and what HTTP/3 itself needs.
const MOST_STREAMS: u32 = 4;
const MOST_PLAIN_STREAMS: u32 = 8;
/// Nobody sends datagrams, but browsers want to be able to.
const DATAGRAM_BYTES: usize = 16 << 10;
/// Connections that nobody has looked at yet, and what they may have sent.
const MAX_INCOMING: usize = 256;
const INCOMING_BYTES: u64 = 16 << 10;
/// How often it is looked whether the certificates are still good; by the clock on the wall, because machines sleep.
const LOOK_EVERY: Duration = Duration::from_secs(600);

/// Where nodes are told to go: nothing as long as there is no such place.
#[derive(Clone)]
pub(crate) struct Offered {
    port: u16,
    hashes: watch::Receiver<Hashes>,
    /// The present offer was told.
    told: bool,
}

impl Offered {
    /// The present offer at first, then each new one. Never ready if there is none.
    pub(crate) async fn changed(&mut self) -> QuicOffer {
        let changed = if self.told {
            self.hashes.changed().await.is_ok()
        } else {
            self.hashes.wait_for(|hashes| !hashes.is_empty()).await.is_ok()
        };
        if !changed {
            return std::future::pending().await;
        }
        self.told = true;
        QuicOffer { port: self.port, hashes: self.hashes.borrow().clone() }
    }
}

/// The coordinator's side of all ways by QUIC.
pub(crate) struct Quic {
    offered: Offered,
    tell: watch::Sender<Hashes>,
    open: Option<Result<Open, String>>,
}

/// It has its ports.
struct Open {
    sockets: Vec<UdpSocket>,
    certificates: Arc<Certificates>,
    port: u16,
}

impl Quic {
    /// Takes the port of UDP beside each port of TCP. Without it everything goes by sockets.
    pub(crate) fn open(wanted: bool, asked: SocketAddr, beside: &[TcpListener]) -> Quic {
        let open = wanted.then(|| Open::new(asked, beside));
        let port = open.as_ref().and_then(|open| open.as_ref().ok()).map_or(0, |open| open.port);
        let (tell, hashes) = watch::channel(Hashes::new());
        Quic { offered: Offered { port, hashes, told: false }, tell, open }
    }

    pub(crate) fn state(&self) -> Option<Result<u16, &str>> {
        self.open.as_ref().map(|open| open.as_ref().map(|open| open.port).map_err(String::as_str))
    }

    pub(crate) fn offered(&self) -> Offered {
        self.offered.clone()
    }

    /// Serves until the coordinator closes.
    pub(crate) fn start(self, app: &App, alive: &mpsc::Sender<()>) {
        let Some(Ok(Open { sockets, certificates, .. })) = self.open else { return };
        let door = Door::new(app.clone());
        for socket in sockets {
            match endpoint(socket, &certificates) {
                Ok(endpoint) => {
                    tokio::spawn(door.clone().serve(endpoint, alive.clone()));
                }
                Err(error) => {
                    return tracing::warn!("frames go by sockets only: {error}");
                }
            }
        }
        self.tell.send_replace(certificates.hashes());
        tokio::spawn(turn(certificates, self.tell, app.closing.clone()));
    }
}

impl Open {
    fn new(asked: SocketAddr, beside: &[TcpListener]) -> Result<Open, String> {
        let mut sockets: Vec<UdpSocket> = Vec::new();
        let mut port = None;
        for listener in beside {
            let mut addr = listener.local_addr().map_err(|error| error.to_string())?;
            addr.set_port(port.unwrap_or(addr.port()));
            let socket = UdpSocket::bind(addr)
                // Whoever takes any port for TCP takes any for UDP.
                .or_else(|error| match (asked.port(), port) {
                    (0, None) => UdpSocket::bind(SocketAddr::new(addr.ip(), 0)),
                    (0.., _) => Err(error),
                })
                .map_err(|error| format!("UDP port {} cannot be used: {error}", addr.port()))?;
            port = socket.local_addr().ok().map(|addr| addr.port());
            sockets.push(socket);
        }
        let provider = Arc::new(aws_lc_rs::default_provider());
        let certificates = Certificates::new(provider, SystemTime::now())
            .map_err(|error| format!("no certificate could be made: {error}"))?;
        let port = port.ok_or("there is no port")?;
        Ok(Open { sockets, certificates: Arc::new(certificates), port })
    }
}

fn endpoint(socket: UdpSocket, certificates: &Arc<Certificates>) -> io::Result<quinn::Endpoint> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let mut tls = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(io::Error::other)?
        .with_no_client_auth()
        .with_cert_resolver(Arc::clone(certificates) as _);
    tls.alpn_protocols = vec![WEBTRANSPORT_ALPN.to_vec()];
    let crypto = QuicServerConfig::try_from(tls).map_err(io::Error::other)?;
    let mut config = quinn::ServerConfig::with_crypto(Arc::new(crypto));
    config.transport_config(Arc::new(transport()?));
    config.max_incoming(MAX_INCOMING);
    config.incoming_buffer_size(INCOMING_BYTES);
    config.incoming_buffer_size_total(INCOMING_BYTES * MAX_INCOMING as u64);
    let runtime = Arc::new(TokioRuntime);
    quinn::Endpoint::new(EndpointConfig::default(), Some(config), socket, runtime)
}

fn transport() -> io::Result<TransportConfig> {
    let mut transport = TransportConfig::default();
    transport
        .max_idle_timeout(Some(IdleTimeout::try_from(SILENT_AFTER).map_err(io::Error::other)?));
    transport.keep_alive_interval(Some(ALIVE_EVERY));
    transport.max_concurrent_bidi_streams(VarInt::from_u32(MOST_STREAMS));
    transport.max_concurrent_uni_streams(VarInt::from_u32(MOST_PLAIN_STREAMS));
    transport.stream_receive_window(VarInt::from_u32(RECEIVE_WINDOW));
    transport.receive_window(VarInt::from_u32(STRANGERS_WINDOW));
    transport.send_window(SEND_WINDOW);
    transport.datagram_receive_buffer_size(Some(DATAGRAM_BYTES));
    transport.datagram_send_buffer_size(DATAGRAM_BYTES);
    Ok(transport)
}

/// Shows new certificates in time, and tells all nodes.
async fn turn(
    certificates: Arc<Certificates>,
    tell: watch::Sender<Hashes>,
    mut closing: watch::Receiver<bool>,
) {
    let mut look = interval(LOOK_EVERY);
    loop {
        tokio::select! {
            _ = look.tick() => {}
            _ = closing.wait_for(|closing| *closing) => return,
        }
        match certificates.turn(SystemTime::now()) {
            Ok(true) => {
                tell.send_replace(certificates.hashes());
            }
            Ok(false) => {}
            Err(error) => tracing::warn!("no new certificate for QUIC could be made: {error}"),
        }
    }
}
