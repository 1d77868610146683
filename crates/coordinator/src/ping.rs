//! How long a word to a node and its echo take. The words are drawn by chance, so that a node cannot seem
//! nearer than it is by answering before it is asked.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use shoal_protocol::Micros;

/// Also keeps quiet connections open in routers on the way.
pub(crate) const PING_EVERY: Duration = Duration::from_secs(15);

type Word = [u8; 8];

/// The pings of one connection: at most one is on its way.
#[derive(Default)]
pub(crate) struct Pings {
    open: Mutex<Option<(Word, Instant)>>,
}

impl Pings {
    /// A new word to send. One that is still on its way is given up.
    pub(crate) fn next(&self) -> Option<Word> {
        let word = getrandom::u64().ok()?.to_le_bytes();
        *self.open.lock().unwrap_or_else(PoisonError::into_inner) = Some((word, Instant::now()));
        Some(word)
    }

    /// How long the word took, if it is the one that was sent.
    pub(crate) fn came_back(&self, word: &[u8]) -> Option<Micros> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let (_, sent) = open.take_if(|(sent, _)| sent == word)?;
        u64::try_from(sent.elapsed().as_micros()).ok().map(Micros)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_word_that_was_sent_counts_and_only_once() {
        let pings = Pings::default();
        assert_eq!(pings.came_back(&[0; 8]), None);
        let word = pings.next().unwrap();
        assert_eq!(pings.came_back(&[]), None);
        assert!(pings.came_back(&word).is_some());
        assert_eq!(pings.came_back(&word), None);
        let old = pings.next().unwrap();
        pings.next().unwrap();
        assert_eq!(pings.came_back(&old), None);
    }
}
