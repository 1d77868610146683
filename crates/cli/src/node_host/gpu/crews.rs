//! The node's side of the crews its GPU process computes for: which are open, and what each is waited for.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use shoal_node::{SimAnswer, SimCommand};
use shoal_protocol::{CrewId, Epoch, Failure, LimitKind, Micros};

/// What a step may wait for the device while units of other jobs have it, beside its job's own limit.
const OTHERS: Duration = Duration::from_secs(10);
/// What an audition may take beside that: compiling, on a busy machine.
const AUDITION: Duration = Duration::from_secs(20);
/// What opening a band may take beside that: its rows come by network, and a coordinator may restart
/// meanwhile.
const OPENING: Duration = Duration::from_secs(150);

#[derive(Default)]
pub(super) struct Crews {
    seats: BTreeMap<CrewId, Seat>,
    auditions: BTreeMap<CrewId, Due>,
}

#[derive(Default)]
struct Seat {
    epoch: Epoch,
    /// What edges are waited for, in order.
    due: VecDeque<Due>,
}

#[derive(Clone, Copy)]
struct Due {
    at: Instant,
    allowed: Micros,
}

/// What the process will not answer any more.
pub(super) enum Lost {
    Crew(CrewId, SimAnswer),
    Audition(CrewId, Failure),
}

impl Crews {
    pub(super) fn auditions(&mut self, crew: CrewId, limit: Micros) {
        self.auditions.insert(crew, Due::within(limit, AUDITION));
    }

    pub(super) fn auditioned(&mut self, crew: CrewId) {
        self.auditions.remove(&crew);
    }

    /// A command is on its way. `false` for one that belongs to no open band: its epoch failed before.
    pub(super) fn told(&mut self, crew: CrewId, command: &SimCommand, limit: Micros) -> bool {
        let epoch = command.epoch();
        if let SimCommand::Open { .. } = command {
            let due = VecDeque::from([Due::within(limit, OPENING)]);
            self.seats.insert(crew, Seat { epoch, due });
            return true;
        }
        let Some(seat) = self.seats.get_mut(&crew).filter(|seat| seat.epoch == epoch) else {
            return false;
        };
        if let SimCommand::Step { .. } = command {
            seat.due.push_back(Due::within(limit, OTHERS));
        }
        true
    }

    pub(super) fn answered(&mut self, crew: CrewId, answer: &SimAnswer) {
        let Some(seat) = self.seats.get_mut(&crew).filter(|seat| seat.epoch == answer.epoch())
        else {
            return;
        };
        match answer {
            SimAnswer::Edges { .. } => {
                seat.due.pop_front();
            }
            SimAnswer::Failed { .. } => {
                self.seats.remove(&crew);
            }
            SimAnswer::Kept { .. } | SimAnswer::Final { .. } | SimAnswer::Shown { .. } => {}
        }
    }

    /// Whether there was anything of it in the process.
    pub(super) fn leave(&mut self, crew: CrewId) -> bool {
        self.seats.remove(&crew).is_some()
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.waited_for().map(|due| due.at).min()
    }

    /// Who did not answer in time, if anybody.
    pub(super) fn overdue(&mut self, now: Instant) -> Option<Lost> {
        let is_late = |due: &Due| due.at <= now;
        let late = self.seats.iter().find(|(_, seat)| seat.due.front().is_some_and(is_late));
        if let Some((&crew, seat)) = late {
            let failure = seat.due.front().map(Due::failure)?;
            let answer = SimAnswer::Failed { epoch: seat.epoch, failure };
            self.seats.remove(&crew);
            return Some(Lost::Crew(crew, answer));
        }
        let (&crew, due) = self.auditions.iter().find(|(_, due)| is_late(due))?;
        let failure = due.failure();
        self.auditions.remove(&crew);
        Some(Lost::Audition(crew, failure))
    }

    /// The process is gone, and every band with it.
    pub(super) fn lose_all(&mut self, reason: &str) -> Vec<Lost> {
        let failure = || Failure::DeviceLost { message: reason.into() };
        let seats = std::mem::take(&mut self.seats).into_iter().map(|(crew, seat)| {
            Lost::Crew(crew, SimAnswer::Failed { epoch: seat.epoch, failure: failure() })
        });
        let auditions = std::mem::take(&mut self.auditions).into_keys();
        seats.chain(auditions.map(|crew| Lost::Audition(crew, failure()))).collect()
    }

    fn waited_for(&self) -> impl Iterator<Item = &Due> {
        self.seats.values().filter_map(|seat| seat.due.front()).chain(self.auditions.values())
    }
}

impl Due {
    fn within(allowed: Micros, more: Duration) -> Due {
        Due { at: Instant::now() + Duration::from_micros(allowed.0) + more, allowed }
    }

    fn failure(&self) -> Failure {
        let (which, allowed) = (LimitKind::Time, self.allowed.0);
        Failure::Limit { item: None, which, allowed, stderr: String::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shoal_protocol::{JobId, Span};

    const CREW: CrewId = CrewId(7);
    const LIMIT: Micros = Micros::from_secs(1);

    fn open(epoch: u32) -> SimCommand {
        let (job, rows) = (JobId(1), Span::new(0, 8));
        SimCommand::Open { epoch: Epoch(epoch), job, rows, step: 0, kept: Vec::new() }
    }

    fn step(epoch: u32) -> SimCommand {
        let (above, below) = (Vec::new(), Vec::new());
        SimCommand::Step { epoch: Epoch(epoch), step: 0, above, below, poke: None }
    }

    fn edges(epoch: u32) -> SimAnswer {
        let (top, bottom, took) = (Vec::new(), Vec::new(), Micros(1));
        SimAnswer::Edges { epoch: Epoch(epoch), step: 0, top, bottom, took }
    }

    #[test]
    fn a_step_without_an_answer_is_overdue_and_only_then() {
        let mut crews = Crews::default();
        assert!(!crews.told(CREW, &step(1), LIMIT), "nothing is open");
        assert!(crews.told(CREW, &open(1), LIMIT));
        crews.answered(CREW, &edges(1));
        assert_eq!(crews.next_deadline(), None);
        assert!(crews.told(CREW, &step(1), LIMIT));
        let at = crews.next_deadline().expect("a step is waited for");
        assert!(crews.overdue(at - Duration::from_millis(1)).is_none());
        let lost = crews.overdue(at);
        let Some(Lost::Crew(CREW, SimAnswer::Failed { failure, .. })) = lost else { panic!() };
        assert!(matches!(failure, Failure::Limit { which: LimitKind::Time, .. }));
        assert!(!crews.told(CREW, &step(1), LIMIT), "its part is over");
    }

    #[test]
    fn a_lost_process_fails_every_band_once() {
        let mut crews = Crews::default();
        assert!(crews.told(CREW, &open(3), LIMIT));
        crews.auditions(CrewId(8), LIMIT);
        assert_eq!(crews.lose_all("it ended").len(), 2);
        assert_eq!(crews.lose_all("it ended").len(), 0);
        assert!(crews.told(CREW, &open(4), LIMIT) && !crews.told(CREW, &step(3), LIMIT));
    }
}
