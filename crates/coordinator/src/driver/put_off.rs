//! Results that found the disk full. Nobody is to blame: their units stay lent, so that nothing more is
//! lent in their place, and are given back once there is room.

use std::collections::BTreeMap;

use shoal_protocol::{Attempt, FromNode};
use shoal_scheduler::{Conn, Input};

use super::Driver;

impl Driver {
    /// A result could not be written for lack of room: nothing new is taken in until there is some.
    pub(super) fn put_off(&mut self, conn: Conn, attempt: Attempt) {
        self.no_room();
        if self.scheduler.holder(attempt) == Some(conn) {
            self.put_off.insert(attempt, conn);
        }
    }

    /// Something did not fit.
    pub(super) fn no_room(&mut self) {
        if !self.ballast.is_full() {
            tracing::error!("the disk is full: results wait until there is room");
            self.ballast.release();
        }
    }

    /// Whether a node says what is known: that its result could not be kept.
    pub(super) fn is_put_off(&self, conn: Conn, attempt: Attempt) -> bool {
        self.put_off.get(&attempt) == Some(&conn)
    }

    /// Gives the units back if there is room again.
    pub(super) fn take_up(&mut self) {
        let scheduler = &self.scheduler;
        self.put_off.retain(|attempt, conn| scheduler.holder(*attempt) == Some(*conn));
        if self.ballast.is_full() {
            return;
        }
        let mut units: BTreeMap<Conn, Vec<Attempt>> = BTreeMap::new();
        for (attempt, conn) in std::mem::take(&mut self.put_off) {
            units.entry(conn).or_default().push(attempt);
        }
        let now = self.clock.now();
        for (conn, attempts) in units {
            self.handle(now, Input::Said { conn, message: FromNode::Returned(attempts) });
        }
    }
}
