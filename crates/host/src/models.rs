//! ONNX models that are kept ready for requests.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use shoal_engine::onnx::{Model, Threads};
use shoal_kinds::OnnxWork;
use shoal_protocol::{Failure, Hash, JobId};

use super::cache::Keep;
use super::courier::Courier;
use super::program::Answers;

/// Models loaded at a time; the coordinator places no more services here than this device's memory holds, and each is
/// dropped with its service.
const KEPT: usize = 16;

/// What all working threads share.
pub(super) struct Models {
    loaded: Keep<Arc<Model>>,
    /// Whose they are: several services may have one file.
    users: Mutex<BTreeMap<JobId, Hash>>,
    threads: Threads,
}

impl Models {
    /// Models have as many threads as processors are lent.
    pub(super) fn new(slots: u16) -> Models {
        let (loaded, users) = (Keep::new(KEPT), Mutex::default());
        Models { loaded, users, threads: Threads::new(slots.into()) }
    }

    /// Fetches and loads a model, so that its first request need not wait.
    pub(super) fn warm(
        &self,
        courier: &mut Courier,
        work: &OnnxWork,
        job: JobId,
    ) -> Result<(), Failure> {
        self.users().insert(job, work.model.hash);
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

    /// Runs a model once. The answer comes behind its length, as a unit's.
    pub(super) fn call(
        &self,
        courier: &mut Courier,
        work: &OnnxWork,
        request: &[u8],
    ) -> Result<Vec<u8>, Failure> {
        let answer = self.ready(courier, work)?.run(work, request)?;
        Answers::one(&answer)
    }

    fn ready(&self, courier: &mut Courier, work: &OnnxWork) -> Result<Arc<Model>, Failure> {
        self.loaded.get(work.model.hash, || {
            let file = courier.shared(work.model)?;
            Model::load(file.into(), work, &self.threads).map(Arc::new)
        })
    }
}
