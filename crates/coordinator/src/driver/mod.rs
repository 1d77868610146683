//! The one thread that owns the scheduler and the facts. It takes all ready events as a batch, lets the
//! scheduler decide on each, makes all facts durable in one transaction, and only then lets anybody know.
//!
//! - [`open`]: how it starts
//! - [`event`]: what reaches it, and [`inbox`]: how
//! - [`done`], [`upload`], [`shape`]: results that arrive
//! - [`compare`]: looking whether two answers are the same
//! - [`service`]: who waits for which answer of a service
//! - [`crew`], [`parts`]: what crews need of the shell, and the bytes of their checkpoints
//! - [`settle`]: making a batch durable
//! - [`effect`]: what is done after the commit, and [`outbox`]: what nodes are told
//! - [`known`], [`index`], [`view`], [`who`], [`explain`]: what is shown
//! - [`ballast`], [`put_off`]: what happens when the disk is full
//! - [`handle`]: everybody else's end

mod ballast;
mod compare;
pub(crate) mod crew;
mod done;
mod effect;
pub(crate) mod event;
mod explain;
pub(crate) mod handle;
mod heard;
mod inbox;
mod index;
mod known;
mod open;
pub(crate) mod outbox;
mod parts;
mod put_off;
mod service;
mod settle;
mod sim_view;
mod upload;
mod view;
mod who;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use shoal_protocol::{Attempt, FromNode, JobId, PublicKey, Refusal, Time, ToNode};
use shoal_scheduler::{Conn, Input, Output, RequestId, Scheduler};
use tokio::sync::{mpsc, watch};

use self::ballast::Ballast;
use self::compare::{Comparer, Pair, RowsTask};
use self::crew::Crews;
use self::effect::Effect;
use self::event::{Counts, CrewEvent, Event, Query, Reply, Submission, Ticket};
use self::handle::Handle;
use self::inbox::{Inbox, Woken};
use self::known::Known;
pub(crate) use self::open::Places;
use self::outbox::Outbox;
use self::service::Waiting;
use self::who::Who;
use crate::clock::Clock;
use crate::faults::Faults;
use crate::health::Health;
use crate::json::JobJson;
use crate::options::RunError;
use crate::relay::Relay;
use crate::store::blobs::Blobs;
use crate::store::facts::{Batch, Facts, Stored};
use crate::store::results::ResultFiles;

/// Events that may wait for the driver; senders wait when there are more.
const MAX_WAITING: usize = 4096;
/// How often stored results whose unit is no longer lent are looked for.
const SWEEP: Duration = Duration::from_secs(30);

pub(crate) struct Driver {
    clock: Clock,
    /// The coordinator's own.
    key: PublicKey,
    /// Secret: whoever knows it knows what will be checked.
    seed: u64,
    scheduler: Scheduler,
    facts: Facts,
    results: ResultFiles,
    blobs: Blobs,
    ballast: Ballast,
    health: Arc<Health>,
    faults: Faults,
    comparer: Comparer,
    outbox: Outbox,
    relay: Relay,
    crews: Crews,
    known: Known,
    who: Who,
    /// Results that came by HTTP and wait for their `Done`.
    stored: HashMap<Attempt, Stored>,
    /// How often results began to come by HTTP.
    begun: HashMap<Attempt, u32>,
    /// Units whose results found the disk full.
    put_off: BTreeMap<Attempt, Conn>,
    tickets: BTreeMap<RequestId, Ticket>,
    last_request: u64,
    services: Waiting,
    /// Who wants to know when a job has ended.
    waiting: HashMap<JobId, Vec<Reply<Option<JobJson>>>>,
    /// What this batch makes durable, and what is done after that.
    batch: Batch,
    effects: Vec<Effect>,
    queries: Vec<Query>,
    changed: watch::Sender<u64>,
    counts: Counts,
    sweep_at: Instant,
    stopping: bool,
}

impl Driver {
    /// Tells this relay who may send frames to whom.
    pub(crate) fn with_relay(self, relay: Relay) -> Driver {
        Driver { relay, ..self }
    }

