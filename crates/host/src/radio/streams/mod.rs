//! Streams between native nodes: TCP connections with a seal of their own, where one of two reaches the other. Whether
//! they are tried and used is decided in `shoal_node::direct`. Ports are open only while there are calls.

mod greet;
mod pipe;

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use shoal_seal::stream::Halves;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::AbortHandle;

use super::{CrewPeer, Heard, MAX_CALLS, ports};
use greet::{Calls, Expected};
use pipe::{Outbox, Pipe, Tells};

pub(super) use pipe::Line;

/// Addresses of a peer that are tried: machines with more have virtual networks that lead nowhere.
pub(super) const MAX_ADDRESSES: usize = 8;
/// Connections at a time of whom nothing is known yet. A stranger's ends after seconds.
const MAX_STRANGERS: usize = 32;
/// What becomes of streams and waits for the radio: each call has at most a few at a time.
const MAX_EVENTS: usize = 4 * MAX_CALLS;
/// Where no connection can be taken because this process has too many files open.
const FULL_FOR: Duration = Duration::from_millis(200);
/// Ports below belong to servers, and no node listens there: nobody is sent there by a peer's word.
const LEAST_PORT: u16 = 1024;
/// Who dials says this on the stream that is used.
const USE: u8 = 1;

/// What a node's radio says of its streams: half of the secret, and where it listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Offer {
    pub(super) half: [u8; 32],
    pub(super) at: Vec<SocketAddr>,
}

pub(super) enum Event {
    /// A connection is proven to be the peer's; who listens was told to use it.
    Met { peer: CrewPeer, call: u64, line: Line },
    /// A stream in use is gone.
    Ended { peer: CrewPeer, call: u64 },
}

/// Streams in use, for whoever sends.
#[derive(Clone, Default)]
pub(super) struct Outboxes(Arc<Mutex<Waiting>>);

/// What each peer's call, by its number, has yet to send.
type Waiting = BTreeMap<CrewPeer, (u64, Arc<Outbox>)>;

pub(super) struct Streams {
    /// Listening tasks; none while there are no calls.
    doors: Vec<AbortHandle>,
    at: Vec<SocketAddr>,
    calls: watch::Sender<Calls>,
    trying: BTreeMap<CrewPeer, Trying>,
    used: BTreeMap<CrewPeer, (u64, Pipe)>,
    outboxes: Outboxes,
    strangers: Arc<Semaphore>,
    tell: mpsc::Sender<Event>,
    events: mpsc::Receiver<Event>,
}

struct Trying {
    dials: bool,
    half: [u8; 32],
    theirs: Option<Offer>,
    id: Option<[u8; 16]>,
}

/// Never ready without streams.
pub(super) async fn next(streams: &mut Option<Streams>) -> Event {
    let event = match streams {
        Some(streams) => streams.events.recv().await,
        None => None,
    };
    match event {
        Some(event) => event,
        None => std::future::pending().await,
    }
}

impl Streams {
    pub(super) fn new(outboxes: Outboxes) -> Streams {
        let (tell, events) = mpsc::channel(MAX_EVENTS);
        Streams {
            doors: Vec::new(),
            at: Vec::new(),
            calls: watch::Sender::default(),
            trying: BTreeMap::new(),
            used: BTreeMap::new(),
            outboxes,
            strangers: Arc::new(Semaphore::new(MAX_STRANGERS)),
            tell,
            events,
        }
    }

    /// A call begins: what is offered of streams in it. `None` if this machine has no chance for it.
    pub(super) fn begin(&mut self, peer: CrewPeer, dials: bool) -> Option<Offer> {
        let mut half = [0; 32];
        getrandom::fill(&mut half).ok()?;
        if self.trying.len() >= MAX_CALLS {
            return None;
        }
        self.open();
        self.trying.insert(peer, Trying { dials, half, theirs: None, id: None });
        Some(Offer { half, at: self.at.clone() })
    }

    /// The peer offers streams.
    pub(super) fn offered(&mut self, peer: CrewPeer, offer: Offer) {
        if let Some(trying) = self.trying.get_mut(&peer) {
            trying.theirs.get_or_insert(offer);
        }
    }

    /// Connects to the peer's addresses, and takes its connections from now on.
    pub(super) fn try_all(&mut self, peer: CrewPeer, call: u64) {
        let Some(Trying { dials, half, theirs: Some(theirs), id }) = self.trying.get_mut(&peer)
        else {
            return;
        };
        let (dialled, listened) = if *dials { (*half, theirs.half) } else { (theirs.half, *half) };
        let halves = Halves { dials: dialled, listens: listened };
        let (name, dials) = (halves.id(), *dials);
        *id = Some(name);
        let expected = Expected { peer, call, halves, dials };
        self.calls.send_modify(|calls| {
            calls.insert(name, expected);
        });
        for to in reachable(&theirs.at, &self.at) {
            tokio::spawn(greet::call(to, name, self.calls.subscribe(), self.tell.clone()));
        }
    }

    /// This connection is used from now on. Who dials says so on it, before anything else.
    pub(super) fn take(
        &mut self,
        (peer, call): (CrewPeer, u64),
        line: Line,
        heard: &mpsc::Sender<Heard>,
    ) -> io::Result<()> {
        let tells = Tells { peer, call, heard: heard.clone(), events: self.tell.clone() };
        let pipe = Pipe::start(line, tells)?;
        self.outboxes.lock().insert(peer, (call, pipe.outbox.clone()));
        self.used.insert(peer, (call, pipe));
        Ok(())
    }

