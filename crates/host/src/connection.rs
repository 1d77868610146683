//! The connection to the coordinator: the socket while there is one, and what waits for it. The node's loop never
//! waits for it: words for the coordinator come first and are all kept, because there are few, and programs wait with
//! their answers while many do; frames for other nodes are dropped when too many wait, because links repeat them.

use std::collections::VecDeque;
use std::future::{pending, poll_fn};
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use futures_util::{Sink, Stream};
use shoal_protocol::codec::Wire as _;
use shoal_protocol::limit::LINK_WINDOW;
use shoal_protocol::{Attempt, FromNode};
use tokio_tungstenite::tungstenite::Message;

use super::backlog::Backlog;
use super::socket::{Socket, peer};

/// A coordinator that takes no bytes for this long is gone.
const SEND_TIMEOUT: Duration = Duration::from_secs(10);
/// Frames that wait, in bytes: what two busy neighbours may have under way.
const MAX_FRAME_BYTES: usize = 2 * LINK_WINDOW as usize;

pub(super) struct Connection {
    socket: Option<Box<Socket>>,
    /// Empty without a socket.
    outbox: Outbox,
    /// Why it was gone last, until this node joined again.
    last_away: Option<String>,
}

impl Connection {
    pub(super) fn new(backlog: Arc<Backlog>) -> Connection {
        Connection { socket: None, outbox: Outbox::new(backlog), last_away: None }
    }

    pub(super) fn opened(&mut self, socket: Box<Socket>) {
        self.socket = Some(socket);
        self.outbox.clear();
    }

    /// It is gone, and all that was for it.
    pub(super) fn closed(&mut self) {
        self.socket = None;
        self.outbox.clear();
    }

    /// This node joined: whatever happens next is news.
    pub(super) fn joined(&mut self) {
        self.last_away = None;
    }

    /// Whether the donor does not know yet that it is gone for this reason. The same again and again is no news.
    pub(super) fn is_news(&mut self, reason: &str) -> bool {
        let is_news = self.last_away.as_deref() != Some(reason);
        if is_news {
            self.last_away = Some(reason.into());
        }
        is_news
    }

    pub(super) fn say(&mut self, message: &FromNode) {
        if self.socket.is_some() {
            self.outbox.say(message);
        }
    }

    /// A part of an answer that a program gave was said, or dropped.
    pub(super) fn taken(&self, bytes: usize) {
        self.outbox.backlog.taken(bytes);
    }

    /// Nobody wants these answers any more.
    pub(super) fn retract(&mut self, calls: &[Attempt]) {
        self.outbox.retract(calls);
    }

    /// A frame for another node, by relay.
    pub(super) fn pass(&mut self, frame: Vec<u8>) {
        if self.socket.is_some() {
            self.outbox.pass(frame);
        }
    }

    pub(super) fn is_open(&self) -> bool {
        self.socket.is_some()
    }

    /// Where the coordinator is, as this node reached it.
    pub(super) fn peer(&self) -> Option<IpAddr> {
        self.socket.as_ref().and_then(|socket| peer(socket))
    }

    /// When it counts as dead if it takes nothing before.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.outbox.stuck.map(|since| since + SEND_TIMEOUT)
    }

    /// Gives the socket what it takes at once. Says whether it goes on.
    pub(super) async fn speak(&mut self) -> bool {
        let Some(socket) = &mut self.socket else { return true };
        let outbox = &mut self.outbox;
        let broke = poll_fn(|context| Poll::Ready(outbox.poll(context, socket).is_ready())).await;
        !broke && self.deadline().is_none_or(|at| at > Instant::now())
    }

    /// The next frame; `None` when the connection is gone. Never ready without a socket. What waits to be sent is
    /// sent meanwhile.
    pub(super) async fn next_frame(&mut self) -> Option<Message> {
        let Some(socket) = &mut self.socket else { return pending().await };
        let outbox = &mut self.outbox;
        poll_fn(|context| {
            if let Poll::Ready(Broken) = outbox.poll(context, socket) {
                return Poll::Ready(None);
            }
            Pin::new(&mut **socket).poll_next(context).map(|next| next.and_then(Result::ok))
        })
        .await
    }
}

/// What waits for the socket.
struct Outbox {
    words: VecDeque<Word>,
    frames: VecDeque<Vec<u8>>,
    frame_bytes: usize,
    /// Of the words, those that are answers.
    answer_bytes: usize,
    /// Told how many these are.
    backlog: Arc<Backlog>,
    /// Whether the socket holds bytes of its own still.
    unflushed: bool,
    /// Since when the socket takes nothing.
    stuck: Option<Instant>,
}

