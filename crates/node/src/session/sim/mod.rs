//! One member's part of a simulation, in one epoch. It has a band of the grid's rows; the ranks form a ring,
//! because the grid wraps around.
//!
//! The loop: tell both neighbours this band's edges, wait for theirs, have the engine make a step, and so on.
//! Nothing is computed from what was not told: a late halo is waited for, or guessed (`guess`) and the
//! step taken back if the guess was wrong. So the final bits depend on nothing but the job and its pokes.
//!
//! `step` is the loop; `halo` has what neighbours say and keeps what came early, `poke` the pokes to come;
//! `pace` measures, reports and names who is waited for; `total` brings all rows together where the job asks for it.

mod guess;
mod halo;
mod pace;
mod poke;
mod step;
mod total;

use alloc::collections::{BTreeSet, VecDeque};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use shoal_kinds::SimWork;
use shoal_protocol::limit::MAX_POKES;
use shoal_protocol::{Attempt, CrewSay, CrewTold, Epoch, Failure, SimTask, Span, Time, UnitOutput};

use super::command::{SimAnswer, SimCommand};
use crate::collective::Rank;
use guess::Guess;
use halo::{Halo, Halos, Side, Wrong};
use pace::Pace;
use poke::Pokes;
use step::MAX_KEEPING;
use total::Totals;

/// Where this member stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub epoch: Epoch,
    pub rank: Rank,
    pub ranks: u8,
}

#[derive(Clone, Debug)]
pub enum SimInput {
    /// A member said this on the halos' channel.
    Heard {
        from: Rank,
        bytes: Vec<u8>,
    },
    /// The same on the channel of common operations.
    Common {
        from: Rank,
        bytes: Vec<u8>,
    },
    Answer(SimAnswer),
    Told(CrewTold),
    Tick,
}

#[derive(Clone, Debug, PartialEq)]
pub enum SimOutput {
    /// Say this to that member on the halos' channel.
    Tell {
        to: Rank,
        message: Arc<Vec<u8>>,
    },
    /// Say this on the channel of common operations.
    Common {
        to: Rank,
        message: Arc<Vec<u8>>,
    },
    /// Take nothing more of that member for now (`true`), or again.
    Hold {
        rank: Rank,
        hold: bool,
    },
    Command(SimCommand),
    Says(CrewSay),
    /// That member's halo is waited for.
    Slow(Rank),
    /// That member did what no honest one does. Said once of each.
    Bad {
        rank: Rank,
        why: String,
    },
    Deliver {
        attempt: Attempt,
        output: UnitOutput,
    },
}

/// Rows at the ends of a band.
#[derive(Clone, Debug, Default, PartialEq)]
struct Edges {
    top: Vec<u8>,
    bottom: Vec<u8>,
}

#[derive(Debug)]
enum Phase {
    /// The engine makes the state to begin with.
    Opening,
    /// The state is there and told. Halos are missing, or a checkpoint must be stored first.
    Waiting,
    /// The engine makes the next state.
    Stepping,
    /// The next state was made with guesses, and these are its edges; what is true has yet to come.
    Guessed(Edges),
    /// All steps are done; the engine hands in the rows.
    Finishing,
    /// They are handed in.
    Done,
    /// Failed.
    Over,
}

pub struct Sim {
    place: Place,
    task: SimTask,
    band: Span,
    /// Steps to be done: those of the whole job, or up to where it is checked.
    steps: u64,
    halo_bytes: u64,
    /// The cells are of `f32`, so that differences mean something.
    floats: bool,
    phase: Phase,
    /// Steps done and told.
    step: u64,
    halos: Halos,
    pokes: Pokes,
    guess: Guess,
    pace: Pace,
    /// A checkpoint is due before the next step.
    keep_due: bool,
    /// Steps whose checkpoint is being stored.
    keeping: BTreeSet<u64>,
    /// What the crew makes of all rows, if the job asks for it.
    totals: Option<Totals>,
    /// Handed in as soon as the last total is said: with the last rows the crew is over.
    last: Option<UnitOutput>,
    watched: bool,
    showing: bool,
    show_at: Time,
    bad: BTreeSet<Rank>,
    outputs: VecDeque<SimOutput>,
}

impl Sim {
    /// The part begins at once: the engine is asked for the first state.
    pub fn new(now: Time, place: Place, work: &SimWork, task: SimTask) -> Sim {
        let band = task.bands.get(usize::from(place.rank.0)).copied();
        let mut sim = Sim {
            place,
            band: band.unwrap_or(Span::new(0, 0)),
            steps: task.check.unwrap_or(work.steps).min(work.steps),
            halo_bytes: work.halo_bytes(),
            floats: work.scalar == "f32",
            phase: Phase::Opening,
            step: task.from,
            halos: Halos::new(task.speculate && place.ranks > 1),
            pokes: Pokes::new(&task.pokes),
            guess: Guess::default(),
            pace: Pace::new(now),
            keep_due: false,
            keeping: BTreeSet::new(),
            totals: None,
            last: None,
            watched: false,
            showing: false,
            show_at: now,
            bad: BTreeSet::new(),
            outputs: VecDeque::new(),
            task,
        };
        sim.report(now);
        sim.totals = work.reduce.and_then(|how| Totals::new(place, work, how, &sim.task.bands));
        if let Some(message) = sim.fault(work) {
            sim.fail(Failure::Internal { message });
            return sim;
        }
        let SimTask { job, from: step, apart, ref kept, .. } = sim.task;
        let (kept, rows) = (kept.clone(), sim.band);
        sim.command(SimCommand::Open { epoch: place.epoch, job, rows, step, kept, apart });
        sim
    }

