//! Answers on their way from programs to the socket, in bytes. Programs write faster than a slow uplink carries:
//! whoever gives more waits here, so that what waits stays small beside the memory the donor lends.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Bytes of answers on their way: some seconds of a home's uplink, so that it never idles.
pub(super) const MOST: usize = 4 << 20;
/// How soon a run that is ended while it waits notices.
const LOOK_EVERY: Duration = Duration::from_millis(50);

#[derive(Default)]
pub(super) struct Backlog {
    bytes: Mutex<Bytes>,
    less: Condvar,
}

#[derive(Default)]
struct Bytes {
    /// Given, but not seen by the node's loop yet.
    coming: usize,
    /// In the outbox.
    waiting: usize,
}

impl Backlog {
    /// A program gives so many bytes: waits until there is room, or nobody wants them any more.
    pub(super) fn give(&self, bytes: usize, cancel: &AtomicBool) {
        let mut now = self.bytes();
        while now.coming + now.waiting >= MOST && !cancel.load(Ordering::Relaxed) {
            let waited = self.less.wait_timeout(now, LOOK_EVERY);
            now = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        now.coming += bytes;
    }

    /// The node's loop has seen so many that were given.
    pub(super) fn taken(&self, bytes: usize) {
        self.bytes().coming -= bytes;
        self.less.notify_all();
    }

    /// So many are in the outbox now.
    pub(super) fn wait_in_outbox(&self, bytes: usize) {
        self.bytes().waiting = bytes;
        self.less.notify_all();
    }

    fn bytes(&self) -> MutexGuard<'_, Bytes> {
        self.bytes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
