//! Threads that compute parts of one thing. Whoever asks does parts itself and waits only for parts that somebody took,
//! never for a thread to arrive: a core that others use makes it slower, not stuck. Threads that find nothing to do
//! look again for a moment, then sleep.

#![allow(unsafe_code)]

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;

/// How often an idle thread looks before it gives its core away: a few microseconds, as long as a layer's own
/// numbers take between two matrices.
const LOOKS: u32 = 400;
/// How often it then gives its core away before it sleeps: waking up takes longer than a small matrix.
const GIVES_UP: u32 = LOOKS + 60;

pub(crate) struct Pool {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

type Part<'a> = dyn Fn(usize) + Sync + 'a;

struct Shared {
    /// The number of the work (upper half) and the next part of it that nobody took (lower half).
    next: AtomicU64,
    /// Parts of the present work.
    parts: AtomicUsize,
    done: AtomicUsize,
    /// The work: a reference to a `&Part` on the stack of who asks.
    work: AtomicUsize,
    panicked: AtomicBool,
    ends: AtomicBool,
    sleeping: AtomicUsize,
    lock: Mutex<()>,
    wake: Condvar,
}

impl Pool {
    /// With one thread there are no others: whoever asks computes.
    pub(crate) fn new(threads: usize) -> Pool {
        let shared = Arc::new(Shared {
            next: AtomicU64::new(0),
            parts: AtomicUsize::new(0),
            done: AtomicUsize::new(0),
            work: AtomicUsize::new(0),
            panicked: AtomicBool::new(false),
            ends: AtomicBool::new(false),
            sleeping: AtomicUsize::new(0),
            lock: Mutex::new(()),
            wake: Condvar::new(),
        });
        let start = |at: usize| {
            let shared = shared.clone();
            let named = std::thread::Builder::new().name(format!("llm-{at}"));
            // Where no thread can be had, as in a browser, there is one less.
            named.spawn(move || shared.serve()).ok()
        };
        let threads = (1..threads).filter_map(start).collect();
        Pool { shared, threads }
    }

    pub(crate) fn threads(&self) -> usize {
        self.threads.len() + 1
    }

    /// Computes all parts, on all threads, and returns when all are done.
    pub(crate) fn run(&mut self, parts: usize, part: &Part<'_>) {
        if self.threads.is_empty() || parts < 2 {
            (0..parts).for_each(part);
            return;
        }
        let shared = &*self.shared;
        let reference: &&Part<'_> = &part;
        let number = (shared.next.load(Ordering::Relaxed) >> 32).wrapping_add(1) << 32;
        // Closed while it is written: whoever still looks at the last work must not take its count for this one's. Who
        // sees the count must see that it is closed, also on processors that change the order of writes, such as ARM.
        shared.next.store(number - 1, Ordering::SeqCst);
        shared.done.store(0, Ordering::Relaxed);
        shared.parts.store(parts.min(u32::MAX as usize), Ordering::Release);
        shared.work.store(std::ptr::from_ref(reference) as usize, Ordering::Relaxed);
        // From here on others may take parts.
        shared.next.store(number, Ordering::SeqCst);
        if shared.sleeping.load(Ordering::SeqCst) > 0 {
            drop(shared.lock.lock().unwrap_or_else(PoisonError::into_inner));
            shared.wake.notify_all();
        }
        // This ends only when every part is done, also if one panics: nobody may hold the reference then.
        let waits = Waits { shared, parts };
        while let Some(at) = shared.take() {
            let done = Done(shared);
            part(at);
            drop(done);
        }
        drop(waits);
        assert!(
            !shared.panicked.swap(false, Ordering::Relaxed),
            "a part of a model's layer panicked"
        );
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.ends.store(true, Ordering::SeqCst);
        drop(self.shared.lock.lock().unwrap_or_else(PoisonError::into_inner));
        self.shared.wake.notify_all();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// Waits, when dropped, until all parts are done.
struct Waits<'a> {
    shared: &'a Shared,
    parts: usize,
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        // Parts that nobody took, because this thread panics, are nobody's.
        while self.shared.take().is_some() {
            drop(Done(self.shared));
        }
        let mut looks = 0;
        while self.shared.done.load(Ordering::Acquire) < self.parts {
            looks += 1;
            if looks < LOOKS { std::hint::spin_loop() } else { std::thread::yield_now() }
        }
    }
}

/// Counts a part as done when dropped, also by a panic.
struct Done<'a>(&'a Shared);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.panicked.store(true, Ordering::Relaxed);
        }
        self.0.done.fetch_add(1, Ordering::Release);
    }
}

