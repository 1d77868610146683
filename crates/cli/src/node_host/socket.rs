//! The node's WebSocket: opening it, and telling why it could not be.

use std::sync::Arc;
use std::time::Duration;

use shoal_protocol::limit::MAX_FRAME_BYTES;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::http::StatusCode;
use tokio_tungstenite::tungstenite::{Error, protocol::WebSocketConfig};
use tokio_tungstenite::{Connector, MaybeTlsStream, WebSocketStream, client_async_tls_with_config};

use super::wire::Origin;

pub(super) type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// A coordinator that takes longer than this to accept is not there.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Opens the socket; the error says in words why not.
pub(super) async fn connect(origin: Origin, url: String) -> Result<Box<Socket>, String> {
    match timeout(CONNECT_TIMEOUT, open(&origin, &url)).await {
        Ok(opened) => opened,
        Err(_) => Err(format!("{}:{} does not answer", origin.host(), origin.port())),
    }
}

async fn open(origin: &Origin, url: &str) -> Result<Box<Socket>, String> {
    let tcp = TcpStream::connect((origin.host(), origin.port()))
        .await
        .map_err(|error| crate::fail::plain(&error))?;
    // Small messages must not wait for each other.
    tcp.set_nodelay(true).map_err(|error| crate::fail::plain(&error))?;
    let connector = match origin.tls() {
        Some(config) => Connector::Rustls(Arc::clone(&config)),
        None => Connector::Plain,
    };
    let limits = WebSocketConfig::default()
        .max_message_size(Some(MAX_FRAME_BYTES))
        .max_frame_size(Some(MAX_FRAME_BYTES))
        .read_buffer_size(128 << 10);
    match client_async_tls_with_config(url, tcp, Some(limits), Some(connector)).await {
        Ok((socket, _)) => Ok(Box::new(socket)),
        Err(error) => Err(reason(&error)),
    }
}

fn reason(error: &Error) -> String {
    if let Error::Io(error) = error {
        return crate::fail::plain(error);
    }
    let Error::Http(answer) = error else { return error.to_string() };
    match answer.status() {
        StatusCode::NOT_FOUND => "there is a web server, but it is no Shoal coordinator".into(),
        status => format!("the coordinator answered {status}"),
    }
}
