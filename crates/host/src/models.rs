//! ONNX models that are kept ready for requests, and those that run over many inputs.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use shoal_engine::onnx::{Memory, Model, Note, Second, Threads};
use shoal_kinds::OnnxWork;
use shoal_kinds::onnx::Unit;
use shoal_node::JobInfo;
use shoal_protocol::{Failure, Hash, JobId, Lease};

use super::accelerator::Accelerator;
use super::cache::Keep;
use super::courier::Courier;
use super::jobs::Asker;

/// Models loaded at a time; the coordinator places no more services here than this device's memory holds, and each is
/// dropped with its service.
const KEPT: usize = 16;
/// How long a run of a unit waits for requests. Those of one user end in that time; many users must not stop the unit.
const GIVES_WAY: Duration = Duration::from_secs(1);

/// What all working threads share.
pub(super) struct Models {
    loaded: Keep<Arc<Model>>,
    /// Whose they are: several services and jobs may have one file.
    users: Mutex<BTreeMap<JobId, Hash>>,
    threads: Threads,
    /// A thread for each unit: together they are as many as are lent, and none waits for another.
    single: Mutex<Vec<Threads>>,
    asked: Asked,
    memory: Memory,
    accelerator: Option<Arc<Accelerator>>,
    tell: Tell,
}

/// Requests that are being answered. Somebody waits for them, so units give way.
#[derive(Default)]
struct Asked {
    count: Mutex<usize>,
    none: Condvar,
}

impl Asked {
    fn begin(&self) -> Answering<'_> {
        *self.count.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        Answering(self)
    }

    fn give_way(&self) {
        let count = self.count.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.none.wait_timeout_while(count, GIVES_WAY, |count| *count > 0));
    }
}

/// A request, until it is dropped.
struct Answering<'a>(&'a Asked);

impl Drop for Answering<'_> {
    fn drop(&mut self) {
        *self.0.count.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        self.0.none.notify_all();
    }
}

/// Which engine a model has now.
pub(super) struct Noted {
    pub(super) asker: Asker,
    pub(super) note: Note,
}

pub(super) type Tell = Arc<dyn Fn(Noted) + Send + Sync>;

impl Models {
    /// Models have as many threads as processors are lent.
    pub(super) fn new(
        slots: u16,
        memory: Memory,
        accelerator: Option<Arc<Accelerator>>,
        tell: Tell,
    ) -> Models {
        Models {
            loaded: Keep::new(KEPT),
            users: Mutex::default(),
            threads: Threads::new(slots.into()),
            single: Mutex::default(),
            asked: Asked::default(),
            memory,
            accelerator,
            tell,
        }
    }

    /// Fetches and loads a model, so that its first request need not wait.
    pub(super) fn warm(
        &self,
        courier: &mut Courier,
        work: &OnnxWork,
        info: &JobInfo,
        job: JobId,
    ) -> Result<(), Failure> {
        self.users().insert(job, work.model.hash);
        self.ready(courier, work, info).map(drop)
    }

    /// Drops the model of a service or a job that has left, if no other has the same.
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

    /// Runs a model once.
    pub(super) fn call(
        &self,
        courier: &mut Courier,
        work: &OnnxWork,
        info: &JobInfo,
        request: &[u8],
    ) -> Result<Vec<u8>, Failure> {
        let _asked = self.asked.begin();
        self.ready(courier, work, info)?.run(work, request)
    }

    /// Runs a model over the items of a unit: their rows.
    pub(super) fn unit(
        &self,
        courier: &mut Courier,
        work: &OnnxWork,
        info: &JobInfo,
        lease: &Lease,
        cancel: &AtomicBool,
    ) -> Result<Vec<u8>, Failure> {
        let no_batch =
            || Failure::Internal { message: "a unit of a model, which answers requests".into() };
        let batch = work.batch.as_ref().ok_or_else(no_batch)?;
        self.users().insert(lease.job, work.model.hash);
        let model = self.ready(courier, work, info)?;
        let mut inputs = Vec::with_capacity(batch.feeds.len());
        for feed in &batch.feeds {
            let (from, until) = feed.range(lease.span);
            inputs.push(courier.part(feed.blob, from..until)?);
        }
        let mut unit = Unit::new(batch, lease.span, inputs);
        let thread = self.singles().pop().unwrap_or_else(|| Threads::new(1));
        let ran = loop {
            if !unit.goes_on() {
                break Ok(());
            }
            self.asked.give_way();
            if cancel.load(Ordering::Relaxed) {
                break Err(Failure::Internal { message: "ended on request".into() });
            }
            if let Err(failure) = unit.step(batch, |ask| model.run_in(&thread, work, ask)) {
                break Err(failure);
            }
        };
        self.singles().push(thread);
        ran.map(|()| unit.into_rows())
    }

    fn singles(&self) -> MutexGuard<'_, Vec<Threads>> {
        self.single.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ready(
        &self,
        courier: &mut Courier,
        work: &OnnxWork,
        info: &JobInfo,
    ) -> Result<Arc<Model>, Failure> {
        self.loaded.get(work.model.hash, || {
            let file = courier.shared(work.model)?;
            let second = |file: &Bytes| self.second(file, info);
            Model::load_beside(file, work, (&self.threads, &self.memory), second).map(Arc::new)
        })
    }

    /// ONNX Runtime with the same model, if it is here and can load it.
    fn second(&self, file: &Bytes, info: &JobInfo) -> Option<Second> {
        let accelerator = self.accelerator.as_ref()?;
        let (asker, tell) = (Asker::of(info), self.tell.clone());
        let tell = Arc::new(move |note| tell(Noted { asker: asker.clone(), note }));
        let name = accelerator.name();
        let limit = Duration::from_micros(info.limits.time.0);
        match accelerator.load(file.clone(), limit) {
            Ok(engine) => {
                let preferred = accelerator.preferred;
                Some(Second { name, engine, preferred, clock: micros, tell })
            }
            Err(why) => {
                tell(Note::Broke { name, why });
                None
            }
        }
    }
}

/// Since this was first asked.
fn micros() -> u64 {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    START.elapsed().as_micros() as u64
}
