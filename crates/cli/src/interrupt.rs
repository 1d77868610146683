//! Ctrl-C, termination requests, and terminals that go away. Whoever can make something of one holds it; otherwise the
//! command ends, tidily.

use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;

use crate::fail::Fail;

/// Counts interrupts. One is a question, two are an order. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Interrupts {
    heard: watch::Receiver<Heard>,
    held: Arc<AtomicBool>,
    advice: Arc<Mutex<String>>,
}

/// What was heard so far.
#[derive(Clone, Copy, Debug, Default)]
struct Heard {
    count: u32,
    /// The last one was no Ctrl-C: nobody sits there who could be asked.
    by_order: bool,
    /// The terminal is gone.
    hung_up: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Signal {
    Interrupt,
    Terminate,
    #[cfg_attr(not(unix), expect(dead_code))]
    HangUp,
}

impl Interrupts {
    /// Starts to count. From here on the system does not end the process by itself.
    pub(crate) fn listen() -> Interrupts {
        let (told, heard) = watch::channel(Heard::default());
        tokio::spawn(async move {
            loop {
                let signal = next().await;
                told.send_modify(|heard| match signal {
                    Signal::Interrupt => (heard.count, heard.by_order) = (heard.count + 1, false),
                    Signal::Terminate => (heard.count, heard.by_order) = (heard.count + 1, true),
                    Signal::HangUp => heard.hung_up = true,
                });
            }
        });
        Interrupts { heard, held: Arc::default(), advice: Arc::default() }
    }

    pub(crate) fn count(&self) -> u32 {
        self.heard.borrow().count
    }

    /// Whether the last one came from a program, not from a person.
    pub(crate) fn is_order(&self) -> bool {
        self.heard.borrow().by_order
    }

    /// Ready when there were more than `seen`.
    pub(crate) async fn after(&self, seen: u32) {
        self.until(|heard| heard.count > seen).await;
    }

    /// Ready when the terminal is gone.
    pub(crate) async fn hung_up(&self) {
        self.until(|heard| heard.hung_up).await;
    }

    async fn until(&self, wanted: impl Fn(&Heard) -> bool) {
        let mut heard = self.heard.clone();
        if heard.wait_for(|heard| wanted(heard)).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Until dropped, interrupts are the holder's business.
    pub(crate) fn hold(&self) -> Hold {
        self.held.store(true, Ordering::Relaxed);
        Hold(self.held.clone())
    }

    /// What whoever is interrupted from now on is told, such as how to go on.
    pub(crate) fn advise(&self, advice: String) {
        *self.advice.lock().unwrap_or_else(PoisonError::into_inner) = advice;
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
                () = self.hung_up() => return Err(Fail::HungUp),
                () = self.after(seen) => {
                    if !self.held.load(Ordering::Relaxed) {
                        return Err(self.interrupted());
                    }
                }
            }
        }
    }

    fn interrupted(&self) -> Fail {
        let advice = self.advice.lock().unwrap_or_else(PoisonError::into_inner);
        let message = match advice.as_str() {
            "" => "interrupted".into(),
            advice => format!("interrupted; {advice}"),
        };
        Fail::Interrupted { message }
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

/// The next signal of any kind.
#[cfg(unix)]
async fn next() -> Signal {
    use tokio::signal::unix::{SignalKind, signal};
    let kinds = [SignalKind::interrupt(), SignalKind::terminate()];
    let [Ok(mut interrupt), Ok(mut terminate)] = kinds.map(signal) else {
        return std::future::pending().await;
    };
    let hang_up = async {
        // Under `nohup` the end of the terminal means nothing, and listening would change that.
        if ignores_hang_up() {
            return std::future::pending().await;
        }
        match signal(SignalKind::hangup()) {
            Ok(mut hang_up) => drop(hang_up.recv().await),
            Err(_) => std::future::pending().await,
        }
    };
    tokio::select! {
        _ = interrupt.recv() => Signal::Interrupt,
        _ = terminate.recv() => Signal::Terminate,
        () = hang_up => Signal::HangUp,
    }
}

#[cfg(not(unix))]
async fn next() -> Signal {
    signal().await;
    Signal::Interrupt
}

/// Asked before anybody listens for the first time.
#[cfg(unix)]
fn ignores_hang_up() -> bool {
    static IGNORES: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    *IGNORES.get_or_init(|| {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        ignored(&status).is_some_and(|mask| mask & 1 != 0)
    })
}

/// The signals that a process ignores, by what Linux says of it: the first bit is SIGHUP.
#[cfg(unix)]
fn ignored(status: &str) -> Option<u64> {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"))?;
    u64::from_str_radix(mask.trim(), 16).ok()
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn what_a_process_ignores_is_read() {
        let status = |mask: &str| format!("Name:\tshoal\nSigIgn:\t{mask}\nSigCgt:\t0\n");
        assert_eq!(ignored(&status("0000000000000001")), Some(1));
        assert_eq!(ignored(&status("0000000000001000")), Some(0x1000));
        assert_eq!(ignored("Name: x"), None);
    }
}
