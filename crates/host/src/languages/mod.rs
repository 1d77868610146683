//! Language models that are kept ready: loaded by ranges of their file, shared by all conversations.

mod desk;
mod part;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use shoal_engine::llm::{Options, Stage, Step, Whole};
use shoal_gguf::{FIRST_BYTES, Model, ReadError};
use shoal_kinds::LlmWork;
use shoal_protocol::{BlobRef, Failure, Hash, JobId};
use shoal_text::{Answer, Asked, Bounds, Done, Next, Said, Spelling, Texts, pack};

use self::desk::Desk;
use super::cache::Keep;
use super::courier::Courier;
use super::program::Answers;

pub(super) use part::Part;

/// Models loaded at a time; the coordinator places no more here than this device's memory holds.
const KEPT: usize = 16;
/// Tokens of a prompt that are computed in one go: others' turns come between.
const PROMPT_STEP: usize = 128;
/// Tokens of all conversations in one go.
const MOST_STEP: usize = 512;
/// How soon a conversation that is ended while it waits for its turn notices.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// What all working threads share.
pub(super) struct Languages {
    loaded: Keep<Arc<Language>>,
    /// Whose they are: several services may have one file.
    users: Mutex<BTreeMap<JobId, Hash>>,
    threads: usize,
}

/// A model that is loaded.
struct Language {
    desk: Desk<Whole>,
    bounds: Bounds,
    last_sequence: AtomicU64,
    seats: Seats,
    /// None if the file's words cannot be read: then answers cannot be kept to a form.
    spelling: Option<Arc<Spelling>>,
}

impl Languages {
    /// Models have as many threads as processors are lent.
    pub(super) fn new(slots: u16) -> Languages {
        let (loaded, users) = (Keep::new(KEPT), Mutex::default());
        Languages { loaded, users, threads: usize::from(slots).max(1) }
    }

    /// Fetches and loads a model, so that its first request need not wait.
    pub(super) fn warm(
        &self,
        courier: &mut Courier,
        work: &LlmWork,
        job: JobId,
    ) -> Result<(), Failure> {
        self.users().insert(job, key(work));
        self.ready(courier, work).map(drop)
    }

    /// Drops the model of a service that has left, if no other service has the same.
    pub(super) fn forget(&self, job: JobId) {
        let mut users = self.users();
        let Some(hash) = users.remove(&job) else { return };
        if !users.values().any(|other| *other == hash) {
            self.loaded.remove(&hash);
        }
    }

    fn users(&self) -> MutexGuard<'_, BTreeMap<JobId, Hash>> {
        self.users.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Continues a text. Each token is given as soon as it is chosen; what ends the answer comes behind its length, as a
    /// unit's.
    pub(super) fn call(
        &self,
        courier: &mut Courier,
        work: &LlmWork,
        request: &[u8],
        cancel: &AtomicBool,
        give: &dyn Fn(Vec<u8>),
    ) -> Result<Vec<u8>, Failure> {
        let asked = Asked::unpack(request)
            .ok_or_else(|| failed("the request is none of a language model"))?;
        let language = self.ready(courier, work)?;
        let done = language.answer(asked, cancel, give)?;
        Answers::one(&pack(&Said::Done(done)))
    }

    fn ready(&self, courier: &mut Courier, work: &LlmWork) -> Result<Arc<Language>, Failure> {
        self.loaded.get(key(work), || Language::load(courier, work, self.threads).map(Arc::new))
    }
}

/// The same file with other settings is loaded again.
fn key(work: &LlmWork) -> Hash {
    let settings = (work.model.hash, work.context, work.conversations);
    shoal_protocol::hash(format!("{settings:?}").as_bytes())
}

impl Language {
    fn load(courier: &mut Courier, work: &LlmWork, threads: usize) -> Result<Language, Failure> {
        let model = head(courier, work.model)?;
        let part = model.part(model.whole()).map_err(failed)?;
        courier.gather_ranges(work.model, &part.ranges);
        let mut read = |range: Range<u64>| {
            let bytes = courier.range(work.model, range).map_err(|failure| failure.to_string())?;
            Ok(bytes.into())
        };
        let sequences = usize::from(work.conversations);
        let options = Options { threads, context: work.context, sequences, kernel: None };
        let stage = Stage::load(&model, model.whole(), &options, &mut read)
            .map_err(|error| Failure::Unable { message: error.to_string() })?;
        Ok(Language {
            desk: Desk::new(Whole::new(stage), MOST_STEP),
            bounds: bounds(&model, work, PROMPT_STEP),
            last_sequence: AtomicU64::new(0),
            seats: Seats::new(sequences),
            spelling: spelling(&model),
        })
    }

