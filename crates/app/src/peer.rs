//! One other application, and the buffers shared with it.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use shoal_peer::{Capabilities, Handle, Import, Op, PeerError, Rights, RunThere};

use crate::desk::{Desk, Line, State, gone};

/// A goodbye that is not heard by then is not waited for.
const GOODBYE_WITHIN: Duration = Duration::from_secs(1);

/// What a peer did, unasked.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// It said this.
    Said(Value),
    /// It has a newer version of an imported buffer: pull it if you like.
    Newer { import: Import, version: u64 },
    /// It wrote a buffer that was exported here; `buffer` is the handle's number.
    Written { buffer: u32, version: u64 },
}

/// A connection. Closed when dropped, which waits a little until the peer has heard everything.
pub struct Peer {
    pub(crate) desk: Arc<Desk>,
    pub(crate) node: u64,
    pub(crate) line: u64,
}

impl Peer {
    /// The peer's number in the pool.
    pub fn node(&self) -> u64 {
        self.node
    }

    /// Whether what is said goes directly, and not through the coordinator's relay.
    pub fn is_direct(&self) -> bool {
        self.desk.lock().lines.get(&self.line).is_some_and(|line| line.direct)
    }

    /// What both ends' devices can do. Waits until the peer said so.
    pub fn capabilities(&self) -> Result<Capabilities, PeerError> {
        self.wait(|line| line.both.clone())
    }

    /// Lets the peer use a copy of these bytes: give it the handle, by [`Peer::say`] or as you like.
    pub fn export(&self, bytes: Vec<u8>, rights: Rights, label: &str) -> Result<Handle, PeerError> {
        self.desk.with(self.line, |connection| connection.export(bytes, rights, label))
    }

    /// An exported buffer as it is now: its version and its bytes.
    pub fn exported(&self, handle: &Handle) -> Result<(u64, Vec<u8>), PeerError> {
        self.desk.with(self.line, |connection| {
            connection.exported(handle).map(|(version, bytes)| (version, bytes.to_vec()))
        })
    }

    /// The next version of an exported buffer: the peer hears of it.
    pub fn replace(&self, handle: &Handle, bytes: Vec<u8>) -> Result<(), PeerError> {
        self.desk.with(self.line, |connection| connection.replace(handle, bytes))
    }

    /// Takes a handle back: whoever uses it from now on is refused.
    pub fn revoke(&self, handle: &Handle) -> Result<(), PeerError> {
        self.desk.with(self.line, |connection| connection.revoke(handle))
    }

    pub fn import(&self, handle: Handle) -> Result<Import, PeerError> {
        self.desk.with(self.line, |connection| connection.import(handle))
    }

    pub fn release(&self, import: Import) {
        // Whoever is gone holds nothing.
        let _ = self.desk.with(self.line, |connection| {
            connection.release(import);
            Ok(())
        });
    }

    /// The newest version's bytes, fetched if they are not here already.
    pub fn pull(&self, import: Import) -> Result<Vec<u8>, PeerError> {
        let op = self.desk.with(self.line, |connection| connection.pull(import))?;
        self.done(op)?;
        self.desk
            .with(self.line, |connection| connection.copy(import).map(|copy| copy.bytes().to_vec()))
    }

    /// Sends a new version to the owner; gives its number. `onto`: refused if the owner has another one by then; without it
    /// the last one wins.
    pub fn push(
        &self,
        import: Import,
        bytes: Vec<u8>,
        onto: Option<u64>,
    ) -> Result<u64, PeerError> {
        let op = self.desk.with(self.line, |connection| connection.push(import, bytes, onto))?;
        self.done(op)
    }

    /// Runs a shader on the peer's device, if it has one and granted `execute`.
    pub fn run(&self, run: &RunThere<'_>) -> Result<(), PeerError> {
        let op = self.desk.with(self.line, |connection| connection.run(run))?;
        self.done(op).map(drop)
    }

    /// Says something to the peer's application.
    pub fn say(&self, value: Value) -> Result<(), PeerError> {
        self.desk.with(self.line, |connection| connection.say_to_peer(value))
    }

    /// What the peer does next. Waits for it; an error when the connection is over and everything was taken.
    pub fn next(&self) -> Result<Event, PeerError> {
        self.wait(|line| line.events.pop_front())
    }

    /// The same, for so long at most.
    pub fn next_within(&self, within: Duration) -> Result<Option<Event>, PeerError> {
        let found = self.desk.wait(Some(within), |state| {
            let Some(line) = state.lines.get_mut(&self.line) else {
                return Some(Err(gone()));
            };
            line.events.pop_front().map(Ok).or_else(|| line.closed.clone().map(Err))
        });
        found.transpose()
    }

    fn done(&self, op: Op) -> Result<u64, PeerError> {
        self.wait(|line| line.done.remove(&op))?
    }

    fn wait<T>(&self, mut look: impl FnMut(&mut Line) -> Option<T>) -> Result<T, PeerError> {
        let found = self.desk.wait(None, |state| {
            let Some(line) = state.lines.get_mut(&self.line) else {
                return Some(Err(gone()));
            };
            look(line).map(Ok).or_else(|| line.closed.clone().map(Err))
        });
        found.unwrap_or_else(|| Err(gone()))
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        if let Some(line) = self.desk.lock().lines.get_mut(&self.line) {
            line.is_leaving = true;
        }
        let _ = self.desk.with(self.line, |connection| {
            connection.close();
            Ok(())
        });
        // What was said before is to arrive, and the peer parts when it heard the goodbye.
        let is_over = |state: &mut State| (!state.is_open(self.line)).then_some(());
        let _ = self.desk.wait(Some(GOODBYE_WITHIN), is_over);
        // Met anew meanwhile: the other line stays.
        let part = self.desk.lock().leave(self.line);
        if let Some(part) = part {
            self.desk.tell(part);
        }
    }
}
