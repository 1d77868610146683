//! What goes to a node: its frames of other nodes, in a queue with bounds, and the right to write to its socket.
//! Whoever has a frame for a node that is not busy writes it at once, without waking the node's own task.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use shoal_protocol::NodeId;
use shoal_protocol::limit::LINK_WINDOW;
use shoal_scheduler::Conn;
use tokio::net::tcp::OwnedWriteHalf;
use tokio::sync::Notify;

use super::parcel::Parcel;

/// What may wait from one node to another: a link's whole window, and what it says beside it.
pub(crate) const MAX_PAIR_BYTES: usize = LINK_WINDOW as usize + (256 << 10);
/// What may wait for one node in all: eight full windows.
pub(crate) const MAX_HELD_BYTES: usize = 32 << 20;
/// Frames handed over at once. Less would cost calls; more would keep the coordinator's own words waiting.
pub(super) const BATCH_BYTES: usize = 256 << 10;

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
    /// Partly sent, so it must go on before anything else.
    begun: Option<Parcel>,
    frames: VecDeque<(Conn, Parcel)>,
    held: usize,
    /// By whom they were sent.
    by_source: BTreeMap<Conn, usize>,
    /// The answer to the last ping.
    pong: Option<Parcel>,
}

impl Outlet {
    pub(super) fn new(conn: Conn, plain: Option<OwnedWriteHalf>) -> Outlet {
        let (queue, wake) = (Mutex::default(), Notify::new());
        Outlet { conn, node: OnceLock::new(), plain, queue, wake }
    }

    pub(super) fn welcomed(&self, node: NodeId) {
        // A second welcome would name the same.
        let _ = self.node.set(node);
    }

    pub(crate) fn node(&self) -> Option<NodeId> {
        self.node.get().copied()
    }

    /// Sends a frame, or keeps it until it can be sent.
    pub(crate) fn post(&self, source: Conn, mut parcel: Parcel) -> Posted {
        let mut queue = self.queue();
        if queue.closed || queue.refuses {
            return Posted::Gone;
        }
        let direct = self.plain.as_ref().filter(|_| queue.is_idle());
        let Some(plain) = direct else {
            if !queue.push(source, parcel) {
                return Posted::Full;
            }
            let sleeps = !queue.busy;
            drop(queue);
            if sleeps {
                self.wake.notify_one();
            }
            return Posted::Taken;
        };
        queue.busy = true;
        drop(queue);
        let outcome = plain.try_write(parcel.rest());
        let mut queue = self.queue();
        match outcome {
            Ok(sent) => parcel.advance(sent),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            // Its own task notices as well and says so.
            Err(_) => {
                queue.close();
                drop(queue);
                self.wake.notify_one();
                return Posted::Gone;
            }
        }
        if !parcel.rest().is_empty() {
            queue.begun = Some(parcel);
        }
        queue.busy = false;
        let needs_own = queue.has_work() || queue.wanted;
        drop(queue);
        if needs_own {
            self.wake.notify_one();
        }
        Posted::Taken
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
    /// An error if the socket is closed.
    pub(super) async fn take_turn(&self) -> io::Result<Turn> {
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
                    let (begun, pong) = (queue.begun.take(), queue.pong.take());
                    return Ok(Turn { begun, pong });
                }
                queue.wanted = true;
            }
            woken.await;
        }
    }

    /// Moves frames into a batch, up to its size.
    pub(super) fn take_frames(&self, batch: &mut VecDeque<Parcel>) {
        let mut queue = self.queue();
        let mut size = 0;
        while size < BATCH_BYTES
            && let Some(parcel) = queue.pop()
        {
            size += parcel.weight();
            batch.push_back(parcel);
        }
    }

    pub(super) fn leave_turn(&self) {
        self.queue().busy = false;
    }

    /// Throws away what waits, and what still comes; something that is partly sent can be ended.
    pub(super) fn forget_frames(&self) {
        let mut queue = self.queue();
        queue.frames.clear();
        queue.by_source.clear();
        queue.held = 0;
        queue.refuses = true;
    }

    /// Nothing more is sent; what waits is thrown away.
    pub(super) fn close(&self) {
        self.queue().close();
    }

    /// Bytes that wait.
    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        self.queue().held
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What comes first when the node's own task has its turn.
pub(super) struct Turn {
    pub(super) begun: Option<Parcel>,
    pub(super) pong: Option<Parcel>,
}

impl Queue {
    fn is_idle(&self) -> bool {
        !self.busy && !self.wanted && !self.has_work()
    }

    /// A closed one is found out by whoever tries.
    fn has_work(&self) -> bool {
        self.closed || self.begun.is_some() || self.pong.is_some() || !self.frames.is_empty()
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

    fn pop(&mut self) -> Option<Parcel> {
        let (source, parcel) = self.frames.pop_front()?;
        let weight = parcel.weight();
        self.held -= weight;
        if let Some(from_it) = self.by_source.get_mut(&source) {
            *from_it -= weight;
            if *from_it == 0 {
                self.by_source.remove(&source);
            }
        }
        Some(parcel)
    }

    fn close(&mut self) {
        *self = Queue { closed: true, busy: true, ..Queue::default() };
    }
}
