//! Ctrl-C and termination requests. Whoever can make something of one holds it; otherwise the command
//! ends, tidily.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::watch;

use crate::fail::Fail;

/// Counts interrupts. One is a question, two are an order. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Interrupts {
    count: watch::Receiver<u32>,
    held: Arc<AtomicBool>,
}

impl Interrupts {
    /// Starts to count. From here on the system does not end the process by itself.
    pub(crate) fn listen() -> Interrupts {
        let (counted, count) = watch::channel(0);
        tokio::spawn(async move {
            loop {
                signal().await;
                counted.send_modify(|count| *count += 1);
            }
        });
        Interrupts { count, held: Arc::default() }
    }

    pub(crate) fn count(&self) -> u32 {
        *self.count.borrow()
    }

    /// Ready when there were more than `seen`.
    pub(crate) async fn after(&self, seen: u32) {
        let mut count = self.count.clone();
        if count.wait_for(|count| *count > seen).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Until dropped, interrupts are the holder's business.
    pub(crate) fn hold(&self) -> Hold {
        self.held.store(true, Ordering::Relaxed);
        Hold(self.held.clone())
    }

    /// Does the work until it is done or an interrupt comes that nobody holds.
    pub(crate) async fn guard<T>(
        &self,
        work: impl Future<Output = Result<T, Fail>>,
    ) -> Result<T, Fail> {
        let mut work = pin!(work);
        loop {
            let seen = self.count();
            tokio::select! {
                outcome = &mut work => return outcome,
                () = self.after(seen) => {
                    if !self.held.load(Ordering::Relaxed) {
                        return Err(Fail::Interrupted { message: "interrupted".into() });
                    }
                }
            }
        }
    }
}

pub(crate) struct Hold(Arc<AtomicBool>);

impl Drop for Hold {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

/// The next interrupt. Never ready if the system offers none.
#[cfg(unix)]
pub(crate) async fn signal() {
    use tokio::signal::unix::{SignalKind, signal};
    let kinds = [SignalKind::interrupt(), SignalKind::terminate()];
    let [Ok(mut interrupt), Ok(mut terminate)] = kinds.map(signal) else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
}

#[cfg(not(unix))]
pub(crate) async fn signal() {
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}
