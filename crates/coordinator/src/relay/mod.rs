//! Frames between the members of a crew, from socket to socket, or by QUIC where a node has that: never through the driver, never read beyond their
//! header. What may not pass is dropped and counted; links say it again or learn why not.

mod counts;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak};

use shoal_protocol::frame::Address;
use shoal_protocol::{CrewId, Epoch, NodeId};
use shoal_scheduler::Conn;

use self::counts::Counters;
pub use self::counts::RelayCounts;
use crate::socket::{Load, Outlet, Parcel, Posted};

/// Frames that wait for others to be read. More would only make the receiver wait.
const LETTERS_BYTES: usize = 256 << 10;

/// What the relay may hold for all nodes together. A small machine has this to spare, and it is the windows of sixty
/// links that stand still.
const MAX_LOAD_BYTES: usize = 256 << 20;

/// How a frame comes or goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Socket,
    Quic,
}

/// Less than this in the longest queue is no reason to drop anything.
const LEAST_SHED_BYTES: usize = 256 << 10;

/// Why a frame was not passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dropped {
    /// Its header is none, or says another length than it has.
    Malformed,
    /// Its source is not who sent it.
    Forged,
    /// There is no such crew, or one of the two is not in it.
    Stranger,
    /// Of an epoch that is not the crew's present one.
    Stale,
    /// Too much waits for the destination.
    Full,
    /// The destination's socket is closed.
    Gone,
}

impl Dropped {
    /// Whether no honest node's frame can meet this.
    pub(crate) fn is_dishonest(self) -> bool {
        match self {
            Dropped::Malformed | Dropped::Forged => true,
            Dropped::Stranger | Dropped::Stale | Dropped::Full | Dropped::Gone => false,
        }
    }
}

/// Who may send frames to whom. Cheap to clone; all clones are one.
#[derive(Clone, Default)]
pub struct Relay(Arc<Shared>);

#[derive(Default)]
struct Shared {
    crews: RwLock<BTreeMap<CrewId, Crew>>,
    /// All nodes' sockets.
    outlets: Mutex<BTreeMap<Conn, Weak<Outlet>>>,
    counters: Counters,
    load: Arc<Load>,
}

struct Crew {
    epoch: Epoch,
    /// By node.
    members: Vec<(NodeId, Conn, Weak<Outlet>)>,
}

impl Relay {
    /// A crew's members in this epoch. Without any it has ended.
    pub fn route(&self, crew: CrewId, epoch: Epoch, members: &[(NodeId, Conn)]) {
        let mut crews = self.0.crews.write().unwrap_or_else(PoisonError::into_inner);
        if members.is_empty() {
            crews.remove(&crew);
            return;
        }
        let outlets = self.outlets();
        let outlet = |conn| outlets.get(&conn).cloned().unwrap_or_default();
        let mut members: Vec<_> =
            members.iter().map(|&(node, conn)| (node, conn, outlet(conn))).collect();
        members.sort_unstable_by_key(|(node, ..)| *node);
        crews.insert(crew, Crew { epoch, members });
    }

    /// What went through, and what did not, since the start.
    pub fn counts(&self) -> RelayCounts {
        self.0.counters.read()
    }

    /// A node's socket that is open. To be said before the scheduler hears of the connection.
    pub(crate) fn opened(&self, outlet: &Arc<Outlet>) {
        self.outlets().insert(outlet.conn, Arc::downgrade(outlet));
    }

    pub(crate) fn closed(&self, conn: Conn) {
        self.outlets().remove(&conn);
    }

    /// A node's end, as long as its socket is open.
    pub(crate) fn outlet(&self, conn: Conn) -> Option<Arc<Outlet>> {
        self.outlets().get(&conn).and_then(Weak::upgrade)
    }

    pub(crate) fn counters(&self) -> &Counters {
        &self.0.counters
    }

