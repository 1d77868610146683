//! One value from a callback to the task that waits for it. A few lines of our own, because both
//! shells bring their own kind of async and the engine needs nothing else of either.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// Clones share the one place: the first value sent counts.
pub(crate) struct Sender<T>(Arc<Mutex<Slot<T>>>);

pub(crate) struct Receiver<T>(Arc<Mutex<Slot<T>>>);

struct Slot<T> {
    value: Option<T>,
    waker: Option<Waker>,
    senders: usize,
}

pub(crate) fn oneshot<T>() -> (Sender<T>, Receiver<T>) {
    let slot = Arc::new(Mutex::new(Slot { value: None, waker: None, senders: 1 }));
    (Sender(slot.clone()), Receiver(slot))
}

impl<T> Sender<T> {
    pub(crate) fn send(self, value: T) {
        lock(&self.0).value.get_or_insert(value);
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Sender<T> {
        lock(&self.0).senders += 1;
        Sender(self.0.clone())
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        let mut slot = lock(&self.0);
        slot.senders -= 1;
        if slot.value.is_none() && slot.senders > 0 {
            return;
        }
        let waker = slot.waker.take();
        drop(slot);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// `None` if every sender went away without a word, as wgpu's callbacks do when a device dies.
impl<T> Future for Receiver<T> {
    type Output = Option<T>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<T>> {
        let mut slot = lock(&self.0);
        if let Some(value) = slot.value.take() {
            return Poll::Ready(Some(value));
        }
        if slot.senders == 0 {
            return Poll::Ready(None);
        }
        slot.waker = Some(context.waker().clone());
        Poll::Pending
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_value_counts_and_silence_is_heard() {
        let (sender, receiver) = oneshot();
        let other = sender.clone();
        std::thread::spawn(move || sender.send(1));
        assert_eq!(pollster::block_on(receiver), Some(1));
        drop(other);

        let (sender, receiver) = oneshot::<u8>();
        std::thread::spawn(move || drop(sender));
        assert_eq!(pollster::block_on(receiver), None);
    }
}
