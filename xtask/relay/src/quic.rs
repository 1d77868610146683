//! The same two clients by QUIC: each has its socket, and its frames beside it.

use std::sync::Arc;
use std::time::Instant;

use shoal_protocol::frame::HEADER_BYTES;
use shoal_protocol::limit::LINK_WINDOW;
use shoal_protocol::quic::{ACCEPTED, PATH, frame_size, greeting};
use shoal_protocol::{QuicOffer, ToNode};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::runtime::Runtime;
use wtransport::config::QuicTransportConfig;
use wtransport::quinn::VarInt;
use wtransport::tls::Sha256Digest;
use wtransport::tls::client::{ServerHashVerification, build_default_tls_config};
use wtransport::{ClientConfig, Connection, Endpoint, RecvStream, SendStream};

use crate::Outcome;
use crate::flow::{ACK_BYTES, ACK_EVERY, TOTAL, TRIPS};
use crate::middle::{Client, Middle};

/// As large as what a read gives at best.
const BUFFER: usize = 256 << 10;

/// Two that talk, in a runtime of their own.
struct Pair {
    runtime: Runtime,
    one: End,
    other: End,
    /// Their sockets, which must stay open.
    _clients: Vec<Client>,
    message: Vec<u8>,
    ack: Vec<u8>,
    echo: Vec<u8>,
}

struct End {
    _connection: Connection,
    send: SendStream,
    receive: RecvStream,
    buffer: Vec<u8>,
}

/// Megabytes in a second, as by WebSocket.
pub(crate) fn flow(middle: &mut Middle, size: usize) -> Outcome<f64> {
    let Pair { runtime, mut one, mut other, message, ack, _clients, .. } = pair(middle, size)?;
    let count = TOTAL / size;
    runtime.block_on(async move {
        let receiver = tokio::spawn(async move {
            let mut unsaid = 0;
            for _ in 0..count {
                unsaid += other.skip().await?;
                if unsaid >= ACK_EVERY {
                    unsaid -= ACK_EVERY;
                    other.send.write_all(&ack).await?;
                }
            }
            let end = Instant::now();
            // What is on its way must arrive before this end goes.
            other.send.finish().await?;
            Outcome::Ok(end)
        });
        let start = Instant::now();
        let mut ahead = 0;
        for _ in 0..count {
            while ahead + size > LINK_WINDOW as usize {
                one.skip().await?;
                ahead = ahead.saturating_sub(ACK_EVERY);
            }
            AsyncWriteExt::write_all(&mut one.send, &message).await?;
            ahead += size;
        }
        let end = receiver.await??;
        Ok((count * size) as f64 / 1e6 / end.duration_since(start).as_secs_f64())
    })
}

/// Median microseconds there and back.
pub(crate) fn trip(middle: &mut Middle, size: usize) -> Outcome<f64> {
    let Pair { runtime, mut one, mut other, message, echo, _clients, .. } = pair(middle, size)?;
    runtime.block_on(async move {
        tokio::spawn(async move {
            for _ in 0..TRIPS {
                other.skip().await?;
                other.send.write_all(&echo).await?;
            }
            std::future::pending::<Outcome>().await
        });
        let mut times = Vec::with_capacity(TRIPS);
        for _ in 0..TRIPS {
            let start = Instant::now();
            one.send.write_all(&message).await?;
            one.skip().await?;
            times.push(start.elapsed().as_secs_f64() * 1e6);
        }
        times.sort_by(f64::total_cmp);
        Ok(times[TRIPS / 2])
    })
}

fn pair(middle: &mut Middle, size: usize) -> Outcome<Pair> {
    let mut clients = middle.crew(2, [0; 4])?;
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let mut ends = Vec::new();
    for client in &mut clients {
        let ToNode::Quic(offer) = client.wire.word()? else {
            return Err("expected an offer of QUIC".into());
        };
        ends.push(runtime.block_on(End::open(&offer, &client.session))?);
    }
    let [first, second] = &clients[..] else { return Err("expected two clients".into()) };
    let (message, ack) =
        (first.bare_frame_to(second, size), second.bare_frame_to(first, ACK_BYTES));
    let echo = second.bare_frame_to(first, size);
    let (Some(other), Some(one)) = (ends.pop(), ends.pop()) else {
        return Err("expected two ends".into());
    };
    Ok(Pair { runtime, one, other, _clients: clients, message, ack, echo })
}

impl End {
    async fn open(offer: &QuicOffer, session: &str) -> Outcome<End> {
        let hashes = offer.hashes.iter().copied().map(Sha256Digest::new);
        let trust = Arc::new(ServerHashVerification::new(hashes));
        let tls = build_default_tls_config(Arc::new(rustls::RootCertStore::empty()), Some(trust));
        let mut transport = QuicTransportConfig::default();
        let window = VarInt::from_u32(LINK_WINDOW as u32);
        transport.stream_receive_window(window).receive_window(window).send_window(LINK_WINDOW);
        let config = ClientConfig::builder()
            .with_bind_address("127.0.0.1:0".parse()?)
            .with_custom_tls_and_transport(tls, transport)
            .build();
        let url = format!("https://127.0.0.1:{}{PATH}", offer.port);
        let connection = Endpoint::client(config)?.connect(url).await?;
        let (mut send, mut receive) = connection.open_bi().await?.await?;
        send.write_all(&greeting(session)).await?;
        let mut answer = [0];
        receive.read_exact(&mut answer).await?;
        if answer != [ACCEPTED] {
            return Err("not accepted".into());
        }
        Ok(End { _connection: connection, send, receive, buffer: vec![0; BUFFER] })
    }

    /// Takes the next frame, and throws it away; its size.
    async fn skip(&mut self) -> Outcome<usize> {
        let mut header = [0; HEADER_BYTES];
        AsyncReadExt::read_exact(&mut self.receive, &mut header).await?;
        let size = frame_size(&header).map_err(|error| error.to_string())?;
        let mut rest = size - HEADER_BYTES;
        while rest > 0 {
            let most = rest.min(BUFFER);
            rest -= self.receive.read(&mut self.buffer[..most]).await?.ok_or("it ended")?;
        }
        Ok(size)
    }
}
