//! Everybody else's end of the driver: ask, and wait for the answer.

use std::sync::Arc;

use shoal_kinds::{LlmWork, OnnxWork, ServiceSpec};
use shoal_protocol::{Attempt, BlobRef, CrewId, Epoch, JobId, Span};
use shoal_scheduler::Conn;
use tokio::sync::{mpsc, oneshot, watch};

use super::event::{
    Counts, CrewEvent, Event, Explain, Found, GridSeat, Merged, NotTaken, Prefix, Proven, Query,
    Reply, ReserveError, Reserved, ServiceEvent, Submission, Writer,
};
use super::keyed::{Key, Taken};
use crate::health::{Health, Trouble};
use crate::store::facts::Stored;
use crate::store::send::Extent;
use shoal_api::{ExplainServiceJson, JobJson, LeftNodeJson, NodeJson, ServiceJson, UnitsJson};

#[derive(Clone)]
pub(crate) struct Handle {
    events: mpsc::Sender<Event>,
    changed: watch::Receiver<u64>,
    health: Arc<Health>,
}

/// The driver has stopped, or is about to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stopped;

impl Handle {
    pub(super) fn new(
        events: mpsc::Sender<Event>,
        changed: watch::Receiver<u64>,
        health: Arc<Health>,
    ) -> Handle {
        Handle { events, changed, health }
    }

    pub(crate) async fn tell(&self, event: Event) -> Result<(), Stopped> {
        self.events.send(event).await.map_err(|_| Stopped)
    }

