//! Connections on one port. TLS is told by its first byte; plain http serves this machine only, others
//! are sent to https, because their browsers would have no WebGPU without it.

use std::convert::Infallible;
use std::future::ready;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{Request, Response, StatusCode, header};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tower::util::MapRequest;

use crate::network::FarEnd;

/// The first byte of every TLS connection: a handshake record.
const TLS_HANDSHAKE: u8 = 0x16;
/// All nodes, and their transfers. More wait in the system's queue.
const MAX_CONNECTIONS: usize = 40_000;
/// Who connects and says nothing is cut off after this; also who keeps a connection idle.
const HEADERS_WITHIN: Duration = Duration::from_secs(120);
const FIRST_BYTE_WITHIN: Duration = Duration::from_secs(30);
const HANDSHAKE_WITHIN: Duration = Duration::from_secs(10);
/// When the system has no more sockets, trying at once would only burn a core.
const ACCEPT_AGAIN: Duration = Duration::from_millis(50);

#[derive(Clone)]
pub(crate) struct Server {
    router: Router,
    tls: TlsAcceptor,
    closing: watch::Receiver<bool>,
    room: Arc<Semaphore>,
    /// Held while a connection lives, so that stopping can wait for the last.
    _alive: mpsc::Sender<()>,
}

impl Server {
    pub(crate) fn new(
        router: Router,
        tls: TlsAcceptor,
        closing: watch::Receiver<bool>,
        alive: mpsc::Sender<()>,
    ) -> Server {
        let room = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        Server { router, tls, closing, room, _alive: alive }
    }

    /// Accepts until the coordinator closes.
    pub(crate) async fn accept(self, listener: TcpListener) {
        let mut closing = self.closing.clone();
        loop {
            let Ok(room) = self.room.clone().acquire_owned().await else { return };
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                _ = closing.wait_for(|closing| *closing) => return,
            };
            match accepted {
                Ok((stream, peer)) => {
                    let server = self.clone();
                    tokio::spawn(async move {
                        server.serve(stream, peer).await;
                        drop(room);
                    });
                }
                Err(error) => {
                    tracing::warn!("cannot accept a connection: {error}");
                    sleep(ACCEPT_AGAIN).await;
                }
            }
        }
    }

    async fn serve(self, stream: TcpStream, peer: SocketAddr) {
        // Small messages must not wait for an acknowledgement of the one before.
        let _ = stream.set_nodelay(true);
        let mut first = [0];
        let mut closing = self.closing.clone();
        let peeked = tokio::select! {
            peeked = timeout(FIRST_BYTE_WITHIN, stream.peek(&mut first)) => peeked,
            _ = closing.wait_for(|closing| *closing) => return,
        };
        let Ok(Ok(1)) = peeked else { return };
        if first[0] == TLS_HANDSHAKE {
            match timeout(HANDSHAKE_WITHIN, self.tls.accept(stream)).await {
                Ok(Ok(stream)) => self.answer(stream, peer).await,
                Ok(Err(error)) => tracing::debug!(%peer, "no TLS connection: {error}"),
                Err(_elapsed) => tracing::debug!(%peer, "a TLS handshake took too long"),
            }
        } else if is_here(peer.ip()) {
            self.answer(stream, peer).await;
        } else {
            let own = stream.local_addr().ok();
            let service = hyper::service::service_fn(move |request| ready(redirect(&request, own)));
            let connection = http1::Builder::new()
                .keep_alive(false)
                .timer(TokioTimer::new())
                .header_read_timeout(HANDSHAKE_WITHIN)
                .serve_connection(TokioIo::new(stream), service);
            // Whoever does not like the answer: there is none other.
            let _ = connection.await;
        }
    }

    async fn answer(
        mut self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        peer: SocketAddr,
    ) {
        let service =
            MapRequest::new(self.router.clone(), move |mut request: Request<Incoming>| {
                request.extensions_mut().insert(FarEnd(peer.ip()));
                request
            });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEADERS_WITHIN)
            .serve_connection(TokioIo::new(stream), TowerToHyperService::new(service))
            .with_upgrades();
        let mut connection = std::pin::pin!(connection);
        tokio::select! {
            _ = connection.as_mut() => return,
            _ = self.closing.wait_for(|closing| *closing) => {}
        }
        // Answers that are on their way are finished.
        connection.as_mut().graceful_shutdown();
        let _ = connection.await;
    }
}

/// Whether a peer is on this machine.
fn is_here(ip: IpAddr) -> bool {
    ip.to_canonical().is_loopback()
}

fn redirect(
    request: &Request<Incoming>,
    own: Option<SocketAddr>,
) -> Result<Response<Body>, Infallible> {
    let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok());
    let host = host.map(str::to_owned).or_else(|| own.map(|own| own.to_string()));
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
    let text = "Plain http is for this machine only: use https.\n";
    let location = format!("https://{}{path}", host.unwrap_or_default());
    let response = Response::builder()
        .status(StatusCode::PERMANENT_REDIRECT)
        .header(header::LOCATION, location)
        .body(Body::from(text));
    Ok(response.unwrap_or_else(|_| Response::new(Body::from(text))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_known_by_either_address() {
        assert!(is_here("127.0.0.1".parse().unwrap()));
        assert!(is_here("::1".parse().unwrap()));
        assert!(is_here("::ffff:127.0.0.1".parse().unwrap()));
        assert!(!is_here("192.168.1.2".parse().unwrap()));
    }
}
