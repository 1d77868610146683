//! Language models that are kept ready: loaded by ranges of their file, shared by all conversations.

mod gpu;
mod part;
mod voice;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use shoal_engine::llm::{Conversations, Options, Room, Stage, Whole};
use shoal_gguf::{FIRST_BYTES, Model, ReadError};
use shoal_kinds::LlmWork;
use shoal_kinds::llm::On;
use shoal_protocol::{BlobRef, Failure, Hash, JobId};
use shoal_text::{Asked, Bounds, Spelling, Texts};

use self::gpu::{Open, Remote};
use self::voice::Voice;
use super::cache::Keep;
use super::courier::Courier;

pub use gpu::{WORKER as LLM_WORKER, run as run_llm_worker};
pub(super) use part::{Made, Part};
pub(super) use voice::{Caller, Word};

/// Models loaded at a time; the coordinator places no more here than this device's memory holds.
const KEPT: usize = 16;
/// Tokens of a prompt that are computed in one go: others' turns come between.
const PROMPT_STEP: usize = 128;
/// Tokens of all conversations in one go.
const MOST_STEP: usize = 512;

/// What all working threads share.
pub(super) struct Languages {
    loaded: Keep<Arc<Voice>>,
    /// Whose they are: several services may have one file.
    users: Mutex<BTreeMap<JobId, Hash>>,
    threads: usize,
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

    /// Has a text continued, beside all others that the model continues. Whoever asks hears of it as it goes on; this only
    /// waits until the model is loaded.
    pub(super) fn call(
        &self,
        courier: &mut Courier,
        work: &LlmWork,
        request: &[u8],
        caller: Caller,
    ) -> Result<(), Failure> {
        let asked = Asked::unpack(request)
            .ok_or_else(|| failed("the request is none of a language model"))?;
        let Err(unheard) = self.ready(courier, work)?.ask(asked, caller) else {
            return Ok(());
        };
        let (asked, caller) = *unheard;
        // It broke just now, when others asked it: a new one may not.
        let broken = || Failure::Internal { message: "the model's engine broke twice".into() };
        self.ready(courier, work)?.ask(asked, caller).map_err(|_| broken())
    }

    fn ready(&self, courier: &mut Courier, work: &LlmWork) -> Result<Arc<Voice>, Failure> {
        let new = || load(courier, work, self.threads).map(Arc::new);
        self.loaded.get_sound(key(work), |voice| !voice.is_broken(), new)
    }
}

/// The same file with other settings is loaded again.
fn key(work: &LlmWork) -> Hash {
    let settings = (work.model.hash, work.context, work.conversations, work.on);
    shoal_protocol::hash(format!("{settings:?}").as_bytes())
}

fn load(courier: &mut Courier, work: &LlmWork, threads: usize) -> Result<Voice, Failure> {
    let (model, beginning) = beginning(courier, work.model)?;
    let part = model.part(model.whole()).map_err(failed)?;
    courier.gather_ranges(work.model, &part.ranges);
    let mut read = |range: Range<u64>| {
        let bytes = courier.range(work.model, range).map_err(|failure| failure.to_string())?;
        Ok(bytes.into())
    };
    let sequences = usize::from(work.conversations);
    let room = Room { seats: sequences, tokens: MOST_STEP, guesses: true };
    let (bounds, spelling) = (bounds(&model, work, PROMPT_STEP), spelling(&model));
    let unable = |message| Failure::Unable { message };
    match work.on {
        On::Processor => {
            let options = Options { threads, context: work.context, sequences, kernel: None };
            let stage = Stage::load(&model, model.whole(), &options, &mut read)
                .map_err(|error| unable(error.to_string()))?;
            Voice::start(Conversations::new(Whole::new(stage), bounds, room, spelling))
        }
        On::Gpu => {
            let (head, size, context) = (beginning.into(), work.model.size, work.context);
            let open = Open { head, size, context, sequences: work.conversations.into() };
            let remote = Remote::load(&open, &mut read).map_err(unable)?;
            Voice::start(Conversations::new(remote, bounds, room, spelling))
        }
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
    beginning(courier, blob).map(|(model, _)| model)
}

/// The same, with the bytes that say so.
fn beginning(courier: &mut Courier, blob: BlobRef) -> Result<(Model, Bytes), Failure> {
    let mut wanted = FIRST_BYTES.min(blob.size);
    loop {
        let bytes = courier.range(blob, 0..wanted)?;
        match Model::read(bytes.clone(), blob.size) {
            Err(ReadError::Short { needed }) if wanted < blob.size => {
                wanted = needed.max(wanted * 2).min(blob.size);
            }
            read => return read.map(|model| (model, bytes)).map_err(failed),
        }
    }
}

fn failed(words: impl ToString) -> Failure {
    Failure::Model { message: words.to_string() }
}
