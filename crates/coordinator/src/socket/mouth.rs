//! Writing to a node's socket, by its own task: the coordinator's words first, then frames of other nodes.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;

use shoal_protocol::ToNode;
use tokio::io::{AsyncWrite, AsyncWriteExt};

use super::outlet::Outlet;
use super::parcel::{Batch, Parcel, advance, pieces};
use super::ws::Kind;

pub(super) type Writer = Box<dyn AsyncWrite + Send + Unpin>;

pub(super) struct Mouth {
    pub(super) outlet: Arc<Outlet>,
    /// If the outlet cannot be written to by everybody.
    own: Option<Writer>,
    /// On its way. Kept here, so that a sentence can be ended also when somebody stopped waiting for it.
    batch: Batch,
    /// Whether it is this task's turn to write.
    has_turn: bool,
}

impl Mouth {
    pub(super) fn new(outlet: Arc<Outlet>, own: Option<Writer>) -> Mouth {
        Mouth { outlet, own, batch: Batch::new(), has_turn: false }
    }

    pub(super) async fn say(&mut self, words: &ToNode) -> io::Result<()> {
        self.send([Parcel::word(words)]).await
    }

    pub(super) async fn ping(&mut self, word: &[u8]) -> io::Result<()> {
        self.send([Parcel::new(Kind::Ping, word)]).await
    }

    /// Sends frames that wait.
    pub(super) async fn pass_on(&mut self) -> io::Result<()> {
        self.send([]).await
    }

    /// The last that is sent. `words` are the other end's own if it said goodbye first.
    pub(super) async fn close(&mut self, words: &[u8]) -> io::Result<()> {
        self.take_turn().await?;
        self.batch.push_back((self.outlet.conn, Parcel::new(Kind::Close, words)));
        self.write().await?;
        self.outlet.close();
        match (&mut self.own, &self.outlet.plain) {
            (Some(own), _) => own.shutdown().await,
            (None, Some(plain)) => {
                socket2::SockRef::from(plain.as_ref()).shutdown(std::net::Shutdown::Write)
            }
            (None, None) => Ok(()),
        }
    }

    /// First these words, then a batch of frames.
    pub(super) async fn send(&mut self, words: impl IntoIterator<Item = Parcel>) -> io::Result<()> {
        self.take_turn().await?;
        let conn = self.outlet.conn;
        self.batch.extend(words.into_iter().map(|parcel| (conn, parcel)));
        self.outlet.take_frames(&mut self.batch);
        self.write().await?;
        self.has_turn = false;
        self.outlet.leave_turn();
        Ok(())
    }

    async fn take_turn(&mut self) -> io::Result<()> {
        if !self.has_turn {
            self.outlet.take_turn(&mut self.batch).await?;
            self.has_turn = true;
        }
        Ok(())
    }

    /// Writes the batch.
    async fn write(&mut self) -> io::Result<()> {
        while !self.batch.is_empty() {
            let sent = match (&mut self.own, &self.outlet.plain) {
                (Some(own), _) => {
                    poll_fn(|cx| {
                        let pieces = pieces(self.batch.iter().map(|(_, parcel)| parcel));
                        Pin::new(&mut *own).poll_write_vectored(cx, pieces.all())
                    })
                    .await?
                }
                (None, Some(plain)) => {
                    match plain.try_write_vectored(
                        pieces(self.batch.iter().map(|(_, parcel)| parcel)).all(),
                    ) {
                        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                            plain.writable().await?;
                            continue;
                        }
                        outcome => outcome?,
                    }
                }
                (None, None) => return Err(io::ErrorKind::NotConnected.into()),
            };
            if sent == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            advance(&mut self.batch, sent);
        }
        match &mut self.own {
            Some(own) => own.flush().await,
            None => Ok(()),
        }
    }
}
