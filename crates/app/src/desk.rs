//! Where what comes from the pool meets those who wait for it. One lock, because everything here is short.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use shoal_peer::pipe::{FromCarrier, ToCarrier};
use shoal_peer::{Capabilities, Code, Config, Connection, Op, Output, PeerError};

use crate::carrier::Say;
use crate::peer::Event;

/// Events of one peer that nobody took. A peer that says more is cut off: the application does not listen.
const MAX_EVENTS: usize = 256;
/// The same of a peer that called and was not accepted yet.
const MAX_EARLY_EVENTS: usize = 8;
/// Peers that called and were not accepted.
const MAX_CALLERS: usize = 64;

pub(crate) struct Desk {
    say: Say,
    can: Capabilities,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
pub(crate) struct State {
    pub(crate) node: Option<u64>,
    /// Why there is no pool any more.
    pub(crate) over: Option<PeerError>,
    /// By their own numbers: who is met anew has a new one, while somebody may still hold the old.
    pub(crate) lines: BTreeMap<u64, Line>,
    /// By node, the line that is open to it.
    pub(crate) open: BTreeMap<u64, u64>,
    last_line: u64,
    /// Called from here, and not met yet.
    pub(crate) called: BTreeSet<u64>,
    /// Called from here in vain, since it was looked at last.
    pub(crate) missed: BTreeSet<u64>,
    /// Nodes that called, the first first.
    pub(crate) callers: VecDeque<u64>,
}

/// The way to one peer, and what came by it.
pub(crate) struct Line {
    pub(crate) peer: u64,
    meeting: u16,
    pub(crate) connection: Connection,
    pub(crate) events: VecDeque<Event>,
    pub(crate) done: BTreeMap<Op, Result<u64, PeerError>>,
    pub(crate) both: Option<Capabilities>,
    pub(crate) direct: bool,
    pub(crate) closed: Option<PeerError>,
    pub(crate) is_taken: bool,
    /// Closed from here: the peer parts once it heard everything.
    pub(crate) is_leaving: bool,
}

impl State {
    fn open_to(&mut self, peer: u64) -> Option<&mut Line> {
        self.lines.get_mut(self.open.get(&peer)?)
    }

    /// The line to a peer that nobody has taken yet, for whoever asks first.
    pub(crate) fn take(&mut self, peer: u64) -> Option<u64> {
        let number = *self.open.get(&peer)?;
        let line = self.lines.get_mut(&number).filter(|line| !line.is_taken)?;
        line.is_taken = true;
        self.callers.retain(|caller| *caller != peer);
        Some(number)
    }

    /// Whether this line is the one that is open to its peer.
    pub(crate) fn is_open(&self, number: u64) -> bool {
        let line = self.lines.get(&number);
        line.is_some_and(|line| self.open.get(&line.peer) == Some(&number))
    }

    /// Nobody uses this line any more. What to tell the node if it was still open.
    pub(crate) fn leave(&mut self, number: u64) -> Option<ToCarrier> {
        let is_open = self.is_open(number);
        let Line { peer, meeting, .. } = self.lines.remove(&number).filter(|_| is_open)?;
        self.open.remove(&peer);
        Some(ToCarrier::Part { peer, meeting })
    }
}

impl Desk {
    pub(crate) fn new(say: Say, can: Capabilities) -> Desk {
        Desk { say, can, state: Mutex::default(), changed: Condvar::new() }
    }

    pub(crate) fn hear(&self, record: FromCarrier) {
        let mut state = self.lock();
        match record {
            FromCarrier::Joined { node } => state.node = Some(node),
            FromCarrier::Met { peer, meeting } => self.met(&mut state, peer, meeting),
            FromCarrier::NotMet { peer } => {
                if state.called.contains(&peer) {
                    state.missed.insert(peer);
                }
            }
            FromCarrier::Heard { peer, channel, message } => {
                if let Some(line) = state.open_to(peer) {
                    line.connection.hear(channel, &message);
                    self.pump(line);
                }
            }
            FromCarrier::Using { peer, direct } => {
                if let Some(line) = state.open_to(peer) {
                    line.direct = direct;
                }
            }
            FromCarrier::Parted { peer } => self.lost(&mut state, peer, "it left, or was left"),
            FromCarrier::Refused { peer } => {
                self.lost(&mut state, peer, "more was to be said than the link takes");
            }
        }
        drop(state);
        self.changed.notify_all();
    }

