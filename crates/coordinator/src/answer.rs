//! An answer on its way from the driver to a client, in parts. What waits is one piece of memory, however small the
//! parts are, and the scheduler lets no answer grow beyond its service's limit.

use std::sync::{Arc, Mutex, PoisonError};

use shoal_protocol::Micros;
use shoal_scheduler::CallError;
use tokio::sync::Notify;

/// Both ends of one answer.
pub(crate) fn answer() -> (Giver, Taker) {
    let inside = Arc::new(Inside::default());
    (Giver(inside.clone()), Taker(inside))
}

#[derive(Default)]
struct Inside {
    state: Mutex<State>,
    more: Notify,
}

#[derive(Default)]
struct State {
    waiting: Vec<u8>,
    end: Option<End>,
    ran: Option<Ran>,
}

/// Who answered, and what it took.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Ran {
    pub(crate) node: u64,
    pub(crate) name: String,
    /// Until that node was asked.
    pub(crate) waited: Micros,
    /// From then on.
    pub(crate) took: Micros,
    /// Nodes that it went through.
    pub(crate) stages: usize,
}

#[derive(Clone, Debug, PartialEq)]
enum End {
    Whole,
    Failed(CallError),
    /// Whoever gave it is gone, and said nothing of an end.
    Dropped,
}

/// What comes next.
#[derive(Debug, PartialEq)]
pub(crate) enum Next {
    Bytes(Vec<u8>),
    Whole,
    Failed(CallError),
    /// The coordinator stops.
    Stopped,
}

/// The driver's end. Never waits.
pub(crate) struct Giver(Arc<Inside>);

impl Giver {
    pub(crate) fn give(&self, part: Vec<u8>) {
        self.change(|state| {
            if state.waiting.is_empty() {
                state.waiting = part;
            } else {
                state.waiting.extend_from_slice(&part);
            }
        });
    }

    pub(crate) fn finish(self, ran: Ran) {
        self.change(|state| (state.end, state.ran) = (Some(End::Whole), Some(ran)));
    }

    pub(crate) fn fail(self, error: CallError) {
        self.change(|state| state.end = Some(End::Failed(error)));
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.0.state.lock().unwrap_or_else(PoisonError::into_inner));
        self.0.more.notify_one();
    }
}

impl Drop for Giver {
    fn drop(&mut self) {
        self.change(|state| {
            state.end.get_or_insert(End::Dropped);
        });
    }
}

/// The client's end.
pub(crate) struct Taker(Arc<Inside>);

impl Taker {
    /// All that waits, or how it ended. Never `Bytes` without bytes.
    pub(crate) async fn next(&mut self) -> Next {
        loop {
            if let Some(next) = self.ready() {
                return next;
            }
            self.0.more.notified().await;
        }
    }

    /// Known once the answer is whole.
    pub(crate) fn ran(&self) -> Option<Ran> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner).ran.clone()
    }

    fn ready(&self) -> Option<Next> {
        let mut state = self.0.state.lock().unwrap_or_else(PoisonError::into_inner);
        if !state.waiting.is_empty() {
            return Some(Next::Bytes(std::mem::take(&mut state.waiting)));
        }
        Some(match state.end.clone()? {
            End::Whole => Next::Whole,
            End::Failed(error) => Next::Failed(error),
            End::Dropped => Next::Stopped,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn parts_that_wait_come_at_once_and_the_end_after_them() {
        let (giver, mut taker) = answer();
        giver.give(b"one ".to_vec());
        giver.give(b"two".to_vec());
        assert_eq!(taker.next().await, Next::Bytes(b"one two".to_vec()));
        giver.give(b"!".to_vec());
        let (waited, took) = (Micros(1), Micros(2));
        giver.finish(Ran { node: 3, name: "desk".into(), waited, took, stages: 1 });
        assert_eq!(taker.next().await, Next::Bytes(b"!".to_vec()));
        assert_eq!(taker.next().await, Next::Whole);
        assert_eq!(taker.ran().map(|ran| ran.node), Some(3));
    }

    #[tokio::test]
    async fn an_answer_that_was_broken_off_is_not_taken_for_whole() {
        let (giver, mut taker) = answer();
        giver.give(b"half".to_vec());
        drop(giver);
        assert_eq!(taker.next().await, Next::Bytes(b"half".to_vec()));
        assert_eq!(taker.next().await, Next::Stopped);
        let (giver, mut taker) = answer();
        giver.fail(CallError::Gone);
        assert_eq!(taker.next().await, Next::Failed(CallError::Gone));
    }
}
