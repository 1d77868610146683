//! Carrying for an application: what it says comes by this process's input, what it hears goes by its output.

use std::collections::BTreeMap;
use std::io::{self, BufReader, BufWriter, Write as _};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc as std_mpsc};

use shoal_node::Input;
use shoal_peer::pipe::{FromCarrier, ToCarrier};
use shoal_protocol::{CrewId, CrewSay, Epoch, NodeId, Path};
use tokio::sync::mpsc;

use super::{Order as AnyOrder, Talk};
use crate::{Event, Host};

/// What an application may leave unread: two of the longest messages, and some. One that leaves more does not listen, and
/// its node ends.
const MAX_UNREAD_BYTES: usize = 160 << 20;

pub(super) type Order = ToCarrier;

pub(crate) struct Carry {
    /// This node's number, once it joined.
    me: Option<NodeId>,
    /// The crew of two with each peer, and which meeting it is: what an application still says of an earlier one
    /// must not reach this one.
    pairs: BTreeMap<NodeId, (CrewId, u16)>,
    meetings: u16,
    /// Bounded by its bytes.
    out: std_mpsc::Sender<FromCarrier>,
    /// Bytes in `out`.
    unread: Arc<AtomicUsize>,
}

/// The application's orders, until its pipe ends.
pub(super) fn read(to_loop: &mpsc::Sender<Event>) {
    let mut input = BufReader::new(io::stdin().lock());
    loop {
        let order = match ToCarrier::read(&mut input) {
            Ok(Some(order)) => AnyOrder::Carry(order),
            Ok(None) => AnyOrder::End,
            Err(error) => {
                tracing::error!("the application's pipe is cut: {error}");
                AnyOrder::End
            }
        };
        let is_last = matches!(order, AnyOrder::End);
        if to_loop.blocking_send(Event::Order(order)).is_err() || is_last {
            return;
        }
    }
}

impl Carry {
    /// A thread writes, so that an application that is slow to read holds up no link of others.
    pub(super) fn start() -> Carry {
        let (out, records) = std_mpsc::channel();
        let unread = Arc::new(AtomicUsize::new(0));
        let taken = unread.clone();
        std::thread::spawn(move || write_all(&records, &taken));
        Carry { me: None, pairs: BTreeMap::new(), meetings: 0, out, unread }
    }

    pub(super) fn joined(&mut self, me: NodeId) {
        if self.me == Some(me) {
            return;
        }
        self.me = Some(me);
        // Under a new number nobody is met any more.
        for peer in std::mem::take(&mut self.pairs).into_keys() {
            self.tell(FromCarrier::Parted { peer: peer.0 });
        }
        self.tell(FromCarrier::Joined { node: me.0 });
    }

    pub(super) fn met(&mut self, crew: CrewId, peer: NodeId) {
        self.meetings = self.meetings.wrapping_add(1);
        let meeting = self.meetings;
        self.pairs.insert(peer, (crew, meeting));
        self.tell(FromCarrier::Met { peer: peer.0, meeting });
    }

    pub(super) fn not_met(&mut self, peer: NodeId) {
        self.tell(FromCarrier::NotMet { peer: peer.0 });
    }

    pub(super) fn parted(&mut self, crew: CrewId) {
        let found = self.pairs.iter().find(|(_, (known, _))| *known == crew);
        let Some(peer) = found.map(|(peer, _)| *peer) else { return };
        self.pairs.remove(&peer);
        self.tell(FromCarrier::Parted { peer: peer.0 });
    }

    pub(super) fn using(&mut self, peer: NodeId, path: Path) {
        let direct = match path {
            Path::Relay => false,
            Path::Direct => true,
        };
        self.tell(FromCarrier::Using { peer: peer.0, direct });
    }

    pub(super) fn refused(&mut self, peer: NodeId) {
        self.tell(FromCarrier::Refused { peer: peer.0 });
    }

    pub(super) fn heard(&mut self, from: NodeId, channel: u16, message: Vec<u8>) {
        self.tell(FromCarrier::Heard { peer: from.0, channel, message });
    }

    fn pair(&self, peer: u64, meeting: u16) -> Option<CrewId> {
        let pair = self.pairs.get(&NodeId(peer)).filter(|(_, number)| *number == meeting);
        pair.map(|(crew, _)| *crew)
    }

    fn tell(&mut self, record: FromCarrier) {
        self.unread.fetch_add(weight(&record), Ordering::Relaxed);
        // An application that is gone needs no answer; its input ends this node.
        let _ = self.out.send(record);
    }

    /// Whether the application leaves too much unread; says so.
    pub(super) fn is_unheard(&self) -> bool {
        let is_unheard = self.unread.load(Ordering::Relaxed) > MAX_UNREAD_BYTES;
        if is_unheard {
            tracing::error!(
                "the application leaves {MAX_UNREAD_BYTES} bytes unread: this node ends"
            );
        }
        is_unheard
    }
}

impl Host<'_> {
    pub(super) fn carry_order(&mut self, order: Order) {
        let Some(Talk::Carry(carry)) = &mut self.talk else { return };
        match order {
            ToCarrier::Meet { peer } => self.meet(NodeId(peer)),
            ToCarrier::Say { peer, meeting, channel, message } => {
                // Parted just now, where there is none: the application hears of it.
                if let Some(crew) = carry.pair(peer, meeting) {
                    self.talk_say(crew, NodeId(peer), channel, Arc::new(message));
                }
            }
            ToCarrier::Part { peer, meeting } => {
                let Some(crew) = carry.pair(peer, meeting) else { return };
                carry.pairs.remove(&NodeId(peer));
                let (epoch, say) = (Epoch(0), CrewSay::Leave);
                self.input(Input::CrewSays { crew, epoch, say });
            }
        }
    }
}

/// What a record costs while it waits.
fn weight(record: &FromCarrier) -> usize {
    let bytes = match record {
        FromCarrier::Heard { message, .. } => message.len(),
        FromCarrier::Joined { .. }
        | FromCarrier::Met { .. }
        | FromCarrier::NotMet { .. }
        | FromCarrier::Using { .. }
        | FromCarrier::Parted { .. }
        | FromCarrier::Refused { .. } => 0,
    };
    bytes + 64
}

fn write_all(records: &std_mpsc::Receiver<FromCarrier>, unread: &AtomicUsize) {
    let mut out = BufWriter::new(io::stdout().lock());
    while let Ok(record) = records.recv() {
        let mut next = Some(record);
        while let Some(record) = next {
            if record.write(&mut out).is_err() {
                return;
            }
            unread.fetch_sub(weight(&record), Ordering::Relaxed);
            next = records.try_recv().ok();
        }
        if out.flush().is_err() {
            return;
        }
    }
}