    /// Passes a frame on that came this way, at the latest when the letters are dropped.
    pub(crate) fn forward(
        &self,
        from: &Outlet,
        came: Way,
        frame: Parcel,
        letters: &mut Letters,
    ) -> Result<(), Dropped> {
        let size = frame.payload().len() as u64;
        let outcome = self.try_forward(from, frame, letters);
        match outcome {
            Ok(goes) => self.0.counters.passed(size, came, goes),
            Err(why) => self.0.counters.dropped(why),
        }
        if self.0.load.bytes() > MAX_LOAD_BYTES {
            self.shed(MAX_LOAD_BYTES);
        }
        outcome.map(drop)
    }

    /// Makes room: who holds most loses half of it, until all together hold no more than they may.
    fn shed(&self, most: usize) {
        let outlets = self.outlets();
        while self.0.load.bytes() > most {
            let open = outlets.values().filter_map(Weak::upgrade);
            let Some(largest) = open.max_by_key(|outlet| outlet.held()) else { return };
            // What waits is little, and the rest is elsewhere: dropping it would silence everybody.
            if largest.held() < LEAST_SHED_BYTES {
                return;
            }
            let count = largest.halve();
            // The rest is with the system or on its way.
            if count == 0 {
                return;
            }
            self.0.counters.shed(count);
        }
    }

    fn try_forward(
        &self,
        from: &Outlet,
        mut frame: Parcel,
        letters: &mut Letters,
    ) -> Result<Way, Dropped> {
        let address = Address::read(frame.payload()).map_err(|error| {
            tracing::debug!(conn = from.conn.0, "no frame: {error}");
            Dropped::Malformed
        })?;
        if from.node() != Some(address.source) {
            return Err(Dropped::Forged);
        }
        let to = self.destination(from.conn, address)?.upgrade().ok_or(Dropped::Gone)?;
        let size = frame.payload().len();
        frame.count_in(&self.0.load);
        match to.post(from.conn, frame) {
            Posted::Taken { by_quic } => {
                letters.add(to, size);
                Ok(if by_quic { Way::Quic } else { Way::Socket })
            }
            Posted::Full => Err(Dropped::Full),
            Posted::Gone => Err(Dropped::Gone),
        }
    }

    fn destination(&self, from: Conn, address: Address) -> Result<Weak<Outlet>, Dropped> {
        let crews = self.0.crews.read().unwrap_or_else(PoisonError::into_inner);
        let crew = crews.get(&address.crew).ok_or(Dropped::Stranger)?;
        // On an older connection of the same node it does not count as a member any more.
        crew.member(address.source).filter(|(conn, _)| *conn == from).ok_or(Dropped::Stranger)?;
        let (_, to) = crew.member(address.destination).ok_or(Dropped::Stranger)?;
        if crew.epoch != address.epoch {
            return Err(Dropped::Stale);
        }
        Ok(to.clone())
    }

    fn outlets(&self) -> MutexGuard<'_, BTreeMap<Conn, Weak<Outlet>>> {
        self.0.outlets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where one socket's task has left frames. They are sent together, once there is no more to read at once.
#[derive(Default)]
pub(crate) struct Letters {
    to: Vec<Arc<Outlet>>,
    size: usize,
}

impl Letters {
    fn add(&mut self, to: Arc<Outlet>, size: usize) {
        self.size += size;
        if !self.to.iter().any(|known| Arc::ptr_eq(known, &to)) {
            self.to.push(to);
        }
        if self.size >= LETTERS_BYTES {
            self.send();
        }
    }

    /// Sends all that was left.
    pub(crate) fn send(&mut self) {
        self.size = 0;
        self.to.drain(..).for_each(|to| to.flush());
    }
}

impl Drop for Letters {
    fn drop(&mut self) {
        self.send();
    }
}

impl Crew {
    fn member(&self, node: NodeId) -> Option<(Conn, &Weak<Outlet>)> {
        let at = self.members.binary_search_by_key(&node, |(node, ..)| *node).ok()?;
        self.members.get(at).map(|(_, conn, outlet)| (*conn, outlet))
    }
}