    /// What is wrong with the task, which comes from the coordinator.
    fn fault(&self, work: &SimWork) -> Option<String> {
        let (ranks, bands) = (usize::from(self.place.ranks), &self.task.bands);
        if bands.len() != ranks || self.place.rank.0 >= self.place.ranks {
            return Some(format!("{} bands for {ranks} members", bands.len()));
        }
        let mut next = 0;
        for band in bands {
            if band.start != next || band.len < u64::from(work.halo.max(1)) {
                return Some(format!("a band of rows {band}; expected one from {next} on"));
            }
            next = band.end();
        }
        if next != u64::from(work.height) {
            return Some(format!("bands of {next} rows of {}", work.height));
        }
        let (from, steps) = (self.task.from, self.steps);
        if from > steps {
            return Some(format!("a checkpoint of step {from} of {steps}"));
        }
        let pokes = self.task.pokes.len();
        if pokes > MAX_POKES {
            return Some(format!("{pokes} pokes; at most {MAX_POKES} wait"));
        }
        self.hole(work)
    }

    /// A checkpoint without some of its rows: nobody computes on a hole.
    fn hole(&self, work: &SimWork) -> Option<String> {
        let (from, kept) = (self.task.from, &self.task.kept);
        if from == 0 && kept.is_empty() {
            return None;
        }
        let mut parts: Vec<_> = kept.iter().collect();
        parts.sort_by_key(|part| part.rows.start);
        let row = work.row_bytes();
        let mut next = 0;
        for part in parts {
            let size = part.rows.len.checked_mul(row);
            if part.rows.start != next || size != Some(part.blob.size) {
                return Some(format!("a checkpoint of step {from} without row {next}"));
            }
            next = part.rows.end();
        }
        let whole = next == u64::from(work.height);
        (!whole).then(|| format!("a checkpoint of step {from} without row {next}"))
    }

    pub fn handle(&mut self, now: Time, input: SimInput) {
        if matches!(self.phase, Phase::Over) {
            return;
        }
        match input {
            SimInput::Heard { from, bytes } => {
                if let Err(wrong) = self.heard(from, bytes) {
                    self.accuse(from, wrong.to_string());
                }
            }
            SimInput::Common { from, bytes } => self.common(now, from, bytes),
            SimInput::Answer(answer) => self.answered(now, answer),
            SimInput::Told(CrewTold::Poke(poke)) => self.poked(poke),
            SimInput::Told(CrewTold::Watch(watched)) => self.watched = watched,
            SimInput::Told(CrewTold::NotMet { .. } | CrewTold::Drop { .. }) | SimInput::Tick => {}
        }
        self.go_on(now);
        self.bring_together(now);
        self.on_time(now);
    }

    pub fn poll_output(&mut self) -> Option<SimOutput> {
        self.outputs.pop_front()
    }

    /// When to say `Tick` if nothing else happens.
    pub fn next_timeout(&self) -> Option<Time> {
        if matches!(self.phase, Phase::Over) {
            return None;
        }
        let slow = self.waits().then(|| self.pace.name_at());
        let totals = self.totals.as_ref().and_then(Totals::next_timeout);
        [Some(self.pace.beat_at()), slow, self.guess_at(), totals].into_iter().flatten().min()
    }

    pub fn is_watched(&self) -> bool {
        self.watched
    }

    /// Panics where an invariant does not hold.
    pub fn check(&self) {
        self.halos.check(self.step);
        self.totals.iter().for_each(Totals::check);
        assert!(self.keeping.len() <= MAX_KEEPING, "more checkpoints at a time than allowed");
        let over = matches!(self.phase, Phase::Over);
        assert!(over || self.step <= self.steps, "more steps than there are");
        let guessing = matches!(self.phase, Phase::Stepping | Phase::Guessed(_));
        assert!(guessing || self.guess.is_settled(), "a guess without its step");
    }

    /// The step of the edges that are told next.
    fn next_told(&self) -> u64 {
        self.step + u64::from(!matches!(self.phase, Phase::Opening))
    }

    fn heard(&mut self, from: Rank, bytes: Vec<u8>) -> Result<(), Wrong> {
        let halo = Halo::decode(bytes)?;
        if halo.rows.len() as u64 != self.halo_bytes {
            return Err(Wrong::Length { came: halo.rows.len(), expected: self.halo_bytes });
        }
        if self.place.ranks < 2 || self.neighbour(halo.side) != from {
            return Err(Wrong::NotANeighbour);
        }
        let (step, at) = (halo.step, self.step);
        // A neighbour that was told the edges of this step can have made the next, and no more.
        if step > self.next_told() || step >= self.steps {
            return Err(Wrong::Ahead { step, at });
        }
        if step < at || self.halos.has(halo.side, step) {
            return Err(Wrong::Again { step, at });
        }
        let heard = self.pokes.hear(step, self.place.ranks, at, halo.pokes);
        heard.map_err(|poke| Wrong::PokeAt { step: poke, at: step })?;
        self.halos.put(halo.side, step, halo.rows);
        Ok(())
    }

    fn accuse(&mut self, rank: Rank, why: String) {
        if self.bad.insert(rank) {
            self.outputs.push_back(SimOutput::Bad { rank, why });
        }
    }

    fn neighbour(&self, side: Side) -> Rank {
        let (me, ranks) = (u16::from(self.place.rank.0), u16::from(self.place.ranks));
        let way = match side {
            Side::Above => ranks - 1,
            Side::Below => 1,
        };
        Rank(((me + way) % ranks) as u8)
    }
}
