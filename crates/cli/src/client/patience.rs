//! Waiting for a coordinator that is away: it may be restarting, or a network may be down for a while. Every call that
//! may be made twice is made again until it is answered or patience ends.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::Client;
use crate::fail::Fail;
use crate::show;

/// What a client does unless its user says otherwise: time to restart a machine by hand.
pub(crate) const USUAL: Duration = Duration::from_secs(600);
/// A coordinator that was never reached may be starting, or its address is a mistake.
const FIRST_CONTACT: Duration = Duration::from_secs(15);
/// Shorter absences are nobody's business.
const NOTE_AFTER: Duration = Duration::from_secs(1);
const FIRST_PAUSE: Duration = Duration::from_millis(150);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// How long a client waits, and what it knows of the coordinator.
#[derive(Debug)]
pub(super) struct Patience {
    most: Duration,
    /// The same as long as it was never reached.
    at_first: Duration,
    /// It answered before.
    reached: AtomicBool,
}

impl Patience {
    /// What the user asks for counts from the first call on.
    pub(super) fn new(asked: Option<Duration>) -> Patience {
        let most = asked.unwrap_or(USUAL);
        let at_first = asked.unwrap_or(FIRST_CONTACT);
        Patience { most, at_first, reached: AtomicBool::new(false) }
    }

    pub(super) fn note_reached(&self) {
        self.reached.store(true, Ordering::Relaxed);
    }

    fn has_reached(&self) -> bool {
        self.reached.load(Ordering::Relaxed)
    }

    /// How long calls that end like this are made again.
    fn with(&self, fail: &Fail) -> Duration {
        match fail {
            Fail::World { code, .. } if is_absence(code) => {
                if self.has_reached() {
                    self.most
                } else {
                    self.at_first
                }
            }
            Fail::World { .. }
            | Fail::Input { .. }
            | Fail::Job { .. }
            | Fail::Runs { .. }
            | Fail::Interrupted { .. }
            | Fail::Stopped { .. }
            | Fail::Detached { .. }
            | Fail::HungUp
            | Fail::PipeClosed => Duration::ZERO,
        }
    }
}

/// Whether a failure of this code is one of the moment.
fn is_absence(code: &str) -> bool {
    const CODES: [&str; 6] =
        ["unreachable", "connection_lost", "unavailable", "stopping", "busy", "store_stuck"];
    CODES.contains(&code)
}

/// The tries of one call.
pub(super) struct Tries<'a> {
    client: &'a Client,
    note: &'a dyn Fn(&str),
    /// Since when nothing moved.
    since: Option<Instant>,
    pause: Duration,
    is_told: bool,
}

impl Tries<'_> {
    /// Something moved: patience begins anew.
    pub(super) fn moved(&mut self) {
        (self.since, self.pause) = (None, FIRST_PAUSE);
    }

    /// Waits until the next try. Gives the failure back if trying again cannot help, or has not for long enough.
    pub(super) async fn again(&mut self, fail: Fail) -> Result<(), Fail> {
        let patience = &self.client.patience;
        let most = patience.with(&fail);
        let waited = self.since.get_or_insert_with(Instant::now).elapsed();
        if waited >= most {
            return Err(if waited >= NOTE_AFTER { gave_up(fail, waited) } else { fail });
        }
        if waited >= NOTE_AFTER && !std::mem::replace(&mut self.is_told, true) {
            (self.note)(if patience.has_reached() {
                "lost the connection to the coordinator: waiting for it to come back"
            } else {
                "the coordinator does not answer yet: waiting for it"
            });
        }
        tokio::time::sleep(jittered(self.pause).min(most.saturating_sub(waited))).await;
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        Ok(())
    }
}

impl Client {
    /// `note` is told once if the wait becomes long.
    pub(super) fn tries<'a>(&'a self, note: &'a dyn Fn(&str)) -> Tries<'a> {
        Tries { client: self, note, since: None, pause: FIRST_PAUSE, is_told: false }
    }

    /// Makes a call that does no harm when it is made twice until it is answered.
    pub(super) async fn patiently<T>(
        &self,
        mut call: impl AsyncFnMut() -> Result<T, Fail>,
    ) -> Result<T, Fail> {
        let note = |text: &str| self.note(text);
        let mut tries = self.tries(&note);
        loop {
            match call().await {
                Ok(answer) => return Ok(answer),
                Err(fail) => tries.again(fail).await?,
            }
        }
    }

    /// For people, if any are there.
    pub(crate) fn note(&self, text: &str) {
        if !self.is_quiet {
            eprintln!("{text}");
        }
    }
}

fn gave_up(fail: Fail, waited: Duration) -> Fail {
    let Fail::World { code, message } = fail else { return fail };
    let waited = show::duration(waited.as_secs_f64());
    Fail::World { code, message: format!("{message} (gave up after {waited})") }
}

/// From half of it to one and a half: clients of a coordinator that comes back do not come all at once.
fn jittered(pause: Duration) -> Duration {
    let random = getrandom::u32().unwrap_or(u32::MAX / 2);
    pause.mul_f64(0.5 + f64::from(random) / f64::from(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_absence_is_waited_for() {
        let (lost, away) = (Fail::world("connection_lost", ""), Fail::world("unreachable", ""));
        let patience = Patience::new(None);
        assert_eq!((patience.with(&away), patience.with(&lost)), (FIRST_CONTACT, FIRST_CONTACT));
        patience.note_reached();
        assert_eq!((patience.with(&away), patience.with(&lost)), (USUAL, USUAL));
        assert_eq!(patience.with(&Fail::world("disk_full", "")), Duration::ZERO);
        assert_eq!(patience.with(&Fail::input("x")), Duration::ZERO);
        let minute = Duration::from_secs(60);
        for asked in [Duration::ZERO, minute] {
            let patience = Patience::new(Some(asked));
            assert_eq!(patience.with(&away), asked, "from the first call on");
            patience.note_reached();
            assert_eq!(patience.with(&away), asked);
        }
    }

    #[test]
    fn pauses_differ() {
        let pause = Duration::from_secs(1);
        let all: Vec<Duration> = (0..20).map(|_| jittered(pause)).collect();
        assert!(all.iter().all(|it| *it >= pause / 2 && *it <= pause * 3 / 2), "{all:?}");
        assert!(all.iter().any(|it| *it != all[0]));
    }
}
