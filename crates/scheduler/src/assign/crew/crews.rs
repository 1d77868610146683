//! The crews of jobs, those that form and those at work, and when to look at them.

use alloc::collections::btree_map::{BTreeMap, Iter, Keys, Values, ValuesMut};
use shoal_protocol::{CrewId, Micros, Time};

use super::Crew;

#[derive(Default)]
pub(crate) struct Crews {
    crews: BTreeMap<CrewId, Crew>,
    /// When to look at them; never, if there are none.
    due: Option<Time>,
    /// When they were last looked at.
    seen: Time,
}

impl Crews {
    pub(crate) fn get(&self, id: &CrewId) -> Option<&Crew> {
        self.crews.get(id)
    }

    pub(crate) fn get_mut(&mut self, id: &CrewId) -> Option<&mut Crew> {
        self.crews.get_mut(id)
    }

    pub(crate) fn iter(&self) -> Iter<'_, CrewId, Crew> {
        self.crews.iter()
    }

    pub(crate) fn keys(&self) -> Keys<'_, CrewId, Crew> {
        self.crews.keys()
    }

    pub(crate) fn values(&self) -> Values<'_, CrewId, Crew> {
        self.crews.values()
    }

    pub(super) fn values_mut(&mut self) -> ValuesMut<'_, CrewId, Crew> {
        self.crews.values_mut()
    }

    pub(crate) fn len(&self) -> usize {
        self.crews.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.crews.is_empty()
    }

    /// A new crew, which is looked at before anything else is done.
    pub(super) fn insert(&mut self, now: Time, id: CrewId, crew: Crew) {
        self.crews.insert(id, crew);
        self.due = Some(now);
    }

    pub(super) fn remove(&mut self, id: &CrewId) -> Option<Crew> {
        self.crews.remove(id)
    }

    pub(crate) fn next_timeout(&self) -> Option<Time> {
        self.due
    }

    /// They are looked at before anything else is done.
    pub(super) fn wake(&mut self, now: Time) {
        if !self.crews.is_empty() {
            self.due = Some(now);
        }
    }

    /// They are looked at soon, but not more often than this.
    pub(super) fn wake_gently(&mut self, now: Time, every: Micros) {
        if let Some(due) = &mut self.due {
            *due = (*due).min(now.max(self.seen + every));
        }
    }

    /// Whether it is time to look at them: then that is done now.
    pub(super) fn begin_look(&mut self, now: Time) -> bool {
        let due = self.due.is_some_and(|due| due <= now);
        if due {
            self.seen = now;
        }
        due
    }

    pub(super) fn end_look(&mut self, next: Time) {
        self.due = (!self.crews.is_empty()).then_some(next);
    }

    /// Part of [`crate::Scheduler::check`].
    pub(crate) fn check(&self) {
        assert!(self.crews.is_empty() || self.due.is_some(), "crews that nobody looks at");
        self.crews.values().for_each(Crew::check);
    }
}
