//! What goes to a node: its frames of other nodes, in a queue with bounds, and the right to write to its socket.
//! Whoever has frames for a node that is not busy writes them at once, without waking the node's own task.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use shoal_protocol::NodeId;
use shoal_protocol::limit::LINK_WINDOW;
use shoal_scheduler::Conn;
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedWriteHalf;
use tokio::sync::Notify;

use super::parcel::{Batch, Parcel, advance, pieces};

/// What may wait from one node to another: a link's whole window, and what it says beside it.
pub(crate) const MAX_PAIR_BYTES: usize = LINK_WINDOW as usize + (256 << 10);
/// What may wait for one node in all: eight full windows.
pub(crate) const MAX_HELD_BYTES: usize = 32 << 20;
/// Frames handed over at once. Less would cost calls; more would keep the coordinator's own words waiting.
pub(super) const BATCH_BYTES: usize = 256 << 10;

/// What the system may keep unsent of one socket, because the coordinator's words cannot overtake it; or one
/// frame, if that is more, because they cannot overtake part of it either.
const UNSENT_BYTES: usize = 256 << 10;

/// What became of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Posted {
    Taken,
    /// Too much waits for this node already.
    Full,
    /// The node's socket is closed.
    Gone,
}

/// A node's end of the relay, as all other sockets see it.
pub(crate) struct Outlet {
    pub(crate) conn: Conn,
    /// Known when the scheduler has welcomed it.
    node: OnceLock<NodeId>,
    /// Where anybody may write while it is his turn; `None` if only the node's own task can (TLS).
    pub(super) plain: Option<OwnedWriteHalf>,
    /// What the system may keep unsent.
    unsent: AtomicUsize,
    queue: Mutex<Queue>,
    /// For the node's own task: there is something to send, or it is its turn.
    wake: Notify,
}

#[derive(Default)]
struct Queue {
    /// Somebody writes now. Others leave what they have in the queue.
    busy: bool,
    /// The node's own task waits for its turn.
    wanted: bool,
    /// Takes no more frames.
    refuses: bool,
    closed: bool,
    /// In order, with whom they are from. The first may be partly sent.
    frames: VecDeque<(Conn, Parcel)>,
    held: usize,
    by_source: BTreeMap<Conn, usize>,
    /// The answer to the last ping.
    pong: Option<Parcel>,
}

impl Outlet {
    pub(super) fn new(conn: Conn, plain: Option<OwnedWriteHalf>) -> Outlet {
        let (unsent, queue, wake) = (AtomicUsize::new(0), Mutex::default(), Notify::new());
        let outlet = Outlet { conn, node: OnceLock::new(), plain, unsent, queue, wake };
        outlet.allow_unsent(UNSENT_BYTES);
        outlet
    }

    pub(super) fn welcomed(&self, node: NodeId) {
        // A second welcome would name the same.
        let _ = self.node.set(node);
    }

    pub(crate) fn node(&self) -> Option<NodeId> {
        self.node.get().copied()
    }

    /// Takes a frame, to be sent with the next [`Outlet::flush`].
    pub(crate) fn post(&self, source: Conn, parcel: Parcel) -> Posted {
        self.allow_unsent(parcel.rest().len());
        let mut queue = self.queue();
        if queue.closed || queue.refuses {
            return Posted::Gone;
        }
        if queue.push(source, parcel) { Posted::Taken } else { Posted::Full }
    }

    /// Sends frames that wait, as far as the socket takes them at once; the node's own task does the rest.
    pub(crate) fn flush(&self) {
        let Some(plain) = &self.plain else { return self.wake.notify_one() };
        let mut batch = Batch::new();
        let mut queue = self.queue();
        if queue.busy {
            // Whoever it is looks again when he is done.
            return;
        }
        if queue.closed || queue.wanted || queue.pong.is_some() {
            drop(queue);
            return self.wake.notify_one();
        }
        queue.busy = true;
        queue.take(&mut batch);
        drop(queue);
        let outcome = plain.try_write_vectored(pieces(batch.iter().map(|(_, frame)| frame)).all());
        let mut queue = self.queue();
        match outcome {
            Ok(sent) => advance(&mut batch, sent),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            // The node's own task finds out as well, and says so.
            Err(_) => queue.close(),
        }
        if !queue.closed {
            queue.busy = false;
            queue.put_back(batch);
        }
        let must_go_on = queue.has_work() || queue.wanted;
        drop(queue);
        if must_go_on {
            self.wake.notify_one();
        }
    }

