//! What waits for the socket. The node's loop never waits for it: words for the coordinator come first and are
//! all kept, because there are few; frames for other nodes are dropped when too many wait, because links
//! repeat them.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use futures_util::Sink;
use shoal_protocol::limit::LINK_WINDOW;
use tokio_tungstenite::tungstenite::Message;

use super::socket::Socket;

/// A coordinator that takes no bytes for this long is gone.
pub(super) const SEND_TIMEOUT: Duration = Duration::from_secs(10);
/// Frames that wait, in bytes: what two busy neighbours may have under way.
const MAX_FRAME_BYTES: usize = 2 * LINK_WINDOW as usize;

#[derive(Default)]
pub(super) struct Outbox {
    words: VecDeque<Message>,
    frames: VecDeque<Vec<u8>>,
    frame_bytes: usize,
    /// Whether the socket holds bytes of its own still.
    unflushed: bool,
    /// Since when the socket takes nothing.
    stuck: Option<Instant>,
}

/// The socket cannot be written to any more.
pub(super) struct Broken;

impl Outbox {
    pub(super) fn say(&mut self, words: Message) {
        self.words.push_back(words);
    }

    pub(super) fn pass(&mut self, frame: Vec<u8>) {
        if self.frame_bytes + frame.len() <= MAX_FRAME_BYTES {
            self.frame_bytes += frame.len();
            self.frames.push_back(frame);
        }
    }

    /// The connection is gone, and all that was for it.
    pub(super) fn clear(&mut self) {
        *self = Outbox::default();
    }

    /// When the connection counts as dead if it takes nothing before.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.stuck.map(|since| since + SEND_TIMEOUT)
    }

    /// Gives the socket what it takes. Never ready but when it is broken: there is nothing to wait for.
    pub(super) fn poll(&mut self, context: &mut Context<'_>, socket: &mut Socket) -> Poll<Broken> {
        match self.write(context, socket) {
            Poll::Ready(Ok(())) => {
                self.stuck = None;
                Poll::Pending
            }
            Poll::Ready(Err(Broken)) => Poll::Ready(Broken),
            Poll::Pending => {
                self.stuck.get_or_insert_with(Instant::now);
                Poll::Pending
            }
        }
    }

    /// Ready when everything is with the system.
    fn write(
        &mut self,
        context: &mut Context<'_>,
        socket: &mut Socket,
    ) -> Poll<Result<(), Broken>> {
        let mut socket = Pin::new(socket);
        while !self.words.is_empty() || !self.frames.is_empty() {
            match socket.as_mut().poll_ready(context) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(_)) => return Poll::Ready(Err(Broken)),
                Poll::Pending => return Poll::Pending,
            }
            let Some(message) = self.next() else { break };
            self.unflushed = true;
            // Taken: so it moves.
            self.stuck = None;
            if socket.as_mut().start_send(message).is_err() {
                return Poll::Ready(Err(Broken));
            }
        }
        if !self.unflushed {
            return Poll::Ready(Ok(()));
        }
        match socket.poll_flush(context) {
            Poll::Ready(Ok(())) => {
                self.unflushed = false;
                Poll::Ready(Ok(()))
            }
            Poll::Ready(Err(_)) => Poll::Ready(Err(Broken)),
            Poll::Pending => Poll::Pending,
        }
    }

    fn next(&mut self) -> Option<Message> {
        if let Some(words) = self.words.pop_front() {
            return Some(words);
        }
        let frame = self.frames.pop_front()?;
        self.frame_bytes -= frame.len();
        Some(Message::Binary(frame.into()))
    }
}
