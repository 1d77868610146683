//! Answers of a program, written while its job runs: in order, as soon as none before them is missing.

use std::io::{ErrorKind, IsTerminal};
use std::path::Path;
use std::pin::pin;
use std::time::Duration;

use shoal_api::JobRequest;
use tokio::sync::watch;

use super::Context;
use super::exec::Names;
use super::left::Left;
use super::resume::Resume;
use crate::client::{Answer, Client, Job, Sink, Source, Watcher};
use crate::fail::Fail;
use crate::interrupt::Interrupts;
use crate::show;

/// Whoever leaves waits at most so long to hear whether what came can be kept.
const DISTRUST: Duration = Duration::from_secs(2);

/// Where answers go while they come.
pub(super) enum To<'a> {
    /// One after the other into stdout or a file; none while some are being written.
    Row { sink: Option<Sink>, as_lines: bool },
    /// Each in a file with its input's name, but for those that failed.
    Folder { folder: &'a Path, files: &'a [(String, Source)] },
}

pub(super) struct Stream<'a> {
    to: To<'a>,
    /// The first item whose answer is still to come.
    next: u64,
    /// Of all bytes that went to stdout.
    written: blake3::Hasher,
    /// Answers of the job that are not believed any more.
    taken_back: u64,
    /// What was done before, and is kept for the next time.
    resume: Option<Resume>,
    /// What runs leave beside their answers.
    left: &'a mut Left,
    names: Names<'a>,
}

impl<'a> Stream<'a> {
    pub(super) fn new(
        to: To<'a>,
        resume: Option<Resume>,
        (left, names): (&'a mut Left, Names<'a>),
    ) -> Stream<'a> {
        Stream { to, next: 0, written: blake3::Hasher::new(), taken_back: 0, resume, left, names }
    }

    /// Writes what is left of what was there before, and puts a file in its place.
    pub(super) async fn finish(mut self) -> Result<(), Fail> {
        let there = self.resume.as_mut().map(|resume| resume.until(None)).unwrap_or_default();
        if let To::Row { sink, as_lines } = &mut self.to {
            let mut text = Vec::new();
            there.iter().for_each(|answer| add(&mut text, answer, *as_lines));
            write(sink, text).await?;
            if let Some(sink) = sink.take() {
                sink.finish()?;
            }
        }
        Ok(())
    }

    /// Runs a job, and writes its answers meanwhile.
    pub(super) async fn run(
        &mut self,
        context: &Context,
        client: &Client,
        request: &JobRequest,
        interrupts: &Interrupts,
    ) -> Result<Job, Fail> {
        let (told, heard) = watch::channel((0, 0));
        let last = told.subscribe();
        let prints =
            matches!(self.to, To::Row { sink: None, .. }) && std::io::stdout().is_terminal();
        let takes_terminal = prints || self.left.takes_terminal();
        let outcome = {
            let mut work =
                pin!(context.run_telling(client, request, interrupts, (told, takes_terminal)));
            let mut follow = pin!(self.follow(client, heard));
            tokio::select! {
                outcome = &mut work => match outcome {
                    // Whoever leaves does not wait for a slow reader.
                    Err(fail) if leaves(&fail) => Err(fail),
                    outcome => follow.await.and(outcome),
                },
                failed = &mut follow => match failed {
                    Ok(()) => work.await,
                    Err(fail) => Err(fail),
                },
            }
        };
        let id = last.borrow().0;
        if outcome.is_err() {
            self.distrust(client, id).await?;
        }
        match outcome {
            Err(fail) if leaves(&fail) => Err(fail),
            Ok(job) => self.rest(client, &job).await.map(|()| job),
            Err(Fail::PipeClosed) => {
                // As every program in a pipe ends when nobody reads on.
                client.cancel(id).await?;
                Err(Fail::PipeClosed)
            }
            Err(fail @ Fail::Job { .. }) => {
                // What was done before it failed is done. That it failed is the news, whoever reads on.
                let _ = self.take(client, id).await;
                Err(fail)
            }
            // Nothing was submitted.
            Err(fail) if id == 0 => Err(fail),
            Err(fail) => {
                let on = context.manner.go_on("watch", id);
                client.note(&format!("job {id} keeps running; to go on: {on}"));
                Err(fail)
            }
        }
    }

    /// Nothing is kept for the next time of a job some of whose answers are not believed any more, and whose end nobody
    /// waits for.
    async fn distrust(&mut self, client: &Client, id: u64) -> Result<(), Fail> {
        let Some(resume) = self.resume.as_mut().filter(|_| id != 0) else { return Ok(()) };
        let mut next = self.next;
        let asked = client.answers(id, &mut next, async |_| Ok(()));
        if let Ok(Ok(count)) = tokio::time::timeout(DISTRUST, asked).await {
            self.taken_back = count;
        }
        if self.taken_back > 0 { resume.forget() } else { Ok(()) }
    }

    /// Takes what is there whenever more is done, until nobody tells of it any more.
    async fn follow(
        &mut self,
        client: &Client,
        mut heard: watch::Receiver<(u64, u64)>,
    ) -> Result<(), Fail> {
        while heard.changed().await.is_ok() {
            let (job, done) = *heard.borrow_and_update();
            if done > self.next {
                self.take(client, job).await?;
            }
        }
        Ok(())
    }

    async fn take(&mut self, client: &Client, job: u64) -> Result<(), Fail> {
        let mut next = self.next;
        let taken = client.answers(job, &mut next, async |answers| self.put(answers).await).await;
        self.taken_back = taken?;
        Ok(())
    }

    /// All is done: what is still missing, and what later checks changed.
    async fn rest(&mut self, client: &Client, job: &Job) -> Result<(), Fail> {
        self.take(client, job.id).await?;
        if self.next == job.items && self.taken_back > 0 {
            self.look_again(client, job).await?;
        }
        if self.next != job.items {
            return Err(Fail::world("bad_answer", "the answers arrived incomplete"));
        }
        Ok(())
    }

    async fn look_again(&mut self, client: &Client, job: &Job) -> Result<(), Fail> {
        if let To::Folder { .. } = self.to {
            self.next = 0;
            return self.take(client, job.id).await;
        }
        let mut right = blake3::Hasher::new();
        let bar = show::Bytes::hidden();
        client
            .result(job.id, &bar, |piece| {
                right.update(piece);
                Ok(())
            })
            .await?;
        if right.finalize() == self.written.finalize() {
            // Their files may still be others.
            let (left, names) = (&mut *self.left, self.names);
            let again = async |answers: Vec<Answer>| {
                answers
                    .iter()
                    .try_for_each(|answer| left.take_answer(&names.of(answer.item), answer))
            };
            return client.answers(job.id, &mut 0, again).await.map(drop);
        }
        if let Some(resume) = &mut self.resume {
            resume.forget()?;
        }
        let id = job.id;
        Err(Fail::world(
            "answers_changed",
            format!(
                "an answer that was printed turned out to be wrong: the device that gave it is not believed \
                 any more; `shoal result {id}` has the right ones"
            ),
        ))
    }

    async fn put(&mut self, answers: Vec<Answer>) -> Result<(), Fail> {
        let Some(last) = answers.last().map(|answer| answer.item) else { return Ok(()) };
        match &mut self.to {
            To::Row { sink, as_lines } => {
                let mut text = Vec::new();
                for answer in &answers {
                    let before = self.resume.as_mut().map(|it| it.until(Some(answer.item)));
                    for there in before.unwrap_or_default() {
                        add(&mut text, &there, *as_lines);
                    }
                    self.written.update(&answer.bytes);
                    add(&mut text, &answer.bytes, *as_lines);
                }
                write(sink, text).await?;
            }
            To::Folder { folder, files } => {
                for answer in &answers {
                    let at = usize::try_from(answer.item).unwrap_or(usize::MAX);
                    let Some((name, _)) = files.get(at) else { continue };
                    save(&folder.join(name), answer)?;
                }
            }
        }
        for answer in &answers {
            self.left.take_answer(&self.names.of(answer.item), answer)?;
            if let Some(resume) = &mut self.resume {
                resume.add(answer)?;
            }
        }
        self.next = last + 1;
        Ok(())
    }
}

