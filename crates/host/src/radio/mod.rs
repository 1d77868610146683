//! Direct links of a native node: WebRTC data channels to other nodes, tabs and processes alike, and streams to native
//! ones. One task has all of them; the node's loop orders and hears, and never waits for it.

mod air;
mod call;
#[cfg(test)]
mod far;
#[cfg(test)]
mod faults;
mod line;
mod outside;
mod pace;
mod path;
mod ports;
mod relays;
mod streams;
#[cfg(test)]
mod tests;
mod way;
mod window;
mod words;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rustls::pki_types::CertificateDer;
use shoal_protocol::limit::{LINK_WINDOW, MAX_LINK_FRAME};
use shoal_protocol::{CrewId, NodeId};
use tokio::sync::mpsc;

use air::Air;
use ports::Ports;
use relays::Relays;
use streams::{Outboxes, Streams};

/// Frames and words that wait for the task: what all peers of a node may have under way, and half of
/// it is kept free of frames, so that a full link cannot keep a call from being made.
const MAX_WAITING: usize = 512;
/// All orders that wait: beside those, each call's beginning and end many times over. A crew's patience keeps
/// them far below this; who gets there is not kept up with by any means.
const MAX_ORDERS: usize = MAX_WAITING + 16 * MAX_CALLS;
/// Events that wait for the node's loop; the task waits for it, never the other way round.
const MAX_HEARD: usize = 256;
/// Bytes for one peer that wait for its channel: what a link sends before it hears an answer, and a
/// few small words. More is dropped, because links repeat what was lost.
const MAX_WAITING_BYTES: usize = LINK_WINDOW as usize + 4 * MAX_LINK_FRAME;
/// Calls at a time: four crews' worth of the largest all-to-all crew, and as many again being replaced.
const MAX_CALLS: usize = 64;

/// Another node in one crew. Two crews that have the same two nodes have a channel each.
pub(crate) type CrewPeer = (CrewId, NodeId);

/// What the task is to do.
#[derive(Debug)]
pub(crate) enum Order {
    /// Call this peer; ours is the offer.
    Dial(CrewPeer),
    /// Let this peer call.
    Listen(CrewPeer),
    /// What the peer's radio said, on the way that exists already.
    Hear(CrewPeer, Vec<u8>),
    Hang(CrewPeer),
    Send(CrewPeer, Vec<u8>),
    /// STUN servers (`stun:host:port`) that tell how this node looks from outside, and TURN servers
    /// (`turn:host:port name password`, `turns:` over TLS) that pass on what comes for it.
    Servers(Vec<String>),
}

/// What became of a call.
#[derive(Debug)]
pub(crate) struct Heard {
    peer: CrewPeer,
    /// Which of the calls to this peer.
    call: u64,
    news: News,
}

#[derive(Debug)]
pub(crate) enum News {
    /// For the peer's radio, on the way that exists already.
    Words(Vec<u8>),
    Up,
    Down,
    Frame(Vec<u8>),
}

/// An order on its way to the task.
struct Ordered {
    /// The call it begins or belongs to.
    call: u64,
    order: Order,
}

/// The node's side. The task ends when this is dropped.
pub(crate) struct Radio {
    orders: mpsc::Sender<Ordered>,
    /// Frames and words among them.
    waiting: Arc<AtomicUsize>,
    calls: Mutex<Calls>,
    /// Streams in use: frames go there at once.
    outboxes: Outboxes,
}

/// The present call to each peer: one that was begun and not ended.
#[derive(Default)]
struct Calls {
    present: BTreeMap<CrewPeer, u64>,
    last: u64,
}

impl Radio {
    /// Must be called in a tokio runtime.
    pub(crate) fn start() -> (Radio, mpsc::Receiver<Heard>) {
        Radio::with(Vec::new(), true)
    }

    /// These vouch for TURN servers too, beside the authorities that the system trusts. Streams are tried, or not.
    fn with(roots: Vec<CertificateDer<'static>>, streams: bool) -> (Radio, mpsc::Receiver<Heard>) {
        let (orders, todo) = mpsc::channel(MAX_ORDERS);
        let (tell, heard) = mpsc::channel(MAX_HEARD);
        let waiting = Arc::new(AtomicUsize::new(0));
        let outboxes = Outboxes::default();
        let streams = streams.then(|| Streams::new(outboxes.clone()));
        let air = Air::new(Ports::open(), Relays::new(roots), streams, tell);
        tokio::spawn(air.work(todo, waiting.clone()));
        (Radio { orders, waiting, calls: Mutex::default(), outboxes }, heard)
    }

    /// Frames are dropped while the task is behind: links repeat them.
    pub(crate) fn order(&self, order: Order) {
        let order = match order {
            Order::Send(peer, frame) => {
                let call = self.calls().present.get(&peer).copied().unwrap_or_default();
                let Some(frame) = self.outboxes.pass(peer, call, frame) else { return };
                Order::Send(peer, frame)
            }
            Order::Dial(_)
            | Order::Listen(_)
            | Order::Hear(..)
            | Order::Hang(_)
            | Order::Servers(_) => order,
        };
        let most = match &order {
            Order::Send(..) => Some(MAX_WAITING / 2),
            Order::Hear(..) => Some(MAX_WAITING),
            Order::Dial(_) | Order::Listen(_) | Order::Hang(_) | Order::Servers(_) => None,
        };
        if let Some(most) = most {
            if self.waiting.load(Ordering::Relaxed) >= most {
                if let Order::Hear((crew, node), _) = order {
                    // The call is given up when nobody answers, and made again.
                    tracing::warn!(
                        "crew {}: too many signalling messages from node {}",
                        crew.0,
                        node.0
                    );
                }
                return;
            }
            self.waiting.fetch_add(1, Ordering::Relaxed);
        }
        let call = self.calls().of(&order);
        if self.orders.try_send(Ordered { call, order }).is_err() {
            // Silence ends what is left behind, and what is missed is tried again.
            self.waiting.fetch_sub(usize::from(most.is_some()), Ordering::Relaxed);
            tracing::warn!("the radio does not keep up with its orders");
        }
    }

    /// What the radio heard. Never ready without a radio.
    pub(crate) async fn next(heard: &mut Option<mpsc::Receiver<Heard>>) -> Option<Heard> {
        match heard {
            Some(heard) => heard.recv().await,
            None => std::future::pending().await,
        }
    }

    /// What is told of the present call to a peer; of earlier ones nothing is passed on.
    pub(crate) fn present(&self, heard: Heard) -> Option<(CrewPeer, News)> {
        let is_present = self.calls().present.get(&heard.peer) == Some(&heard.call);
        is_present.then_some((heard.peer, heard.news))
    }

    fn calls(&self) -> std::sync::MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Calls {
    fn of(&mut self, order: &Order) -> u64 {
        match order {
            Order::Dial(peer) | Order::Listen(peer) => {
                self.last += 1;
                self.present.insert(*peer, self.last);
                self.last
            }
            Order::Hang(peer) => self.present.remove(peer).unwrap_or_default(),
            Order::Hear(peer, _) | Order::Send(peer, _) => {
                self.present.get(peer).copied().unwrap_or_default()
            }
            Order::Servers(_) => 0,
        }
    }
}