    fn answer(
        &self,
        asked: Asked,
        cancel: &AtomicBool,
        give: &dyn Fn(Vec<u8>),
    ) -> Result<Done, Failure> {
        let mut answer =
            Answer::new(asked, self.bounds, self.spelling.as_ref(), 0).map_err(failed)?;
        let _seat = self.seats.take(cancel)?;
        let sequence = self.last_sequence.fetch_add(1, Ordering::Relaxed) + 1;
        let _open = Open { language: self, sequence };
        let began = Instant::now();
        while let Some(Next { position, tokens, wants }) = answer.next() {
            still_wanted(cancel)?;
            let step = Step { sequence, position, tokens: tokens.into(), wants };
            let logits = self.desk.step(step).map_err(broke)?;
            let now = began.elapsed().as_micros() as u64;
            for said in answer.computed(logits.as_deref(), now).map_err(failed)? {
                match said {
                    Said::Token(_) => give(pack(&said)),
                    Said::Done(done) => return Ok(done),
                }
            }
        }
        Err(failed("the answer has no end"))
    }
}

/// A conversation's place in the engine, given back whatever happens.
struct Open<'a> {
    language: &'a Language,
    sequence: u64,
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.language.desk.drop_sequence(self.sequence);
    }
}

/// Conversations that may be open at a time: the memory for so many was promised. First come, first served.
struct Seats {
    state: Mutex<Waiters>,
    freed: Condvar,
}

struct Waiters {
    free: usize,
    /// Who waits, in the order they came.
    line: Vec<u64>,
    last: u64,
}

struct Seat<'a>(&'a Seats);

impl Seats {
    fn new(free: usize) -> Seats {
        Seats {
            state: Mutex::new(Waiters { free, line: Vec::new(), last: 0 }),
            freed: Condvar::new(),
        }
    }

    fn take(&self, cancel: &AtomicBool) -> Result<Seat<'_>, Failure> {
        let mut state = self.state();
        state.last += 1;
        let own = state.last;
        state.line.push(own);
        loop {
            if let Err(failure) = still_wanted(cancel) {
                state.line.retain(|other| *other != own);
                return Err(failure);
            }
            if state.free > 0 && state.line.first() == Some(&own) {
                state.line.remove(0);
                state.free -= 1;
                return Ok(Seat(self));
            }
            let waited = self.freed.wait_timeout(state, LOOK_EVERY);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn state(&self) -> MutexGuard<'_, Waiters> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        self.0.state().free += 1;
        self.0.freed.notify_all();
    }
}

fn bounds(model: &Model, work: &LlmWork, step: usize) -> Bounds {
    Bounds { words: model.config().vocab, context: work.context, step }
}

fn spelling(model: &Model) -> Option<Arc<Spelling>> {
    let texts = Texts::read(model.head()).ok()?;
    Some(Arc::new(Spelling::new(&texts.tokenizer)))
}

/// What stands before the weights.
fn head(courier: &mut Courier, blob: BlobRef) -> Result<Model, Failure> {
    let mut wanted = FIRST_BYTES.min(blob.size);
    loop {
        let bytes = courier.range(blob, 0..wanted)?;
        match Model::read(bytes, blob.size) {
            Err(ReadError::Short { needed }) if wanted < blob.size => {
                wanted = needed.max(wanted * 2).min(blob.size);
            }
            read => return read.map_err(failed),
        }
    }
}

fn still_wanted(cancel: &AtomicBool) -> Result<(), Failure> {
    if cancel.load(Ordering::Relaxed) {
        return Err(Failure::Internal { message: "ended on request".into() });
    }
    Ok(())
}

/// Another node may do better.
fn broke(words: String) -> Failure {
    Failure::Internal { message: words }
}

fn failed(words: impl ToString) -> Failure {
    Failure::Model { message: words.to_string() }
}
