//! Frames on a node's stream, in both directions.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

use bytes::{BufMut, Bytes};
use shoal_protocol::frame::HEADER_BYTES;
use shoal_protocol::quic::{ACCEPTED, frame_size};
use tokio::io::{AsyncRead, AsyncReadExt};
use wtransport::{RecvStream, SendStream};

use crate::http::App;
use crate::relay::{Dropped, Letters, Way};
use crate::socket::{Outlet, Parcel, QuicWay};

/// Frames of one node that are passed on before others have their turn.
const FRAMES_AT_ONCE: u64 = 64;

/// Why a way ended, for the log.
type Why = String;

/// From the node to other nodes, by the same rules as on its socket.
pub(super) async fn listen(app: &App, outlet: &Outlet, receive: RecvStream) -> Why {
    let mut frames = Frames::new(receive);
    let mut letters = Letters::default();
    for count in 1_u64.. {
        // A sender that is always ahead must not keep the other directions waiting.
        if count.is_multiple_of(FRAMES_AT_ONCE) {
            letters.send();
            tokio::task::yield_now().await;
        }
        let frame = {
            let mut next = pin!(frames.next());
            match poll_fn(|cx| Poll::Ready(next.as_mut().poll(cx))).await {
                Poll::Ready(frame) => frame,
                Poll::Pending => {
                    letters.send();
                    next.await
                }
            }
        };
        let outcome = match frame {
            Ok(frame) => app.relay.forward(outlet, Way::Quic, frame, &mut letters),
            Err(Ended::Gone(why)) => return why,
            // Where the next frame begins nobody knows.
            Err(Ended::NoFrame(why)) => {
                app.relay.counters().dropped(Dropped::Malformed);
                outlet.accuse();
                return why;
            }
        };
        if outcome.is_err_and(Dropped::is_dishonest) && outlet.accuse() {
            return "it sent too much that no honest node sends".into();
        }
    }
    Why::new()
}

/// To the node: that it is welcome, then what others leave for it.
pub(super) async fn speak(outlet: &Outlet, way: &QuicWay, mut send: SendStream) -> Why {
    if let Err(error) = send.write_all(&[ACCEPTED]).await {
        return error.to_string();
    }
    let (mut parcels, mut batch) = (Vec::new(), Vec::new());
    while outlet.quic_frames(way, &mut parcels).await {
        // Not copied: each is let go of when the node has it.
        batch.extend(parcels.drain(..).map(Bytes::from_owner));
        if let Err(error) = send.quic_stream_mut().write_all_chunks(&mut batch).await {
            return error.to_string();
        }
        batch.clear();
    }
    "another way took its place".into()
}

#[derive(Debug)]
enum Ended {
    Gone(Why),
    NoFrame(Why),
}

/// Takes frames off a stream.
struct Frames<R> {
    reader: R,
    /// The next frame's header, as far as it came along with the one before.
    header: Vec<u8>,
}

impl<R: AsyncRead + Unpin> Frames<R> {
    fn new(reader: R) -> Frames<R> {
        Frames { reader, header: Vec::with_capacity(HEADER_BYTES) }
    }

    /// Not to be dropped halfway if it is to be called again.
    async fn next(&mut self) -> Result<Parcel, Ended> {
        while self.header.len() < HEADER_BYTES {
            let most = HEADER_BYTES - self.header.len();
            read(&mut self.reader, &mut self.header, most).await?;
        }
        let header = self.header.first_chunk().unwrap_or(&[0; HEADER_BYTES]);
        let size = frame_size(header).map_err(|error| Ended::NoFrame(error.to_string()))?;
        let mut bytes = Parcel::room(size + HEADER_BYTES);
        let end = bytes.len() + size;
        bytes.append(&mut self.header);
        while bytes.len() < end {
            // The next one's header comes along, which spares a read.
            let most = end + HEADER_BYTES - bytes.len();
            read(&mut self.reader, &mut bytes, most).await?;
        }
        self.header.extend_from_slice(&bytes[end..]);
        bytes.truncate(end);
        Ok(Parcel::frame(bytes))
    }
}

async fn read(
    reader: &mut (impl AsyncRead + Unpin),
    into: &mut Vec<u8>,
    most: usize,
) -> Result<(), Ended> {
    match reader.read_buf(&mut into.limit(most)).await {
        Ok(0) => Err(Ended::Gone("the other end hung up".into())),
        Ok(_) => Ok(()),
        Err(error) => Err(Ended::Gone(error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(length: usize) -> Vec<u8> {
        let mut bytes = vec![0; HEADER_BYTES + length];
        bytes[0] = shoal_protocol::frame::FRAME_VERSION;
        bytes[4..8].copy_from_slice(&(length as u32).to_le_bytes());
        bytes.iter_mut().skip(HEADER_BYTES).enumerate().for_each(|(at, byte)| *byte = at as u8);
        bytes
    }

    #[tokio::test]
    async fn frames_are_told_apart_however_they_come() {
        let sent = [frame(0), frame(1), frame(100_000), frame(47), frame(0), frame(70_000)];
        let whole = sent.concat();
        for piece in [1_000_000, 4096, 49, 48, 47, 7] {
            let (mut one, other) = tokio::io::duplex(1 << 20);
            let bytes = whole.clone();
            let writer = tokio::spawn(async move {
                for piece in bytes.chunks(piece) {
                    tokio::io::AsyncWriteExt::write_all(&mut one, piece).await.unwrap();
                }
            });
            let mut frames = Frames::new(other);
            for sent in &sent {
                assert_eq!(frames.next().await.unwrap().payload(), sent);
            }
            assert!(matches!(frames.next().await, Err(Ended::Gone(_))));
            writer.await.unwrap();
        }
    }

    #[tokio::test]
    async fn what_is_no_frame_ends_it_before_memory_is_taken() {
        let mut long = frame(0);
        long[4..8].fill(0xff);
        for bytes in [long, vec![0x80; 60]] {
            let mut frames = Frames::new(&bytes[..]);
            assert!(matches!(frames.next().await, Err(Ended::NoFrame(_))));
        }
    }
}
