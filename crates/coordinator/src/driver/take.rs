//! What the driver does about each event that reaches it, mostly before the scheduler hears of it.

use shoal_protocol::limit::MAX_SHARED_BLOBS;
use shoal_protocol::swarm::is_shared;
use shoal_protocol::{FromNode, JobId, Refusal, Time};
use shoal_scheduler::Input;

use super::Driver;
use super::effect::Effect;
use super::event::{CrewEvent, Event, NotTaken, Reply, Submission};
use super::keyed::Taken;
use super::waiting::Asked;
use shoal_api::{JobJson, StateJson};

impl Driver {
    pub(super) fn take(&mut self, now: Time, event: Event) {
        match event {
            Event::Connected { conn, hello, session, trusted, network, outgoing, kill } => {
                self.conns.open(conn, hello.identity, outgoing, kill);
                self.known.note_running();
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
                if self.room.is_put_off(conn, attempt) => {}
            Event::Said { conn, message: FromNode::Crew { crew, epoch, say } } => {
                self.take_crew(now, CrewEvent::Said { conn, crew, epoch, say });
            }
            Event::Said { conn, message } => {
                self.note_said(&message);
                self.vouch(now, &message);
                self.handle(now, Input::Said { conn, message });
            }
            Event::Disconnected { conn } => {
                self.conns.close(conn);
                self.known.note_running();
                self.handle(now, Input::Disconnected { conn });
            }
            Event::Submit(submission) => self.submit(now, *submission),
            Event::Cancel { job, reply } => {
                self.handle(now, Input::Cancel { job });
                self.later.push(Effect::Show { job, reply });
            }
            Event::Delete { job, reply } => self.delete(now, job, reply),
            Event::Reserve { conn, job, attempt, size, writer, reply } => {
                // Promises nothing that a crash could break: no need to wait for the commit.
                let _ = reply.send(self.reserve(conn, job, attempt, size, writer));
            }
            Event::Placed { conn, job, attempt, part, reply } => {
                let _ = reply.send(self.placed(conn, job, attempt, part));
            }
            Event::Stored { stored, reply } => {
                self.keep(stored);
                self.later.push(Effect::Stored { reply });
            }
            Event::Unkept { conn, attempt } => self.put_off(conn, attempt),
            Event::Crew(event) => self.take_crew(now, event),
            Event::Service(event) => self.take_service(now, event),
            Event::Query(query) => self.later.ask(query),
            Event::Stop => {
                self.conns.refuse_all(&Refusal::Closing);
                self.stopping = true;
            }
        }
    }

    fn submit(&mut self, now: Time, Submission { spec, ticket }: Submission) {
        match ticket.key.as_ref().and_then(|key| self.keys.find(key)) {
            None => {}
            Some(Taken::Same(job)) => return self.later.push(Effect::Accepted { job, ticket }),
            Some(Taken::Other(job)) => {
                let error = NotTaken::OtherRequest { job };
                return self.later.push(Effect::Refused { error, ticket });
            }
        }
        let request = self.waiting.request(Asked::Submit(ticket));
        self.handle(now, Input::Submit { request, spec });
    }

    fn delete(&mut self, now: Time, job: JobId, reply: Reply<Option<JobJson>>) {
        let before = self.job_json(now, job);
        if before.as_ref().is_some_and(|view| view.state == StateJson::Running) {
            self.handle(now, Input::Cancel { job });
            self.later.push(Effect::Show { job, reply });
        } else {
            self.handle(now, Input::Remove { job });
            self.later.push(Effect::Removed { before: Box::new(before), reply });
        }
    }

    /// Tells the scheduler which of the blobs a node speaks of are stored here. It believes nothing about others.
    fn vouch(&mut self, now: Time, message: &FromNode) {
        let FromNode::Swarm(say) = message else { return };
        for blob in say.claimed().iter().take(MAX_SHARED_BLOBS) {
            if !is_shared(blob) || self.scheduler.knows_blob(blob) {
                continue;
            }
            match self.blobs.find(blob.hash) {
                Ok(Some(found)) if found == *blob => {
                    self.handle(now, Input::Stored { blob: found })
                }
                Ok(_) => {}
                Err(error) => tracing::warn!("blob {} cannot be looked up: {error}", blob.hash),
            }
        }
    }

    /// What of it changes what people see.
    fn note_said(&mut self, message: &FromNode) {
        match message {
            FromNode::Failed { .. } => {
                self.counts.units_failed += 1;
                self.known.note_running();
            }
            FromNode::Caps(_)
            | FromNode::Returned(_)
            | FromNode::Pause(_)
            | FromNode::Condition(_)
            | FromNode::Declined { .. }
            | FromNode::Links { .. }
            | FromNode::Crew { .. } => {
                self.known.note_running();
            }
            FromNode::Hello(_)
            | FromNode::Done(_)
            | FromNode::Alive { .. }
            | FromNode::Warm { .. }
            | FromNode::Answer { .. }
            | FromNode::Swarm(_) => {}
        }
    }
}