    /// Gives the frame back if that call has no stream.
    pub(super) fn pass(&self, peer: CrewPeer, call: u64, frame: Vec<u8>) -> Option<Vec<u8>> {
        self.outboxes.pass(peer, call, frame)
    }

    /// Whether that stream is the one in use.
    pub(super) fn is_used(&self, peer: CrewPeer, call: u64) -> bool {
        self.used.get(&peer).is_some_and(|(used, _)| *used == call)
    }

    /// No stream is tried any more; one in use stays.
    pub(super) fn stop(&mut self, peer: CrewPeer) {
        if let Some(id) = self.trying.remove(&peer).and_then(|trying| trying.id) {
            self.calls.send_modify(|calls| {
                calls.remove(&id);
            });
        }
    }

    pub(super) fn end(&mut self, peer: CrewPeer) {
        self.stop(peer);
        self.outboxes.lock().remove(&peer);
        self.used.remove(&peer);
    }

    /// There are no calls: nobody may connect.
    pub(super) fn close(&mut self) {
        self.doors.drain(..).for_each(|door| door.abort());
        self.at.clear();
    }

    fn open(&mut self) {
        if !self.doors.is_empty() {
            return;
        }
        for address in ports::addresses() {
            // What cannot be bound is left out: the peer may be reached from here.
            let Ok((at, listener)) = bind(address) else { continue };
            let (strangers, calls) = (self.strangers.clone(), self.calls.subscribe());
            let door = accept(listener, strangers, calls, self.tell.clone());
            self.doors.push(tokio::spawn(door).abort_handle());
            self.at.push(at);
        }
    }
}

impl Drop for Streams {
    fn drop(&mut self) {
        self.close();
        self.outboxes.lock().clear();
    }
}

impl Outboxes {
    /// Gives the frame back if that call has no stream.
    pub(super) fn pass(&self, peer: CrewPeer, call: u64, frame: Vec<u8>) -> Option<Vec<u8>> {
        let outbox = self.lock().get(&peer).filter(|(used, _)| *used == call).cloned();
        let Some((_, outbox)) = outbox else { return Some(frame) };
        outbox.push(frame);
        None
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn accept(
    listener: TcpListener,
    strangers: Arc<Semaphore>,
    calls: watch::Receiver<Calls>,
    tell: mpsc::Sender<Event>,
) {
    loop {
        let Ok((socket, from)) = listener.accept().await else {
            tokio::time::sleep(FULL_FOR).await;
            continue;
        };
        // Who comes while too many strangers are here is let go.
        if let Ok(permit) = strangers.clone().try_acquire_owned() {
            tokio::spawn(greet::answer(socket, from, calls.clone(), tell.clone(), permit));
        }
    }
}

fn bind(address: IpAddr) -> io::Result<(SocketAddr, TcpListener)> {
    let listener = std::net::TcpListener::bind((address, 0))?;
    listener.set_nonblocking(true)?;
    Ok((listener.local_addr()?, TcpListener::from_std(listener)?))
}

/// Where it makes sense to connect to. Another machine's loopback is not ours: it is tried only where the peer seems to
/// be this machine.
fn reachable(theirs: &[SocketAddr], ours: &[SocketAddr]) -> Vec<SocketAddr> {
    let is_outside = |at: &&SocketAddr| !at.ip().is_loopback();
    let is_here =
        theirs.iter().filter(is_outside).all(|at| ours.iter().any(|own| own.ip() == at.ip()));
    let is_good = |at: &&SocketAddr| {
        let ip = at.ip();
        let is_one = !ip.is_unspecified() && !ip.is_multicast() && !is_broadcast(ip);
        is_one && at.port() >= LEAST_PORT && (is_here || !ip.is_loopback())
    };
    let mut all: Vec<SocketAddr> = theirs.iter().filter(is_good).copied().collect();
    if is_here && all.iter().any(|at| at.ip().is_loopback()) {
        // Within one machine this is the one that always works.
        all.retain(|at| at.ip().is_loopback());
    }
    all.truncate(MAX_ADDRESSES);
    all
}

fn is_broadcast(ip: IpAddr) -> bool {
    matches!(ip, IpAddr::V4(ip) if ip.is_broadcast())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(texts: &[&str]) -> Vec<SocketAddr> {
        texts.iter().map(|text| text.parse().expect("an address")).collect()
    }

    #[test]
    fn nobody_is_sent_to_servers_groups_or_its_own_loopback() {
        let ours = all(&["10.0.0.1:5000", "127.0.0.1:5000"]);
        let theirs = ["10.0.0.2:4000", "10.0.0.2:80", "224.0.0.1:4000", "0.0.0.0:4000"];
        let theirs = all(&[&theirs[..], &["255.255.255.255:4000", "127.0.0.1:4000"]].concat());
        assert_eq!(reachable(&theirs, &ours), all(&["10.0.0.2:4000"]));
        let many: Vec<_> = (0..20).map(|n| SocketAddr::from(([10, 0, 1, n], 4000))).collect();
        assert_eq!(reachable(&many, &ours).len(), MAX_ADDRESSES);
    }

    #[test]
    fn nodes_of_one_machine_meet_on_its_loopback() {
        let ours = all(&["10.0.0.1:5000", "127.0.0.1:5000"]);
        let here = all(&["10.0.0.1:4000", "127.0.0.1:4000"]);
        assert_eq!(reachable(&here, &ours), all(&["127.0.0.1:4000"]));
        let offline = all(&["127.0.0.1:4000"]);
        assert_eq!(reachable(&offline, &offline), offline);
    }
}
