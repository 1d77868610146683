//! The bearer token of the present connection, and the coordinator's folder if this node shares it: shared with the threads that move bytes. A transfer
//! that meets a coordinator's restart waits here for the next session instead of failing its unit.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::beside::Neighbour;

#[derive(Clone, Default)]
pub(super) struct Session(Arc<Shared>);

#[derive(Default)]
struct Shared {
    token: Mutex<Option<Arc<str>>>,
    changed: Condvar,
    beside: Mutex<Option<Arc<Neighbour>>>,
}

impl Session {
    pub(super) fn set(&self, token: &str, beside: Option<Neighbour>) {
        *self.0.beside.lock().unwrap_or_else(PoisonError::into_inner) = beside.map(Arc::new);
        *self.lock() = Some(token.into());
        self.0.changed.notify_all();
    }

    /// The coordinator's folder, as it is on this machine in the present session.
    pub(super) fn beside(&self) -> Option<Arc<Neighbour>> {
        self.0.beside.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The present token, or the first one if there is none yet; `None` if it does not come in
    /// time.
    pub(super) fn current(&self, patience: Duration) -> Option<Arc<str>> {
        self.other_than(None, patience)
    }

    /// A token that is not `old`; `None` if it does not come in time.
    pub(super) fn other_than(&self, old: Option<&str>, patience: Duration) -> Option<Arc<str>> {
        let deadline = Instant::now() + patience;
        let mut token = self.lock();
        loop {
            if let Some(now) = token.as_ref().filter(|now| Some(&***now) != old) {
                return Some(now.clone());
            }
            let left = deadline.checked_duration_since(Instant::now())?;
            let waited = self.0.changed.wait_timeout(token, left);
            token = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Arc<str>>> {
        self.0.token.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_waiting_transfer_gets_the_next_session() {
        let session = Session::default();
        assert_eq!(session.current(Duration::ZERO), None);
        session.set("one", None);
        let waiting = session.clone();
        let waiter =
            std::thread::spawn(move || waiting.other_than(Some("one"), Duration::from_secs(60)));
        session.set("two", None);
        assert_eq!(waiter.join().expect("no panic").as_deref(), Some("two"));
        assert_eq!(session.other_than(Some("two"), Duration::ZERO), None);
    }
}
