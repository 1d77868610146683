//! The coordinator's clock: microseconds since the Unix epoch that never step back within one run.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use shoal_protocol::Time;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    started: Instant,
    started_micros: u64,
}

impl Clock {
    pub(crate) fn start() -> Clock {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Clock { started: Instant::now(), started_micros: micros(since) }
    }

    pub(crate) fn now(&self) -> Time {
        Time(self.started_micros.saturating_add(micros(self.started.elapsed())))
    }

    /// When a moment comes, as the system counts; at once if it is past.
    pub(crate) fn instant(&self, time: Time) -> Instant {
        let after = time.0.saturating_sub(self.started_micros);
        self.started.checked_add(Duration::from_micros(after)).unwrap_or(self.started)
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