    /// The pool is gone, and everybody in it.
    pub(crate) fn over(&self, error: PeerError) {
        let mut state = self.lock();
        for line in state.lines.values_mut() {
            line.connection.lost(&error.message);
            self.pump(line);
        }
        state.open.clear();
        state.over.get_or_insert(error);
        drop(state);
        self.changed.notify_all();
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn tell(&self, record: ToCarrier) {
        // Where nobody writes any more, the listener tells why.
        let _ = self.say.send(record);
    }

    /// Looks until there is something, or for so long.
    pub(crate) fn wait<T>(
        &self,
        within: Option<Duration>,
        mut look: impl FnMut(&mut State) -> Option<T>,
    ) -> Option<T> {
        let until = within.map(|within| Instant::now() + within);
        let mut state = self.lock();
        loop {
            if let Some(found) = look(&mut state) {
                return Some(found);
            }
            let rest = until.map(|until| until.saturating_duration_since(Instant::now()));
            state = match rest {
                Some(Duration::ZERO) => return None,
                Some(rest) => {
                    let woken = self.changed.wait_timeout(state, rest);
                    woken.unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    /// Does something with a peer's connection, then whatever follows from it.
    pub(crate) fn with<T>(
        &self,
        line: u64,
        act: impl FnOnce(&mut Connection) -> Result<T, PeerError>,
    ) -> Result<T, PeerError> {
        let mut state = self.lock();
        let line = state.lines.get_mut(&line).ok_or_else(gone)?;
        let done = act(&mut line.connection);
        self.pump(line);
        drop(state);
        self.changed.notify_all();
        done
    }

    fn met(&self, state: &mut State, peer: u64, meeting: u16) {
        let Some(me) = state.node else { return };
        let mut seed = [0; 32];
        let is_crowded = state.callers.len() >= MAX_CALLERS && !state.called.contains(&peer);
        if getrandom::fill(&mut seed).is_err() || is_crowded {
            return self.tell(ToCarrier::Part { peer, meeting });
        }
        // Met anew: what there was is over.
        self.lost(state, peer, "it opened a new connection");
        let config = Config { can: self.can.clone(), ..Config::new(me, peer, seed) };
        let mut line = Line {
            peer,
            meeting,
            connection: Connection::new(config),
            events: VecDeque::new(),
            done: BTreeMap::new(),
            both: None,
            direct: false,
            closed: None,
            is_taken: false,
            is_leaving: false,
        };
        self.pump(&mut line);
        state.last_line += 1;
        let number = state.last_line;
        state.lines.insert(number, line);
        state.open.insert(peer, number);
        if !state.called.contains(&peer) && !state.callers.contains(&peer) {
            state.callers.push_back(peer);
        }
    }

    fn lost(&self, state: &mut State, peer: u64, why: &str) {
        state.callers.retain(|caller| *caller != peer);
        let Some(number) = state.open.remove(&peer) else { return };
        let Some(line) = state.lines.get_mut(&number) else { return };
        line.connection.lost(why);
        self.pump(line);
        if !line.is_taken {
            state.lines.remove(&number);
        }
    }

    /// Says what a connection has to say, and keeps what it tells.
    fn pump(&self, line: &mut Line) {
        let (peer, meeting) = (line.peer, line.meeting);
        while let Some(output) = line.connection.poll_output() {
            let event = match output {
                Output::Send { channel, message } => {
                    self.tell(ToCarrier::Say { peer, meeting, channel, message });
                    continue;
                }
                Output::Opened(both) => {
                    line.both = Some(both);
                    continue;
                }
                Output::Done { op, version } => {
                    line.done.insert(op, Ok(version));
                    continue;
                }
                Output::Failed { op, error } => {
                    line.done.insert(op, Err(error));
                    continue;
                }
                Output::Closed(error) => {
                    line.closed = Some(error);
                    if !line.is_leaving {
                        self.tell(ToCarrier::Part { peer, meeting });
                    }
                    continue;
                }
                Output::Said(value) => Event::Said(value),
                Output::Newer { import, version } => Event::Newer { import, version },
                Output::Written { buffer, version } => Event::Written { buffer, version },
            };
            line.events.push_back(event);
            let most = if line.is_taken { MAX_EVENTS } else { MAX_EARLY_EVENTS };
            if line.events.len() > most {
                line.connection.lost("it said more than this application listens to");
            }
        }
    }
}

pub(crate) fn gone() -> PeerError {
    PeerError { code: Code::PeerGone, message: "this connection is over".into() }
}
