//! The driver's end of its channel: takes all that is ready, or sleeps until something is or a moment
//! comes. A thread of its own and no runtime, so that a wake-up is one futex call.

use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Instant;

use tokio::sync::mpsc;

use super::event::Event;

/// Events handled as one batch: more would make those at its front wait too long for their commit.
const MAX_BATCH_EVENTS: usize = 512;

pub(crate) struct Inbox {
    events: mpsc::Receiver<Event>,
    waker: Waker,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Woken {
    Events,
    Timeout,
    /// Nobody can send any more.
    Closed,
}

impl Inbox {
    /// To be called on the thread that will wait.
    pub(crate) fn new(events: mpsc::Receiver<Event>) -> Inbox {
        let waker = Waker::from(Arc::new(Unpark(thread::current())));
        Inbox { events, waker }
    }

    pub(crate) fn wait(&mut self, batch: &mut Vec<Event>, until: Option<Instant>) -> Woken {
        let mut context = Context::from_waker(&self.waker);
        loop {
            match self.events.poll_recv_many(&mut context, batch, MAX_BATCH_EVENTS) {
                Poll::Ready(0) => return Woken::Closed,
                Poll::Ready(_) => return Woken::Events,
                Poll::Pending => {}
            }
            let Some(until) = until else {
                thread::park();
                continue;
            };
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Woken::Timeout;
            }
            thread::park_timeout(left);
        }
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.unpark();
    }
}
