//! One writer at a time for each partial blob.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use shoal_protocol::Hash;

/// How long an upload waits for another of the same blob to end, and how often it looks.
const PATIENCE: Duration = Duration::from_secs(2);
const RETRY: Duration = Duration::from_millis(20);

/// Blobs being written.
#[derive(Clone, Default)]
pub(super) struct Turns(Arc<Mutex<HashSet<Hash>>>);

/// The right to write one partial blob.
pub(super) struct Turn {
    turns: Turns,
    hash: Hash,
}

impl Turns {
    /// Who resumes after a break may be quicker than the end of the upload that broke.
    pub(super) async fn wait(&self, hash: Hash) -> Option<Turn> {
        let give_up = Instant::now() + PATIENCE;
        loop {
            let turn = self.take(hash);
            if turn.is_some() || Instant::now() >= give_up {
                return turn;
            }
            tokio::time::sleep(RETRY).await;
        }
    }

    fn take(&self, hash: Hash) -> Option<Turn> {
        let mut busy = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        busy.insert(hash).then(|| Turn { turns: self.clone(), hash })
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.turns.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.hash);
    }
}
