//! An answer on its way from the driver to a client, in parts. Large ones wait as they came, small ones together, so that
//! many of them take no more memory than their bytes; and the scheduler lets no answer grow beyond its service's limit.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use shoal_protocol::Micros;
use shoal_scheduler::CallError;
use tokio::sync::Notify;

/// What is shorter waits together with others.
const SMALL: usize = 4 << 10;

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
    waiting: VecDeque<Bytes>,
    /// Behind those.
    small: Vec<u8>,
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
    Bytes(Bytes),
    Whole,
    Failed(CallError),
    /// The coordinator stops.
    Stopped,
}

/// The driver's end. Never waits.
pub(crate) struct Giver(Arc<Inside>);

impl Giver {
    pub(crate) fn give(&self, part: Bytes) {
        self.change(|state| {
            if part.len() < SMALL {
                state.small.extend_from_slice(&part);
                return;
            }
            let before = std::mem::take(&mut state.small);
            state.waiting.extend((!before.is_empty()).then(|| Bytes::from(before)));
            state.waiting.push_back(part);
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
    /// What waits, or how it ended. Never `Bytes` without bytes.
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
        if let Some(part) = state.waiting.pop_front() {
            return Some(Next::Bytes(part));
        }
        if !state.small.is_empty() {
            return Some(Next::Bytes(std::mem::take(&mut state.small).into()));
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
        let said = |text: &'static str| Bytes::from(text);
        giver.give(said("one "));
        giver.give(said("two"));
        assert_eq!(taker.next().await, Next::Bytes(said("one two")));
        giver.give(said("!"));
        let (waited, took) = (Micros(1), Micros(2));
        giver.finish(Ran { node: 3, name: "desk".into(), waited, took, stages: 1 });
        assert_eq!(taker.next().await, Next::Bytes(said("!")));
        assert_eq!(taker.next().await, Next::Whole);
        assert_eq!(taker.ran().map(|ran| ran.node), Some(3));
    }

    #[tokio::test]
    async fn large_parts_and_small_ones_keep_their_order() {
        let (giver, mut taker) = answer();
        let large = Bytes::from(vec![7; SMALL]);
        for part in [b"a", b"b"] {
            giver.give(Bytes::from(&part[..]));
        }
        giver.give(large.clone());
        giver.give(large.clone());
        giver.give(Bytes::from("c"));
        drop(giver);
        let small = |text: &'static str| Next::Bytes(Bytes::from(text));
        for expected in [small("ab"), Next::Bytes(large.clone()), Next::Bytes(large), small("c")] {
            assert_eq!(taker.next().await, expected);
        }
        assert_eq!(taker.next().await, Next::Stopped);
    }

    #[tokio::test]
    async fn an_answer_that_was_broken_off_is_not_taken_for_whole() {
        let (giver, mut taker) = answer();
        giver.give(Bytes::from("half"));
        drop(giver);
        assert_eq!(taker.next().await, Next::Bytes(Bytes::from("half")));
        assert_eq!(taker.next().await, Next::Stopped);
        let (giver, mut taker) = answer();
        giver.fail(CallError::Gone);
        assert_eq!(taker.next().await, Next::Failed(CallError::Gone));
    }
}
