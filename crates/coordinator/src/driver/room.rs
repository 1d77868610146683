//! Room on the disk. A few megabytes are kept back: when facts no longer fit, these are given up, so that what was
//! promised can still be written. Nothing new is taken in until they could be kept back again. Results that found
//! the disk full are nobody's fault: their units stay lent, so that nothing more is lent in their place, and are
//! given back once there is room.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use shoal_protocol::{Attempt, FromNode};
use shoal_scheduler::{Conn, Input};

use super::Driver;
use crate::health::Health;

/// Room for minutes of facts of a busy coordinator and for SQLite's own files.
const BALLAST_BYTES: usize = 4 << 20;
/// Room there must be beside it before the disk counts as free again: else the next result would fill it.
const SPARE_BYTES: usize = 4 << 20;
/// How often to look whether there is room again.
const RETRY: Duration = Duration::from_secs(1);

pub(super) struct Room {
    /// The file that keeps room back.
    ballast: PathBuf,
    /// Shared with whoever takes things in.
    health: Arc<Health>,
    retry_at: Option<Instant>,
    /// Units whose results found the disk full.
    put_off: BTreeMap<Attempt, Conn>,
}

impl Room {
    pub(super) fn keep(ballast: PathBuf, health: Arc<Health>) -> Room {
        let mut room = Room { ballast, health, retry_at: None, put_off: BTreeMap::new() };
        room.restore();
        room
    }

    pub(super) fn is_full(&self) -> bool {
        self.health.is_full()
    }

    pub(super) fn retry_at(&self) -> Option<Instant> {
        self.retry_at
    }

    /// Gives up what was kept back; `false` if that was done before.
    pub(super) fn release(&mut self) -> bool {
        self.health.set_full(true);
        self.retry_at = Some(Instant::now() + RETRY);
        fs::remove_file(&self.ballast).is_ok()
    }

    /// Something did not fit: nothing new is taken in until there is room.
    pub(super) fn lacks(&mut self) {
        if !self.is_full() {
            tracing::error!("the disk is full: results wait until there is room");
            self.release();
        }
    }

    /// The result of a unit did not fit; the unit stays lent to this connection.
    fn put_off(&mut self, attempt: Attempt, conn: Conn) {
        self.put_off.insert(attempt, conn);
        self.check();
    }

    /// Whether a node says what is known: that its result could not be kept.
    pub(super) fn is_put_off(&self, conn: Conn, attempt: Attempt) -> bool {
        self.put_off.get(&attempt) == Some(&conn)
    }

    /// Looks for room, if that is due. Gives back the units that were put off once there is some; of those that
    /// `still` says are lent.
    fn look(
        &mut self,
        now: Instant,
        still: impl Fn(Attempt, Conn) -> bool,
    ) -> BTreeMap<Conn, Vec<Attempt>> {
        let mut units: BTreeMap<Conn, Vec<Attempt>> = BTreeMap::new();
        if self.retry_at.is_none_or(|at| at > now) {
            return units;
        }
        self.restore();
        self.put_off.retain(|attempt, conn| still(*attempt, *conn));
        if !self.is_full() {
            for (attempt, conn) in std::mem::take(&mut self.put_off) {
                units.entry(conn).or_default().push(attempt);
            }
        }
        self.check();
        units
    }

    /// Takes the room back, if there is some.
    fn restore(&mut self) {
        let kept = match fs::metadata(&self.ballast) {
            Ok(meta) if meta.len() == BALLAST_BYTES as u64 => Ok(()),
            _ => self.write(),
        };
        if kept.is_err() {
            let _ = fs::remove_file(&self.ballast);
        }
        self.health.set_full(kept.is_err());
        self.retry_at = kept.is_err().then(|| Instant::now() + RETRY);
    }

    fn write(&self) -> io::Result<()> {
        let mut file = fs::File::create(&self.ballast)?;
        // Not zeros: some file systems keep those without taking room.
        file.write_all(&vec![0xA5; BALLAST_BYTES + SPARE_BYTES])?;
        file.set_len(BALLAST_BYTES as u64)?;
        file.sync_data()
    }

    /// While the disk is full it is looked at again, and only then do units wait for it.
    fn check(&self) {
        debug_assert_eq!(self.is_full(), self.retry_at.is_some());
        debug_assert!(self.is_full() || self.put_off.is_empty());
    }
}

impl Driver {
    /// A result could not be written for lack of room: nothing new is taken in until there is some.
    pub(super) fn put_off(&mut self, conn: Conn, attempt: Attempt) {
        self.room.lacks();
        if self.scheduler.holder(attempt) == Some(conn) {
            self.room.put_off(attempt, conn);
        }
    }

    /// Gives units back whose results were put off, if there is room again.
    pub(super) fn look_for_room(&mut self) {
        let scheduler = &self.scheduler;
        let still = |attempt, conn| scheduler.holder(attempt) == Some(conn);
        let units = self.room.look(Instant::now(), still);
        let now = self.clock.now();
        for (conn, attempts) in units {
            self.handle(now, Input::Said { conn, message: FromNode::Returned(attempts) });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_that_were_put_off_come_back_once_there_is_room_if_they_are_still_lent() {
        let name = format!("shoal-room-{}", std::process::id());
        let ballast = std::env::temp_dir().join(name);
        let mut room = Room::keep(ballast.clone(), Arc::default());
        let (held, lost) = (Attempt::new(1, 1), Attempt::new(1, 2));
        assert!(!room.is_full() && ballast.exists());
        room.lacks();
        assert!(room.is_full() && !ballast.exists());
        room.put_off(held, Conn(1));
        room.put_off(lost, Conn(2));
        assert!(room.is_put_off(Conn(1), held) && !room.is_put_off(Conn(2), held));
        let due = room.retry_at().unwrap();
        let still = |attempt, _| attempt == held;
        assert!(room.look(due - Duration::from_millis(1), still).is_empty());
        assert_eq!(room.look(due, still), BTreeMap::from([(Conn(1), vec![held])]));
        assert!(!room.is_full() && !room.is_put_off(Conn(2), lost));
        fs::remove_file(ballast).unwrap();
    }
}
