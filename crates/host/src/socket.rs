//! The node's WebSocket: opening it, and telling why it could not be.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use shoal_protocol::limit::MAX_FRAME_BYTES;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::http::StatusCode;
use tokio_tungstenite::tungstenite::{Error, protocol::WebSocketConfig};
use tokio_tungstenite::{Connector, MaybeTlsStream, WebSocketStream, client_async_tls_with_config};

use super::wire::Origin;
use crate::tls::distrust;

pub(super) type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// A coordinator that takes longer than this to accept is not there.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// What is read at a time. The buffer is cleared before each read, so that a larger one costs more
/// than it brings: most messages have a few hundred bytes.
const READ_BYTES: usize = 16 << 10;

/// Why there is no socket.
pub(super) enum NotOpened {
    /// Nobody there, or nobody who answers as a coordinator does.
    Away(String),
    /// Somebody there who is not the one expected.
    Untrusted(String),
}

pub(super) async fn connect(origin: Origin, url: String) -> Result<Box<Socket>, NotOpened> {
    match timeout(CONNECT_TIMEOUT, open(&origin, &url)).await {
        Ok(opened) => opened,
        Err(_) => {
            let place = format!("{}:{}", origin.host(), origin.port());
            Err(NotOpened::Away(format!("{place} does not answer")))
        }
    }
}

/// Where the coordinator is, as this socket reached it.
pub(super) fn peer(socket: &Socket) -> Option<IpAddr> {
    let tcp = match socket.get_ref() {
        MaybeTlsStream::Plain(tcp) => tcp,
        MaybeTlsStream::Rustls(tls) => tls.get_ref().0,
        _ => return None,
    };
    tcp.peer_addr().ok().map(|addr| addr.ip().to_canonical())
}

async fn open(origin: &Origin, url: &str) -> Result<Box<Socket>, NotOpened> {
    let away = |error: std::io::Error| NotOpened::Away(crate::fail::plain(&error));
    let tcp = TcpStream::connect((origin.host(), origin.port())).await.map_err(away)?;
    // Small messages must not wait for each other.
    tcp.set_nodelay(true).map_err(away)?;
    let connector = match origin.tls() {
        Some(config) => Connector::Rustls(Arc::clone(&config)),
        None => Connector::Plain,
    };
    let limits = WebSocketConfig::default()
        .max_message_size(Some(MAX_FRAME_BYTES))
        .max_frame_size(Some(MAX_FRAME_BYTES))
        .read_buffer_size(READ_BYTES);
    match client_async_tls_with_config(url, tcp, Some(limits), Some(connector)).await {
        Ok((socket, _)) => Ok(Box::new(socket)),
        Err(error) => Err(reason(&error)),
    }
}

fn reason(error: &Error) -> NotOpened {
    if let Error::Io(error) = error {
        return match distrust(error) {
            Some(reason) => NotOpened::Untrusted(reason),
            None => NotOpened::Away(crate::fail::plain(error)),
        };
    }
    let Error::Http(answer) = error else { return NotOpened::Away(error.to_string()) };
    NotOpened::Away(match answer.status() {
        StatusCode::NOT_FOUND => "the server there is not a Shoal coordinator".into(),
        status => format!("the coordinator answered {status}"),
    })
}