struct Word {
    bytes: Vec<u8>,
    /// The request that this is a part of the answer to.
    answers: Option<Attempt>,
}

/// The socket cannot be written to any more.
struct Broken;

impl Outbox {
    fn new(backlog: Arc<Backlog>) -> Outbox {
        let (words, frames) = Default::default();
        let (frame_bytes, answer_bytes) = (0, 0);
        let (unflushed, stuck) = (false, None);
        Outbox { words, frames, frame_bytes, answer_bytes, backlog, unflushed, stuck }
    }

    fn clear(&mut self) {
        *self = Outbox::new(self.backlog.clone());
        self.backlog.wait_in_outbox(0);
    }

    fn say(&mut self, message: &FromNode) {
        let bytes = message.encode();
        let answers = if let FromNode::Answer { call, .. } = message { Some(*call) } else { None };
        if answers.is_some() {
            self.answer_bytes += bytes.len();
            self.backlog.wait_in_outbox(self.answer_bytes);
        }
        self.words.push_back(Word { bytes, answers });
    }

    fn retract(&mut self, calls: &[Attempt]) {
        self.words.retain(|word| word.answers.is_none_or(|call| !calls.contains(&call)));
        let answers = self.words.iter().filter(|word| word.answers.is_some());
        self.answer_bytes = answers.map(|word| word.bytes.len()).sum();
        self.backlog.wait_in_outbox(self.answer_bytes);
    }

    fn pass(&mut self, frame: Vec<u8>) {
        if self.frame_bytes + frame.len() <= MAX_FRAME_BYTES {
            self.frame_bytes += frame.len();
            self.frames.push_back(frame);
        }
    }

    /// Gives the socket what it takes. Never ready but when it is broken: there is nothing to wait for.
    fn poll(&mut self, context: &mut Context<'_>, socket: &mut Socket) -> Poll<Broken> {
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
        if let Some(Word { bytes, answers }) = self.words.pop_front() {
            if answers.is_some() {
                self.answer_bytes -= bytes.len();
                self.backlog.wait_in_outbox(self.answer_bytes);
            }
            return Some(Message::Binary(bytes.into()));
        }
        let frame = self.frames.pop_front()?;
        self.frame_bytes -= frame.len();
        Some(Message::Binary(frame.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backlog::MOST;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc;
    use tokio::net::{TcpListener, TcpStream};
    use tokio_tungstenite::tungstenite::protocol::Role;
    use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

    const PART: usize = 256 << 10;

    fn call() -> Attempt {
        Attempt::new(1, 1)
    }

    fn part() -> FromNode {
        FromNode::Answer { call: call(), at: 0, part: vec![7; PART].into(), last: false }
    }

    #[tokio::test]
    async fn a_program_waits_while_its_answer_does_and_what_nobody_wants_goes() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let tcp = TcpStream::connect(listener.local_addr().expect("bound")).await.expect("there");
        let _deaf = listener.accept().await.expect("it came");
        let plain = MaybeTlsStream::Plain(tcp);
        let socket = WebSocketStream::from_raw_socket(plain, Role::Client, None).await;
        let backlog = Arc::new(Backlog::default());
        let mut connection = Connection::new(backlog.clone());
        connection.opened(Box::new(socket));
        let (cancel, (to_loop, parts)) = (Arc::new(AtomicBool::new(false)), mpsc::channel());
        let (given, is_over) = (backlog.clone(), cancel.clone());
        let program = std::thread::spawn(move || {
            for _ in 0..1000 {
                given.give(PART, &is_over);
                let _ = to_loop.send(());
            }
        });
        // The system takes some of it.
        while connection.outbox.answer_bytes < MOST {
            if parts.try_recv().is_ok() {
                connection.say(&part());
                backlog.taken(PART);
            }
            assert!(connection.speak().await);
            tokio::task::yield_now().await;
        }
        assert!(connection.outbox.answer_bytes < MOST + 2 * PART);
        assert!(!program.is_finished(), "it waits, with most of its answer to come");
        connection.say(&FromNode::Pause(true));
        connection.retract(&[call()]);
        assert_eq!((connection.outbox.answer_bytes, connection.outbox.words.len()), (0, 1));
        parts.recv().expect("it goes on");
        cancel.store(true, Ordering::Relaxed);
        program.join().expect("whoever is ended does not wait");
    }
}