    /// Lets the system keep more of this socket unsent.
    fn allow_unsent(&self, size: usize) {
        if self.unsent.fetch_max(size, Ordering::Relaxed) < size
            && let Some(plain) = &self.plain
        {
            limit_unsent(plain.as_ref(), size);
        }
    }

    /// Of several pings only the last needs an answer, so a flood of them fills nothing.
    pub(super) fn answer_ping(&self, pong: Parcel) {
        self.queue().pong = Some(pong);
        self.wake.notify_one();
    }

    /// Waits until there is something to send. For the node's own task only.
    pub(super) async fn has_work(&self) {
        loop {
            let woken = self.wake.notified();
            if self.queue().has_work() {
                return;
            }
            woken.await;
        }
    }

    /// Waits until nobody else writes; from then on only the node's own task does, until [`Outlet::leave_turn`].
    /// What must come first is put into the batch. An error if the socket is closed.
    pub(super) async fn take_turn(&self, batch: &mut Batch) -> io::Result<()> {
        loop {
            let woken = self.wake.notified();
            {
                let mut queue = self.queue();
                if queue.closed {
                    return Err(io::ErrorKind::NotConnected.into());
                }
                if !queue.busy {
                    queue.busy = true;
                    queue.wanted = false;
                    batch.extend(queue.pop_begun());
                    let pong = queue.pong.take();
                    batch.extend(pong.map(|pong| (self.conn, pong)));
                    return Ok(());
                }
                queue.wanted = true;
            }
            woken.await;
        }
    }

    /// Adds frames to a batch, up to its size.
    pub(super) fn take_frames(&self, batch: &mut Batch) {
        self.queue().take(batch);
    }

    pub(super) fn leave_turn(&self) {
        self.queue().busy = false;
    }

    /// Throws away what waits, and what still comes; something that is partly sent can be ended.
    pub(super) fn forget_frames(&self) {
        let mut queue = self.queue();
        let begun = queue.pop_begun();
        queue.frames.clear();
        queue.by_source.clear();
        queue.held = 0;
        queue.put_back(begun.into_iter().collect());
        queue.refuses = true;
    }

    /// Nothing more is sent; what waits is thrown away.
    pub(super) fn close(&self) {
        self.queue().close();
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(target_os = "linux")]
fn limit_unsent(stream: &TcpStream, size: usize) {
    // Without it words wait longer behind frames; nothing else changes.
    if let Ok(size) = u32::try_from(size) {
        let _ = socket2::SockRef::from(stream).set_tcp_notsent_lowat(size);
    }
}

#[cfg(not(target_os = "linux"))]
fn limit_unsent(_stream: &TcpStream, _size: usize) {}

impl Queue {
    /// A closed one is found out by whoever tries.
    fn has_work(&self) -> bool {
        self.closed || self.pong.is_some() || !self.frames.is_empty()
    }

    fn push(&mut self, source: Conn, parcel: Parcel) -> bool {
        let weight = parcel.weight();
        let from_it = self.by_source.entry(source).or_default();
        if *from_it + weight > MAX_PAIR_BYTES || self.held + weight > MAX_HELD_BYTES {
            return false;
        }
        *from_it += weight;
        self.held += weight;
        self.frames.push_back((source, parcel));
        true
    }

    fn pop(&mut self) -> Option<(Conn, Parcel)> {
        let (source, parcel) = self.frames.pop_front()?;
        let weight = parcel.weight();
        self.held -= weight;
        if let Some(from_it) = self.by_source.get_mut(&source) {
            *from_it -= weight;
            if *from_it == 0 {
                self.by_source.remove(&source);
            }
        }
        Some((source, parcel))
    }

    /// A frame that is partly sent.
    fn pop_begun(&mut self) -> Option<(Conn, Parcel)> {
        let is_begun = self.frames.front().is_some_and(|(_, first)| first.is_begun());
        if is_begun { self.pop() } else { None }
    }

    fn take(&mut self, batch: &mut Batch) {
        let mut size = 0;
        while size < BATCH_BYTES
            && let Some((source, parcel)) = self.pop()
        {
            size += parcel.rest().len();
            batch.push_back((source, parcel));
        }
    }

    /// What could not be sent is in front again.
    fn put_back(&mut self, batch: Batch) {
        for (source, parcel) in batch.into_iter().rev() {
            let weight = parcel.weight();
            *self.by_source.entry(source).or_default() += weight;
            self.held += weight;
            self.frames.push_front((source, parcel));
        }
    }

    fn close(&mut self) {
        *self = Queue { closed: true, busy: true, ..Queue::default() };
    }
}
