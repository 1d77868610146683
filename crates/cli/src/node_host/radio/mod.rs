//! Direct links of a native node: WebRTC data channels to other nodes, tabs and processes alike. One task has
//! all of them; the node's loop orders and hears, and never waits for it.

mod air;
mod call;
mod outside;
mod ports;
mod stun;
#[cfg(test)]
mod tests;
mod words;

use shoal_protocol::limit::{LINK_WINDOW, MAX_LINK_FRAME};
use shoal_protocol::{CrewId, NodeId};
use tokio::sync::mpsc;

use air::Air;
use ports::Ports;

/// Orders that wait for the task: what all peers of a node may have under way, and half of it is
/// kept free of frames, so that a full link cannot keep a call from being made or ended.
const MAX_ORDERS: usize = 512;
/// Events that wait for the node's loop; the task waits for it, never the other way round.
const MAX_HEARD: usize = 256;
/// Bytes for one peer that wait for its channel: what a link sends before it hears an answer, and a
/// few small words. More is dropped, because links repeat what was lost.
const MAX_WAITING_BYTES: usize = LINK_WINDOW as usize + 4 * MAX_LINK_FRAME;
/// Calls at a time: four crews' worth of the largest all-to-all crew, and as many again being replaced.
const MAX_CALLS: usize = 64;

/// Another node in one crew. Two crews that have the same two nodes have a channel each.
pub(crate) type Peer = (CrewId, NodeId);

/// What the task is to do.
#[derive(Debug)]
pub(crate) enum Order {
    /// Call this peer; ours is the offer.
    Dial(Peer),
    /// Let this peer call.
    Listen(Peer),
    /// What the peer's radio said, on the way that exists already.
    Hear(Peer, Vec<u8>),
    Hang(Peer),
    Send(Peer, Vec<u8>),
    /// STUN servers (`stun:host:port`) that tell how this node looks from outside.
    Servers(Vec<String>),
}

/// What became of it.
#[derive(Debug)]
pub(crate) enum Heard {
    /// For the peer's radio, on the way that exists already.
    Words(Peer, Vec<u8>),
    Up(Peer),
    Down(Peer),
    Frame(Peer, Vec<u8>),
}

/// The node's side. The task ends when this is dropped.
pub(crate) struct Radio {
    orders: mpsc::Sender<Order>,
}

impl Radio {
    /// Must be called in a tokio runtime.
    pub(crate) fn start() -> (Radio, mpsc::Receiver<Heard>) {
        let (orders, todo) = mpsc::channel(MAX_ORDERS);
        let (tell, heard) = mpsc::channel(MAX_HEARD);
        tokio::spawn(Air::new(Ports::open(), tell).work(todo));
        (Radio { orders }, heard)
    }

    /// Frames are dropped while the task is behind: links repeat them.
    pub(crate) fn order(&self, order: Order) {
        let is_frame = matches!(order, Order::Send(..));
        if !is_frame || self.orders.capacity() > MAX_ORDERS / 2 {
            let _ = self.orders.try_send(order);
        }
    }
}