impl Shared {
    /// Takes a part of the present work, if one is left.
    fn take(&self) -> Option<usize> {
        let mut next = self.next.load(Ordering::SeqCst);
        loop {
            let at = (next & u64::from(u32::MAX)) as usize;
            // The count may be a newer work's already, but then the number has changed, which is seen with the count, and
            // the exchange fails.
            if at >= self.parts.load(Ordering::Acquire) {
                return None;
            }
            let taken =
                self.next.compare_exchange_weak(next, next + 1, Ordering::SeqCst, Ordering::SeqCst);
            match taken {
                Ok(_) => return Some(at),
                Err(other) => next = other,
            }
        }
    }

    /// Takes parts until the pool ends.
    fn serve(&self) {
        let mut idle = 0;
        while !self.ends.load(Ordering::SeqCst) {
            let Some(at) = self.take() else {
                idle += 1;
                match idle {
                    ..LOOKS => std::hint::spin_loop(),
                    LOOKS..GIVES_UP => std::thread::yield_now(),
                    _ => {
                        self.sleep();
                        idle = 0;
                    }
                }
                continue;
            };
            idle = 0;
            let work = self.work.load(Ordering::Relaxed) as *const &Part<'_>;
            let done = Done(self);
            // SAFETY: a part was taken, and `run`, whose stack the reference is on, does not return before that part
            // is counted as done, which happens after this call. The reference belongs to the same work as the part:
            // it was written before the work's number, and the next work is not written before this part is done.
            let part = unsafe { *work };
            let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| part(at)));
            if result.is_err() {
                self.panicked.store(true, Ordering::Relaxed);
            }
            drop(done);
        }
    }

    fn sleep(&self) {
        let guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        self.sleeping.fetch_add(1, Ordering::SeqCst);
        let next = self.next.load(Ordering::SeqCst);
        let is_idle = (next & u64::from(u32::MAX)) as usize >= self.parts.load(Ordering::SeqCst);
        if is_idle && !self.ends.load(Ordering::SeqCst) {
            drop(self.wake.wait(guard));
        }
        self.sleeping.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A list that several threads write, each its own part.
pub(crate) struct Apart<'a, T = f32> {
    start: *mut T,
    length: usize,
    of: std::marker::PhantomData<&'a mut [T]>,
}

// SAFETY: `slice` is the only way to the list, and whoever calls it promises to be alone in its range.
unsafe impl<T: Send> Sync for Apart<'_, T> {}

impl<'a, T> Apart<'a, T> {
    pub(crate) fn new(list: &'a mut [T]) -> Apart<'a, T> {
        Apart { start: list.as_mut_ptr(), length: list.len(), of: std::marker::PhantomData }
    }

    /// A range of them.
    ///
    /// # Safety
    /// No other slice that overlaps it may be alive.
    #[allow(clippy::mut_from_ref)]
    pub(crate) unsafe fn slice(&self, from: usize, count: usize) -> &mut [T] {
        assert!(from <= self.length && count <= self.length - from);
        // SAFETY: within the list by the line above, and nobody else's by the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(from), count) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_is_done_once() {
        for threads in [1, 2, 5] {
            let mut pool = Pool::new(threads);
            for round in 0..2_000 {
                let parts = round % 17;
                let counts: Vec<AtomicUsize> = (0..parts).map(|_| AtomicUsize::new(0)).collect();
                pool.run(parts, &|at| {
                    counts[at].fetch_add(1, Ordering::Relaxed);
                });
                assert!(counts.iter().all(|count| count.load(Ordering::Relaxed) == 1));
            }
        }
    }

    #[test]
    fn a_part_that_panics_panics_here() {
        let mut pool = Pool::new(3);
        let run = || {
            pool.run(64, &|at| assert_ne!(at, 13));
        };
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).is_err());
    }
}
