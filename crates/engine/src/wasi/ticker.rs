//! The clock hand that lets running programs be stopped: while any run goes on, it moves wasmtime's
//! epoch.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use wasmtime::Engine;

/// How late a time limit or a cancellation may be noticed.
const TICK: Duration = Duration::from_millis(5);

/// Ends with its thread when dropped.
pub(super) struct Ticker(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    runs: usize,
    over: bool,
}

impl Ticker {
    pub(super) fn start(engine: Engine) -> Result<Ticker, String> {
        let state = Mutex::new(State { runs: 0, over: false });
        let shared = Arc::new(Shared { state, changed: Condvar::new() });
        let hand = shared.clone();
        thread::Builder::new()
            .name("shoal-epoch".into())
            .spawn(move || hand.turn(&engine))
            .map_err(|error| format!("no thread for the programs' clock: {error}"))?;
        Ok(Ticker(shared))
    }

    /// Ticks at least until the answer is dropped.
    pub(super) fn tick(&self) -> Ticking<'_> {
        self.0.lock().runs += 1;
        self.0.changed.notify_one();
        Ticking(&self.0)
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.0.lock().over = true;
        self.0.changed.notify_one();
    }
}

pub(super) struct Ticking<'a>(&'a Shared);

impl Drop for Ticking<'_> {
    fn drop(&mut self) {
        self.0.lock().runs -= 1;
    }
}

impl Shared {
    fn turn(&self, engine: &Engine) {
        loop {
            let mut state = self.lock();
            while state.runs == 0 && !state.over {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            if state.over {
                return;
            }
            drop(state);
            thread::sleep(TICK);
            engine.increment_epoch();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
