//! The one thread that owns the scheduler and the facts. It takes all ready events as a batch, lets the
//! scheduler decide on each, makes all facts durable in one transaction, and only then lets anybody know.
//!
//! - [`open`]: how it starts
//! - [`event`]: what reaches it, [`inbox`]: how, and [`take`]: what is done about it
//! - [`done`], [`results`]: results that arrive
//! - [`compare`]: looking whether two answers are the same
//! - [`keyed`]: requests that are sent again
//! - [`service`]: services are begun, asked and ended
//! - [`crew`], [`parts`]: what crews need of the shell, and the bytes of their checkpoints
//! - [`settle`]: making a batch durable
//! - [`effect`]: what is done after the commit, [`waiting`]: who waits for it, and [`conns`]: what nodes are told
//! - [`known`], [`index`], [`view`], [`explain`]: what is shown
//! - [`room`]: what happens when the disk is full
//! - [`handle`]: everybody else's end
//!
//! Each of these owns its part of the state; only what concerns several of them is the driver's.

mod compare;
pub(crate) mod conns;
pub(crate) mod crew;
mod done;
mod effect;
pub(crate) mod event;
mod explain;
pub(crate) mod handle;
mod inbox;
mod index;
pub(crate) mod keyed;
mod known;
mod open;
mod parts;
mod results;
mod room;
mod service;
mod settle;
mod take;
mod view;
mod waiting;

use std::thread::{self, JoinHandle};
use std::time::Instant;

use shoal_protocol::Time;
use shoal_scheduler::{Input, Output, Scheduler};
use tokio::sync::mpsc;

use self::compare::{Comparer, Pair, RowsTask};
use self::conns::Conns;
use self::crew::Crews;
use self::effect::{Effect, Later};
use self::event::Counts;
use self::handle::Handle;
use self::inbox::{Inbox, Woken};
use self::keyed::Keys;
use self::known::Known;
pub(crate) use self::open::Places;
use self::results::Results;
use self::room::Room;
use self::settle::Journal;
use self::waiting::Waiting;
use crate::answer::Ran;
use crate::clock::Clock;
use crate::options::RunError;
use crate::store::blobs::Blobs;

/// Events that may wait for the driver; senders wait when there are more.
const MAX_WAITING: usize = 4096;

pub(crate) struct Driver {
    clock: Clock,
    /// Secret: whoever knows it knows what will be checked.
    seed: u64,
    scheduler: Scheduler,
    journal: Journal,
    /// What is done once the batch is durable.
    later: Later,
    results: Results,
    blobs: Blobs,
    room: Room,
    comparer: Comparer,
    conns: Conns,
    crews: Crews,
    keys: Keys,
    known: Known,
    waiting: Waiting,
    /// What nobody else counts.
    counts: Counts,
    stopping: bool,
}

impl Driver {
    /// Starts the thread.
    pub(crate) fn spawn(mut self) -> std::io::Result<(Handle, JoinHandle<Result<(), RunError>>)> {
        let (events, received) = mpsc::channel(MAX_WAITING);
        let (results, kept) = (self.results.dir().into(), self.crews.kept());
        self.comparer.start(results, kept, events.downgrade())?;
        let handle = Handle::new(events, self.known.changes(), self.journal.health());
        let thread = thread::Builder::new()
            .name("shoal-driver".into())
            .spawn(move || self.run(Inbox::new(received)))?;
        Ok((handle, thread))
    }

    fn run(&mut self, mut inbox: Inbox) -> Result<(), RunError> {
        let start = Input::Start { seed: self.seed };
        self.scheduler.handle(self.clock.now(), start);
        self.drain();
        self.settle()?;
        let mut events = Vec::new();
        while !self.stopping {
            let woken = inbox.wait(&mut events, Some(self.next_wake()));
            if woken == Woken::Closed {
                break;
            }
            let now = self.clock.now();
            self.counts.batches += 1;
            self.counts.events += events.len() as u64;
            for event in events.drain(..) {
                self.take(now, event);
            }
            if self.scheduler.next_timeout().is_some_and(|due| due <= now) {
                self.scheduler.handle(now, Input::Tick);
                self.drain();
            }
            self.look_for_room();
            self.sweep_results();
            self.settle()?;
        }
        Ok(())
    }

    fn next_wake(&self) -> Instant {
        let mut wake = self.results.sweep_at();
        if let Some(due) = self.scheduler.next_timeout() {
            wake = wake.min(self.clock.instant(due));
        }
        self.room.retry_at().map_or(wake, |retry| wake.min(retry))
    }

    fn handle(&mut self, now: Time, input: Input) {
        self.scheduler.handle(now, input);
        self.drain();
    }

    /// Sorts what the scheduler wants done into what must be durable and what follows.
    fn drain(&mut self) {
        let mut written = Vec::new();
        while let Some(output) = self.scheduler.poll_output() {
            match output {
                Output::Record(fact) => {
                    self.known.learn(&fact);
                    self.crews.learn(&fact);
                    self.journal.record(fact);
                }
                Output::Send { conn, message } => {
                    self.known.told(&message);
                    let message = self.completed(message);
                    self.conns.send(conn, message);
                }
                Output::Refuse { conn, refusal } => self.conns.refuse(conn, refusal),
                Output::Reply { request, result } => self.answered(request, result),
                Output::Answered { call, part, last, ran } => {
                    self.waiting.part(call, part);
                    if last {
                        let (node, name) = (ran.node.0, self.node_name(ran.node));
                        let (waited, took, stages) = (ran.waited, ran.took, ran.stages);
                        self.waiting.whole(call, Ran { node, name, waited, took, stages });
                    }
                }
                Output::Unanswered { call, error } => self.waiting.unanswered(call, error),
                Output::Write { job, span, bytes } => {
                    let place = self.write_instead(job, span, &bytes);
                    written.push(Input::Written { job, span, place });
                }
                Output::Ended(job) => self.later.push(Effect::Ended { job }),
                Output::Removed(job) => {
                    if self.known.forget(job) {
                        self.journal.forget_note(job);
                    }
                    self.forget_key(job);
                    self.crews.forget(job);
                    self.later.push(Effect::Forget { job });
                }
                Output::Route { crew, epoch, members } => {
                    let over = self.crews.route(crew, epoch, &members);
                    self.crews.discard(&self.scheduler, &over);
                }
                Output::Drop(blobs) => self.later.push(Effect::Drop(blobs)),
                Output::CompareRows { crew, job, a, b } => {
                    self.comparer.ask_rows(RowsTask { crew, job, a, b });
                }
                Output::Compare { id, job, items, a, b } => {
                    let pair = Pair { id, job, items, a, b };
                    self.comparer.ask(pair, self.scheduler.spec(job));
                }
            }
        }
        for input in written {
            self.handle(self.clock.now(), input);
        }
    }
}
