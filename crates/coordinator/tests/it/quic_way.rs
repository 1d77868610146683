//! A node's way by QUIC as a test plays it, and a line of UDP that can be cut.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use shoal_protocol::frame::HEADER_BYTES;
use shoal_protocol::quic::{ACCEPTED, PATH, frame_size, greeting};
use shoal_protocol::{Header, QuicOffer, ToNode};
use tokio::net::UdpSocket;
use wtransport::tls::Sha256Digest;
use wtransport::{ClientConfig, Connection, Endpoint, RecvStream, SendStream};

use crate::node::{Node, receive};

/// What the coordinator told the node.
pub(crate) async fn offer(node: &mut Node) -> QuicOffer {
    loop {
        if let ToNode::Quic(offer) = receive(&mut node.socket).await.expect("an offer") {
            return offer;
        }
    }
}

pub(crate) async fn dial(offer: &QuicOffer) -> Option<Connection> {
    let hashes = offer.hashes.iter().copied().map(Sha256Digest::new);
    let config = ClientConfig::builder()
        .with_bind_address("127.0.0.1:0".parse().unwrap())
        .with_server_certificate_hashes(hashes)
        .build();
    let url = format!("https://127.0.0.1:{}{PATH}", offer.port);
    Endpoint::client(config).unwrap().connect(url).await.ok()
}

pub(crate) struct QuicWay {
    pub(crate) connection: Connection,
    pub(crate) send: SendStream,
    receive: RecvStream,
}

impl QuicWay {
    /// Of a node that was told where.
    pub(crate) async fn of(node: &mut Node) -> QuicWay {
        let offer = offer(node).await;
        QuicWay::open(node, &offer).await
    }

    pub(crate) async fn open(node: &Node, offer: &QuicOffer) -> QuicWay {
        let connection = dial(offer).await.expect("a connection");
        QuicWay::greet(connection, &greeting(&node.session)).await.expect("a way")
    }

    /// `None` if the coordinator does not accept it.
    pub(crate) async fn greet(connection: Connection, first: &[u8]) -> Option<QuicWay> {
        let (mut send, mut receive) = connection.open_bi().await.unwrap().await.unwrap();
        send.write_all(first).await.unwrap();
        let mut answer = [0];
        receive.read_exact(&mut answer).await.ok()?;
        assert_eq!(answer, [ACCEPTED]);
        Some(QuicWay { connection, send, receive })
    }

    pub(crate) async fn post(&mut self, header: Header, payload: &[u8]) {
        let frame = [&header.encode(), payload].concat();
        self.send.write_all(&frame).await.unwrap();
    }

    /// The next frame; `None` when the way is gone.
    pub(crate) async fn take(&mut self) -> Option<Vec<u8>> {
        let mut header = [0; HEADER_BYTES];
        self.receive.read_exact(&mut header).await.ok()?;
        let mut frame = header.to_vec();
        frame.resize(frame_size(&header).unwrap(), 0);
        self.receive.read_exact(&mut frame[HEADER_BYTES..]).await.ok()?;
        Some(frame)
    }
}

/// Passes datagrams between one client and the coordinator until it is cut. Nobody is told of that.
pub(crate) struct Line {
    pub(crate) port: u16,
    cut: Arc<AtomicBool>,
}

impl Line {
    pub(crate) async fn to(port: u16) -> Line {
        let near = Arc::new(UdpSocket::bind("127.0.0.1:0").await.unwrap());
        let far = Arc::new(UdpSocket::bind("127.0.0.1:0").await.unwrap());
        far.connect(("127.0.0.1", port)).await.unwrap();
        let line = Line { port: near.local_addr().unwrap().port(), cut: Arc::default() };
        let (cut, client) = (line.cut.clone(), Arc::new(std::sync::OnceLock::<SocketAddr>::new()));
        let (near2, far2, client2) = (near.clone(), far.clone(), client.clone());
        tokio::spawn(async move {
            let mut bytes = vec![0; 64 << 10];
            while let Ok((length, from)) = near2.recv_from(&mut bytes).await {
                let _ = client2.set(from);
                if !cut.load(Ordering::Relaxed) {
                    let _ = far2.send(&bytes[..length]).await;
                }
            }
        });
        let cut = line.cut.clone();
        tokio::spawn(async move {
            let mut bytes = vec![0; 64 << 10];
            while let Ok(length) = far.recv(&mut bytes).await {
                if let Some(client) = client.get().filter(|_| !cut.load(Ordering::Relaxed)) {
                    let _ = near.send_to(&bytes[..length], client).await;
                }
            }
        });
        line
    }

    pub(crate) fn cut(&self) {
        self.cut.store(true, Ordering::Relaxed);
    }
}
