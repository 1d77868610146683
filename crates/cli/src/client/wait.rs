//! Waiting for a job: by the coordinator's events, across its restarts, until it ends or the user
//! stops it.

use std::cell::Cell;
use std::pin::pin;
use std::time::Duration;

use futures_util::StreamExt;
use reqwest::{Method, header};
use shoal_api::{JobRequest, StateJson};
use tokio::time::timeout;

use super::events::EventReader;
use super::{Client, Fail, Job, Manner, OnInterrupt};
use crate::interrupt::Interrupts;

/// How long the coordinator is asked to hold its first answer: most small jobs are over by then.
const FIRST_WAIT_SECONDS: f64 = 0.5;
/// Silence on an event stream after which the coordinator is asked directly; it breaks its own
/// every 15 s.
const SILENCE: Duration = Duration::from_secs(40);

/// Told about every change of a job that is waited for.
pub(crate) trait Watcher {
    fn changed(&self, job: &Job);
    /// Something a person should know meanwhile.
    fn note(&self, text: &str);
}

impl Client {
    /// Submits a job and waits for its end. The first interrupt stops the job or leaves it running, the second
    /// leaves at once.
    pub(crate) async fn run(
        &self,
        request: &JobRequest,
        manner: &Manner,
        watcher: &impl Watcher,
        interrupts: &Interrupts,
    ) -> Result<Job, Fail> {
        let _hold = interrupts.hold();
        let before = interrupts.count();
        let submitted = Cell::new(None);
        let work = async {
            let job = self.submit(request, None).await?;
            submitted.set(Some(job.id));
            watcher.changed(&job);
            for note in &job.notes {
                watcher.note(&format!("note: {note}"));
            }
            if manner.detach {
                return Err(manner.detached(&job));
            }
            self.stay(job, manner, watcher, interrupts, before).await
        };
        let job = tokio::select! {
            job = work => job?,
            () = interrupts.hung_up() => return Err(Fail::HungUp),
            () = interrupts.after(before + 1) => {
                return Err(match submitted.get() {
                    Some(job) => manner.left(job),
                    None => {
                        let message = "quit; the job may have been submitted: see `shoal jobs`";
                        Fail::Interrupted { message: message.into() }
                    }
                });
            }
        };
        let job = verdict(job, interrupts.count() > before)?;
        let id = job.id;
        interrupts.advise(format!(
            "job {id} is done; to fetch its result: {}",
            manner.go_on("result", id)
        ));
        Ok(job)
    }

    /// Stays with a job until it ends or an interrupt leaves it running.
    async fn stay(
        &self,
        job: Job,
        manner: &Manner,
        watcher: &impl Watcher,
        interrupts: &Interrupts,
        before: u32,
    ) -> Result<Job, Fail> {
        let id = job.id;
        let mut end = pin!(self.until_end(job, watcher));
        tokio::select! {
            job = &mut end => return job,
            () = interrupts.after(before) => {}
        }
        let chosen = manner.choose(id, interrupts.is_order(), |text| watcher.note(text));
        let chosen = tokio::select! {
            job = &mut end => return job,
            chosen = chosen => chosen,
        };
        if chosen == OnInterrupt::Leave {
            return Err(manner.left(id));
        }
        let note = "press Ctrl-C again to quit at once";
        watcher.note(&format!("asking job {id} to stop; {note}"));
        self.cancel(id).await?;
        end.await
    }

    /// Waits for the end of a job, whatever it is.
    pub(crate) async fn until_end(
        &self,
        mut job: Job,
        watcher: &impl Watcher,
    ) -> Result<Job, Fail> {
        let note = |text: &str| watcher.note(text);
        let mut tries = self.tries(&note);
        let path = format!("/api/v1/jobs/{}", job.id);
        let first = format!("{path}?wait={FIRST_WAIT_SECONDS}");
        let mut asked: Result<Job, Fail> = self.once(Method::GET, &first).await;
        loop {
            match asked {
                Ok(now) => {
                    tries.moved();
                    watcher.changed(&now);
                    job = now;
                }
                Err(fail) => tries.again(fail).await?,
            }
            if job.state.has_ended() {
                return Ok(job);
            }
            self.follow(&mut job, watcher).await;
            asked = self.once(Method::GET, &path).await;
        }
    }

    /// Follows a job's event stream, if there is one, until it ends or is silent for too long.
    async fn follow(&self, job: &mut Job, watcher: &impl Watcher) {
        let answer = self
            .request(Method::GET, &format!("/api/v1/jobs/{}/events", job.id))
            .header(header::ACCEPT, "text/event-stream")
            .send()
            .await;
        let Ok(answer) = self.accept(answer).await else { return };
        let mut pieces = answer.bytes_stream();
        let mut reader = EventReader::default();
        while let Ok(Some(Ok(piece))) = timeout(SILENCE, pieces.next()).await {
            let Ok(events) = reader.push(&piece) else { return };
            for event in events.iter().filter(|event| event.name == "job") {
                let Ok(now) = serde_json::from_str::<Job>(&event.data) else { continue };
                watcher.changed(&now);
                *job = now;
            }
            if job.state.has_ended() {
                return;
            }
        }
    }
}

/// What the end of a job means for the command that waited for it.
pub(crate) fn verdict(job: Job, asked_to_stop: bool) -> Result<Job, Fail> {
    let name = format!("job {} ({})", job.id, job.name);
    let (message, stderr) = match job.state {
        StateJson::Running | StateJson::Done => return Ok(job),
        StateJson::Cancelled if asked_to_stop => {
            let message = format!("{name} was stopped");
            return Err(Fail::Stopped { message, job: job.id });
        }
        StateJson::Cancelled => (format!("{name} was cancelled"), String::new()),
        StateJson::Failed => {
            let error = job.error.as_ref();
            let why = error.map_or("for an unknown reason", |error| error.message.as_str());
            let stderr = error.map(|error| error.stderr.clone()).unwrap_or_default();
            (format!("{name} failed: {why}"), stderr)
        }
    };
    let job = serde_json::to_value(&job).unwrap_or_default();
    Err(Fail::Job { message, stderr, job })
}
