//! The pool as an application sees it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use shoal_peer::pipe::ToCarrier;
use shoal_peer::{Capabilities, Code, PeerError};

use crate::carrier::Carrier;
use crate::desk::Desk;
use crate::peer::Peer;

/// A node that answers at all has let this application in by then.
const JOIN_WITHIN: Duration = Duration::from_secs(20);
/// A peer may just be joining: it is called again for so long.
const MEET_WITHIN: Duration = Duration::from_secs(10);
const CALL_AGAIN: Duration = Duration::from_millis(200);

/// How to join.
#[derive(Clone, Debug)]
pub struct Options {
    /// The join link that `shoal up` prints.
    pub link: String,
    /// The program `shoal`.
    pub shoal: PathBuf,
    /// Where the node keeps who it is; `None`: with the user's other data.
    pub data: Option<PathBuf>,
    /// Never directly, always through the coordinator's relay.
    pub relay_only: bool,
    /// What this application's device can do, told to every peer.
    pub can: Capabilities,
}

impl Options {
    pub fn new(link: &str) -> Options {
        let shoal = std::env::var_os("SHOAL_BIN").unwrap_or_else(|| "shoal".into());
        Options {
            link: link.into(),
            shoal: shoal.into(),
            data: None,
            relay_only: false,
            can: Capabilities::default(),
        }
    }
}

/// This application's place in a pool. It leaves when dropped.
pub struct Pool {
    node: u64,
    desk: Arc<Desk>,
    _carrier: Carrier,
}

impl Pool {
    pub fn join(link: &str) -> Result<Pool, PeerError> {
        Pool::join_with(&Options::new(link))
    }

    pub fn join_with(options: &Options) -> Result<Pool, PeerError> {
        let (carrier, desk) = Carrier::start(options)?;
        let joined = desk.wait(Some(JOIN_WITHIN), |state| {
            state.node.map(Ok).or_else(|| state.over.clone().map(Err))
        });
        let late = || {
            let message = format!("the pool did not answer within {} s", JOIN_WITHIN.as_secs());
            Err(PeerError { code: Code::NoMesh, message })
        };
        let node = joined.unwrap_or_else(late)?;
        Ok(Pool { node, desk, _carrier: carrier })
    }

    /// This application's number, by which others call it.
    pub fn node(&self) -> u64 {
        self.node
    }

    /// Calls an application or a page by its number.
    pub fn connect(&self, peer: u64) -> Result<Peer, PeerError> {
        {
            let mut state = self.desk.lock();
            let is_open = state.open.contains_key(&peer);
            if let Some(line) = state.take(peer) {
                return Ok(self.peer(peer, line));
            }
            if is_open {
                let message = format!("there is a connection to node {peer} already");
                return Err(PeerError { code: Code::Busy, message });
            }
            state.called.insert(peer);
            state.missed.remove(&peer);
        }
        let until = Instant::now() + MEET_WITHIN;
        self.desk.tell(ToCarrier::Meet { peer });
        let met = loop {
            let rest = until.saturating_duration_since(Instant::now());
            let seen = self.desk.wait(Some(rest), |state| {
                if let Some(line) = state.take(peer) {
                    return Some(Ok(self.peer(peer, line)));
                }
                let is_missed = state.missed.remove(&peer);
                state.over.clone().map(|error| Err(Some(error))).or(is_missed.then_some(Err(None)))
            });
            match seen {
                Some(Ok(peer)) => break Some(Ok(peer)),
                Some(Err(Some(error))) => break Some(Err(error)),
                Some(Err(None)) => {
                    std::thread::sleep(CALL_AGAIN);
                    self.desk.tell(ToCarrier::Meet { peer });
                }
                None => break None,
            }
        };
        self.desk.lock().called.remove(&peer);
        met.unwrap_or_else(|| {
            let message = format!(
                "node {peer} cannot be talked to: there is no such node in the pool, or it takes no calls"
            );
            Err(PeerError { code: Code::NotMet, message })
        })
    }

    /// The next one that calls. Waits for it.
    pub fn accept(&self) -> Result<Peer, PeerError> {
        let found = self.desk.wait(None, |state| {
            while let Some(peer) = state.callers.pop_front() {
                if let Some(line) = state.take(peer) {
                    return Some(Ok(self.peer(peer, line)));
                }
            }
            state.over.clone().map(Err)
        });
        found.unwrap_or_else(|| {
            Err(PeerError { code: Code::NoMesh, message: "the pool is gone".into() })
        })
    }

    fn peer(&self, node: u64, line: u64) -> Peer {
        Peer { desk: self.desk.clone(), node, line }
    }
}