    /// Starts the thread.
    pub(crate) fn spawn(mut self) -> std::io::Result<(Handle, JoinHandle<Result<(), RunError>>)> {
        let (events, received) = mpsc::channel(MAX_WAITING);
        let (results, kept) = (self.results.dir().into(), self.crews.kept());
        self.comparer.start(results, kept, events.downgrade())?;
        let handle = Handle::new(events, self.changed.subscribe(), Arc::clone(&self.health));
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
            self.keep_house();
            self.settle()?;
        }
        Ok(())
    }

    fn next_wake(&self) -> Instant {
        let mut wake = self.sweep_at;
        if let Some(due) = self.scheduler.next_timeout() {
            wake = wake.min(self.clock.instant(due));
        }
        self.ballast.retry_at().map_or(wake, |retry| wake.min(retry))
    }

    fn take(&mut self, now: Time, event: Event) {
        match event {
            Event::Connected { conn, hello, session, trusted, network, outgoing, kill } => {
                self.outbox.open(conn, outgoing, kill);
                self.who.came(conn, hello.identity);
                self.known.stir_running();
                let hello = *hello;
                self.handle(now, Input::Connected { conn, hello, session, trusted, network });
            }
            Event::RoundTrip { conn, took } => {
                self.counts.round_trips += 1;
                self.counts.round_trip_micros += took.0;
                self.handle(now, Input::RoundTrip { conn, took });
            }
            Event::RowsCompared { crew, same } => {
                self.handle(now, Input::RowsCompared { crew, same });
            }
            Event::Compared { id, outcome } => {
                self.counts.comparisons += 1;
                self.handle(now, Input::Compared { id, outcome });
            }
            Event::Said { conn, message: FromNode::Done(finished) } => {
                self.done(now, conn, finished);
            }
            Event::Said { conn, message: FromNode::Failed { attempt, .. } }
                if self.is_put_off(conn, attempt) => {}
            Event::Said { conn, message: FromNode::Crew { crew, epoch, say } } => {
                self.take_crew(now, CrewEvent::Said { conn, crew, epoch, say });
            }
            Event::Said { conn, message } => {
                self.note_said(&message);
                self.vouch(now, &message);
                self.handle(now, Input::Said { conn, message });
            }
            Event::Disconnected { conn } => {
                self.outbox.close(conn);
                self.who.left(conn);
                self.known.stir_running();
                self.handle(now, Input::Disconnected { conn });
            }
            Event::Submit(submission) => self.submit(now, *submission),
            Event::Cancel { job, reply } => {
                self.handle(now, Input::Cancel { job });
                self.effects.push(Effect::Show { job, reply });
            }
            Event::Delete { job, reply } => self.delete(now, job, reply),
            Event::Reserve { conn, job, attempt, size, reply } => {
                // Promises nothing that a crash could break: no need to wait for the commit.
                let _ = reply.send(self.reserve(conn, job, attempt, size));
            }
            Event::Stored { stored, reply } => {
                self.keep(stored);
                self.effects.push(Effect::Stored { reply });
            }
            Event::Unkept { conn, attempt } => self.put_off(conn, attempt),
            Event::Crew(event) => self.take_crew(now, event),
            Event::Service(event) => self.take_service(now, event),
            Event::Query(query) => self.queries.push(query),
            Event::Stop => {
                self.outbox.refuse_all(&Refusal::Closing);
                self.stopping = true;
            }
        }
    }

    fn handle(&mut self, now: Time, input: Input) {
        self.scheduler.handle(now, input);
        self.drain();
    }

    fn submit(&mut self, now: Time, Submission { spec, ticket }: Submission) {
        self.last_request += 1;
        let request = RequestId(self.last_request);
        self.tickets.insert(request, ticket);
        self.handle(now, Input::Submit { request, spec });
    }

    fn delete(&mut self, now: Time, job: JobId, reply: Reply<Option<JobJson>>) {
        let before = self.job_json(now, job);
        if before.as_ref().is_some_and(|view| view.state == crate::json::StateJson::Running) {
            self.handle(now, Input::Cancel { job });
            self.effects.push(Effect::Show { job, reply });
        } else {
            self.handle(now, Input::Remove { job });
            self.effects.push(Effect::Removed { before: Box::new(before), reply });
        }
    }

    /// Sorts what the scheduler wants done into what must be durable and what follows.
    fn drain(&mut self) {
        while let Some(output) = self.scheduler.poll_output() {
            match output {
                Output::Record(fact) => {
                    self.known.learn(&fact);
                    self.crews.parts.learn(&fact);
                    self.batch.facts.push(fact);
                }
                Output::Send { conn, message } => {
                    self.known.told(&message);
                    if let ToNode::Welcome { node, .. } = &message {
                        self.who.welcomed(conn, *node);
                    }
                    let message = self.completed(message);
                    self.outbox.send(conn, message);
                }
                Output::Refuse { conn, refusal } => self.outbox.refuse(conn, refusal),
                Output::Reply { request, result } => {
                    if !self.served(request, &result) {
                        self.answered(request, result);
                    }
                }
                Output::Answered { call, part, last } => self.call_part(call, part, last),
                Output::Unanswered { call, error } => self.call_over(call, error),
                Output::Ended(job) => self.effects.push(Effect::Ended { job }),
                Output::Removed(job) => {
                    if self.known.forget(job) {
                        self.batch.forgotten.push(job);
                    }
                    self.crews.forget(job);
                    self.effects.push(Effect::Forget { job });
                }
                Output::Route { crew, epoch, members } => self.routed(crew, epoch, &members),
                Output::Drop(blobs) => self.effects.push(Effect::Drop(blobs)),
                Output::CompareRows { crew, job, a, b } => {
                    self.comparer.ask_rows(RowsTask { crew, job, a, b });
                }
                Output::Compare { id, job, items, a, b } => {
                    let pair = Pair { id, job, items, a, b };
                    self.comparer.ask(pair, self.scheduler.spec(job));
                }
            }
        }
    }
}
