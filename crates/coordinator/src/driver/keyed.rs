//! Which job a client's key stands for: a request that is sent again, because its answer was lost, gives the job of the
//! first time. A key lives as long as its job.

use std::collections::HashMap;

use shoal_protocol::{Hash, JobId};

/// What a client sends with a request, so that it is taken only once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) name: String,
    /// Of the request's body: the same key with another request is a mistake.
    pub(crate) body: Hash,
}

/// A key as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Keyed {
    pub(crate) key: Key,
    pub(crate) job: JobId,
}

/// What a key stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// The same request made this job.
    Same(JobId),
    /// Another request did.
    Other(JobId),
}

/// All keys of jobs that are known, by both sides.
#[derive(Default)]
pub(super) struct Keys {
    taken: HashMap<String, (JobId, Hash)>,
    jobs: HashMap<JobId, String>,
}

impl Keys {
    pub(super) fn find(&self, key: &Key) -> Option<Taken> {
        let (job, body) = self.taken.get(&key.name)?;
        Some(if *body == key.body { Taken::Same(*job) } else { Taken::Other(*job) })
    }

    pub(super) fn keep(&mut self, Keyed { key, job }: Keyed) {
        self.jobs.insert(job, key.name.clone());
        self.taken.insert(key.name, (job, key.body));
    }

    /// The job is gone; gives its key.
    pub(super) fn forget(&mut self, job: JobId) -> Option<String> {
        let name = self.jobs.remove(&job)?;
        self.taken.remove(&name);
        Some(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shoal_protocol::hash;

    #[test]
    fn a_key_stands_for_one_request_while_its_job_is_there() {
        let key = |body: &[u8]| Key { name: "k".into(), body: hash(body) };
        let mut keys = Keys::default();
        assert_eq!(keys.find(&key(b"a")), None);
        keys.keep(Keyed { key: key(b"a"), job: JobId(7) });
        assert_eq!(keys.find(&key(b"a")), Some(Taken::Same(JobId(7))));
        assert_eq!(keys.find(&key(b"b")), Some(Taken::Other(JobId(7))));
        assert_eq!(keys.forget(JobId(7)), Some("k".into()));
        assert_eq!(keys.find(&key(b"a")), None);
        assert_eq!(keys.forget(JobId(7)), None);
    }
}
