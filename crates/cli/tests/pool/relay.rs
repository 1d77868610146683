//! A line that takes its time, for machines whose kernel cannot delay packets: bytes arrive in order and
//! whole, but late.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::mpsc;
use tokio::time::Instant;

/// Pieces under way in one direction; more make the sender wait.
const UNDER_WAY: usize = 1024;

pub(crate) struct Relay {
    pub(crate) address: SocketAddr,
    _runtime: Runtime,
}

impl Relay {
    /// Listens on this machine's `ip` and passes everything on, each way late by `delay`.
    pub(crate) fn start(ip: &str, upstream: SocketAddr, delay: Duration) -> Relay {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime");
        let listener =
            runtime.block_on(TcpListener::bind(format!("{ip}:0"))).expect("a port of the line");
        let address = listener.local_addr().expect("an address");
        runtime.spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let Ok(server) = TcpStream::connect(upstream).await else { return };
                    let (from_client, to_client) = client.into_split();
                    let (from_server, to_server) = server.into_split();
                    tokio::join!(
                        pass(from_client, to_server, delay),
                        pass(from_server, to_client, delay)
                    );
                });
            }
        });
        Relay { address, _runtime: runtime }
    }
}

async fn pass(mut from: impl AsyncRead + Unpin, mut to: impl AsyncWrite + Unpin, delay: Duration) {
    let (queue, mut queued) = mpsc::channel::<(Instant, Vec<u8>)>(UNDER_WAY);
    let read = async move {
        let mut piece = vec![0; 64 << 10];
        while let Ok(length @ 1..) = from.read(&mut piece).await {
            let due = Instant::now() + delay;
            if queue.send((due, piece[..length].to_vec())).await.is_err() {
                return;
            }
        }
    };
    let write = async move {
        while let Some((due, piece)) = queued.recv().await {
            tokio::time::sleep_until(due).await;
            if to.write_all(&piece).await.is_err() {
                return;
            }
        }
    };
    tokio::join!(read, write);
}