    /// Rises whenever something changed.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changed.clone()
    }

    /// Why nothing new can be taken in.
    pub(crate) fn trouble(&self) -> Option<Trouble> {
        self.health.trouble()
    }

    /// The coordinator must stop: facts that cannot be written are not waited for any longer.
    pub(crate) fn give_up(&self) {
        self.health.give_up();
    }

    pub(crate) async fn submit(&self, submission: Submission) -> Result<(), Stopped> {
        self.tell(Event::Submit(Box::new(submission))).await
    }

    pub(crate) async fn cancel(&self, job: JobId) -> Result<Option<JobJson>, Stopped> {
        self.ask(|reply| Event::Cancel { job, reply }).await
    }

    pub(crate) async fn delete(&self, job: JobId) -> Result<Option<JobJson>, Stopped> {
        self.ask(|reply| Event::Delete { job, reply }).await
    }

    pub(crate) async fn reserve(
        &self,
        conn: Conn,
        job: JobId,
        attempt: Attempt,
        size: u64,
        writer: Writer,
    ) -> Result<Result<Reserved, ReserveError>, Stopped> {
        self.ask(|reply| Event::Reserve { conn, job, attempt, size, writer, reply }).await
    }

    pub(crate) async fn placed(
        &self,
        conn: Conn,
        job: JobId,
        attempt: Attempt,
        part: Extent,
    ) -> Result<Result<Reserved, ReserveError>, Stopped> {
        self.ask(|reply| Event::Placed { conn, job, attempt, part, reply }).await
    }

    pub(crate) async fn stored(&self, stored: Stored) -> Result<(), Stopped> {
        self.ask(|reply| Event::Stored { stored, reply }).await
    }

    pub(crate) async fn job(&self, job: JobId) -> Result<Option<JobJson>, Stopped> {
        self.query(|reply| Query::Job { job, reply }).await
    }

    pub(crate) async fn job_end(&self, job: JobId) -> Result<Option<JobJson>, Stopped> {
        self.query(|reply| Query::JobEnd { job, reply }).await
    }

    pub(crate) async fn jobs(&self, since: u64) -> Result<(Vec<JobJson>, u64), Stopped> {
        self.query(|reply| Query::Jobs { since, reply }).await
    }

    pub(crate) async fn nodes(&self) -> Result<Vec<NodeJson>, Stopped> {
        self.query(|reply| Query::Nodes { reply }).await
    }

    pub(crate) async fn left(&self) -> Result<Vec<LeftNodeJson>, Stopped> {
        self.query(|reply| Query::Left { reply }).await
    }

    pub(crate) async fn services(&self) -> Result<Vec<ServiceJson>, Stopped> {
        self.query(|reply| Query::Services { reply }).await
    }

    pub(crate) async fn model(&self, name: String) -> Result<Option<(OnnxWork, bool)>, Stopped> {
        self.query(|reply| Query::Model { name, reply }).await
    }

    /// The language model of this name, and whether somebody keeps it ready.
    pub(crate) async fn language(&self, name: String) -> Result<Option<(LlmWork, bool)>, Stopped> {
        self.query(|reply| Query::Language { name, reply }).await
    }

    pub(crate) async fn serve(
        &self,
        spec: ServiceSpec,
        key: Option<Key>,
    ) -> Result<Result<JobId, NotTaken>, Stopped> {
        let spec = Box::new(spec);
        self.ask(|reply| Event::Service(ServiceEvent::Serve { spec, key, reply })).await
    }

    pub(crate) async fn unserve(&self, name: String) -> Result<bool, Stopped> {
        self.ask(|reply| Event::Service(ServiceEvent::Unserve { name, reply })).await
    }

    pub(crate) async fn taken(&self, key: Key) -> Result<Option<Taken>, Stopped> {
        self.query(|reply| Query::Taken { key, reply }).await
    }

    pub(crate) async fn units(&self, job: JobId) -> Result<Option<UnitsJson>, Stopped> {
        self.query(|reply| Query::Units { job, reply }).await
    }

    pub(crate) async fn merged(&self, job: JobId) -> Result<Option<Merged>, Stopped> {
        self.query(|reply| Query::Merged { job, reply }).await
    }

    pub(crate) async fn segment(&self, job: JobId, item: u64) -> Result<Option<Found>, Stopped> {
        self.query(|reply| Query::Segment { job, item, reply }).await
    }

    pub(crate) async fn prefix(
        &self,
        job: JobId,
        from: u64,
        most: usize,
    ) -> Result<Option<Prefix>, Stopped> {
        self.query(|reply| Query::Prefix { job, from, most, reply }).await
    }

    pub(crate) async fn log(&self, job: JobId, from: usize) -> Result<(Vec<Span>, usize), Stopped> {
        self.query(|reply| Query::Log { job, from, reply }).await
    }

    /// Where a connection sits in a crew; in its present epoch if none is named.
    pub(crate) async fn seat(
        &self,
        crew: CrewId,
        epoch: Option<Epoch>,
        conn: Conn,
    ) -> Result<Option<GridSeat>, Stopped> {
        self.query(|reply| Query::Seat { crew, epoch, conn, reply }).await
    }

    /// A member's part of a checkpoint is stored. Says whether it still is a member.
    pub(crate) async fn kept(
        &self,
        crew: CrewId,
        epoch: Epoch,
        conn: Conn,
        blob: BlobRef,
    ) -> Result<bool, Stopped> {
        self.ask(|reply| Event::Crew(CrewEvent::Kept { crew, epoch, conn, blob, reply })).await
    }

    /// In sentences; `None` if there is no such thing.
    pub(crate) async fn explain(&self, what: Explain) -> Result<Option<Vec<String>>, Stopped> {
        self.query(|reply| Query::Explain { what, reply }).await
    }

    /// None if there is no service of this name.
    pub(crate) async fn explain_service(
        &self,
        name: String,
    ) -> Result<Option<ExplainServiceJson>, Stopped> {
        self.query(|reply| Query::ExplainService { name, reply }).await
    }

    pub(crate) async fn receipt(&self, job: JobId) -> Result<Option<Proven>, Stopped> {
        self.query(|reply| Query::Receipt { job, reply }).await
    }

    pub(crate) async fn counts(&self) -> Result<Counts, Stopped> {
        self.query(|reply| Query::Counts { reply }).await
    }

    async fn query<T>(&self, query: impl FnOnce(Reply<T>) -> Query) -> Result<T, Stopped> {
        self.ask(|reply| Event::Query(query(reply))).await
    }

    async fn ask<T>(&self, event: impl FnOnce(Reply<T>) -> Event) -> Result<T, Stopped> {
        let (reply, answer) = oneshot::channel();
        self.tell(event(reply)).await?;
        answer.await.map_err(|_| Stopped)
    }
}