/// Whether the user is gone or wants to be.
fn leaves(fail: &Fail) -> bool {
    match fail {
        Fail::Interrupted { .. } | Fail::Stopped { .. } | Fail::Detached { .. } | Fail::HungUp => {
            true
        }
        Fail::Input { .. }
        | Fail::Job { .. }
        | Fail::Runs { .. }
        | Fail::World { .. }
        | Fail::PipeClosed => false,
    }
}

/// As lines, an answer that does not end one gets a newline.
fn add(text: &mut Vec<u8>, answer: &[u8], as_lines: bool) {
    text.extend_from_slice(answer);
    if as_lines && answer.last().is_some_and(|last| *last != b'\n') {
        text.push(b'\n');
    }
}

/// A reader may take its time; interrupts are heard meanwhile.
async fn write(sink: &mut Option<Sink>, text: Vec<u8>) -> Result<(), Fail> {
    let mut taken = match sink.take() {
        Some(sink) => sink,
        None => Sink::create(Path::new("-"))?,
    };
    let write = tokio::task::spawn_blocking(move || {
        taken.write(&text).and_then(|()| taken.flush()).map(|()| taken)
    });
    let written = write.await.map_err(|error| Fail::world("internal", error.to_string()))?;
    *sink = Some(written?);
    Ok(())
}

/// Nobody should take half an answer for a whole one, nor an older one for this.
fn save(path: &Path, answer: &Answer) -> Result<(), Fail> {
    if answer.failed {
        return match std::fs::remove_file(path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(Fail::writing(path, &error)),
            Ok(()) | Err(_) => Ok(()),
        };
    }
    let mut sink = Sink::create(path)?;
    sink.write(&answer.bytes)?;
    sink.finish()
}

/// Tells how far a job is, beside somebody else who is told.
pub(super) struct Telling<'a, W> {
    pub(super) watcher: &'a W,
    pub(super) told: watch::Sender<(u64, u64)>,
}

impl<W: Watcher> Watcher for Telling<'_, W> {
    fn changed(&self, job: &Job) {
        self.watcher.changed(job);
        let now = (job.id, job.items_done);
        self.told.send_if_modified(|last| std::mem::replace(last, now) != now);
    }

    fn note(&self, text: &str) {
        self.watcher.note(text);
    }
}
