//! An answer as this client reads it, and as it was said: `--json` prints what was said, with fields of a newer
//! coordinator that this client does not know.

use std::ops::Deref;

use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use shoal_api::JobJson;

/// A job as clients see it.
pub(crate) type Job = Said<JobJson>;

#[derive(Clone, Debug)]
pub(crate) struct Said<T> {
    read: T,
    said: Value,
}

impl<T> Deref for Said<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.read
    }
}

impl<T> Serialize for Said<T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.said.serialize(to)
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for Said<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Said<T>, D::Error> {
        let said = Value::deserialize(from)?;
        let read = T::deserialize(&said).map_err(D::Error::custom)?;
        Ok(Said { read, said })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shoal_api::{NodeJson, NodesJson};

    #[test]
    fn what_a_newer_coordinator_says_is_printed_though_nobody_here_knows_it() {
        let mut node = serde_json::to_value(NodeJson::default()).expect("JSON");
        node["mood"] = "fine".into();
        let text = serde_json::json!({"nodes": [node], "weather": 1}).to_string();
        let list: Said<NodesJson> = serde_json::from_str(&text).expect("nodes");
        assert_eq!(list.nodes, [NodeJson::default()]);
        assert_eq!(serde_json::to_string(&list).expect("JSON"), text);
    }

    #[test]
    fn a_job_is_read_as_it_is_written() {
        let job = JobJson { name: "wave".into(), rate: 3.0, ..JobJson::default() };
        let text = serde_json::to_string(&job).expect("JSON");
        let read: Job = serde_json::from_str(&text).expect("a job");
        assert_eq!((read.name.as_str(), read.rate, read.state), ("wave", 3.0, job.state));
    }
}
