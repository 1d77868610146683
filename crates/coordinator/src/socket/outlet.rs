//! What goes to a node: its frames of other nodes, in a queue with bounds, and the right to write to its socket.
//! Whoever has frames for a node that is not busy writes them at once, without waking the node's own task. While the
//! node has a way by QUIC, frames go there instead, by that way's task.

use std::io;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use shoal_protocol::NodeId;
use shoal_scheduler::Conn;
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedWriteHalf;
use tokio::sync::Notify;

use super::parcel::{Batch, Parcel, advance, pieces};
use super::queue::{Over, Queue, QuicWay};

/// What the system may keep unsent of one socket, because the coordinator's words cannot overtake it; or one
/// frame or word, if that is more, because they cannot overtake part of it either.
const UNSENT_BYTES: usize = 256 << 10;

/// Frames that no honest node sends, after which the node is refused. More than none, because a frame may be cut
/// short by a fault that is over.
const MAX_DISHONEST: u32 = 16;

/// What became of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Posted {
    Taken {
        by_quic: bool,
    },
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
    /// Counts ways by QUIC, so that the newest is told from those before.
    ways: AtomicU64,
    dishonest: AtomicU32,
    condemned: Notify,
}

impl Outlet {
    pub(crate) fn new(conn: Conn, plain: Option<OwnedWriteHalf>) -> Outlet {
        let outlet = Outlet {
            conn,
            node: OnceLock::new(),
            plain,
            unsent: AtomicUsize::new(0),
            queue: Mutex::default(),
            wake: Notify::new(),
            ways: AtomicU64::new(0),
            dishonest: AtomicU32::new(0),
            condemned: Notify::new(),
        };
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
        self.allow_unsent(parcel.left());
        let mut queue = self.queue();
        if !queue.takes() {
            return Posted::Gone;
        }
        match queue.push(source, parcel) {
            Some(by_quic) => Posted::Taken { by_quic },
            None => Posted::Full,
        }
    }

    /// Sends frames that wait, as far as the socket takes them at once; the node's own task does the rest.
    pub(crate) fn flush(&self) {
        let mut queue = self.queue();
        if let Some(way) = queue.quic_waits() {
            way.notify_one();
        }
        if !queue.has_work() {
            return;
        }
        let Some(plain) = &self.plain else { return self.wake.notify_one() };
        let mut batch = Batch::new();
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
    pub(super) fn allow_unsent(&self, size: usize) {
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
        self.queue().forget_frames();
    }

    /// Nothing more is sent; what waits is thrown away.
    pub(crate) fn close(&self) {
        self.queue().close();
    }

    /// A new way by QUIC, on which frames go from now on. `None` if the node takes nothing any more.
    pub(crate) fn open_quic(&self) -> Option<(QuicWay, Over)> {
        self.queue().open_quic(self.ways.fetch_add(1, Ordering::Relaxed))
    }

    /// A way is gone; frames go by the socket again, if this was the newest.
    pub(crate) fn close_quic(&self, way: &QuicWay) {
        self.queue().close_quic(way.number);
        self.flush();
    }

    /// Waits for frames of a way by QUIC and adds them to the batch. Whether the way is still the node's.
    pub(crate) async fn quic_frames(&self, way: &QuicWay, batch: &mut Vec<Parcel>) -> bool {
        loop {
            let woken = way.wake.notified();
            let is_there = self.queue().take_quic(way.number, batch);
            if !is_there || !batch.is_empty() {
                return is_there;
            }
            woken.await;
        }
    }

    /// Bytes that wait for this node.
    pub(crate) fn held(&self) -> usize {
        self.queue().held()
    }

    /// Throws away the newer half of what waits. How many frames that were.
    pub(crate) fn halve(&self) -> u64 {
        self.queue().halve()
    }

    /// The node sent what no honest one does. Whether that was once too often, which its own task hears as well.
    pub(crate) fn accuse(&self) -> bool {
        let is_too_often = self.dishonest.fetch_add(1, Ordering::Relaxed) >= MAX_DISHONEST;
        if is_too_often {
            self.condemned.notify_one();
        }
        is_too_often
    }

    /// Waits until the node was accused too often.
    pub(super) async fn condemned(&self) {
        self.condemned.notified().await;
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
