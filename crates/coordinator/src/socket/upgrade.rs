//! From a request to a socket: the WebSocket handshake, and the two ends of what is underneath.

use std::sync::Arc;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode, header};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hyper::upgrade::{OnUpgrade, Parts, Upgraded};
use hyper_util::rt::TokioIo;
use sha1::{Digest, Sha1};
use shoal_scheduler::Conn;
use tokio::net::TcpStream;

use super::ears::Ears;
use super::mouth::Mouth;
use super::outlet::Outlet;

/// Appended to a client's key by the standard, so that nobody else's answer fits.
const ACCEPT_SALT: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
/// Why a request is no WebSocket's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum NoSocket {
    #[error("This is a WebSocket: expected `Connection: upgrade` and `Upgrade: websocket`")]
    NoUpgrade,
    #[error("expected `Sec-WebSocket-Version: 13`")]
    Version,
    #[error("expected a `Sec-WebSocket-Key`")]
    NoKey,
    #[error("this connection cannot become a WebSocket")]
    NotUpgradable,
}

/// The answer to a node's request, and what becomes a socket once the answer is sent.
pub(super) fn accept(request: &mut Request<Body>) -> Result<(Response<Body>, OnUpgrade), NoSocket> {
    let headers = request.headers();
    if !says(headers, &header::CONNECTION, "upgrade")
        || !says(headers, &header::UPGRADE, "websocket")
    {
        return Err(NoSocket::NoUpgrade);
    }
    if !says(headers, &header::SEC_WEBSOCKET_VERSION, "13") {
        return Err(NoSocket::Version);
    }
    let key = headers.get(header::SEC_WEBSOCKET_KEY).ok_or(NoSocket::NoKey)?;
    let accepted = accepted(key.as_bytes());
    let upgrade = request.extensions_mut().remove::<OnUpgrade>().ok_or(NoSocket::NotUpgradable)?;
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let answer = response.headers_mut();
    answer.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    answer.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    answer.insert(header::SEC_WEBSOCKET_ACCEPT, accepted);
    Ok((response, upgrade))
}

/// The two ends of a connection that was upgraded.
pub(super) fn open(upgraded: Upgraded, conn: Conn) -> (Ears, Mouth) {
    match upgraded.downcast::<TokioIo<TcpStream>>() {
        Ok(Parts { io, read_buf, .. }) => {
            let stream = io.into_inner();
            let (reader, writer) = stream.into_split();
            let outlet = Arc::new(Outlet::new(conn, Some(writer)));
            (Ears::new(Box::new(reader), &read_buf), Mouth::new(outlet, None))
        }
        // TLS. What was read early is in it.
        Err(other) => {
            let (reader, writer) = tokio::io::split(TokioIo::new(other));
            let outlet = Arc::new(Outlet::new(conn, None));
            (Ears::new(Box::new(reader), &[]), Mouth::new(outlet, Some(Box::new(writer))))
        }
    }
}

/// Whether a header's list has this word.
fn says(headers: &HeaderMap, name: &HeaderName, word: &str) -> bool {
    let lists = headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
    lists.flat_map(|list| list.split(',')).any(|said| said.trim().eq_ignore_ascii_case(word))
}

fn accepted(key: &[u8]) -> HeaderValue {
    let mut hash = Sha1::new();
    hash.update(key);
    hash.update(ACCEPT_SALT);
    let text = BASE64_STANDARD.encode(hash.finalize());
    // Letters, digits and signs that every header may have.
    HeaderValue::from_str(&text).unwrap_or_else(|_| HeaderValue::from_static(""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_standards_own_example_is_accepted() {
        assert_eq!(accepted(b"dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }

    #[test]
    fn words_of_lists_are_found() {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONNECTION, HeaderValue::from_static("keep-alive, Upgrade"));
        assert!(says(&headers, &header::CONNECTION, "upgrade"));
        assert!(!says(&headers, &header::UPGRADE, "websocket"));
    }

    #[test]
    fn what_is_missing_is_named() {
        let mut request = Request::new(Body::empty());
        assert_eq!(accept(&mut request).err(), Some(NoSocket::NoUpgrade));
        for (name, value) in [("connection", "Upgrade"), ("upgrade", "websocket")] {
            request.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        assert_eq!(accept(&mut request).err(), Some(NoSocket::Version));
        request.headers_mut().insert("sec-websocket-version", HeaderValue::from_static("13"));
        assert_eq!(accept(&mut request).err(), Some(NoSocket::NoKey));
        request.headers_mut().insert("sec-websocket-key", HeaderValue::from_static("x"));
        assert_eq!(accept(&mut request).err(), Some(NoSocket::NotUpgradable));
    }
}
